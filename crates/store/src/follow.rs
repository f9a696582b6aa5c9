//! The calls as they ask and end, in the order of the journal, from whatever process.

use std::collections::VecDeque;

use haft_runtime::{CallEvent, CallState, ErrorCode, Scope, Within};
use jiff::Timestamp;
use sqlx::{SqliteConnection, sqlite::SqliteRow};

use crate::{
    CallFilter, CallRow, Store, StoreError,
    calls::{call_row, list_query},
    columns::Columns,
    watch::{News, Waiter},
};

/// How many events are read at once.
const PAGE: i64 = 256;

const HEAD: &str = "select coalesce(max(seq), 0) from events";
/// The events in which a call asks or ends, each with its call.
const NEWS: &str = "select events.seq, events.at, events.data, calls.id, calls.workspace, calls.tool, calls.caller, \
    calls.source, calls.state, calls.status, calls.code, calls.started_at, calls.finished_at, calls.duration_ms, \
    calls.asked, calls.outcome ->> '$.isolation' as isolation \
    from events not indexed join calls on calls.tenant = events.tenant and calls.id = events.call \
    where events.seq > $1 and events.seq <= $2 and events.tenant = $3 and events.kind in ('tool.needs_approval', \
    'tool.pending', 'tool.completed', 'tool.failed', 'tool.rejected', 'tool.cancelled', 'tool.interrupted') \
    order by events.seq limit $4";

/// Tells every call when it asks and when it ends, each once. Numbers of events only grow, and a later number is never
/// seen before an earlier one, so nothing is missed.
pub struct Follower {
    store: Store,
    scope: Scope,
    within: Within,
    filter: CallFilter,
    news: Waiter,
    /// The number of the last event that was looked at.
    seen: i64,
    waiting: VecDeque<CallRow>,
}

impl Store {
    /// Follows the calls that the filter lets through, beginning with those that have asked or ended last.
    pub async fn follow(&self, scope: &Scope, within: &Within, filter: &CallFilter) -> Result<Follower, StoreError> {
        let news = self.watch().register(News::Anything);
        let mut conn = self.reads().await?.acquire().await?;
        // One snapshot: whatever is not in the list comes after its last event.
        let mut tx = sqlx::Connection::begin(&mut *conn).await?;
        let seen = sqlx::query_scalar(HEAD).fetch_one(&mut *tx).await?;
        let rows = list_query(scope, within, filter)?.build().fetch_all(&mut *tx).await?;
        tx.commit().await?;
        let rows: Vec<CallRow> = rows.iter().map(call_row).collect::<Result<_, _>>()?;
        let waiting = rows.into_iter().rev().filter(|call| !is_under_way(call)).collect();
        let (scope, within, filter) = (scope.clone(), within.clone(), filter.clone());
        Ok(Follower { store: self.clone(), scope, within, filter, news, seen, waiting })
    }
}

impl Follower {
    /// The next call that asks or ends; waits for one.
    pub async fn next(&mut self) -> Result<CallRow, StoreError> {
        loop {
            if let Some(call) = self.waiting.pop_front() {
                return Ok(call);
            }
            if !self.look().await? {
                self.news.changed().await;
            }
        }
    }

    /// Reads one page of events, and says whether there was any.
    async fn look(&mut self) -> Result<bool, StoreError> {
        let mut conn = self.store.reads().await?.acquire().await?;
        let head: i64 = sqlx::query_scalar(HEAD).fetch_one(&mut *conn).await?;
        if head <= self.seen {
            return Ok(false);
        }
        let rows = page(&mut conn, (self.seen, head), &self.scope).await?;
        let whole = i64::try_from(rows.len()).unwrap_or(PAGE) < PAGE;
        for row in &rows {
            let (seq, told) = told(row)?;
            self.seen = seq;
            self.waiting.extend(told.filter(|call| self.lets_through(call)));
        }
        if whole {
            self.seen = head;
        }
        Ok(true)
    }

    fn lets_through(&self, call: &CallRow) -> bool {
        let is = |wanted: &Option<String>, found: Option<&str>| wanted.is_none() || wanted.as_deref() == found;
        self.within.covers(call.workspace.as_ref())
            && is(&self.filter.tool, Some(&call.tool))
            && is(&self.filter.status, call.status.as_deref())
            && self.filter.state.is_none_or(|state| state == call.state)
    }
}

async fn page(
    conn: &mut SqliteConnection,
    (after, to): (i64, i64),
    scope: &Scope,
) -> Result<Vec<SqliteRow>, StoreError> {
    let query = sqlx::query(NEWS).bind(after).bind(to).bind(scope.tenant().as_str()).bind(PAGE);
    Ok(query.fetch_all(conn).await?)
}

fn is_under_way(call: &CallRow) -> bool {
    match call.state {
        CallState::Preparing | CallState::Executing => true,
        CallState::Waiting | CallState::Ended => false,
    }
}

/// The call as it stood when the event happened; it may have gone on since. `None` when the event tells nothing new.
fn told(row: &SqliteRow) -> Result<(i64, Option<CallRow>), StoreError> {
    let mut call = call_row(row)?;
    let id = call.id.to_string();
    let columns = Columns { of: &id, row };
    let (at, event) = (columns.time("at")?, columns.json("data")?);
    let told = match event {
        CallEvent::NeedsApproval { .. } => Some(stood(call, CallState::Waiting, ("pending", None))),
        CallEvent::Pending { result: Some(_), .. } => Some(stood(call, CallState::Waiting, ("pending", None))),
        CallEvent::Pending { ref pending_tool_call_id, .. } if *pending_tool_call_id == call.id => None,
        CallEvent::Pending { .. } => Some(ended(call, at, ("pending", None))),
        CallEvent::Completed { .. } => Some(ended(call, at, ("success", None))),
        CallEvent::Failed { error } => Some(ended(call, at, ("error", Some(error.code)))),
        CallEvent::Interrupted { .. } => Some(ended(call, at, ("error", Some(ErrorCode::Interrupted)))),
        CallEvent::Cancelled { .. } => Some(ended(call, at, ("cancelled", Some(ErrorCode::Cancelled)))),
        // The row knows which no it was: a person's, or nobody's.
        CallEvent::Rejected { .. } => {
            call.state = CallState::Ended;
            Some(call)
        }
        CallEvent::Called { .. }
        | CallEvent::Staged { .. }
        | CallEvent::Approved { .. }
        | CallEvent::Started { .. }
        | CallEvent::OutputAppended { .. }
        | CallEvent::Progress { .. }
        | CallEvent::Asks { .. }
        | CallEvent::Answered { .. }
        | CallEvent::Committed { .. }
        | CallEvent::Undone { .. } => None,
    };
    Ok((columns.plain("seq")?, told))
}

fn stood(call: CallRow, state: CallState, (status, code): (&str, Option<ErrorCode>)) -> CallRow {
    let code = code.map(|code| code.to_string());
    CallRow { state, status: Some(status.to_owned()), code, finished_at: None, duration_ms: None, ..call }
}

fn ended(call: CallRow, at: Timestamp, end: (&str, Option<ErrorCode>)) -> CallRow {
    let (finished_at, duration_ms) = (call.finished_at.or(Some(at)), call.duration_ms);
    CallRow { finished_at, duration_ms, ..stood(call, CallState::Ended, end) }
}

#[cfg(test)]
mod tests {
    #[test]
    fn following_reads_only_what_is_new() {
        crate::schema::tests::assert_quick(&[super::NEWS]);
        let steps = crate::schema::tests::plan(super::HEAD);
        assert_eq!(steps, ["SEARCH events"], "the last number is found without reading the others");
    }
}
