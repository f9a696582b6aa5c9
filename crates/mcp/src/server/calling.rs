//! One call of a client, from its request to what it is answered with.

use std::time::Duration;

use haft_runtime::{
    About, Answer, AnswerReceipt, CallId, CallListener, CallRequest, End, ErrorCode, Follower, Outcome, Question,
    ToolError,
};
use rmcp::{
    ErrorData, RoleServer,
    model::{CallToolRequestParams, CallToolResponse, CreateTaskResult, InputRequiredResult, SealOptions},
    service::RequestContext,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::{pin, task::JoinHandle};

use super::{
    LONG_PATIENCE, PATIENCE, answer,
    asking::{self, ClientReply},
    callers::ClientRequest,
    conversation::Conversation,
    progress::ProgressReporter,
    tasks,
};

/// How long a state that a client carries for us is understood: as long as a question stays open.
const STATE_LASTS: Duration = Duration::from_secs(24 * 3600);

/// How a client can be asked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AskMethod {
    /// It gets a handle and looks again.
    Task,
    /// It is asked in the answer to its call, and calls again.
    InputRequired,
    /// It is asked while its call goes on.
    Elicitation,
    /// Not at all: somebody answers elsewhere while it waits.
    Wait,
}

/// Where a call stands when its client is answered.
pub(super) enum CallStatus {
    /// It has ended, or was handed back.
    Ended(Box<Outcome>),
    /// It goes on behind the answer, and waits for this.
    Asks(Box<Question>),
}

/// What a client carries for us between its call and the next try.
#[derive(Serialize, Deserialize)]
pub(super) struct SealedState {
    pub(super) call: CallId,
    pub(super) question: u32,
}

impl AskMethod {
    fn of(context: &RequestContext<RoleServer>) -> Self {
        let Some(able) = context.client_capabilities() else { return Self::Wait };
        let asks_anew = context.protocol_version().is_some_and(|version| !version.has_initialize());
        match (asks_anew, able.supports_tasks(), asking::shows_forms(&able)) {
            (true, true, _) => Self::Task,
            (true, false, true) => Self::InputRequired,
            (false, _, true) => Self::Elicitation,
            (true, false, false) | (false, _, false) => Self::Wait,
        }
    }
}

/// Takes a call down the line, or goes on with one that had put a question.
pub(super) async fn call(
    server: &ClientRequest,
    mut params: CallToolRequestParams,
    context: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    if let Some(state) = &params.request_state {
        if !server.take_answer_of_followed(&params, state).await? {
            return go_on(server, &params, state, &context).await;
        }
        (params.request_state, params.input_responses) = (None, None);
    }
    let way = AskMethod::of(&context);
    if way == AskMethod::InputRequired
        && let Some(required) = server.required_of_followed(&params).await
    {
        return Ok(required.into());
    }
    let mut request = request(server, &params);
    // This task is not that of the request, which knows the trace that it belongs to.
    request.trace = request.trace.or_else(|| super::callers::trace(&context.extensions));
    request.wait = match way {
        AskMethod::Task | AskMethod::InputRequired => Duration::ZERO,
        AskMethod::Elicitation | AskMethod::Wait => patience(&context),
    };
    let progress = ProgressReporter::of(&context, &request.id);
    request.listener = progress.listener();
    let given = params.input_responses.take().unwrap_or_default();
    let followed = if way == AskMethod::Elicitation { server.followed(&params).await } else { None };
    let conversation = Conversation::new(server, &context, way, &request).knowing(given).asking_first(followed);
    let standing = conversation.follow(request).await;
    let standing = match way {
        AskMethod::InputRequired => server.unless_others_answer(&context, standing).await,
        AskMethod::Task | AskMethod::Elicitation | AskMethod::Wait => standing,
    };
    told(progress, &context, &standing).await;
    respond(server, way, &params, standing).await
}

/// The client has heard of everything before it is answered.
async fn told(progress: ProgressReporter, context: &RequestContext<RoleServer>, standing: &CallStatus) {
    match standing {
        CallStatus::Ended(_) => progress.finish(&context.ct).await,
        CallStatus::Asks(_) => progress.stop(),
    }
}

fn request(server: &ClientRequest, params: &CallToolRequestParams) -> CallRequest {
    let ground = &server.ground;
    let input = Value::Object(params.arguments.clone().unwrap_or_default());
    let mut request = CallRequest::new(server.caller.clone(), params.name.clone(), input);
    request.auto_approve = ground.auto_approve;
    // A call that has asked something outlives the request that it came with.
    request.cancel = server.stop.child_token();
    request.hand_back = server.leaving.child_token();
    request
}

/// One long call must not look dead to a client: with progress it hears that a question is open.
pub(super) fn patience(context: &RequestContext<RoleServer>) -> Duration {
    if context.meta.get_progress_token().is_some() { LONG_PATIENCE } else { PATIENCE }
}

async fn respond(
    server: &ClientRequest,
    way: AskMethod,
    params: &CallToolRequestParams,
    standing: CallStatus,
) -> Result<CallToolResponse, ErrorData> {
    let outcome = match standing {
        CallStatus::Asks(question) => return Ok(told_of(server, way, params, &question)),
        CallStatus::Ended(outcome) => *outcome,
    };
    if let Some(unknown) = answer::unknown_tool(server, &outcome).await {
        return Err(unknown);
    }
    let End::Pending { pending } = &outcome.end else {
        return Ok(answer::result(server, outcome).await.into());
    };
    let call = pending.pending_tool_call_id.clone();
    match way {
        AskMethod::Task => {
            let task = tasks::waiting(&call, outcome.started_at, outcome.started_at);
            return Ok(CallToolResponse::Task(CreateTaskResult::new(task)));
        }
        AskMethod::InputRequired => {
            let found = server.ground.questions.find(&server.caller.scope, &call).await.ok().flatten();
            if let Some(required) = found.and_then(|(question, _)| required(server, params, &question, None)) {
                return Ok(required.into());
            }
        }
        AskMethod::Elicitation | AskMethod::Wait => {}
    }
    Ok(answer::result(server, outcome).await.into())
}

/// A client hears what a call asks in the words that it understands, or where else it can be answered.
fn told_of(
    server: &ClientRequest,
    way: AskMethod,
    params: &CallToolRequestParams,
    question: &Question,
) -> CallToolResponse {
    match way {
        AskMethod::Task => {
            let task = tasks::waiting(&question.call, question.asked_at, question.asked_at);
            CallToolResponse::Task(CreateTaskResult::new(task))
        }
        AskMethod::InputRequired => match required(server, params, question, None) {
            Some(required) => required.into(),
            None => answer::asks(question).into(),
        },
        AskMethod::Elicitation | AskMethod::Wait => answer::asks(question).into(),
    }
}

pub(super) fn required(
    server: &ClientRequest,
    params: &CallToolRequestParams,
    question: &Question,
    wrong: Option<&str>,
) -> Option<InputRequiredResult> {
    let inputs = asking::inputs(&server.ground, question, wrong)?;
    let bound = bound_to(server, params);
    let options = SealOptions::new().associated_data(&bound).ttl(STATE_LASTS);
    let carried = SealedState { call: question.call.clone(), question: question.number };
    let state = server.codec.seal_json_with(&carried, &options).ok()?;
    Some(InputRequiredResult::new(Some(inputs), Some(state)))
}

/// A state counts only for whoever it was given to, and for the very call that it belongs to.
fn bound_to(server: &ClientRequest, params: &CallToolRequestParams) -> Vec<u8> {
    let input = Value::Object(params.arguments.clone().unwrap_or_default());
    format!("{}\n{}\n{input}", server.caller.id, params.name).into_bytes()
}

/// What a client has carried for us.
pub(super) fn opened(
    server: &ClientRequest,
    params: &CallToolRequestParams,
    state: &str,
) -> Result<SealedState, ErrorData> {
    let refused = |_| {
        let message = "this `requestState` was not given for this very call, or is too old; leave it out to call anew";
        ErrorData::invalid_params(message, None)
    };
    server.codec.open_json_with(state, &bound_to(server, params)).map_err(refused)
}

/// The client comes back with what it was asked for. What it has put away is not put to it again: it would do the same
/// again.
async fn go_on(
    server: &ClientRequest,
    params: &CallToolRequestParams,
    state: &str,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let carried = opened(server, params, state)?;
    let internal = |error: ToolError| ErrorData::internal_error(error.message, None);
    let progress = ProgressReporter::of(context, &carried.call);
    let scope = &server.caller.scope;
    let last = server.ground.questions.find(scope, &carried.call).await.map_err(internal)?;
    let Some((question, None)) = last.filter(|(question, _)| question.number == carried.question) else {
        let standing = server.awaited(&carried.call, context).await.map_err(internal)?;
        told(progress, context, &standing).await;
        return respond(server, AskMethod::InputRequired, params, standing).await;
    };
    let given = params.input_responses.as_ref().and_then(|inputs| inputs.get(asking::name(&question)));
    let wrong = match (asking::said(&question, given.unwrap_or(&Value::Null)), &question.about) {
        (ClientReply::Answer(answer), _) => {
            let settled = server.settle(&question, answer, context, progress.listener()).await.map_err(internal)?;
            let standing = server.unless_others_answer(context, settled).await;
            told(progress, context, &standing).await;
            return respond(server, AskMethod::InputRequired, params, standing).await;
        }
        (ClientReply::Wrong(why), _) => Some(why),
        (ClientReply::Nothing | ClientReply::PutAway, About::Form(_)) if given.is_none() => None,
        (ClientReply::Nothing | ClientReply::PutAway, About::Form(_)) => return Ok(answer::asks(&question).into()),
        (ClientReply::Nothing | ClientReply::PutAway, About::Approval(_) | About::Result(_)) => {
            server.put_away(&question);
            return Ok(match server.stands(&carried.call, Duration::ZERO).await.map_err(internal)? {
                CallStatus::Ended(outcome) => answer::result(server, *outcome).await.into(),
                CallStatus::Asks(question) => answer::asks(&question).into(),
            });
        }
    };
    Ok(match required(server, params, &question, wrong.as_deref()) {
        Some(required) => required.into(),
        None => answer::asks(&question).into(),
    })
}

/// An answer that counted, and who goes on with the call.
pub(super) enum AnswerResult {
    /// This process, because the call had been handed back.
    SealedState(JoinHandle<Result<Outcome, ToolError>>),
    /// Whoever does the work.
    Heard,
}

impl ClientRequest {
    /// Gives the person's answer and sees the call to its end or to its next question, also when the client goes away
    /// meanwhile.
    async fn settle(
        &self,
        question: &Question,
        answer: Answer,
        context: &RequestContext<RoleServer>,
        listener: Option<CallListener>,
    ) -> Result<CallStatus, ToolError> {
        let (ground, call) = (&self.ground, &question.call);
        let mut opened = ground.asked.of(call);
        let Some(counted) = self.answer(question, answer, listener).await? else {
            return self.awaited(call, context).await;
        };
        let ended = async {
            let broken = |why| ToolError::new(ErrorCode::Internal, format!("{call} could not be carried on: {why}"));
            match counted {
                AnswerResult::SealedState(carried) => carried.await.map_err(|err| broken(err.to_string()))?,
                AnswerResult::Heard => {
                    let ended = ground.journal.ended(&self.caller.scope, call, STATE_LASTS).await?;
                    ended.ok_or_else(|| broken("it has not ended for a day".to_owned()))
                }
            }
        };
        pin!(ended);
        tokio::select! {
            ended = &mut ended => return Ok(CallStatus::Ended(Box::new(ended?))),
            Some(question) = opened.next() => return Ok(CallStatus::Asks(question)),
            () = context.ct.cancelled() => (ground.stop)(&self.caller.scope, call.clone()).await,
            () = self.stop.cancelled() => {}
        }
        tokio::select! {
            ended = ended => Ok(CallStatus::Ended(Box::new(ended?))),
            () = self.stop.cancelled() => self.stands(call, Duration::ZERO).await,
        }
    }

    /// Gives the person's answer; the call goes on behind it. `None` when it does not count: the client may not give it,
    /// or somebody was earlier.
    pub(super) async fn answer(
        &self,
        question: &Question,
        answer: Answer,
        listener: Option<CallListener>,
    ) -> Result<Option<AnswerResult>, ToolError> {
        let (ground, scope) = (self.ground.clone(), self.caller.scope.clone());
        let needs_leave = matches!(answer, Answer::Approve { .. } | Answer::Fill { .. });
        if needs_leave && !ground.may_approve.covers(question) {
            return Ok(None);
        }
        match (ground.pipeline.give_answer(&self.answerer, &question.id(), answer).await?, &question.about) {
            (AnswerReceipt::TooLate(_) | AnswerReceipt::NoQuestion | AnswerReceipt::MoreNeeded(_), _) => Ok(None),
            (AnswerReceipt::Taken, About::Form(_)) => Ok(Some(AnswerResult::Heard)),
            (AnswerReceipt::Taken, About::Approval(_) | About::Result(_)) => {
                let call = question.call.clone();
                // Nobody could answer what it asks, or hear how it ends, once this server has ended.
                let follower = Follower { cancel: self.stop.child_token(), listener };
                let carried = async move { ground.pipeline.carry(&scope, &call, follower).await };
                Ok(Some(AnswerResult::SealedState(self.under_way.spawn(carried))))
            }
        }
    }

    /// Withdraws the question of a call, or stops what it does.
    pub(super) async fn cancel(&self, call: &CallId) -> Result<(), ToolError> {
        let ground = &self.ground;
        (ground.stop)(&self.caller.scope, call.clone()).await;
        // A form is put away by the call itself when it stops.
        if let Some((question, None)) = ground.questions.find(&self.caller.scope, call).await?
            && question.form().is_none()
        {
            self.answer(&question, Answer::Cancel, None).await?;
        }
        Ok(())
    }

    /// A client that may not answer what its call asks waits: somebody else may.
    async fn unless_others_answer(&self, context: &RequestContext<RoleServer>, standing: CallStatus) -> CallStatus {
        let CallStatus::Ended(outcome) = &standing else { return standing };
        let End::Pending { pending } = &outcome.end else { return standing };
        let (ground, call) = (&self.ground, &pending.pending_tool_call_id);
        let found = ground.questions.find(&self.caller.scope, call).await.ok().flatten();
        if found.is_some_and(|(question, _)| asking::inputs(ground, &question, None).is_some()) {
            return standing;
        }
        self.awaited(call, context).await.unwrap_or(standing)
    }

    /// How a call stands whose client waits for it. As long as it does it may cancel the call; at the end of this server
    /// what waits stays open.
    async fn awaited(&self, call: &CallId, context: &RequestContext<RoleServer>) -> Result<CallStatus, ToolError> {
        tokio::select! {
            biased;
            () = self.leaving.cancelled() => {}
            stands = self.stands(call, patience(context)) => return stands,
            () = context.ct.cancelled() => self.cancel(call).await?,
        }
        self.stands(call, Duration::ZERO).await
    }

    /// How a call has ended, or how it stands after so long.
    async fn stands(&self, call: &CallId, limit: Duration) -> Result<CallStatus, ToolError> {
        let (journal, scope) = (&self.ground.journal, &self.caller.scope);
        if let Some(outcome) = journal.ended(scope, call, limit).await? {
            return Ok(CallStatus::Ended(Box::new(outcome)));
        }
        if let Some((question, None)) = self.ground.questions.find(scope, call).await?
            && question.form().is_some()
        {
            return Ok(CallStatus::Asks(Box::new(question)));
        }
        let stands = journal.find(scope, call).await?.and_then(|record| record.outcome);
        stands.map(|outcome| CallStatus::Ended(Box::new(outcome))).ok_or_else(|| {
            ToolError::new(ErrorCode::Busy, format!("{call} is still under way; follow it with `wait_call`"))
        })
    }
}
