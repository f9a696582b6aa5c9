//! The append-only record of every call.

use std::time::Duration;

use futures_util::future::BoxFuture;
use haft_runtime::{
    CallId, CallRecord, CallState, Entry, HouseWide, Journal, Opening, Outcome, Scope, ToolError, ToolOutput,
};
use sqlx::{Row, sqlite::SqliteRow};
use tokio::time::timeout;

use crate::{
    Store, StoreError,
    addition::{Addition, Later},
    batch::{Statement, Write},
    columns::Columns,
    outputs,
    owner::Life,
    packing::read_envelope,
    watch::News,
};

/// How long a call runs before anybody looks whether it shall stop: most are over by then.
const FIRST_LOOK: Duration = Duration::from_millis(20);

/// The columns of a whole record.
macro_rules! records {
    ($rest:literal) => {
        concat!(
            "select tenant, id, workspace, tool, parent, caller, source, auto_approve, state, started_at, turn, input, ",
            "outcome from calls ",
            $rest
        )
    };
}
const FIND: &str = records!("where tenant = $1 and id = $2");
const LAST_TURN_OF: &str = records!(
    "where tenant = $1 and turn_of = $2 and state = 'ended' and status = 'success' order by coalesce((select max(seq) from events \
     where events.tenant = calls.tenant and events.call = calls.id), 0) desc, id desc limit 1"
);
const OUTCOME: &str = "select outcome from calls where tenant = $1 and id = $2 and state = 'ended'";
const UNFINISHED: &str = "select distinct owner from calls indexed by calls_open where state <> 'ended' \
                          and state <> 'waiting' and owner <> $1";
const UNFINISHED_OF: &str =
    records!("indexed by calls_open where state <> 'ended' and state <> 'waiting' and owner = $1");
const TAKE_OVER: &str = "update calls set owner = $4 where tenant = $1 and id = $2 and owner = $3 \
                         and state <> 'ended' and state <> 'waiting'";
const STOP_WANTED: &str = "select stop_wanted from calls where tenant = $1 and id = $2";
const WANT_STOP: &str = "update calls set stop_wanted = true where tenant = $1 and id = $2 and state <> 'ended'";
const OWNER: &str = "select owner from calls where tenant = $1 and id = $2 and state <> 'ended'";

impl Journal for Store {
    fn record<'a>(&'a self, scope: &'a Scope, entry: Entry) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move {
            let addition = self.addition(scope, &entry)?;
            // A long result is in the text that is written now; it need not be held twice meanwhile.
            drop(entry);
            Ok(self.writer().write(addition).await.map(drop)?)
        })
    }

    fn record_later<'a>(&'a self, scope: &'a Scope, entry: Entry) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move {
            if entry.opening.is_some() {
                self.owner_lock().hold()?;
            }
            let later = Later::new(scope, self.owner(), entry);
            Ok(self.writer().write_later(Write::Later(Box::new(later))).await?)
        })
    }

    fn caught_up(&self) -> BoxFuture<'_, Result<(), ToolError>> {
        Box::pin(async move { Ok(self.writer().catch_up().await?) })
    }

    fn find<'a>(&'a self, scope: &'a Scope, call: &'a CallId) -> BoxFuture<'a, Result<Option<CallRecord>, ToolError>> {
        Box::pin(async move {
            let found = self.one_record(FIND, scope, call).await?;
            if found.as_ref().is_some_and(|found| found.state != CallState::Executing) {
                return Ok(found);
            }
            // An end that may be told behind the answer may still be queued; nobody must miss the own last call.
            self.writer().catch_up().await?;
            Ok(self.one_record(FIND, scope, call).await?)
        })
    }

    fn output<'a>(
        &'a self,
        scope: &'a Scope,
        call: &'a CallId,
    ) -> BoxFuture<'a, Result<Option<ToolOutput>, ToolError>> {
        Box::pin(async move { Ok(outputs::find(self, scope, call).await?) })
    }

    fn ended<'a>(
        &'a self,
        scope: &'a Scope,
        call: &'a CallId,
        limit: Duration,
    ) -> BoxFuture<'a, Result<Option<Outcome>, ToolError>> {
        Box::pin(async move {
            let look = || self.ended_outcome(scope, call);
            Ok(self.watch().until(News::Ended(call.to_string()), limit, look).await?)
        })
    }

    fn abandoned<'a>(&'a self, house: &'a HouseWide) -> BoxFuture<'a, Result<Vec<CallRecord>, ToolError>> {
        Box::pin(async move { Ok(self.take_over_abandoned(house).await?) })
    }

    fn stop_wanted<'a>(&'a self, scope: &'a Scope, call: &'a CallId) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let waiter = self.watch().register(News::StopWanted(call.to_string()));
            // Invariant: one look follows the registration; after it the news are enough.
            timeout(FIRST_LOOK, waiter.rung()).await.ok();
            while !self.shall_stop(scope, call).await {
                waiter.changed().await;
            }
        })
    }
}

impl Store {
    /// Asks for a running call of any process to be stopped. `false` means that there is none to stop.
    pub async fn want_stop(&self, scope: &Scope, call: &CallId) -> Result<bool, StoreError> {
        let statement = Statement::new(WANT_STOP).bind_text(scope.tenant().as_str()).bind_text(call.as_str());
        self.writer().run(statement.waking(News::StopWanted(call.to_string()))).await
    }

    /// The last call that ended well and took a turn with what this call staged.
    pub async fn last_turn_of(&self, scope: &Scope, call: &CallId) -> Result<Option<CallRecord>, StoreError> {
        self.one_record(LAST_TURN_OF, scope, call).await
    }

    /// Whether the process that carries an unfinished call still lives.
    pub async fn owner_is_alive(&self, scope: &Scope, call: &CallId) -> Result<bool, StoreError> {
        let query = sqlx::query_scalar(OWNER).bind(scope.tenant().as_str()).bind(call.as_str());
        let owner: Option<String> = query.fetch_optional(self.reads().await?).await?;
        Ok(owner.is_some_and(|owner| matches!(self.owner_lock().look_at(&owner), Life::Alive)))
    }

    /// The envelope of a call that has ended.
    pub(crate) async fn ended_outcome(&self, scope: &Scope, call: &CallId) -> Result<Option<Outcome>, StoreError> {
        let query = sqlx::query(OUTCOME).bind(scope.tenant().as_str()).bind(call.as_str());
        let Some(row) = query.fetch_optional(self.reads().await?).await? else { return Ok(None) };
        read_envelope(&Columns { of: call.as_str(), row: &row })
    }

    fn addition(&self, scope: &Scope, entry: &Entry) -> Result<Write, StoreError> {
        let addition = Addition::new(scope, self.owner(), entry)?;
        if addition.opens() {
            self.owner_lock().hold()?;
        }
        Ok(Write::Addition(Box::new(addition)))
    }

    async fn one_record(
        &self,
        sql: &'static str,
        scope: &Scope,
        call: &CallId,
    ) -> Result<Option<CallRecord>, StoreError> {
        let query = sqlx::query(sql).bind(scope.tenant().as_str()).bind(call.as_str());
        query.fetch_optional(self.reads().await?).await?.as_ref().map(record).transpose()
    }

    async fn shall_stop(&self, scope: &Scope, call: &CallId) -> bool {
        let query = sqlx::query_scalar(STOP_WANTED).bind(scope.tenant().as_str()).bind(call.as_str());
        // Whoever wants it stopped has filed it before. A store that cannot be read stops nobody.
        query.fetch_optional(self.filed()).await.ok().flatten().unwrap_or(false)
    }

    async fn take_over_abandoned(&self, _house: &HouseWide) -> Result<Vec<CallRecord>, StoreError> {
        let query = sqlx::query_scalar(UNFINISHED).bind(self.owner());
        let owners: Vec<String> = query.fetch_all(self.reads().await?).await?;
        let mut taken = Vec::new();
        for owner in owners {
            // The lock is held until this owner's calls are taken over, so that two recoverers do not fight.
            let Life::Dead(lock) = self.owner_lock().look_at(&owner) else { continue };
            self.owner_lock().hold()?;
            let query = sqlx::query(UNFINISHED_OF).bind(&owner);
            for row in query.fetch_all(self.reads().await?).await? {
                let found = record(&row)?;
                let statement =
                    Statement::new(TAKE_OVER).bind_text(found.scope.tenant().as_str()).bind_text(found.call.as_str());
                if self.writer().run(statement.bind_text(&owner).bind_text(self.owner())).await? {
                    taken.push(found);
                }
            }
            self.owner_lock().forget(&owner, lock);
        }
        Ok(taken)
    }
}

pub(crate) fn record(row: &SqliteRow) -> Result<CallRecord, StoreError> {
    let id: String = row.try_get("id")?;
    let columns = Columns { of: &id, row };
    Ok(CallRecord {
        call: columns.call_id("id")?,
        opening: Opening {
            tool: columns.plain("tool")?,
            input: columns.json("input")?,
            parent: columns.call_id_or_none("parent")?,
            caller: columns.json("caller")?,
            auto_approve: columns.word("auto_approve")?,
            at: columns.time("started_at")?,
        },
        scope: columns.scope()?,
        state: columns.word("state")?,
        turn: columns.json_or_none("turn")?,
        outcome: read_envelope(&columns)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_statement_reads_all_calls() {
        let statements = [FIND, OUTCOME, TAKE_OVER, STOP_WANTED, WANT_STOP, OWNER];
        crate::schema::tests::assert_quick(&statements);
        // Across all tenants only the few calls under way are looked at.
        for statement in [UNFINISHED, UNFINISHED_OF] {
            let steps = crate::schema::tests::plan(statement).join("\n");
            assert!(steps.contains("calls_open"), "{steps}");
        }
        // The few turns of one set are sorted by the journal's order.
        crate::schema::tests::assert_quick(&[LAST_TURN_OF.split(" order by").next().unwrap()]);
    }
}
