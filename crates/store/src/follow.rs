//! The calls as they ask and end, in the order of the journal, from whatever process.

use std::collections::VecDeque;

use haft_runtime::{CallEvent, CallState, ErrorCode, Scope, Within};
use jiff::Timestamp;

use crate::{
    CallFilter, CallRow, Store, StoreError,
    calls::{list_statements, newest_first},
    columns::tenant,
    journal_events::{EventsOf, JournalEvent},
    live::{EventStream, StreamItem},
};

/// Tells every call when it asks and when it ends, each once.
pub struct CallFollower {
    store: Store,
    scope: Scope,
    within: Within,
    filter: CallFilter,
    events: EventStream,
    first: VecDeque<CallRow>,
}

impl Store {
    /// Follows the calls that the filter lets through, beginning with those that have asked or ended last.
    pub async fn follow(
        &self,
        scope: &Scope,
        within: &Within,
        filter: &CallFilter,
    ) -> Result<CallFollower, StoreError> {
        // One moment: whatever is not in the list comes after its last event.
        let mut statements = list_statements(scope, within, filter)?;
        statements.push(crate::live::head_statement(tenant(scope)));
        let mut found = self.read_together(&statements).await?;
        let (seen, _) = crate::live::head_of(&found.pop().unwrap_or_default())?;
        let rows = newest_first(&found, filter)?;
        let first = rows.into_iter().rev().filter(|call| !is_under_way(call)).collect();
        let events = self.live().listen(scope, EventsOf::Tenant, Some(seen)).await?;
        let (scope, within, filter) = (scope.clone(), within.clone(), filter.clone());
        Ok(CallFollower { store: self.clone(), scope, within, filter, events, first })
    }
}

impl CallFollower {
    /// The next call that asks or ends; waits for one.
    pub async fn next(&mut self) -> Result<CallRow, StoreError> {
        if let Some(call) = self.first.pop_front() {
            return Ok(call);
        }
        loop {
            // What was deleted meanwhile is nothing to tell.
            let StreamItem::Event(event) = self.events.next().await? else { continue };
            let Some(standing) = told_by(&event) else { continue };
            let Some(call) = self.store.call_row(&self.scope, &event.call).await? else { continue };
            let call = as_it_stood(call, event.at, standing);
            if self.lets_through(&call) {
                return Ok(call);
            }
        }
    }

    fn lets_through(&self, call: &CallRow) -> bool {
        let is = |wanted: &Option<String>, found: Option<&str>| wanted.is_none() || wanted.as_deref() == found;
        self.within.covers(call.workspace.as_ref())
            && is(&self.filter.tool, Some(&call.tool))
            && is(&self.filter.status, call.status.as_deref())
            && is(&self.filter.session, call.via.session.as_deref())
            && self.filter.state.is_none_or(|state| state == call.state)
    }
}

fn is_under_way(call: &CallRow) -> bool {
    match call.state {
        CallState::Preparing | CallState::Executing => true,
        CallState::Waiting | CallState::Ended => false,
    }
}

/// Where a call stood when something happened: its state, its status and the code of its error. Without a status the row
/// knows best.
type StoodAt = (CallState, Option<(&'static str, Option<ErrorCode>)>);

/// What an event tells of where its call stands; `None` when it tells nothing new.
fn told_by(JournalEvent { call, event, .. }: &JournalEvent) -> Option<StoodAt> {
    let ended = |status, code| Some((CallState::Ended, Some((status, code))));
    match event {
        CallEvent::NeedsApproval { .. } => Some((CallState::Waiting, Some(("pending", None)))),
        CallEvent::Pending { result: Some(_), .. } => Some((CallState::Waiting, Some(("pending", None)))),
        CallEvent::Pending { pending_tool_call_id, .. } if pending_tool_call_id == call => None,
        CallEvent::Pending { .. } => ended("pending", None),
        // What comes late changes nothing of how the call stands.
        CallEvent::Completed { late: true, .. } | CallEvent::Failed { late: true, .. } => None,
        CallEvent::Completed { late: false, .. } => ended("success", None),
        CallEvent::Failed { error, late: false } => ended("error", Some(error.code)),
        CallEvent::Interrupted { .. } => ended("error", Some(ErrorCode::Interrupted)),
        CallEvent::Cancelled { .. } => ended("cancelled", Some(ErrorCode::Cancelled)),
        // The row knows which no it was: a person's, or nobody's.
        CallEvent::Rejected { .. } => Some((CallState::Ended, None)),
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
    }
}

/// The call as it stood then; it may have gone on since.
fn as_it_stood(call: CallRow, at: Timestamp, (state, status): StoodAt) -> CallRow {
    let Some((status, code)) = status else { return CallRow { state, ..call } };
    let (status, code) = (Some(status.to_owned()), code.map(|code| code.to_string()));
    match state {
        CallState::Ended => CallRow { state, status, code, finished_at: call.finished_at.or(Some(at)), ..call },
        CallState::Preparing | CallState::Waiting | CallState::Executing => {
            CallRow { state, status, code, finished_at: None, duration_ms: None, ..call }
        }
    }
}
