//! What is old enough to be forgotten, and forgetting it. What happened meanwhile is always looked at again.

use haft_runtime::{CallId, CallState, Scope};
use jiff::Timestamp;
use sqlx::{Row, sqlite::SqliteRow};

use crate::{Store, StoreError, batch::Statement, columns::Columns};

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

const OLD_CALLS: &str = "select id, turn_of from calls where tenant = $1 and id < $2 and id > $3 and state = 'ended' \
                         order by id limit $4";
const FORGET_CALLS: &str = "delete from calls where tenant = $1 and state = 'ended' and id in \
                            (select value from json_each($2))";
const KEPT_OUTPUTS: &str = "select call, octet_length(body) as bytes from outputs where tenant = $1 and call > $2 \
                            order by call limit $3";
const FORGET_OUTPUTS: &str = "delete from outputs where tenant = $1 and call in (select value from json_each($2))";
const HOLDING: &str = "select state, asked, started_at, finished_at, \
    (select max(finished_at) from calls turn where turn.tenant = $1 and turn.turn_of = $2) as turned_at, \
    exists (select 1 from calls turn where turn.tenant = $1 and turn.turn_of = $2 and turn.state <> 'ended') as turning \
    from calls where tenant = $1 and id = $2";

impl Store {
    /// The next ended calls that are older than a time, oldest first, from a call on.
    pub async fn old_calls(
        &self,
        scope: &Scope,
        before: Timestamp,
        after: Option<&CallId>,
        limit: u32,
    ) -> Result<Vec<OldCall>, StoreError> {
        let query = sqlx::query(OLD_CALLS).bind(scope.tenant().as_str()).bind(first_id(before));
        let query = query.bind(after.map_or("", CallId::as_str)).bind(limit);
        let old = |row: &SqliteRow| {
            let id: String = row.try_get("id")?;
            let columns = Columns { of: &id, row };
            Ok(OldCall { id: columns.call_id("id")?, turn_of: columns.call_id_or_none("turn_of")? })
        };
        query.fetch_all(self.reads().await?).await?.iter().map(old).collect()
    }

    /// Forgets calls that have ended, with everything that belongs to them.
    pub async fn forget_calls(&self, scope: &Scope, calls: &[CallId]) -> Result<(), StoreError> {
        let statement = Statement::new(FORGET_CALLS).bind_text(scope.tenant().as_str());
        self.writer().run(statement.bind(serde_json::to_string(calls)?)).await.map(drop)
    }

    /// The next whole outputs that are kept, oldest first, from a call on.
    pub async fn kept_outputs(
        &self,
        scope: &Scope,
        after: Option<&CallId>,
        limit: u32,
    ) -> Result<Vec<KeptOutput>, StoreError> {
        let query = sqlx::query(KEPT_OUTPUTS).bind(scope.tenant().as_str());
        let query = query.bind(after.map_or("", CallId::as_str)).bind(limit);
        let kept = |row: &SqliteRow| {
            let columns = Columns { of: "outputs", row };
            let bytes: i64 = columns.plain("bytes")?;
            Ok(KeptOutput { call: columns.call_id("call")?, bytes: bytes.unsigned_abs() })
        };
        query.fetch_all(self.reads().await?).await?.iter().map(kept).collect()
    }

    /// Forgets whole outputs; their envelopes stay.
    pub async fn forget_outputs(&self, scope: &Scope, calls: &[CallId]) -> Result<(), StoreError> {
        let statement = Statement::new(FORGET_OUTPUTS).bind_text(scope.tenant().as_str());
        self.writer().run(statement.bind(serde_json::to_string(calls)?)).await.map(drop)
    }

    /// What the journal says about the changes of a call; `None` when it does not know the call.
    pub async fn holding(&self, scope: &Scope, call: &CallId) -> Result<Option<Holding>, StoreError> {
        let query = sqlx::query(HOLDING).bind(scope.tenant().as_str()).bind(call.as_str());
        let Some(row) = query.fetch_optional(self.reads().await?).await? else { return Ok(None) };
        let columns = Columns { of: call.as_str(), row: &row };
        let state: CallState = columns.word("state")?;
        let ended = columns.time_or_none("finished_at")?.map_or_else(|| columns.time("started_at"), Ok)?;
        Ok(Some(Holding {
            in_use: state != CallState::Ended || columns.plain("turning")?,
            asked: columns.plain("asked")?,
            last_turn: columns.time_or_none("turned_at")?.map_or(ended, |turned| turned.max(ended)),
        }))
    }

    /// Removes the files of owners that are gone, and says how many there were.
    pub fn forget_dead_owners(&self) -> u64 {
        self.owner_lock().forget_the_dead()
    }

    /// How many owners are gone and have left a file.
    pub fn dead_owners(&self) -> u64 {
        self.owner_lock().dead().len() as u64
    }
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
        let statements = [OLD_CALLS, KEPT_OUTPUTS, HOLDING];
        crate::schema::tests::assert_quick(&statements);
        for statement in [FORGET_CALLS, FORGET_OUTPUTS] {
            let steps = crate::schema::tests::plan(statement);
            assert!(steps[0].starts_with("SEARCH"), "{steps:?}");
        }
    }
}
