//! Waiting for a result from outside, after the yes: durable, answered once, ended by any process without running anything.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    About, Answer, Answered, ApprovedBy, CallEvent, CallState, CallerId, Doors, Effect, ErrorCode, GrantId, Isolation,
    Pending, Question, ToolError, ToolOutput,
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
}

impl WaitFor {
    /// A result that anybody whom the guard lets may give within a week.
    pub fn result(message: impl Into<String>, schema: Value) -> Self {
        Self { schema, message: message.into(), expires_after: A_WEEK, answerers: Answerers::Permitted }
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

impl AwaitedResult {
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

/// Puts the question for the result, and waits for it as long as its caller does. The question, the call's row and its event
/// are one transaction.
pub(crate) async fn await_result(
    doors: &Doors,
    (call, effect): (&ResolvedCall, Effect),
    (wait, approval): (WaitFor, Approval),
    log: &mut CallLog,
) -> Result<Executed, Declined> {
    registry::compile_form(&wait.schema).map_err(|why| ToolError::new(ErrorCode::OutputInvalid, why))?;
    let request = &call.request;
    let question = question(call, effect, wait, &approval, log);
    log.note(CallEvent::Pending {
        pending_tool_call_id: question.call.clone(),
        result: Some(OutsideResult {
            question: question.number,
            tool: question.tool.clone(),
            args: question.input.clone(),
            waited: !request.wait.is_zero(),
            expires_at: question.expires_at,
        }),
    });
    let entry = log.entry(CallState::Waiting);
    doors.questions.ask(&log.scope, &question, entry).await?;
    tell_of_question(&doors.deliveries, &log.scope, &question).await;
    let id = question.id();
    let answered = tokio::select! {
        answered = doors.questions.wait(&log.scope, &id, request.wait) => answered?,
        () = request.cancel.cancelled() => {
            let taken_back = (Answer::Cancel, question.asked_by.clone());
            Some(withdraw(doors, &log.scope, &question, taken_back).await?)
        }
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

fn question(call: &ResolvedCall, effect: Effect, wait: WaitFor, approval: &Approval, log: &mut CallLog) -> Question {
    let WaitFor { schema, message, expires_after, answerers } = wait;
    let reason = format!("`{}` waits for a result from outside", log.tool);
    let about = About::Result(AwaitedResult {
        schema,
        message,
        answerers,
        approved_by: approval.by,
        grant: approval.grant.clone(),
        worked_ms: log.worked.as_millis().try_into().unwrap_or(u64::MAX),
        attempts: log.attempts,
    });
    log.question((&call.request, effect), about, reason, expires_after)
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
        Answer::Failed { message } => Err(ToolError::new(ErrorCode::ExecutionError, message)),
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
    /// Whether its caller waits for it now.
    pub waited: bool,
    /// When it comes too late.
    pub expires_at: Timestamp,
}
