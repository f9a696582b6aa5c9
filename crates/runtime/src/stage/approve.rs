//! Does this call need a person's yes, and if so, get it.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    About, Answer, Answered, ApprovedBy, AutoApprove, CallEvent, CallState, CallerRef, Change, ChangeKind, Doors,
    Effect, ErrorCode, Evidence, Grant, GrantId, InputEdit, Pending, Question, ToolError,
    answers::withdraw,
    log::CallLog,
    policy::{Case, Decision, Policy, decide},
    ran::CallFailure,
    stage::{deliver::tell_of_question, prepare::PreparedCall, resolve::ResolvedCall},
};

/// Policy or a person said yes to exactly this. Only this file makes one.
pub(crate) struct ApprovedCall {
    call: ResolvedCall,
    effect: Effect,
    evidence: Evidence,
    approval: Approval,
}

/// Who said yes.
#[derive(Clone, Debug)]
pub(crate) struct Approval {
    pub(crate) by: ApprovedBy,
    pub(crate) grant: Option<GrantId>,
}

impl ApprovedCall {
    pub(crate) fn into_parts(self) -> (ResolvedCall, Effect, Evidence, Approval) {
        (self.call, self.effect, self.evidence, self.approval)
    }
}

/// How a call leaves the line before it is carried out.
pub(crate) enum Declined {
    Stopped(Stopped),
    /// The approver wants the same tool with another input: that is another call.
    Edited {
        input: Value,
        edit: InputEdit,
    },
}

/// Why a call goes no further, other than by success.
pub(crate) enum Stopped {
    Failed(CallFailure),
    Rejected { reason: String, user_message: Option<String>, code: ErrorCode },
    Pending(Pending),
}

impl<F: Into<CallFailure>> From<F> for Stopped {
    fn from(failure: F) -> Self {
        Self::Failed(failure.into())
    }
}

impl<S: Into<Stopped>> From<S> for Declined {
    fn from(stopped: S) -> Self {
        Self::Stopped(stopped.into())
    }
}

pub(crate) async fn approve(doors: &Doors, call: PreparedCall, log: &mut CallLog) -> Result<ApprovedCall, Declined> {
    log.effect = Some(call.effect());
    let policy = doors.policies.of(&log.scope).await?;
    let decision = decided(doors, &policy, &call, log).await?;
    match edit_counts_as_approval(&call, decision) {
        Decision::Yes { approved_by, by, grant } => {
            log.approved(approved_by, by, policy.versions);
            Ok(approved(call, Approval { by: approved_by, grant }))
        }
        Decision::No(error) => {
            discard(doors, &call).await?;
            Err(error.into())
        }
        Decision::Ask { reason, nearly } => {
            let question = question(&call, log, (reason, nearly), (doors.questions.now(), doors.limits.answer_within));
            log.note(CallEvent::NeedsApproval { effect: question.effect, reason: question.reason.clone() });
            let entry = log.entry(CallState::Waiting);
            doors.questions.ask(&log.scope, &question, entry).await?;
            tell_of_question(&doors.deliveries, &log.scope, &question).await;
            let Some(answered) = wait(doors, &call, &question, log).await else {
                let pending = Pending { pending_tool_call_id: question.call, expires_at: question.expires_at };
                return Err(Stopped::Pending(pending).into());
            };
            apply_answer(doors, call, answered, log).await
        }
    }
}

/// Goes on with an answer. It is decided on the stored evidence; a rule that refuses still refuses.
pub(crate) async fn apply_answer(
    doors: &Doors,
    call: PreparedCall,
    answered: Answered,
    log: &mut CallLog,
) -> Result<ApprovedCall, Declined> {
    log.effect = Some(call.effect());
    let paths = match answered.answer {
        Answer::Approve { paths } => paths,
        Answer::Always { .. } => None,
        Answer::Edit { input } => {
            let edit = InputEdit { by: answered.by, shown: shown_by(&call) };
            discard(doors, &call).await?;
            return Err(Declined::Edited { input, edit });
        }
        answer @ (Answer::Fill { .. }
        | Answer::Result { .. }
        | Answer::Failed { .. }
        | Answer::TimedOut { .. }
        | Answer::Reject { .. }
        | Answer::Cancel
        | Answer::Expire) => {
            discard(doors, &call).await?;
            return Err(refusal(answer, &answered.by));
        }
    };
    let policy = doors.policies.of(&log.scope).await?;
    if let Decision::No(error) = decide_with(&policy, &call, (&[], doors.questions.now())) {
        discard(doors, &call).await?;
        return Err(error.into());
    }
    log.approved(ApprovedBy::User, Some(answered.by.name), policy.versions);
    let mut call = approved(call, Approval { by: ApprovedBy::User, grant: None });
    if let (Evidence::Staged { turn, .. }, Some(paths)) = (&mut call.evidence, paths) {
        turn.paths = Some(paths);
    }
    Ok(call)
}

/// The paths that the card of a call shows.
fn shown_by(call: &PreparedCall) -> Vec<String> {
    match call.evidence() {
        Evidence::Staged { changes, .. } => changes.paths(),
        Evidence::Plain(_) => Vec::new(),
    }
}

/// What every answer but a yes comes to.
fn refusal(answer: Answer, by: &CallerRef) -> Declined {
    let rejected = |reason: &str, user_message, code| {
        Declined::Stopped(Stopped::Rejected { reason: reason.to_owned(), user_message, code })
    };
    match answer {
        Answer::Reject { message } => rejected("User rejected the operation", message, ErrorCode::Rejected),
        Answer::Expire => rejected("Approval expired: nobody answered in time", None, ErrorCode::ApprovalExpired),
        Answer::Cancel
        | Answer::Approve { .. }
        | Answer::Always { .. }
        | Answer::Edit { .. }
        | Answer::Fill { .. }
        | Answer::Result { .. }
        | Answer::Failed { .. }
        | Answer::TimedOut { .. } => {
            let message = format!("the call was cancelled by {by} while it waited for an answer");
            ToolError::new(ErrorCode::Cancelled, message).into()
        }
    }
}

/// Whoever edited an input has said yes to exactly that input. Only what the first card did not show and what is flagged or
/// deleted is asked about once more.
fn edit_counts_as_approval(call: &PreparedCall, decision: Decision) -> Decision {
    let Some(InputEdit { by, shown }) = &call.call().request.edited else { return decision };
    let is_new_and_grave = |change: &Change| {
        (change.kind == ChangeKind::Deleted || !change.flags.is_empty()) && !shown.contains(&change.path)
    };
    match (&decision, call.evidence()) {
        (Decision::Ask { .. }, Evidence::Staged { changes, .. }) if changes.0.iter().any(is_new_and_grave) => decision,
        (Decision::Ask { .. }, _) => {
            Decision::Yes { approved_by: ApprovedBy::User, by: Some(by.name.clone()), grant: None }
        }
        (Decision::Yes { .. } | Decision::No(_), _) => decision,
    }
}

fn approved(call: PreparedCall, approval: Approval) -> ApprovedCall {
    let (call, effect, evidence) = call.into_parts();
    ApprovedCall { call, effect, evidence, approval }
}

/// The decision, with one use of its grant spent. A grant that ran out meanwhile does not count.
async fn decided(doors: &Doors, policy: &Policy, call: &PreparedCall, log: &CallLog) -> Result<Decision, ToolError> {
    let request = &call.call().request;
    let now = doors.questions.now();
    let decision = decide_with(policy, call, (&[], now));
    // Grants are looked for only where one could turn the question into a yes.
    let grants_count = request.auto_approve == AutoApprove::Reads && matches!(decision, Decision::Ask { .. });
    if !grants_count {
        return Ok(decision);
    }
    let mut grants = doors.questions.grants(&log.scope, &log.tool).await?;
    loop {
        let decision = decide_with(policy, call, (&grants, now));
        let Decision::Yes { grant: Some(grant), .. } = &decision else { return Ok(decision) };
        if doors.questions.spend(&log.scope, grant).await? {
            return Ok(decision);
        }
        grants.retain(|other| other.id != *grant);
    }
}

fn decide_with(policy: &Policy, call: &PreparedCall, (grants, now): (&[Grant], Timestamp)) -> Decision {
    let request = &call.call().request;
    let case = Case {
        spec: call.call().tool.spec(),
        input: &request.input,
        effect: call.effect(),
        evidence: call.evidence(),
        mode: request.auto_approve,
        caller: &request.caller.id,
        own_form: request.caller.own_form(),
        grants,
        now,
    };
    decide(policy, &case)
}

/// The answer. Without one the call is handed back, and also where nobody can tell now whether there is one: whoever can
/// carries it on.
async fn wait(doors: &Doors, call: &PreparedCall, question: &Question, log: &CallLog) -> Option<Answered> {
    let request = &call.call().request;
    let (id, expires) = (question.id(), doors.limits.answer_within);
    let last_word = tokio::select! {
        // Whoever ends a process hands back what waits and stops the rest at the same moment.
        biased;
        () = request.hand_back.cancelled() => return None,
        answered = doors.questions.wait(&log.scope, &id, request.wait.min(expires)) => match answered {
            Ok(None) if request.wait >= expires => Answer::Expire,
            answered => return answered.ok().flatten(),
        },
        () = request.cancel.cancelled() => Answer::Cancel,
    };
    // Its caller no longer waits for an answer; whoever was earlier wins.
    withdraw(doors, &log.scope, question, (last_word, question.asked_by.clone())).await.ok()
}

/// Drops what the call itself staged; the staged changes of an earlier call stay where they are.
async fn discard(doors: &Doors, call: &PreparedCall) -> Result<(), ToolError> {
    match call.evidence() {
        Evidence::Staged { turn, .. } if turn.of == call.call().request.id => {
            doors.workbench.discard(&call.call().request.caller.scope, &turn.of).await
        }
        Evidence::Staged { .. } | Evidence::Plain(_) => Ok(()),
    }
}

fn question(
    call: &PreparedCall,
    log: &mut CallLog,
    (reason, nearly): (String, Option<String>),
    time: (Timestamp, Duration),
) -> Question {
    let about = About::Approval(call.evidence().clone());
    let question = log.question((&call.call().request, call.effect()), about, reason, time);
    Question { nearly, ..question }
}
