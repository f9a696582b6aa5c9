//! The answers that are remembered.

use haft_runtime::{CallerId, CallerRef, Grant, GrantId, Scope, Source, Within, WorkspaceId};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    AuditAction, AuditEntry, Store, StoreError,
    batch::ConditionalWrite,
    columns::{Columns, only, tenant, workspace},
    sql::{Row, Statement},
};

/// Which grants to list. What is absent limits nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantFilter {
    /// Only those that are for this caller, or that this caller gave.
    pub of: Option<CallerId>,
    /// Only those for this tool.
    pub tool: Option<String>,
    /// Only those that still count.
    pub only_usable: bool,
    /// Only those older than this one, to page on.
    pub before: Option<GrantId>,
    /// At most so many.
    pub limit: u32,
}

/// A grant with the workspace that it was given in.
#[derive(Clone, Debug, PartialEq)]
pub struct GrantRow {
    /// The grant.
    pub grant: Grant,
    /// Where it counts; `None` means for calls in no workspace.
    pub workspace: Option<WorkspaceId>,
}

const INSERT: &str = "insert into grants (tenant, id, workspace, tool, bounds, caller, given_by, until, uses_left, used, \
                      created_at, revoked) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 0)";

/// What still counts.
macro_rules! still_counts {
    ($now:literal) => {
        concat!(" and revoked = 0 and (uses_left is null or uses_left > 0) and (until is null or until > ", $now, ")")
    };
}

/// A grant covers only calls of the workspace that it was given in; one that was given in none, calls in none.
macro_rules! usable {
    ($head:expr, $now:literal, $workspace:literal, $tail:literal) => {
        concat!($head, still_counts!($now), " and coalesce(workspace, '') = coalesce(", $workspace, ", '')", $tail)
    };
}

/// The columns of a whole grant.
macro_rules! grants {
    ($rest:literal) => {
        concat!(
            "select id, workspace, tool, bounds, caller, given_by, until, uses_left, used, last_used, created_at, revoked from grants ",
            "where tenant = $1 ",
            $rest
        )
    };
}
const USABLE: &str = usable!(grants!("and tool = $2"), "$3", "$4", " order by id desc");
const SPEND: &str = usable!(
    "update grants set uses_left = uses_left - 1, used = used + 1, last_used = $3 where tenant = $1 and id = $2",
    "$3",
    "$4",
    " returning 1 as spent"
);
const ALL: &str = grants!("and ($2 is null or workspace = $2) order by id desc");
const FIND: &str = grants!("and id = $2");
const ANYWHERE: &str = concat!(grants!("and tool = $2"), still_counts!("$3"), " order by id desc");
const PAGE: &str = grants!("");
const REVOKE: &str = "update grants set revoked = 1 where tenant = $1 and id = $2 and revoked = 0 \
                      returning 1 as revoked";

impl Store {
    /// Everything that is or was remembered for the workspace, newest first.
    pub async fn all_grants(&self, scope: &Scope, within: &Within) -> Result<Vec<Grant>, StoreError> {
        let find = Statement::new(ALL).bind(tenant(scope)).bind(only(within));
        self.read(find).await?.iter().map(grant).collect()
    }

    /// One of them, usable or not.
    pub async fn grant(&self, scope: &Scope, id: &GrantId) -> Result<Option<Grant>, StoreError> {
        self.read_one(of_grant(FIND, scope, id)).await?.as_ref().map(grant).transpose()
    }

    /// The same with its workspace.
    pub async fn grant_row(&self, scope: &Scope, id: &GrantId) -> Result<Option<GrantRow>, StoreError> {
        self.read_one(of_grant(FIND, scope, id)).await?.as_ref().map(grant_row).transpose()
    }

    /// The grants that the filter lets through, newest first.
    pub async fn grant_page(&self, scope: &Scope, filter: &GrantFilter) -> Result<Vec<GrantRow>, StoreError> {
        self.read(page(scope, filter)).await?.iter().map(grant_row).collect()
    }

    /// The grants of a tool that still count, in whichever workspace.
    pub async fn usable_grants_anywhere(&self, scope: &Scope, tool: &str) -> Result<Vec<Grant>, StoreError> {
        let find = Statement::new(ANYWHERE).bind(tenant(scope)).bind(tool);
        self.read(find.bind(Timestamp::now().as_microsecond())).await?.iter().map(grant).collect()
    }

    /// Takes a remembered yes back. `false` means that there is none to take back.
    pub async fn revoke(&self, scope: &Scope, grant: &GrantId) -> Result<bool, StoreError> {
        let act = AuditEntry::new(AuditAction::GrantRevoked, scope, ("grant", grant.as_str()));
        self.change(ConditionalWrite::new(tenant(scope), of_grant(REVOKE, scope, grant)).audited(act)).await
    }

    pub(crate) async fn usable_grants(&self, scope: &Scope, tool: &str) -> Result<Vec<Grant>, StoreError> {
        let find = Statement::new(USABLE).bind(tenant(scope)).bind(tool);
        let find = find.bind(self.now().as_microsecond()).bind(workspace(scope));
        self.read(find).await?.iter().map(grant).collect()
    }

    /// One conditional update, so that n uses are spent exactly n times, by however many processes.
    pub(crate) async fn spend_grant(&self, scope: &Scope, grant: &GrantId) -> Result<bool, StoreError> {
        let spend = of_grant(SPEND, scope, grant).bind(self.now().as_microsecond()).bind(workspace(scope));
        self.change(ConditionalWrite::new(tenant(scope), spend).unaudited("the call that uses it is in the journal"))
            .await
    }

    pub(crate) async fn remember_grant(&self, scope: &Scope, grant: &Grant) -> Result<(), StoreError> {
        let remember = ConditionalWrite::new(tenant(scope), remembering(scope, grant)?.push(" returning 1 as given"));
        let giver = grant.given_by.clone().map(|id| CallerRef { name: id.to_string(), id });
        self.change(remember.audited(given(scope, grant, giver.map(|giver| (giver, Source::House))))).await.map(drop)
    }
}

fn page(scope: &Scope, filter: &GrantFilter) -> Statement {
    let mut page = Statement::new(PAGE).bind(tenant(scope));
    if let Some(before) = &filter.before {
        page = page.push_bind(" and id < ", before.as_str());
    }
    if let Some(tool) = &filter.tool {
        page = page.push_bind(" and tool = ", tool.as_str());
    }
    if let Some(of) = &filter.of {
        let of = of.to_string();
        page = page.push_bind(" and (caller = ", of.as_str()).push_bind(" or given_by = ", of.as_str()).push(")");
    }
    if filter.only_usable {
        page = page.push(" and revoked = 0 and (uses_left is null or uses_left > 0)");
        page = page.push_bind(" and (until is null or until > ", Timestamp::now().as_microsecond()).push(")");
    }
    page.push_bind(" order by id desc limit ", filter.limit)
}

/// A statement about one grant.
fn of_grant(sql: &'static str, scope: &Scope, grant: &GrantId) -> Statement {
    Statement::new(sql).bind(tenant(scope)).bind(grant.as_str())
}

/// What writes a new grant, by itself or together with the answer that gives it.
pub(crate) fn remembering(scope: &Scope, grant: &Grant) -> Result<Statement, StoreError> {
    let statement = of_grant(INSERT, scope, &grant.id)
        .bind(workspace(scope))
        .bind(grant.tool.as_str())
        .bind(serde_json::to_string(&grant.bounds)?)
        .bind(grant.caller.as_ref().map(ToString::to_string))
        .bind(grant.given_by.as_ref().map(ToString::to_string))
        .bind(grant.until.map(Timestamp::as_microsecond))
        .bind(grant.uses_left)
        .bind(grant.used)
        .bind(grant.created_at.as_microsecond());
    Ok(statement)
}

/// The act of giving a grant, by whoever that was.
pub(crate) fn given(scope: &Scope, grant: &Grant, by: Option<(CallerRef, Source)>) -> AuditEntry {
    let what = json!({"tool": grant.tool, "bounds": grant.bounds, "caller": grant.caller.as_ref().map(ToString::to_string),
        "until": grant.until, "uses": grant.uses_left});
    let act = AuditEntry::new(AuditAction::GrantGiven, scope, ("grant", grant.id.as_str())).change(Value::Null, what);
    match by {
        Some((by, source)) => act.by(by, source),
        None => act,
    }
}

fn grant_row(row: &Row) -> Result<GrantRow, StoreError> {
    Ok(GrantRow { grant: grant(row)?, workspace: Columns { of: "grants", row }.workspace()? })
}

fn grant(row: &Row) -> Result<Grant, StoreError> {
    let text = Columns { of: "grants", row }.text("id")?;
    let columns = Columns { of: &text, row };
    Ok(Grant {
        id: columns.grant_id("id")?,
        tool: columns.text("tool")?,
        bounds: columns.json("bounds")?,
        caller: columns.parsed_or_none("caller")?,
        given_by: columns.parsed_or_none("given_by")?,
        until: columns.time_or_none("until")?,
        uses_left: columns.count_or_none("uses_left")?,
        used: columns.count("used")?,
        last_used: columns.time_or_none("last_used")?,
        created_at: columns.time("created_at")?,
        revoked: columns.flag("revoked")?,
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_statement_reads_all_grants() {
        use super::{ALL, ANYWHERE, FIND, REVOKE, SPEND, USABLE};
        crate::schema::tests::assert_quick(&[USABLE, SPEND, REVOKE, ALL, FIND, ANYWHERE]);
        let (of, tool) = (Some(haft_runtime::CallerId::owner()), Some("write_file".to_owned()));
        let before = Some(haft_runtime::GrantId::new());
        let filter = super::GrantFilter { of, tool, only_usable: true, before, limit: 5 };
        let page = super::page(&haft_runtime::Scope::local("w"), &filter);
        crate::schema::tests::assert_quick(&[&page.sql]);
    }
}
