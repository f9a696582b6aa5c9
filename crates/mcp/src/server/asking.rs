//! Questions put to the person behind a client, and what their answers count for.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures_util::future::BoxFuture;
use haft_runtime::{About, Answer, CallId, Delivery, Effect, Form, Outcome, Question, Scope};
use rmcp::{
    RoleServer,
    model::{ClientCapabilities, ElicitRequest, ElicitRequestParams, InputRequest, InputRequests},
    service::RequestContext,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::ServerDeps;

/// What stands under a card, because clients have a button that only closes a form.
const HOW_TO_SAY_NO: &str = "Yes: send this form with `approve` on. No: send it with `approve` off. Declining or closing the \
    form answers nothing, and the question stays open.";
/// What the question for a yes is called among the inputs that a client is asked for.
const APPROVAL: &str = "approval";
/// The same for a result, which no client is asked for.
const RESULT: &str = "result";
/// How many questions of a call may wait to be put to its client; it puts one after the other.
const AHEAD: usize = 4;

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
            // A form gives no yes: the call has it by then, or will be asked about.
            Self::Harmless => question.form().is_some() || question.effect < Effect::Destroy,
            Self::Everything => true,
        }
    }
}

/// Hears of questions as they open, for the calls that want to know.
#[derive(Default)]
pub struct QuestionListeners(Mutex<HashMap<CallId, mpsc::Sender<Box<Question>>>>);

/// The questions of one call, as they open. Nobody listens any more once it is dropped.
pub(super) struct CallQuestions {
    call: CallId,
    opened: mpsc::Receiver<Box<Question>>,
    listeners: Arc<QuestionListeners>,
}

impl CallQuestions {
    pub(super) async fn next(&mut self) -> Option<Box<Question>> {
        self.opened.recv().await
    }
}

impl Drop for CallQuestions {
    fn drop(&mut self) {
        self.opened.close();
        let mut waiting = self.listeners.waiting();
        // Somebody else may listen to the same call by now.
        if waiting.get(&self.call).is_some_and(mpsc::Sender::is_closed) {
            waiting.remove(&self.call);
        }
    }
}

impl QuestionListeners {
    /// The questions of a call, as they open.
    pub(super) fn of(self: &Arc<Self>, call: &CallId) -> CallQuestions {
        let (sender, opened) = mpsc::channel(AHEAD);
        self.waiting().insert(call.clone(), sender);
        CallQuestions { call: call.clone(), opened, listeners: Arc::clone(self) }
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<CallId, mpsc::Sender<Box<Question>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Delivery for QuestionListeners {
    fn asked<'a>(&'a self, _scope: &'a Scope, question: &'a Question) -> BoxFuture<'a, ()> {
        if let Some(waiting) = self.waiting().get(&question.call) {
            // Whoever wanted to know may be gone.
            let _gone = waiting.try_send(Box::new(question.clone()));
        }
        Box::pin(std::future::ready(()))
    }

    fn ended<'a>(&'a self, _scope: &'a Scope, outcome: &'a Outcome) -> BoxFuture<'a, ()> {
        self.waiting().remove(&outcome.tool_call_id);
        Box::pin(std::future::ready(()))
    }
}

/// What a question is called among the inputs that a client is asked for.
pub(super) fn name(question: &Question) -> &str {
    match &question.about {
        About::Approval(_) => APPROVAL,
        About::Form(form) => &form.name,
        About::Result(_) => RESULT,
    }
}

/// The form that a client shows, with what was wrong about the last answer.
pub(super) fn form(ground: &ServerDeps, question: &Question, wrong: Option<&str>) -> Option<ElicitRequestParams> {
    let (message, schema) = match &question.about {
        About::Approval(_) => (format!("{}\n{HOW_TO_SAY_NO}", (ground.card)(question)), yes_or_no()),
        About::Form(form) => (form.message.clone(), form.schema().clone()),
        About::Result(_) => return None,
    };
    let message = wrong.map_or_else(|| message.clone(), |wrong| format!("{wrong}\n\n{message}"));
    let requested_schema = serde_json::from_value(schema).ok()?;
    Some(ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema })
}

/// What a yes is asked for with: what it covers, and room for an answer.
fn yes_or_no() -> Value {
    json!({
        "type": "object",
        "properties": {
            "approve": {"type": "boolean", "title": "Approve", "description": "On: do exactly what is shown. Off: refuse it."},
            "message": {"type": "string", "title": "Words to the agent", "description": "Told to the agent with a no."},
        },
        "required": ["approve"],
    })
}

/// The same for a client that is asked in the answer to its call, if it may answer at all.
pub(super) fn inputs(ground: &ServerDeps, question: &Question, wrong: Option<&str>) -> Option<InputRequests> {
    if !ground.may_approve.covers(question) {
        return None;
    }
    let asked = InputRequest::Elicitation(ElicitRequest::new(form(ground, question, wrong)?));
    Some(InputRequests::from([(name(question).to_owned(), asked)]))
}

/// What a client gave back.
pub(super) enum ClientReply {
    /// An answer of the person.
    Answer(Answer),
    /// Values that do not fit, and why.
    Wrong(String),
    /// The client, or somebody in front of it, has put the question away.
    PutAway,
    /// Nothing: the client cannot show the question, or says nothing that means something.
    Nothing,
}

/// What was said to a question. Clients decline and cancel questions for a yes by themselves, and that answers nothing;
/// a form that is declined is declined, because its tool must learn of it.
pub(super) fn said(question: &Question, given: &Value) -> ClientReply {
    let content = given.get("content").filter(|_| given["action"] == "accept");
    match (&question.about, content) {
        (About::Approval(_), Some(content)) => approval(content),
        (About::Form(form), Some(content)) => values(form, content),
        (About::Form(form), None) if given["action"] == "accept" => values(form, &json!({})),
        (About::Form(_), None) if given["action"] == "decline" => ClientReply::Answer(Answer::Reject { message: None }),
        (About::Approval(_) | About::Form(_), None) if is_put_away(given) => ClientReply::PutAway,
        (About::Approval(_) | About::Form(_), None) | (About::Result(_), _) => ClientReply::Nothing,
    }
}

fn is_put_away(given: &Value) -> bool {
    given["action"] == "decline" || given["action"] == "cancel"
}

fn approval(content: &Value) -> ClientReply {
    let words = content["message"].as_str().filter(|words| !words.trim().is_empty()).map(str::to_owned);
    match content["approve"].as_bool() {
        Some(true) => ClientReply::Answer(Answer::Approve { paths: None }),
        Some(false) => ClientReply::Answer(Answer::Reject { message: words }),
        None => ClientReply::Nothing,
    }
}

fn values(form: &Form, content: &Value) -> ClientReply {
    let Some(values) = content.as_object() else {
        return ClientReply::Wrong("the values must be an object".to_owned());
    };
    match form.filled(values.clone()) {
        Ok(values) => ClientReply::Answer(Answer::Fill { values }),
        Err(error) => ClientReply::Wrong(error.message),
    }
}

/// Whether a client can show a form: it says so, or says nothing more than that it can be asked, as clients did before
/// there was anything else than forms.
pub(super) fn shows_forms(able: &ClientCapabilities) -> bool {
    able.elicitation.as_ref().is_some_and(|asks| asks.form.is_some() || asks.url.is_none())
}

/// The client's own name. Since 2026-07-28 only a request says it; what the connection knows is then made up.
pub(super) fn client(context: &RequestContext<RoleServer>) -> String {
    let is_said_anew = context.protocol_version().is_some_and(|version| !version.has_initialize());
    let client = if is_said_anew { context.meta.client_info() } else { context.client_info() };
    let name = client.map(|client| client.name).filter(|name| !name.trim().is_empty());
    name.unwrap_or_else(|| "an MCP client".to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use haft_runtime::CallId;

    use super::QuestionListeners;

    #[test]
    fn nobody_is_kept_who_no_longer_listens_wherever_the_call_ends() {
        let (listeners, call) = (Arc::new(QuestionListeners::default()), CallId::new());
        let first = listeners.of(&call);
        let second = listeners.of(&call);
        drop(first);
        assert_eq!(listeners.waiting().len(), 1, "another one listens to the same call");
        drop(second);
        assert!(listeners.waiting().is_empty());
    }
}
