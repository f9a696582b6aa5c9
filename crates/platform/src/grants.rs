//! Remembered answers: who sees them, takes them back, and gives them in advance.

use haft_runtime::{Caller, ErrorCode, Grant, GrantId, Questions, Scope, ToolError};
pub use haft_store::{GrantFilter, GrantRow};

use crate::{Permission, Platform, platform::not_found};

impl Platform {
    /// Grants, newest first: everybody's for those who may manage them, else one's own.
    pub async fn grants(&self, caller: &Caller, filter: &GrantFilter) -> Result<Vec<GrantRow>, ToolError> {
        let of = if manages_all(caller) { None } else { Some(caller.id.clone()) };
        Ok(self.store.grant_page(&caller.scope, &GrantFilter { of, ..filter.clone() }).await?)
    }

    /// One grant that the caller may see.
    pub async fn grant(&self, caller: &Caller, id: &str) -> Result<GrantRow, ToolError> {
        let unknown = || not_found("such grant");
        let id = GrantId::parse(id).ok_or_else(unknown)?;
        let found = self.store.grant_row(&caller.scope, &id).await?;
        found.filter(|row| manages_all(caller) || is_own(caller, &row.grant)).ok_or_else(unknown)
    }

    /// Takes a grant back. It covers nothing from then on, wherever a call is under way.
    pub async fn revoke_grant(&self, caller: &Caller, id: &str) -> Result<GrantRow, ToolError> {
        let mut row = self.grant(caller, id).await?;
        self.store.revoke(&caller.scope, &row.grant.id).await?;
        row.grant.revoked = true;
        Ok(row)
    }

    /// Says yes in advance, in the workspace of the scope.
    pub async fn give_grant(&self, caller: &Caller, scope: &Scope, grant: Grant) -> Result<GrantRow, ToolError> {
        let is_for_others = grant.caller.as_ref() != Some(&caller.id);
        let needed = [(true, Permission::ApprovalsDecide), (is_for_others, Permission::GrantsTeamManage)];
        let lacks = |needed: &(bool, Permission)| needed.0 && !caller.permissions.allow(needed.1.word());
        if let Some((_, permission)) = needed.into_iter().find(lacks) {
            let message = format!("{} may not give this grant: it needs `{}`", caller.name, permission.word());
            return Err(ToolError::new(ErrorCode::Forbidden, message));
        }
        let grant = Grant { given_by: Some(caller.id.clone()), ..grant };
        Questions::remember(&self.store, scope, &grant).await?;
        Ok(GrantRow { grant, workspace: scope.workspace().cloned() })
    }
}

fn manages_all(caller: &Caller) -> bool {
    caller.permissions.allow(Permission::GrantsTeamManage.word())
}

/// A grant is one's own if it is for oneself, or if one gave it.
fn is_own(caller: &Caller, grant: &Grant) -> bool {
    [&grant.caller, &grant.given_by].into_iter().any(|one| one.as_ref() == Some(&caller.id))
}
