//! The answers that are remembered.

use haft_runtime::{Grant, GrantId, Scope, Within};
use jiff::Timestamp;

use crate::{
    Store, StoreError,
    batch::ConditionalWrite,
    columns::{Columns, only, tenant, workspace},
    sql::{Row, Statement},
};

const INSERT: &str = "insert into grants (tenant, id, workspace, tool, bounds, caller, until, uses_left, used, \
                      created_at, revoked) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 0)";

/// A grant covers only calls of the workspace that it was given in; one that was given in none, calls in none.
macro_rules! usable {
    ($head:expr, $now:literal, $workspace:literal, $tail:literal) => {
        concat!(
            $head,
            " and revoked = 0 and (uses_left is null or uses_left > 0) and (until is null or until > ",
            $now,
            ") and coalesce(workspace, '') = coalesce(",
            $workspace,
            ", '')",
            $tail
        )
    };
}

/// The columns of a whole grant.
macro_rules! grants {
    ($rest:literal) => {
        concat!(
            "select id, tool, bounds, caller, until, uses_left, used, last_used, created_at, revoked from grants ",
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

    /// Takes a remembered yes back. `false` means that there is none to take back.
    pub async fn revoke(&self, scope: &Scope, grant: &GrantId) -> Result<bool, StoreError> {
        self.change(ConditionalWrite::new(tenant(scope), of_grant(REVOKE, scope, grant))).await
    }

    pub(crate) async fn usable_grants(&self, scope: &Scope, tool: &str) -> Result<Vec<Grant>, StoreError> {
        let find = Statement::new(USABLE).bind(tenant(scope)).bind(tool);
        let find = find.bind(Timestamp::now().as_microsecond()).bind(workspace(scope));
        self.read(find).await?.iter().map(grant).collect()
    }

    /// One conditional update, so that n uses are spent exactly n times, by however many processes.
    pub(crate) async fn spend_grant(&self, scope: &Scope, grant: &GrantId) -> Result<bool, StoreError> {
        let spend = of_grant(SPEND, scope, grant).bind(Timestamp::now().as_microsecond()).bind(workspace(scope));
        self.change(ConditionalWrite::new(tenant(scope), spend)).await
    }

    pub(crate) async fn remember_grant(&self, scope: &Scope, grant: &Grant) -> Result<(), StoreError> {
        self.change(ConditionalWrite::new(tenant(scope), remembering(scope, grant)?)).await.map(drop)
    }
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
        .bind(grant.until.map(Timestamp::as_microsecond))
        .bind(grant.uses_left)
        .bind(grant.used)
        .bind(grant.created_at.as_microsecond());
    Ok(statement)
}

fn grant(row: &Row) -> Result<Grant, StoreError> {
    let text = Columns { of: "grants", row }.text("id")?;
    let columns = Columns { of: &text, row };
    Ok(Grant {
        id: columns.grant_id("id")?,
        tool: columns.text("tool")?,
        bounds: columns.json("bounds")?,
        caller: columns.parsed_or_none("caller")?,
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
        crate::schema::tests::assert_quick(&[super::USABLE, super::SPEND, super::REVOKE, super::ALL, super::FIND]);
    }
}
