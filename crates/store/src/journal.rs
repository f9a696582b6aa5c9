//! The append-only record of every call.

use std::time::Duration;

use futures_util::future::BoxFuture;
use haft_runtime::{
    CallId, CallRecord, CallState, CallsInHand, Entry, HouseWide, Journal, Opening, Outcome, Scope, ToolError,
    ToolOutput,
};
use tokio::time::timeout;

use crate::{
    Store, StoreError,
    batch::{ConditionalWrite, StoreWrite},
    columns::{Columns, tenant},
    journal_write::JournalWrite,
    live::Topic,
    nodes::Life,
    outputs,
    sql::{Row, Statement},
};

/// How long a call runs before anybody looks whether it shall stop: most are over by then.
const FIRST_LOOK: Duration = Duration::from_millis(20);

/// The columns of a whole record, of a call that is open or has ended.
macro_rules! open_records {
    ($rest:literal) => {
        concat!(
            "select tenant, id, workspace, tool, parent, caller, auto_approve, state, started_at, turn, input, outcome, ",
            "asked from open_calls where ",
            $rest
        )
    };
}
macro_rules! ended_records {
    ($rest:literal) => {
        concat!(
            "select tenant, id, workspace, tool, parent, caller, auto_approve, 'ended' as state, started_at, turn, input, ",
            "outcome, asked from calls where ",
            $rest
        )
    };
}
pub(crate) use {ended_records, open_records};

const FIND_OPEN: &str = open_records!("tenant = $1 and id = $2");
const FIND_ENDED: &str = ended_records!("tenant = $1 and id = $2");
const LAST_TURN_OF: &str = ended_records!(
    "tenant = $1 and turn_of = $2 and turn_of <> id and status = 'success' order by ended_seq desc limit 1"
);
const OWN_TURN: &str = ended_records!("tenant = $1 and id = $2 and turn_of = $2 and status = 'success'");
/// Ended calls of one tool, older than one of them.
const RUNS: &str = ended_records!("tenant = $1 and tool = $2 and id < $3 order by id desc limit $4");
/// Later than every id.
const LATER_THAN_ALL: &str = "tc~";
const OUTCOME: &str = "select outcome from calls where tenant = $1 and id = $2";
const CARRIERS: &str = "select distinct owner from open_calls where state <> 'waiting' and owner <> $1";
/// What a node has left in its own workspaces is for that node to end.
const CARRIED_BY: &str = open_records!(
    "state <> 'waiting' and owner = $1 and not exists (select 1 from workspaces w where w.tenant = open_calls.tenant \
     and w.id = open_calls.workspace and w.node <> $2) order by tenant, id"
);
const TAKE_OVER: &str = "update open_calls set owner = $4 where tenant = $1 and id = $2 and owner = $3 \
                         and state <> 'waiting' returning 1 as taken";
const CARRIED_HERE: &str = "select tenant, workspace, id from open_calls where state <> 'waiting' and owner = $1";
const STOP_WANTED: &str = "select stop_wanted from open_calls where tenant = $1 and id = $2";
const WANT_STOP: &str = "update open_calls set stop_wanted = 1 where tenant = $1 and id = $2 returning 1 as wanted";
const OWNER: &str = "select owner from open_calls where tenant = $1 and id = $2";

impl Journal for Store {
    fn record<'a>(&'a self, scope: &'a Scope, entry: Entry) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move {
            let write = self.journal_write(scope, &entry).await?;
            // A long result is in the text that is written now; it need not be held twice meanwhile.
            drop(entry);
            Ok(self.write(StoreWrite::Entry(Box::new(write))).await?)
        })
    }

    fn record_later<'a>(&'a self, scope: &'a Scope, entry: Entry) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move {
            let write = self.journal_write(scope, &entry).await?;
            Ok(self.queue().write_later(StoreWrite::Entry(Box::new(write))).await?)
        })
    }

    fn caught_up(&self) -> BoxFuture<'_, Result<(), ToolError>> {
        Box::pin(async move { Ok(self.queue().catch_up().await?) })
    }

    fn find<'a>(&'a self, scope: &'a Scope, call: &'a CallId) -> BoxFuture<'a, Result<Option<CallRecord>, ToolError>> {
        Box::pin(async move {
            // Asked first: an entry that is written in between is found.
            let owed = self.queue().owes(call.as_str());
            let found = self.record_of(scope, call).await?;
            if !owed || found.as_ref().is_some_and(|found| found.state != CallState::Executing) {
                return Ok(found);
            }
            // An end that may be told behind the answer may still be queued; nobody must miss the own last call.
            self.queue().catch_up().await?;
            Ok(self.record_of(scope, call).await?)
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
            Ok(self.live().until(scope, Topic::Ended(call.to_string()), limit, look).await?)
        })
    }

    fn abandoned<'a>(&'a self, _house: &'a HouseWide) -> BoxFuture<'a, Result<Vec<CallRecord>, ToolError>> {
        Box::pin(async move { Ok(self.take_over_abandoned().await?) })
    }

    fn let_go<'a>(
        &'a self,
        _house: &'a HouseWide,
        in_hand: &'a CallsInHand,
    ) -> BoxFuture<'a, Result<Vec<CallRecord>, ToolError>> {
        Box::pin(async move { Ok(self.find_let_go(in_hand).await?) })
    }

    fn stop_wanted<'a>(&'a self, scope: &'a Scope, call: &'a CallId) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let waiter = self.live().register(scope, Topic::StopWanted(call.to_string()));
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
        let want = ConditionalWrite::new(tenant(scope), of_call(WANT_STOP, scope, call));
        self.change(want.telling(Topic::StopWanted(call.to_string()))).await
    }

    /// The last call that ended well and took a turn with what this call staged.
    pub async fn last_turn_of(&self, scope: &Scope, call: &CallId) -> Result<Option<CallRecord>, StoreError> {
        // Others turn only what a call left when it ended, so that its own turn was the first.
        let found = self.read_together(&[LAST_TURN_OF, OWN_TURN].map(|sql| of_call(sql, scope, call))).await?;
        found.iter().flatten().next().map(record).transpose()
    }

    /// The calls of a tool that have ended, newest first, older than one of them.
    pub async fn ended_calls_of(
        &self,
        scope: &Scope,
        (tool, before): (&str, Option<&CallId>),
        most: u32,
    ) -> Result<Vec<CallRecord>, StoreError> {
        let before = before.map_or(LATER_THAN_ALL, CallId::as_str);
        let find = Statement::new(RUNS).bind(tenant(scope)).bind(tool).bind(before).bind(most);
        self.read(find).await?.iter().map(record).collect()
    }

    /// Whether the process that carries an unfinished call still lives.
    pub async fn owner_is_alive(&self, scope: &Scope, call: &CallId) -> Result<bool, StoreError> {
        let Some(row) = self.read_one(of_call(OWNER, scope, call)).await? else { return Ok(false) };
        let owner = Columns { of: call.as_str(), row: &row }.text("owner")?;
        Ok(matches!(self.node().look_at(&owner).await, Life::Alive))
    }

    /// The envelope of a call that has ended.
    pub(crate) async fn ended_outcome(&self, scope: &Scope, call: &CallId) -> Result<Option<Outcome>, StoreError> {
        let Some(row) = self.read_one(of_call(OUTCOME, scope, call)).await? else { return Ok(None) };
        Columns { of: call.as_str(), row: &row }.json_or_none("outcome")
    }

    async fn journal_write(&self, scope: &Scope, entry: &Entry) -> Result<JournalWrite, StoreError> {
        let write = JournalWrite::new(scope, self.owner(), entry)?;
        if write.opening.is_some() {
            self.node().hold().await?;
        }
        Ok(write)
    }

    /// A call is looked for among those that have ended first: most have.
    pub(crate) async fn record_of(&self, scope: &Scope, call: &CallId) -> Result<Option<CallRecord>, StoreError> {
        let both = [of_call(FIND_ENDED, scope, call), of_call(FIND_OPEN, scope, call)];
        let found = self.read_together(&both).await?;
        found.iter().flatten().next().map(record).transpose()
    }

    async fn shall_stop(&self, scope: &Scope, call: &CallId) -> bool {
        // A store that cannot be read stops nobody.
        let Ok(Some(row)) = self.read_one(of_call(STOP_WANTED, scope, call)).await else { return false };
        Columns { of: call.as_str(), row: &row }.flag("stop_wanted").unwrap_or(false)
    }

    async fn find_let_go(&self, in_hand: &CallsInHand) -> Result<Vec<CallRecord>, StoreError> {
        let mut found = Vec::new();
        for row in self.read(Statement::new(CARRIED_HERE).bind(self.owner())).await? {
            let columns = Columns { of: "open_calls", row: &row };
            let (scope, call) = (columns.scope()?, columns.call_id("id")?);
            // Invariant: a call is in hand, or its last entry is queued, until its row is gone or that entry has failed.
            if in_hand.has(&call) || self.queue().owes(call.as_str()) {
                continue;
            }
            found.extend(self.record_of(&scope, &call).await?.filter(is_under_way));
        }
        Ok(found)
    }

    async fn take_over_abandoned(&self) -> Result<Vec<CallRecord>, StoreError> {
        let mut taken = Vec::new();
        for row in self.read(Statement::new(CARRIERS).bind(self.owner())).await? {
            let owner = Columns { of: "open_calls", row: &row }.text("owner")?;
            // A lock is held until this owner's calls are taken over, so that two recoverers do not fight.
            let Life::Dead(lock) = self.node().look_at(&owner).await else { continue };
            self.node().hold().await?;
            for row in self.read(Statement::new(CARRIED_BY).bind(owner.as_str()).bind(self.node_name())).await? {
                let found = record(&row)?;
                let take = of_call(TAKE_OVER, &found.scope, &found.call).bind(owner.as_str()).bind(self.owner());
                if self.change(ConditionalWrite::new(tenant(&found.scope), take)).await? {
                    taken.push(found);
                }
            }
            self.node().forget(&owner, lock);
        }
        Ok(taken)
    }
}

/// A statement about one call.
pub(crate) fn of_call(sql: &'static str, scope: &Scope, call: &CallId) -> Statement {
    Statement::new(sql).bind(tenant(scope)).bind(call.as_str())
}

fn is_under_way(call: &CallRecord) -> bool {
    matches!(call.state, CallState::Preparing | CallState::Executing)
}

pub(crate) fn record(row: &Row) -> Result<CallRecord, StoreError> {
    let id = Columns { of: "calls", row }.text("id")?;
    let columns = Columns { of: &id, row };
    Ok(CallRecord {
        call: columns.call_id("id")?,
        opening: Opening {
            tool: columns.text("tool")?,
            input: columns.json("input")?,
            parent: columns.call_id_or_none("parent")?,
            caller: columns.json("caller")?,
            auto_approve: columns.word("auto_approve")?,
            at: columns.time("started_at")?,
        },
        scope: columns.scope()?,
        state: columns.word("state")?,
        turn: columns.json_or_none("turn")?,
        outcome: columns.json_or_none("outcome")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_statement_reads_all_calls() {
        let statements =
            [FIND_OPEN, FIND_ENDED, LAST_TURN_OF, OWN_TURN, RUNS, OUTCOME, TAKE_OVER, STOP_WANTED, WANT_STOP, OWNER];
        crate::schema::tests::assert_quick(&statements);
        assert!(crate::schema::tests::plan(RUNS).join("\n").contains("calls_of_tool"));
        for statement in [CARRIERS, CARRIED_BY, CARRIED_HERE] {
            crate::schema::tests::assert_reads_only(statement, "open_calls_under_way");
        }
    }
}
