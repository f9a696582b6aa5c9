//! What has happened to one call and is not yet in the journal.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    About, ApprovedBy, AutoApprove, CallEvent, CallId, CallListener, CallRequest, CallState, CalledAs, ChangeList,
    Effect, Entry, Isolation, Opening, Outcome, PolicyVersions, Question, Scope, Source, ToolOutput, Turn, Via,
};

/// Follows one call down the line. Stages add events; the line hands them to the journal when it must.
pub(crate) struct CallLog {
    pub(crate) call: CallId,
    pub(crate) scope: Scope,
    via: Arc<Via>,
    /// The tool's own name, as soon as it is known.
    pub(crate) tool: String,
    /// The other name by which it was asked for.
    pub(crate) called_as: Option<CalledAs>,
    pub(crate) started_at: Timestamp,
    /// Time spent working, waiting for answers not counted.
    pub(crate) worked: Duration,
    /// Time that the work has waited for answers to its forms.
    pub(crate) waited: Duration,
    /// How many questions were put.
    pub(crate) questions: u32,
    pub(crate) attempts: u32,
    /// The answer was remembered.
    pub(crate) cached: bool,
    /// The input, when it is not the one that was first asked for.
    pub(crate) edited_input: Option<Value>,
    /// The journal could tell the end by itself.
    pub(crate) ends_as_foreseen: bool,
    /// It was handed back while it waits for a result from outside.
    pub(crate) waits_for_a_result: bool,
    /// The question for a result from outside, whose answer ends it.
    pub(crate) result_of: Option<u32>,
    opening: Option<Opening>,
    listener: Option<CallListener>,
    events: Vec<(Timestamp, CallEvent)>,
    /// What the listener hears only after the yes.
    held: Vec<CallEvent>,
    pub(crate) turn: Option<Turn>,
    /// The rung of the processes that it has started by now.
    pub(crate) isolation: Isolation,
    /// How far it reaches, once that is known.
    pub(crate) effect: Option<Effect>,
}

impl CallLog {
    pub(crate) fn new(request: &CallRequest) -> Self {
        let started_at = Timestamp::now();
        let opening = Opening {
            tool: request.tool.clone(),
            input: request.input.clone(),
            parent: request.parent.clone(),
            caller: request.caller.record(),
            auto_approve: request.auto_approve,
            at: started_at,
        };
        Self { opening: Some(opening), ..Self::resumed(request, started_at) }
    }

    /// The log of a call that the journal already knows.
    pub(crate) fn resumed(request: &CallRequest, started_at: Timestamp) -> Self {
        Self {
            call: request.id.clone(),
            scope: request.caller.scope.clone(),
            via: Arc::new(request.caller.via.clone()),
            tool: request.tool.clone(),
            called_as: None,
            started_at,
            worked: Duration::ZERO,
            waited: Duration::ZERO,
            questions: 0,
            attempts: 0,
            cached: false,
            edited_input: (request.caller.source == Source::Edit).then(|| request.input.clone()),
            ends_as_foreseen: false,
            waits_for_a_result: false,
            result_of: None,
            opening: None,
            listener: request.listener.as_ref().map(Arc::clone),
            events: Vec::new(),
            held: Vec::new(),
            turn: None,
            isolation: Isolation::None,
            effect: None,
        }
    }

    /// The call's real tool is known.
    pub(crate) fn resolved(&mut self, tool: &str) {
        tool.clone_into(&mut self.tool);
        if let Some(opening) = &mut self.opening {
            tool.clone_into(&mut opening.tool);
        }
    }

    /// The call is another one than was asked for, and is recorded as that one.
    pub(crate) fn handed_on(&mut self, input: &Value) {
        if let Some(opening) = &mut self.opening {
            opening.input.clone_from(input);
        }
    }

    /// What may happen without asking is known.
    pub(crate) fn may_happen_unasked(&mut self, mode: AutoApprove) {
        if let Some(opening) = &mut self.opening {
            opening.auto_approve = mode;
        }
    }

    /// Tells the listener and remembers for the journal.
    pub(crate) fn note(&mut self, event: CallEvent) {
        self.tell(&event);
        self.events.push((Timestamp::now(), event));
    }

    /// Remembers for the journal, and tells the listener when somebody has said yes.
    pub(crate) fn note_until_the_yes(&mut self, event: CallEvent) {
        self.held.push(event.clone());
        self.events.push((Timestamp::now(), event));
    }

    /// Somebody or something said yes.
    pub(crate) fn approved(&mut self, approved_by: ApprovedBy, by: Option<String>, under: Option<PolicyVersions>) {
        self.note(CallEvent::Approved { approved_by, by, continued_as: None, under });
        for event in std::mem::take(&mut self.held) {
            self.tell(&event);
        }
    }

    /// The work begins, for the first time or once more.
    pub(crate) fn attempt(&mut self) {
        self.attempts += 1;
        self.note(CallEvent::Started { attempt: self.attempts });
    }

    /// The work has begun, if nothing has told so yet: a command begins before it is approved.
    pub(crate) fn has_begun(&mut self) {
        if self.attempts == 0 {
            self.attempt();
        }
    }

    /// What would change is held aside.
    pub(crate) fn staged(&mut self, changes: &ChangeList, turn: &Turn) {
        self.note(CallEvent::Staged { changes: changes.without_diffs(), turn: turn.clone() });
        self.turn = Some(turn.clone());
    }

    /// The journal already tells that the call was asked for.
    pub(crate) fn forget_the_call_event(&mut self) {
        self.events.retain(|(_, event)| !matches!(event, CallEvent::Called { .. }));
    }

    /// Tells the listener only.
    pub(crate) fn tell(&self, event: &CallEvent) {
        if let Some(listener) = &self.listener {
            listener(event);
        }
    }

    /// Whether the journal knows the call.
    pub(crate) fn is_recorded(&self) -> bool {
        self.opening.is_none()
    }

    /// Whether something has happened that the journal does not know yet.
    pub(crate) fn has_news(&self) -> bool {
        !self.events.is_empty()
    }

    /// The call's next question.
    pub(crate) fn question(
        &mut self,
        (request, effect): (&CallRequest, Effect),
        about: About,
        reason: String,
        (asked_at, within): (Timestamp, Duration),
    ) -> Question {
        self.questions += 1;
        Question {
            call: request.id.clone(),
            number: self.questions,
            tool: self.tool.clone(),
            input: request.input.clone(),
            called_as: self.called_as.clone(),
            effect,
            reason,
            nearly: None,
            about,
            asked_by: request.caller.who(),
            workspace: self.scope.workspace().cloned(),
            asked_at,
            expires_at: asked_at.checked_add(within).unwrap_or(Timestamp::MAX),
        }
    }

    /// Everything that the journal does not know yet.
    pub(crate) fn entry(&mut self, state: CallState) -> Entry {
        Entry {
            call: self.call.clone(),
            via: Arc::clone(&self.via),
            opening: self.opening.take(),
            state,
            turn: self.turn.clone(),
            outcome: None,
            whole_output: None,
            events: std::mem::take(&mut self.events),
            result_of: None,
        }
    }

    /// The last entry of the call.
    pub(crate) fn last_entry(&mut self, outcome: Arc<Outcome>, whole_output: Option<ToolOutput>) -> Entry {
        let state = match outcome.end {
            // When an edited input waits in its place, this call itself is over.
            crate::End::Pending { ref pending } if pending.pending_tool_call_id == self.call => CallState::Waiting,
            crate::End::Pending { .. }
            | crate::End::Success { .. }
            | crate::End::Error { .. }
            | crate::End::Rejected { .. }
            | crate::End::Cancelled { .. } => CallState::Ended,
        };
        let result_of = self.result_of.filter(|_| state == CallState::Ended);
        Entry { outcome: Some(outcome), whole_output, result_of, ..self.entry(state) }
    }
}
