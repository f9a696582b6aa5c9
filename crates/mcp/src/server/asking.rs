//! Questions put to the person behind a client, and what their answers count for.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use futures_util::future::BoxFuture;
use haft_runtime::{Answer, Answered, CallId, Delivery, Effect, Outcome, Question, Scope, Source};
use jiff::Timestamp;
use rmcp::{
    RoleServer,
    model::{ElicitRequest, ElicitRequestParams, InputRequest, InputRequests},
    service::RequestContext,
};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::Ground;

/// What the one question of a call is called among the inputs that a client is asked for.
pub(super) const APPROVAL: &str = "approval";

/// What a yes that was given in a client counts for. Ordered: a later one lets more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum MayApprove {
    /// Nothing: people answer elsewhere.
    Nothing,
    /// All but what destroys, and changes that are flagged.
    #[default]
    Harmless,
    /// Everything.
    Everything,
}

impl MayApprove {
    /// As a file of settings says it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Nothing => "none",
            Self::Harmless => "safe",
            Self::Everything => "all",
        }
    }

    /// Whether a client may be asked this.
    pub(super) fn covers(self, question: &Question) -> bool {
        match self {
            Self::Nothing => false,
            Self::Harmless => question.effect < Effect::Destroy,
            Self::Everything => true,
        }
    }
}

/// Hears of questions as they open, for the calls that want to know.
#[derive(Default)]
pub struct Asked(Mutex<HashMap<CallId, oneshot::Sender<Question>>>);

impl Asked {
    /// The question of a call, once it opens.
    pub(super) fn of(&self, call: &CallId) -> oneshot::Receiver<Question> {
        let (sender, question) = oneshot::channel();
        self.waiting().insert(call.clone(), sender);
        question
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<CallId, oneshot::Sender<Question>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Delivery for Asked {
    fn asked<'a>(&'a self, _scope: &'a Scope, question: &'a Question) -> BoxFuture<'a, ()> {
        if let Some(waiting) = self.waiting().remove(&question.call) {
            // Whoever wanted to know may be gone.
            let _gone = waiting.send(question.clone());
        }
        Box::pin(std::future::ready(()))
    }

    fn deliver<'a>(&'a self, _scope: &'a Scope, outcome: &'a Outcome) -> BoxFuture<'a, ()> {
        self.waiting().remove(&outcome.tool_call_id);
        Box::pin(std::future::ready(()))
    }
}

/// The form that a client shows: what the yes covers, and room for an answer.
pub(super) fn form(ground: &Ground, question: &Question) -> Option<ElicitRequestParams> {
    let schema = json!({
        "type": "object",
        "properties": {
            "approve": {"type": "boolean", "title": "Approve", "description": "Yes commits or runs exactly what is shown."},
            "message": {"type": "string", "title": "Words to the agent", "description": "Told to the agent with a no."},
        },
        "required": ["approve"],
    });
    let message = (ground.card)(question);
    let requested_schema = serde_json::from_value(schema).ok()?;
    Some(ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema })
}

/// The same for a client that is asked in the answer to its call.
pub(super) fn inputs(ground: &Ground, question: &Question) -> Option<InputRequests> {
    let asked = InputRequest::Elicitation(ElicitRequest::new(form(ground, question)?));
    Some(InputRequests::from([(APPROVAL.to_owned(), asked)]))
}

/// What the person said, when it was a person: clients decline and cancel by themselves, and that answers nothing.
pub(super) fn said(given: &Value) -> Option<Answer> {
    let content = given.get("content").filter(|_| given["action"] == "accept")?;
    let words = content["message"].as_str().filter(|words| !words.trim().is_empty()).map(str::to_owned);
    match content["approve"].as_bool()? {
        true => Some(Answer::Approve { paths: None }),
        false => Some(Answer::Reject { message: words }),
    }
}

/// The answer as it is recorded: of the person, through that client.
pub(super) fn through(ground: &Ground, context: &RequestContext<RoleServer>, answer: Answer) -> Answered {
    let by = format!("{} through {}", ground.caller.name, client(context));
    Answered { answer, by, source: Source::Mcp, at: Timestamp::now() }
}

/// The client's own name.
pub(super) fn client(context: &RequestContext<RoleServer>) -> String {
    let name = context.client_info().map(|client| client.name).filter(|name| !name.trim().is_empty());
    name.unwrap_or_else(|| "an MCP client".to_owned())
}
