//! One call of a client, with the question that it may put, in the words that this client understands.

use std::time::Duration;

use haft_runtime::{Answer, AnswerReceipt, CallId, CallRequest, Caller, End, ErrorCode, Outcome, Source, ToolError};
use rmcp::{
    ErrorData, RoleServer,
    model::{
        CallToolRequestParams, CallToolResponse, CreateTaskResult, ElicitRequest, InputRequiredResult, SealOptions,
        ServerRequest,
    },
    service::{PeerRequestOptions, RequestContext},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::{pin, task::JoinHandle};

use super::{
    LONG_PATIENCE, PATIENCE, Server, answer,
    asking::{self, APPROVAL},
    progress::Progress,
    tasks,
};

/// How long a state that a client carries for us is understood: as long as a question stays open.
const STATE_LASTS: Duration = Duration::from_secs(24 * 3600);

/// How a client can be asked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// It gets a handle and looks again.
    Task,
    /// It is asked in the answer to its call, and calls again.
    InputRequired,
    /// It is asked while its call goes on.
    Elicitation,
    /// Not at all: somebody answers elsewhere while it waits.
    Wait,
}

/// What a client carries for us between its call and the next try.
#[derive(Serialize, Deserialize)]
struct Carried {
    call: CallId,
}

impl Way {
    fn of(context: &RequestContext<RoleServer>) -> Self {
        let Some(able) = context.client_capabilities() else { return Self::Wait };
        let asks_anew = context.protocol_version().is_some_and(|version| !version.has_initialize());
        match (asks_anew, able.supports_tasks(), able.elicitation.is_some()) {
            (true, true, _) => Self::Task,
            (true, false, true) => Self::InputRequired,
            (false, _, true) => Self::Elicitation,
            (true, false, false) | (false, _, false) => Self::Wait,
        }
    }
}

/// Takes a call down the line, or goes on with one that had put a question.
pub(super) async fn call(
    server: &Server,
    params: CallToolRequestParams,
    context: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    if let Some(state) = &params.request_state {
        return go_on(server, &params, state, &context).await;
    }
    let way = Way::of(&context);
    let mut request = request(server, &params, &context);
    request.wait = match way {
        Way::Task | Way::InputRequired => Duration::ZERO,
        Way::Elicitation | Way::Wait => patience(&context),
    };
    let (listener, progress) = Progress::of(&context, &request.id);
    request.listener = listener;
    let outcome = match way {
        Way::Elicitation => ask_meanwhile(server, request, &context).await,
        Way::Task | Way::InputRequired | Way::Wait => server.ground.pipeline.call(request).await,
    };
    progress.finish(&context.ct).await;
    respond(server, way, &params, &context, outcome).await
}

fn request(server: &Server, params: &CallToolRequestParams, context: &RequestContext<RoleServer>) -> CallRequest {
    let ground = &server.ground;
    let caller = Caller { name: asking::client(context), source: Source::Mcp, ..ground.caller.clone() };
    let input = Value::Object(params.arguments.clone().unwrap_or_default());
    let mut request = CallRequest::new(caller, params.name.clone(), input);
    request.auto_approve = ground.auto_approve;
    request.cancel = context.ct.child_token();
    request
}

/// One long call must not look dead to a client: with progress it hears that a question is open.
fn patience(context: &RequestContext<RoleServer>) -> Duration {
    if context.meta.get_progress_token().is_some() { LONG_PATIENCE } else { PATIENCE }
}

/// Asks the client while the call waits. Whoever answers first, here or elsewhere, is heard; a client that declines by
/// itself leaves the question open.
async fn ask_meanwhile(server: &Server, request: CallRequest, context: &RequestContext<RoleServer>) -> Outcome {
    let ground = &server.ground;
    let (id, opened) = (request.id.clone(), ground.asked.of(&request.id));
    let call = ground.pipeline.call(request);
    pin!(call);
    let question = tokio::select! {
        outcome = &mut call => return outcome,
        question = opened => question,
    };
    let form = question.ok().filter(|question| ground.may_approve.covers(question));
    let Some(form) = form.and_then(|question| asking::form(ground, &question)) else { return call.await };
    let form = ServerRequest::ElicitRequest(ElicitRequest::new(form));
    let asked = context.peer.send_cancellable_request(form, PeerRequestOptions::no_options()).await;
    let Ok(mut asked) = asked else { return call.await };
    let given = tokio::select! {
        outcome = &mut call => {
            // Nobody should go on filling in what is answered; who has cancelled the call knows.
            if !context.ct.is_cancelled() {
                let _gone = asked.cancel(Some("the question is no longer open here".to_owned())).await;
            }
            return outcome;
        }
        given = &mut asked.rx => given,
    };
    let given = given.ok().and_then(Result::ok).and_then(|given| serde_json::to_value(given).ok()).unwrap_or_default();
    if let Some(answer) = asking::said(&given) {
        let answered = asking::through(ground, context, answer);
        // The call itself hears it; when somebody was earlier, it has heard that.
        let _heard = ground.questions.answer(&ground.caller.scope, &id, &answered).await;
    }
    call.await
}

async fn respond(
    server: &Server,
    way: Way,
    params: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
    outcome: Outcome,
) -> Result<CallToolResponse, ErrorData> {
    if let Some(unknown) = answer::unknown_tool(&outcome) {
        return Err(unknown);
    }
    let End::Pending { pending } = &outcome.end else { return Ok(answer::result(outcome).into()) };
    let call = pending.pending_tool_call_id.clone();
    match way {
        Way::Task => {
            let task = tasks::waiting(&call, outcome.started_at);
            return Ok(CallToolResponse::Task(CreateTaskResult::new(task)));
        }
        Way::InputRequired => {
            if let Some(required) = required(server, params, &call).await {
                return Ok(required.into());
            }
            // The client may not answer this one; somebody else may, while it waits.
            let stands = server.stands(&call, patience(context)).await.unwrap_or(outcome);
            return Ok(answer::result(stands).into());
        }
        Way::Elicitation | Way::Wait => {}
    }
    Ok(answer::result(outcome).into())
}

async fn required(server: &Server, params: &CallToolRequestParams, call: &CallId) -> Option<InputRequiredResult> {
    let ground = &server.ground;
    let (question, _) = ground.questions.find(&ground.caller.scope, call).await.ok()??;
    let inputs = Some(&question).filter(|question| ground.may_approve.covers(question));
    let inputs = inputs.and_then(|question| asking::inputs(ground, question))?;
    let bound = bound_to(server, params);
    let options = SealOptions::new().associated_data(&bound).ttl(STATE_LASTS);
    let state = server.codec.seal_json_with(&Carried { call: call.clone() }, &options).ok()?;
    Some(InputRequiredResult::new(Some(inputs), Some(state)))
}

/// A state counts only for whoever it was given to, and for the very call that it belongs to.
fn bound_to(server: &Server, params: &CallToolRequestParams) -> Vec<u8> {
    let input = Value::Object(params.arguments.clone().unwrap_or_default());
    format!("{}\n{}\n{input}", server.ground.caller.name, params.name).into_bytes()
}

/// The client comes back with what it was asked for. A second question is never put: who declines once would decline
/// again.
async fn go_on(
    server: &Server,
    params: &CallToolRequestParams,
    state: &str,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let bound = bound_to(server, params);
    let refused = |_| {
        let message = "this `requestState` was not given for this very call, or is too old; leave it out to call anew";
        ErrorData::invalid_params(message, None)
    };
    let Carried { call } = server.codec.open_json_with(state, &bound).map_err(refused)?;
    let given = params.input_responses.as_ref().and_then(|inputs| inputs.get(APPROVAL)).unwrap_or(&Value::Null);
    let outcome = match asking::said(given) {
        Some(answer) => server.settle(&call, answer, context).await,
        None => server.stands(&call, Duration::ZERO).await,
    };
    outcome
        .map(|outcome| answer::result(outcome).into())
        .map_err(|error| ErrorData::internal_error(error.message, None))
}

impl Server {
    /// Gives the person's answer and sees the call to its end, also when the client goes away meanwhile.
    pub(super) async fn settle(
        &self,
        call: &CallId,
        answer: Answer,
        context: &RequestContext<RoleServer>,
    ) -> Result<Outcome, ToolError> {
        let Some(mut carried) = self.answer(call, answer, context).await? else {
            return self.stands(call, patience(context)).await;
        };
        let ended = tokio::select! {
            ended = &mut carried => ended,
            () = context.ct.cancelled() => {
                (self.ground.stop)(call.clone()).await;
                carried.await
            }
        };
        let broken = |err| ToolError::new(ErrorCode::Internal, format!("{call} could not be carried on: {err}"));
        ended.map_err(broken)?
    }

    /// Gives the person's answer; the call goes on behind it. `None` when it does not count: the client may not give it,
    /// or somebody was earlier.
    pub(super) async fn answer(
        &self,
        call: &CallId,
        answer: Answer,
        context: &RequestContext<RoleServer>,
    ) -> Result<Option<JoinHandle<Result<Outcome, ToolError>>>, ToolError> {
        let (ground, scope) = (self.ground.clone(), self.ground.caller.scope.clone());
        let Some((question, None)) = ground.questions.find(&scope, call).await? else { return Ok(None) };
        if matches!(answer, Answer::Approve { .. }) && !ground.may_approve.covers(&question) {
            return Ok(None);
        }
        let answered = asking::through(&ground, context, answer);
        match ground.questions.answer(&scope, call, &answered).await? {
            AnswerReceipt::TooLate(_) | AnswerReceipt::NoQuestion => Ok(None),
            AnswerReceipt::Taken => {
                let call = call.clone();
                Ok(Some(self.under_way.spawn(async move { ground.pipeline.carry(&scope, &call).await })))
            }
        }
    }

    /// How a call has ended, or how it stands after so long.
    pub(super) async fn stands(&self, call: &CallId, limit: Duration) -> Result<Outcome, ToolError> {
        let (journal, scope) = (&self.ground.journal, &self.ground.caller.scope);
        if let Some(outcome) = journal.ended(scope, call, limit).await? {
            return Ok(outcome);
        }
        let stands = journal.find(scope, call).await?.and_then(|record| record.outcome);
        stands.ok_or_else(|| {
            ToolError::new(ErrorCode::Busy, format!("{call} is still under way; follow it with `wait_call`"))
        })
    }
}
