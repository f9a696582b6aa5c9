//! May this caller use this tool, answer this question, and what runs without asking them.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use haft_runtime::{
    About, Agreement, Answer, AutoApprove, Caller, CallerKind, CallerRecord, ErrorCode, Guard, Permissions, Question,
    Scope, TenantId, ToolError, ToolSpec,
};

use crate::{
    Permission, Platform,
    identity::{counts, permissions_of_role},
};

/// Asks what each caller's role or key allows.
pub struct TenantGuard {
    platform: Arc<Platform>,
}

impl TenantGuard {
    /// By the roles and keys of this platform.
    pub fn new(platform: Arc<Platform>) -> Self {
        Self { platform }
    }

    /// Whether a caller may use a tool. Lists leave out what they may not.
    pub fn may_use(caller: &Caller, tool: &ToolSpec) -> bool {
        caller.permissions.allow(Permission::ToolsExecute.word()) && caller.permissions.allow(&tool.permission)
    }
}

impl Guard for TenantGuard {
    fn permit<'a>(&'a self, caller: &'a Caller, tool: &'a ToolSpec) -> BoxFuture<'a, Result<(), ToolError>> {
        let refusal = || {
            let message = format!("{} may not use `{}`: it needs `{}`", caller.name, tool.name, missing(caller, tool));
            ToolError::new(ErrorCode::Forbidden, message)
        };
        let may = Self::may_use(caller, tool);
        Box::pin(std::future::ready(if may { Ok(()) } else { Err(refusal()) }))
    }

    fn begin<'a>(&'a self, caller: &'a Caller) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(self.platform.count_call(&caller.scope))
    }

    fn may_answer<'a>(&'a self, caller: &'a Caller, question: &'a Question) -> BoxFuture<'a, Result<(), ToolError>> {
        let allowed = |permission: Permission| caller.permissions.allow(permission.word());
        let (may, needed) = match (&question.about, caller.id.kind) {
            (About::Result(_), CallerKind::Token) => (caller.id.id == question.call.as_str(), Permission::ToolsExecute),
            (About::Result(_), _) => {
                (allowed(Permission::ToolsExecute) || allowed(Permission::ApprovalsDecide), Permission::ToolsExecute)
            }
            (About::Approval(_) | About::Form(_), _) => {
                (allowed(Permission::ApprovalsDecide), Permission::ApprovalsDecide)
            }
        };
        Box::pin(async move {
            if !may {
                let needed = needed.word();
                let message = format!("{} may not answer {}: that needs `{needed}`", caller.name, question.call);
                return Err(ToolError::new(ErrorCode::Forbidden, message));
            }
            Ok(())
        })
    }

    fn agree<'a>(
        &'a self,
        caller: &'a Caller,
        question: &'a Question,
        said: &'a Answer,
    ) -> BoxFuture<'a, Result<Agreement, ToolError>> {
        Box::pin(self.platform.note_agreement(caller, question, said))
    }

    fn most_unasked(&self, caller: &Caller) -> AutoApprove {
        match caller.id.kind {
            CallerKind::Owner => AutoApprove::Everything,
            CallerKind::Person | CallerKind::Agent | CallerKind::Key => AutoApprove::Reads,
            CallerKind::Token | CallerKind::House => AutoApprove::Nothing,
        }
    }

    fn permissions_of<'a>(
        &'a self,
        scope: &'a Scope,
        recorded: &'a CallerRecord,
    ) -> BoxFuture<'a, Result<Permissions, ToolError>> {
        Box::pin(async move {
            let (store, house, id) = (&self.platform.store, &self.platform.house, recorded.who.id.id.as_str());
            Ok(match recorded.who.id.kind {
                // Whoever has this machine's account owns what is local to it.
                CallerKind::Owner if *scope.tenant() == TenantId::local() => Permissions::everything(),
                CallerKind::Person => {
                    let role = store.role_of(scope, id).await?;
                    role.map_or_else(Permissions::none, |role| permissions_of_role(&role))
                }
                CallerKind::Key => {
                    let key = store.api_key(house, id).await?;
                    let key = key.filter(|key| key.scope.tenant() == scope.tenant() && counts(key));
                    key.map_or_else(Permissions::none, |key| self.platform.permissions_of_key(&key))
                }
                CallerKind::Owner | CallerKind::Agent | CallerKind::Token | CallerKind::House => Permissions::none(),
            })
        })
    }
}

fn missing(caller: &Caller, tool: &ToolSpec) -> String {
    let execute = Permission::ToolsExecute.word();
    if caller.permissions.allow(execute) { tool.permission.clone() } else { execute.to_owned() }
}
