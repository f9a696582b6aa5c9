//! Waiting for a result from outside, after the yes: durable, answered once, ended by any process without running anything.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    About, Answer, Answered, ApprovedBy, CallEvent, CallRequest, CallState, Caller, CallerId, Doors, Effect, ErrorCode,
    GrantId, Isolation, Pending, Question, ToolError, ToolOutput,
    answers::withdraw,
    issues,
    log::CallLog,
    ran::CallFailure,
    registry,
    stage::{
        approve::{Approval, Declined, Stopped},
        deliver::tell_of_question,
        execute::{CompletedWork, Executed},
        resolve::ResolvedCall,
    },
};

/// How long a result is waited for where a tool says nothing else.
const A_WEEK: Duration = Duration::from_secs(7 * 24 * 3600);
/// How long its caller waits for it at most, where a tool says nothing else.
const HALF_A_MINUTE: Duration = Duration::from_secs(30);
/// Who does the work where a tool says nothing else: a program outside.
const EXTERNAL: &str = "external";
/// The execution type of a tool that people answer in a space, by its form.
const SPACE: &str = "space";

/// What a tool's `run` waits for, when somebody outside gives its result.
#[derive(Clone, Debug, PartialEq)]
pub struct WaitFor {
    /// What a result must look like, as JSON Schema.
    pub schema: Value,
    /// What is waited for, for people.
    pub message: String,
    /// How long.
    pub expires_after: Duration,
    /// Who may give it.
    pub answerers: Answerers,
    /// How long its caller is held meanwhile.
    pub caller: CallerWait,
    /// Who does the work, in a word: `external`, `space` and so on.
    pub execution_type: String,
}

/// How long a caller is held for a result from outside. How long that is waited for at all is another matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallerWait {
    /// Not at all: the caller gets `pending` at once, and the result through its inbox.
    Async,
    /// As long as the request says. If this runs out first, the call ends with `TIMEOUT`.
    Sync {
        /// The longest that a caller waits.
        within: Duration,
    },
}

impl WaitFor {
    /// A result that anybody whom the guard lets may give within a week, and that its caller waits for half a minute.
    pub fn result(message: impl Into<String>, schema: Value) -> Self {
        Self {
            schema,
            message: message.into(),
            expires_after: A_WEEK,
            answerers: Answerers::Permitted,
            caller: CallerWait::Sync { within: HALF_A_MINUTE },
            execution_type: EXTERNAL.to_owned(),
        }
    }
}

/// Who may give a result. The guard is asked in any case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answerers {
    /// Whoever the guard lets.
    Permitted,
    /// Of those, only these.
    Only(Vec<CallerId>),
}

/// A result that a call waits for, with everything that its end needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AwaitedResult {
    /// What it must look like, as JSON Schema.
    pub schema: Value,
    /// What is waited for, for people.
    pub message: String,
    /// Who may give it.
    pub answerers: Answerers,
    /// Who does the work, in a word.
    pub execution_type: String,
    /// Where it goes, as that stands now.
    pub delivered: Delivered,
    /// Who had said yes to the call.
    pub approved_by: ApprovedBy,
    /// The grant that had said yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<GrantId>,
    /// How long the call had worked before.
    pub worked_ms: u64,
    /// How often it was tried.
    pub attempts: u32,
}

/// How a result reaches the caller: in one of these two ways, never in both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Delivered {
    /// As the answer to its request, which is held.
    Inline,
    /// Through its inbox.
    Inbox,
}

impl AwaitedResult {
    /// Whether people fill it in, in a space.
    pub fn is_a_form(&self) -> bool {
        self.execution_type == SPACE
    }

    /// Why a value is no such result, where it is none.
    pub fn check(&self, value: &Value) -> Result<(), ToolError> {
        let broken = |why| ToolError::new(ErrorCode::Internal, why);
        let validator = registry::compile_form(&self.schema).map_err(broken)?;
        if validator.is_valid(value) { Ok(()) } else { Err(issues::told(&validator, &self.schema, "result", value)) }
    }

    /// Whether this caller is among those who may give it.
    pub fn may_be_given_by(&self, caller: &CallerId) -> bool {
        match &self.answerers {
            Answerers::Permitted => true,
            Answerers::Only(these) => these.contains(caller),
        }
    }
}

/// How long a caller is held, and what happens if nobody has given the result by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hold {
    limit: Duration,
    then: AfterHold,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AfterHold {
    HandBack,
    TimeOut,
    Expire,
}

impl Hold {
    fn new(wait: &WaitFor, request: Duration) -> Self {
        let CallerWait::Sync { within } = wait.caller else {
            return Self { limit: Duration::ZERO, then: AfterHold::HandBack };
        };
        let limit = request.min(within).min(wait.expires_after);
        let then = if limit == within {
            AfterHold::TimeOut
        } else if limit == wait.expires_after {
            AfterHold::Expire
        } else {
            AfterHold::HandBack
        };
        Self { limit, then }
    }

    /// Where the result goes, when the wait begins.
    fn delivered(self) -> Delivered {
        if self.limit.is_zero() && self.then == AfterHold::HandBack { Delivered::Inbox } else { Delivered::Inline }
    }

    /// What the house says when it runs out; nothing if the call goes on waiting.
    fn last_word(self) -> Option<Answer> {
        match self.then {
            AfterHold::HandBack => None,
            AfterHold::TimeOut => Some(Answer::TimedOut { after_ms: millis(self.limit) }),
            AfterHold::Expire => Some(Answer::Expire),
        }
    }
}

fn millis(time: Duration) -> u64 {
    time.as_millis().try_into().unwrap_or(u64::MAX)
}

/// Puts the question for the result, and waits for it as long as its caller does. The question, the call's row and its event
/// are one transaction.
pub(crate) async fn await_result(
    doors: &Doors,
    (call, effect): (&ResolvedCall, Effect),
    (wait, approval): (WaitFor, Approval),
    log: &mut CallLog,
) -> Result<Executed, Declined> {
    registry::compile_form(&wait.schema).map_err(|why| ToolError::new(ErrorCode::OutputInvalid, why))?;
    let hold = Hold::new(&wait, call.request.wait);
    let now = doors.questions.now();
    let question = question((call, effect), (wait, hold.delivered(), now), &approval, log);
    let entry = log.entry(CallState::Waiting);
    doors.questions.ask(&log.scope, &question, entry).await?;
    log.result_of = Some(question.number);
    tell_of_question(&doors.deliveries, &log.scope, &question).await;
    let answered = match hold.delivered() {
        Delivered::Inline => held(doors, (&question, hold), &call.request, log).await,
        Delivered::Inbox => None,
    };
    match answered {
        Some(answered) => Ok(ended(answered, approval)),
        None => {
            let pending = Pending { pending_tool_call_id: question.call, expires_at: question.expires_at };
            log.waits_for_a_result = true;
            Err(Stopped::Pending(pending).into())
        }
    }
}

/// Holds the caller until there is an answer, the house's own included. Without one the call is handed back, and also where
/// nobody can tell now whether there is one: whoever carries it on then delivers to the inbox.
async fn held(
    doors: &Doors,
    (question, hold): (&Question, Hold),
    request: &CallRequest,
    log: &CallLog,
) -> Option<Answered> {
    let (scope, id) = (&log.scope, question.id());
    let house = || Caller::house(scope).who();
    let last_word = tokio::select! {
        // Whoever ends a process hands back what waits and stops the rest at the same moment.
        biased;
        () = request.hand_back.cancelled() => None,
        answered = doors.questions.wait(scope, &id, hold.limit) => match answered {
            Ok(Some(answered)) => return Some(answered),
            Ok(None) => hold.last_word().map(|answer| (answer, house())),
            Err(_) => return None,
        },
        () = request.cancel.cancelled() => Some((Answer::Cancel, question.asked_by.clone())),
    };
    if let Some(last_word) = last_word {
        return withdraw(doors, scope, question, last_word).await.ok();
    }
    match doors.questions.stop_waiting(scope, &id).await {
        // The answer came first: it is this caller's, and nobody else hears it.
        Ok(false) => doors.questions.wait(scope, &id, Duration::ZERO).await.ok().flatten(),
        Ok(true) | Err(_) => None,
    }
}

/// The question, and the event that programs outside act on.
fn question(
    (call, effect): (&ResolvedCall, Effect),
    (wait, delivered, now): (WaitFor, Delivered, Timestamp),
    approval: &Approval,
    log: &mut CallLog,
) -> Question {
    let WaitFor { schema, message, expires_after, answerers, caller: _, execution_type } = wait;
    let reason = format!("`{}` waits for a result from outside", log.tool);
    let about = About::Result(AwaitedResult {
        schema,
        message,
        answerers,
        execution_type: execution_type.clone(),
        delivered,
        approved_by: approval.by,
        grant: approval.grant.clone(),
        worked_ms: millis(log.worked),
        attempts: log.attempts,
    });
    let question = log.question((&call.request, effect), about, reason, (now, expires_after));
    log.note(CallEvent::Pending {
        pending_tool_call_id: question.call.clone(),
        result: Some(OutsideResult {
            question: question.number,
            tool: question.tool.clone(),
            args: question.input.clone(),
            execution_type,
            waited: delivered == Delivered::Inline,
            expires_at: question.expires_at,
        }),
    });
    question
}

/// A call whose result was waited for by a process that is gone, or had handed it back.
pub(crate) fn ended_elsewhere(
    question: &Question,
    awaited: &AwaitedResult,
    answered: Answered,
    log: &mut CallLog,
) -> Executed {
    question.tool.clone_into(&mut log.tool);
    log.called_as.clone_from(&question.called_as);
    log.questions = question.number;
    log.result_of = Some(question.number);
    log.attempts = awaited.attempts;
    log.worked = Duration::from_millis(awaited.worked_ms);
    ended(answered, Approval { by: awaited.approved_by, grant: awaited.grant.clone() })
}

/// What an answer makes of the call. The result was held against its schema before it was taken.
fn ended(answered: Answered, approval: Approval) -> Executed {
    let by = &answered.by;
    let result = match answered.answer {
        Answer::Result { value } => {
            Ok(CompletedWork { output: output(value), changes: None, isolation: Isolation::None })
        }
        Answer::Failed { code, message } => Err(failed_outside(code, message)),
        Answer::TimedOut { after_ms } => {
            Err(ToolError::new(ErrorCode::Timeout, format!("Tool timed out after {after_ms}ms")))
        }
        Answer::Expire => {
            let message = "nobody gave the result in time; call it again if it is still wanted";
            Err(ToolError::new(ErrorCode::Expired, message))
        }
        Answer::Cancel
        | Answer::Approve { .. }
        | Answer::Always { .. }
        | Answer::Edit { .. }
        | Answer::Fill { .. }
        | Answer::Reject { .. } => {
            let message = format!("the call was cancelled by {by} while it waited for a result");
            Err(ToolError::new(ErrorCode::Cancelled, message))
        }
    };
    Executed { approval, result: result.map_err(CallFailure::from) }
}

/// The failure of whoever did the work. What they call it is theirs, and stands in the details.
pub(crate) fn failed_outside(code: Option<String>, message: String) -> ToolError {
    let error = ToolError::new(ErrorCode::ExecutionError, message);
    match code {
        Some(code) => error.with("code", code),
        None => error,
    }
}

fn output(value: Value) -> ToolOutput {
    let content = match &value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    };
    ToolOutput { content, structured: value.into(), ..ToolOutput::default() }
}

/// What programs outside need to give a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OutsideResult {
    /// Which of the call's questions.
    pub question: u32,
    /// The tool's own name.
    pub tool: String,
    /// The exact arguments.
    pub args: Value,
    /// Who does the work, in a word.
    pub execution_type: String,
    /// Whether its caller waits for it now.
    pub waited: bool,
    /// When it comes too late.
    pub expires_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_of_three_limits_decides_what_becomes_of_the_caller() {
        let seconds = Duration::from_secs;
        let sync = |within| CallerWait::Sync { within: seconds(within) };
        let timed_out = |millis| Some(Answer::TimedOut { after_ms: millis });
        let cases = [
            (CallerWait::Async, 60, 100, (0, Delivered::Inbox, None)),
            (sync(10), 0, 100, (0, Delivered::Inbox, None)),
            (sync(10), 5, 100, (5, Delivered::Inline, None)),
            (sync(10), 10, 100, (10, Delivered::Inline, timed_out(10_000))),
            (sync(10), 60, 100, (10, Delivered::Inline, timed_out(10_000))),
            (sync(10), 60, 10, (10, Delivered::Inline, timed_out(10_000))),
            (sync(10), 60, 3, (3, Delivered::Inline, Some(Answer::Expire))),
        ];
        for (caller, request, expires_after, (limit, delivered, last_word)) in cases {
            let expires_after = seconds(expires_after);
            let wait = WaitFor { caller, expires_after, ..WaitFor::result("a parcel", Value::Bool(true)) };
            let hold = Hold::new(&wait, seconds(request));
            let found = (hold.limit, hold.delivered(), hold.last_word());
            assert_eq!(found, (seconds(limit), delivered, last_word), "{caller:?}, a request of {request} s");
        }
    }
}
