//! The end of a call, in the journal before anybody hears of it.

use std::sync::Arc;

use jiff::Timestamp;

use crate::{
    CallEvent, ChangeList, Doors, End, ErrorCode, Limits, Outcome, PartialWork, Pending, ToolError, ToolOutput,
    changes::left_staged,
    log::CallLog,
    ran::CallFailure,
    shorten::{shorten_details, shortened},
    stage::{
        approve::{Approval, Stopped},
        execute::{CompletedWork, Executed},
    },
};

/// What the line came to.
pub(crate) enum Ending {
    /// It was approved and tried.
    Executed(Executed),
    /// It stopped before.
    Stopped(Stopped),
    /// Another call carries it on.
    Continued(Pending),
    /// The process that had it is gone, but its turn was taken.
    AsForeseen { foreseen: Box<Outcome>, turned: ChangeList },
    /// The process that had it is gone.
    Interrupted { sentence: String, changes: Option<ChangeList> },
}

/// Makes the envelope and records it: in a batch behind the answer when the call only read or the journal could tell its
/// end by itself and the house allows that, at once otherwise.
pub(crate) async fn record(doors: &Doors, log: &mut CallLog, ending: Ending) -> Outcome {
    let journal = &doors.journal;
    let (mut outcome, whole) = envelope(&doors.limits, log, ending);
    outcome.tell_the_model(log.edited_input.as_ref());
    note_the_end(log, &outcome);
    let by_reference = whole.is_some();
    let only_read = !log.is_recorded() && outcome.changes.is_none() && !by_reference;
    let may_wait = !doors.limits.recorded_first && (only_read || log.ends_as_foreseen);
    // A long result is not copied for the journal, which has written it down by the time it answers.
    let shared = Arc::new(outcome);
    let entry = log.last_entry(Arc::clone(&shared), whole);
    let recorded =
        if may_wait { journal.record_later(&log.scope, entry).await } else { journal.record(&log.scope, entry).await };
    let mut outcome = Arc::unwrap_or_clone(shared);
    // A call that ended because the journal could not be written says more than the second attempt to write.
    let store_failed = outcome.end.error().is_some_and(|error| error.code == ErrorCode::StoreUnavailable);
    if let Err(error) = recorded
        && !store_failed
    {
        // What was done is done; the caller must learn that the journal does not know how it ended.
        let message = format!(
            "the call ended with `{}`, but that could not be recorded: {}",
            outcome.end.status(),
            error.message
        );
        outcome.end = End::Error { error: ToolError::new(ErrorCode::StoreUnavailable, message) };
    }
    outcome
}

/// How a call will have ended if its turn is taken.
pub(crate) fn foreseen(
    limits: &Limits,
    log: &CallLog,
    approval: Approval,
    done: CompletedWork,
) -> (Outcome, Option<ToolOutput>) {
    envelope(limits, log, Ending::Executed(Executed { approval, result: Ok(done) }))
}

fn envelope(limits: &Limits, log: &CallLog, ending: Ending) -> (Outcome, Option<ToolOutput>) {
    let no_end = End::Error { error: ToolError::new(ErrorCode::Internal, "the call has no end") };
    let mut outcome = Outcome::ended(log.call.clone(), log.tool.clone(), log.started_at, no_end);
    outcome.attempts = log.attempts;
    outcome.cached = log.cached;
    outcome.isolation = log.isolation;
    outcome.execution_time_ms = log.worked.as_millis().try_into().unwrap_or(u64::MAX);
    let mut whole = None;
    match ending {
        Ending::Executed(Executed { approval, result }) => {
            outcome.approved_by = Some(approval.by);
            outcome.grant = approval.grant;
            match result {
                Ok(done) => whole = succeed(limits, &mut outcome, done),
                Err(failure) => whole = fail(limits, &mut outcome, failure),
            }
        }
        Ending::Stopped(Stopped::Failed(failure)) => whole = fail(limits, &mut outcome, failure),
        Ending::Stopped(Stopped::Rejected { reason, user_message, code }) => {
            outcome.end = End::Rejected { error: ToolError::new(code, reason.clone()), reason, user_message };
        }
        Ending::Stopped(Stopped::Pending(pending)) => {
            outcome.finished_at = None;
            outcome.end = End::Pending { pending };
        }
        Ending::Continued(pending) => outcome.end = End::Pending { pending },
        Ending::AsForeseen { foreseen, turned } => {
            outcome = *foreseen;
            outcome.changes = outcome.changes.map(|staged| staged.updated(turned));
            outcome.undoable = true;
            outcome.finished_at = Some(Timestamp::now());
        }
        Ending::Interrupted { sentence, changes } => {
            let mut message = format!("haft ended while the call was under way: {sentence}");
            let staged = changes.as_ref().map(ChangeList::staged_paths).unwrap_or_default();
            if !staged.is_empty() {
                message = format!("{message}; {}", left_staged(&log.call, &staged));
            }
            outcome.end = failed(ToolError::new(ErrorCode::Interrupted, message));
            outcome.undoable = changes.as_ref().is_some_and(ChangeList::is_undoable);
            outcome.changes = changes.map(|changes| changes.without_diffs());
        }
    }
    name_the_alias(log, &mut outcome);
    (outcome, whole)
}

/// Whoever used another name learns so, and until when an old one is understood.
fn name_the_alias(log: &CallLog, outcome: &mut Outcome) {
    let Some(called_as) = &log.called_as else { return };
    let facts = match &mut outcome.end {
        End::Success { result } => {
            result.metadata.insert("called_as".to_owned(), called_as.name.clone().into());
            &mut result.metadata
        }
        End::Error { error } | End::Rejected { error, .. } | End::Cancelled { error } => &mut error.details,
        End::Pending { .. } => return,
    };
    if let Some(deprecation) = called_as.deprecation(&log.tool) {
        facts.insert("deprecated".to_owned(), deprecation);
    }
}

fn succeed(limits: &Limits, outcome: &mut Outcome, done: CompletedWork) -> Option<ToolOutput> {
    outcome.isolation = done.isolation;
    let changed = done.changes.filter(|changes| !changes.0.is_empty());
    outcome.undoable = changed.as_ref().is_some_and(ChangeList::is_undoable);
    outcome.changes = changed.map(|changes| changes.without_diffs());
    let (result, whole) = shortened(done.output, limits, &outcome.tool_call_id);
    outcome.end = End::Success { result };
    whole
}

/// What was cut short lists what it leaves staged, and says what can be done with it. What it had said has as much room
/// as the text of a result, and the whole of it is kept like that of a result.
fn fail(limits: &Limits, outcome: &mut Outcome, failure: CallFailure) -> Option<ToolOutput> {
    let mut error = match failure {
        CallFailure::Error(error) => error,
        CallFailure::Behind(isolation, error) => {
            outcome.isolation = isolation;
            error
        }
        CallFailure::CutShort(PartialWork { mut error, changes, turn: _, isolation }) => {
            outcome.isolation = isolation.unwrap_or(outcome.isolation);
            if !changes.0.is_empty() {
                let left = left_staged(&outcome.tool_call_id, &changes.paths());
                error.message = format!("{}; {left}", error.message);
                outcome.changes = Some(changes.without_diffs());
            }
            error
        }
    };
    let whole = shorten_details(&mut error, limits, &outcome.tool_call_id);
    outcome.end = failed(error);
    whole
}

fn failed(error: ToolError) -> End {
    match error.code.is_a_cancel() {
        true => End::Cancelled { error },
        false => End::Error { error },
    }
}

fn note_the_end(log: &mut CallLog, outcome: &Outcome) {
    let event = match &outcome.end {
        End::Success { .. } => CallEvent::Completed { execution_time_ms: outcome.execution_time_ms, late: false },
        End::Error { error } if error.code == ErrorCode::Interrupted => {
            CallEvent::Interrupted { recovered: error.message.clone() }
        }
        End::Error { error } => CallEvent::Failed { error: error.clone(), late: false },
        End::Rejected { reason, user_message, .. } => {
            CallEvent::Rejected { reason: reason.clone(), user_message: user_message.clone() }
        }
        // It was told when the call began to wait, and whoever acts on it must not do so twice.
        End::Pending { .. } if log.waits_for_a_result => return,
        End::Pending { pending } => {
            CallEvent::Pending { pending_tool_call_id: pending.pending_tool_call_id.clone(), result: None }
        }
        End::Cancelled { error } if error.code == ErrorCode::Expired => {
            CallEvent::Cancelled { reason: "expired".to_owned() }
        }
        End::Cancelled { error } => CallEvent::Cancelled { reason: error.message.clone() },
    };
    log.note(event);
}
