//! What is old enough to be forgotten, and forgetting it. What happened meanwhile is always looked at again.

use haft_runtime::{CallId, HouseWide, Scope};
use jiff::Timestamp;

use crate::{
    Store, StoreError,
    batch::ConditionalWrite,
    columns::{Columns, tenant},
    journal::of_call,
    sql::{Row, Statement},
};

/// An ended call that is old.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OldCall {
    /// Which call.
    pub id: CallId,
    /// Whose staged changes it turned.
    pub turn_of: Option<CallId>,
}

/// A whole output that is kept beside its envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptOutput {
    /// Of which call.
    pub call: CallId,
    /// How large it is.
    pub bytes: u64,
}

/// What the journal says about the changes of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holding {
    /// Whether the call, or one that turns its changes, is still under way or waits.
    pub in_use: bool,
    /// Whether somebody was asked about the call.
    pub asked: bool,
    /// When the changes were last staged, committed or undone.
    pub last_turn: Timestamp,
}

/// What a tenant has beside its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OldThings {
    /// What was uploaded.
    Media,
    /// Items of inboxes that were read.
    Inbox,
    /// Sessions that no call is left of.
    Sessions,
}

impl OldThings {
    /// Which rows, where and since when.
    fn rows(self) -> &'static str {
        match self {
            Self::Media => "from media where tenant = $1 and created_at < $2 and ready = 1",
            Self::Inbox => "from inbox_items where tenant = $1 and consumed_at < $2",
            Self::Sessions => {
                "from sessions where tenant = $1 and created_at < $2 and not exists (select 1 from calls c where \
                 c.tenant = $1 and c.session = sessions.id) and not exists (select 1 from open_calls c where \
                 c.tenant = $1 and c.session = sessions.id)"
            }
        }
    }
}

const OLD_PIECES: &str = "delete from media_pieces where tenant = $1 and media not in (select id from media \
                          where tenant = $1)";
const OLD_CALLS: &str = "select id, turn_of from calls where tenant = $1 and id < $2 and id > $3 order by id limit $4";
const KEPT_OUTPUTS: &str = "select call, octet_length(body) as bytes from outputs where tenant = $1 and call > $2 \
                            order by call limit $3";
const ENDED: &str = "select asked, started_at, finished_at from calls where tenant = $1 and id = $2";
const OPEN: &str = "select asked, started_at, finished_at from open_calls where tenant = $1 and id = $2";
const TURNED: &str =
    "select max(finished_at) as turned_at from calls where tenant = $1 and turn_of = $2 and turn_of <> id";
const TURNING: &str = "select id from open_calls where tenant = $1 and turn_of = $2 and turn_of <> id limit 1";
/// One look for each tenant: ids are found within a tenant alone.
const OF_ANY_TENANT: &str =
    "select c.tenant, c.workspace from tenants t cross join calls c where c.tenant = t.id and c.id = $1 limit 1";
const OPEN_OF_ANY_TENANT: &str =
    "select c.tenant, c.workspace from tenants t cross join open_calls c where c.tenant = t.id and c.id = $1 limit 1";
/// Whoever follows the journal from before this number learns that events are missing.
const NOTE_FORGOTTEN: &str = "update heads set forgotten = case when forgotten < $2 then $2 else forgotten end \
                              where tenant = $1 returning 1 as noted";
const ENDED_AMONG: &str = "select id from calls where tenant = $1 and id in ";
/// A late result may have come after the end of its call.
const LAST_AMONG: &str = "select max(seq) as last from entries where tenant = $1 and call in ";
const FORGET: [&str; 6] = [
    "delete from outputs where tenant = $1 and call in ",
    "delete from questions where tenant = $1 and call in ",
    "delete from agreements where tenant = $1 and call in ",
    "delete from late_results where tenant = $1 and call in ",
    "delete from entries where tenant = $1 and call in ",
    "delete from calls where tenant = $1 and id in ",
];

impl Store {
    /// The next ended calls that are older than a time, oldest first, from a call on.
    pub async fn old_calls(
        &self,
        scope: &Scope,
        before: Timestamp,
        after: Option<&CallId>,
        limit: u32,
    ) -> Result<Vec<OldCall>, StoreError> {
        let find = Statement::new(OLD_CALLS).bind(tenant(scope)).bind(first_id(before));
        let find = find.bind(after.map_or("", CallId::as_str)).bind(limit);
        let old = |row: &Row| {
            let columns = Columns { of: "calls", row };
            Ok(OldCall { id: columns.call_id("id")?, turn_of: columns.call_id_or_none("turn_of")? })
        };
        self.read(find).await?.iter().map(old).collect()
    }

    /// Forgets calls that have ended, with everything that belongs to them.
    pub async fn forget_calls(&self, scope: &Scope, calls: &[CallId]) -> Result<(), StoreError> {
        let mut ended = Vec::new();
        for row in self.read(of_calls(ENDED_AMONG, scope, calls)).await? {
            ended.push(Columns { of: "calls", row: &row }.call_id("id")?);
        }
        if ended.is_empty() {
            return Ok(());
        }
        let last = self.read_one(of_calls(LAST_AMONG, scope, &ended)).await?;
        let last = last.map(|row| Columns { of: "entries", row: &row }.number_or_none("last")).transpose()?;
        let last = last.flatten().unwrap_or_default();
        let note = Statement::new(NOTE_FORGOTTEN).bind(tenant(scope)).bind(last);
        let forget = |change: ConditionalWrite, sql: &'static str| change.and_then(of_calls(sql, scope, &ended));
        self.change(FORGET.into_iter().fold(ConditionalWrite::new(tenant(scope), note), forget)).await.map(drop)
    }

    /// The next whole outputs that are kept, oldest first, from a call on.
    pub async fn kept_outputs(
        &self,
        scope: &Scope,
        after: Option<&CallId>,
        limit: u32,
    ) -> Result<Vec<KeptOutput>, StoreError> {
        let find = Statement::new(KEPT_OUTPUTS).bind(tenant(scope)).bind(after.map_or("", CallId::as_str)).bind(limit);
        let kept = |row: &Row| {
            let columns = Columns { of: "outputs", row };
            Ok(KeptOutput { call: columns.call_id("call")?, bytes: columns.number("bytes")?.unsigned_abs() })
        };
        self.read(find).await?.iter().map(kept).collect()
    }

    /// Forgets whole outputs; their envelopes stay.
    pub async fn forget_outputs(&self, scope: &Scope, calls: &[CallId]) -> Result<(), StoreError> {
        let [outputs, ..] = FORGET;
        self.change(ConditionalWrite::new(tenant(scope), of_calls(outputs, scope, calls))).await.map(drop)
    }

    /// How many things of a kind a tenant has that are older than a time.
    pub async fn count_old(&self, scope: &Scope, kind: OldThings, before: Timestamp) -> Result<u64, StoreError> {
        let count = Statement::new(format!("select count(*) as old {}", kind.rows()));
        let row = self.read_one(count.bind(tenant(scope)).bind(before.as_microsecond())).await?;
        row.map_or(Ok(0), |row| Columns { of: "retention", row: &row }.number("old").map(i64::unsigned_abs))
    }

    /// Forgets them.
    pub async fn forget_old(&self, scope: &Scope, kind: OldThings, before: Timestamp) -> Result<(), StoreError> {
        let forget = Statement::new(format!("delete {} returning 1 as forgotten", kind.rows()));
        let forget = forget.bind(tenant(scope)).bind(before.as_microsecond());
        let forget = ConditionalWrite::new(tenant(scope), forget);
        self.change(match kind {
            OldThings::Media => forget.and_then(Statement::new(OLD_PIECES).bind(tenant(scope))),
            OldThings::Inbox | OldThings::Sessions => forget,
        })
        .await
        .map(drop)
    }

    /// What the journal says about the changes of a call; `None` when it does not know the call.
    pub async fn holding(&self, scope: &Scope, call: &CallId) -> Result<Option<Holding>, StoreError> {
        let found = self.read_together(&[ENDED, OPEN, TURNED, TURNING].map(|sql| of_call(sql, scope, call))).await?;
        let [ended, open, turned, turning] = found.as_slice() else { return Ok(None) };
        let Some(row) = ended.first().or(open.first()) else { return Ok(None) };
        let columns = Columns { of: call.as_str(), row };
        let last = columns.time_or_none("finished_at")?.map_or_else(|| columns.time("started_at"), Ok)?;
        let turned = turned.first().map(|row| Columns { of: call.as_str(), row }.time_or_none("turned_at"));
        Ok(Some(Holding {
            in_use: ended.is_empty() || !turning.is_empty(),
            asked: columns.flag("asked")?,
            last_turn: turned.transpose()?.flatten().map_or(last, |turned| turned.max(last)),
        }))
    }

    /// Where a call belongs of which only the id is known, if any tenant knows it.
    pub async fn scope_of_call(&self, _house: &HouseWide, call: &CallId) -> Result<Option<Scope>, StoreError> {
        let both = [OF_ANY_TENANT, OPEN_OF_ANY_TENANT].map(|sql| Statement::new(sql).bind(call.as_str()));
        let found = self.read_together(&both).await?;
        found.iter().flatten().next().map(|row| Columns { of: call.as_str(), row }.scope()).transpose()
    }

    /// Removes what processes that are gone have left of themselves, and says of how many.
    pub async fn forget_dead_owners(&self, _house: &HouseWide) -> Result<u64, StoreError> {
        self.node().forget_the_dead().await
    }

    /// How many processes are gone and have left something of themselves.
    pub async fn dead_owners(&self, _house: &HouseWide) -> Result<u64, StoreError> {
        self.node().count_dead().await
    }
}

/// A statement about several calls.
fn of_calls(sql: &'static str, scope: &Scope, calls: &[CallId]) -> Statement {
    Statement::new(sql).bind(tenant(scope)).push_list(calls.iter().map(CallId::as_str))
}

/// Ids begin with their time: every earlier call has a smaller one.
fn first_id(at: Timestamp) -> String {
    format!("tc_{:012x}", at.as_millisecond().max(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_statement_reads_all_calls() {
        crate::schema::tests::assert_quick(&[OLD_CALLS, KEPT_OUTPUTS, ENDED, OPEN, TURNED, TURNING, NOTE_FORGOTTEN]);
        for statement in [OF_ANY_TENANT, OPEN_OF_ANY_TENANT] {
            let steps = crate::schema::tests::plan(statement);
            assert!(steps.len() == 2 && steps[1].contains("SEARCH c"), "{steps:?}");
        }
        for statement in FORGET.into_iter().chain([ENDED_AMONG, LAST_AMONG]) {
            let steps = crate::schema::tests::plan(&format!("{statement}($2, $3)"));
            assert!(steps[0].starts_with("SEARCH"), "{steps:?}");
        }
    }
}
