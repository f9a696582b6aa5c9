//! What is asked, and the answers to it.

use std::{sync::Arc, time::Duration};

use axum::http::{Method, StatusCode};
use haft_platform::{AgreementRecord, Permission, QuestionFilter, alike_of, digest_of};
use haft_runtime::{
    About, Answer, AnswerReceipt, Answered, CallId, Caller, CallerRef, End, ErrorCode, Evidence, Follower, GrantId,
    Outcome, Question, QuestionAndAnswer, QuestionId, Scope, Source, Turn,
};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use super::{
    ListPage, PageQuery,
    approval_card::{ShownCard, card, decided},
    remembered_yes::{AlwaysBody, remembered},
};
use crate::{
    app::App,
    problem::Problem,
    route::{Asked, JsonOf, JsonReply, NoFields, Route, RouteAccess, route},
};

/// Its routes.
pub(super) fn routes() -> Vec<Route> {
    use RouteAccess::{Known, Needs};
    vec![
        route(Method::GET, "/api/approvals", Needs(Permission::ApprovalsRead), "Lists what is asked.", list),
        route(Method::GET, "/api/approvals/{id}", Needs(Permission::ApprovalsRead), "Shows a question.", show),
        route(
            Method::POST,
            "/api/approvals/answer",
            Needs(Permission::ApprovalsDecide),
            "Answers several.",
            answer_all,
        ),
        route(
            Method::POST,
            "/api/approvals/{id}/preview",
            Needs(Permission::ApprovalsDecide),
            "Shows what another input would do.",
            preview,
        ),
        route(Method::POST, "/api/approvals/{id}/approve", Needs(Permission::ApprovalsDecide), "Says yes.", approve),
        route(Method::POST, "/api/approvals/{id}/reject", Needs(Permission::ApprovalsDecide), "Says no.", reject),
        route(
            Method::GET,
            "/api/approvals/{id}/agreements",
            Needs(Permission::ApprovalsRead),
            "Lists who has agreed.",
            agreements,
        ),
        route(Method::POST, "/api/approvals/{id}/fill", Known, "Fills in a form, or gives a result.", fill),
        route(Method::POST, "/approve", Needs(Permission::ApprovalsDecide), "Says yes to a call.", plain_approve),
        route(Method::POST, "/reject", Needs(Permission::ApprovalsDecide), "Says no to a call.", plain_reject),
    ]
}

/// How long a request is held for the end of the call that it answered.
const FOR_THE_END: Duration = Duration::from_secs(2);

/// Which questions.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(super) struct ApprovalsQuery {
    limit: Option<u32>,
    after: Option<String>,
    /// `open` (the default) or `answered`.
    state: Option<String>,
    /// Only `approval`, `form` or `result`.
    kind: Option<String>,
    /// Only those of one's own calls.
    #[serde(default)]
    mine: bool,
}

/// The questions of a tenant, newest calls first.
pub(super) async fn list(asked: Asked<ApprovalsQuery>) -> Result<JsonReply<ListPage<ShownCard>>, Problem> {
    let (app, caller, query) = (&asked.app, asked.caller()?, &asked.query);
    let answered = match query.state.as_deref() {
        None | Some("open") => false,
        Some("answered") => true,
        Some(_) => return Err(Problem::mistake("`state` is `open` or `answered`")),
    };
    let page = PageQuery { limit: query.limit, after: query.after.clone() };
    let before = query.after.as_deref().map(place).transpose()?;
    let filter = QuestionFilter { answered, kind: query.kind.clone(), before, limit: page.limit()? };
    let (found, next) = app.platform.questions(caller, query.mine, &filter).await?;
    let items = found.iter().map(|found| card(&app.redactor, found)).collect();
    Ok(JsonReply::ok(ListPage { items, next: next.map(|last| format!("{}.{}", last.call, last.number)) }))
}

/// The question that a cursor names.
fn place(cursor: &str) -> Result<QuestionId, Problem> {
    let parts = cursor.split_once('.');
    let read = parts.and_then(|(call, number)| Some((CallId::parse(call)?, number.parse().ok()?)));
    let (call, number) = read.ok_or_else(|| Problem::mistake("`after` is no cursor of this list"))?;
    Ok(QuestionId { call, number })
}

/// One question with everything that is known of it.
pub(super) async fn show(asked: Asked) -> Result<JsonReply<ShownCard>, Problem> {
    let (app, caller) = (&asked.app, asked.caller()?);
    let found = find(app, caller, asked.part("id")?).await?;
    Ok(JsonReply::ok(card(&app.redactor, &found)))
}

async fn find(app: &App, caller: &Caller, id: &str) -> Result<QuestionAndAnswer, Problem> {
    let unknown = || Problem::not_found("such question");
    let call = CallId::parse(id).ok_or_else(unknown)?;
    app.questions.find(&caller.scope, &call).await?.ok_or_else(unknown)
}

/// A yes.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ApproveBody {
    /// Which of the call's questions was seen.
    number: Option<u32>,
    /// What was seen.
    digest: Option<String>,
    /// Only these paths.
    paths: Option<Vec<String>>,
    /// This input in the place of the one that is asked about.
    input: Option<Map<String, Value>>,
    /// A yes that is remembered.
    always: Option<AlwaysBody>,
    /// A word to whoever asked.
    #[serde(rename = "message")]
    _message: Option<String>,
}

/// Says yes: to all of it, to some paths, to another input, or for good.
pub(super) async fn approve(asked: Asked<NoFields, ApproveBody>) -> Result<JsonReply<JsonOf<AnswerReply>>, Problem> {
    let (app, caller, body) = (&asked.app, asked.caller()?, &asked.body);
    let (question, caller) = open(app, caller, asked.part("id")?).await?;
    let is_other = body.number.is_some_and(|number| number != question.number)
        || body.digest.as_ref().is_some_and(|digest| *digest != digest_of(&question));
    if is_other {
        return Err(changed(app, question));
    }
    if [body.paths.is_some(), body.input.is_some(), body.always.is_some()].into_iter().filter(|is| *is).count() > 1 {
        return Err(Problem::mistake("`paths`, `input` and `always` are three different answers; send one of them"));
    }
    let answer = match (&body.input, &body.always) {
        (Some(input), _) => Answer::Edit { input: Value::Object(input.clone()) },
        (None, Some(always)) => remembered(app, &caller, &question, always).await?,
        (None, None) => yes_to(app, &question, &caller.scope, body.paths.clone()).await?,
    };
    settle(app, caller, question, answer).await
}

/// Another input, to be looked at before it is approved.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PreviewBody {
    input: Map<String, Value>,
}

/// Shows what the call would do with another input. Nothing is answered and nothing is applied.
pub(super) async fn preview(asked: Asked<NoFields, PreviewBody>) -> Result<JsonReply<ShownCard>, Problem> {
    let (app, body) = (&asked.app, &asked.body);
    let (question, caller) = open(app, asked.caller()?, asked.part("id")?).await?;
    let preview = app.pipeline.preview_edit(&caller, &question, &Value::Object(body.input.clone())).await?;
    Ok(JsonReply::ok(card(&app.redactor, &(preview, None))))
}

/// What is asked now is not what was looked at.
fn changed(app: &App, question: Question) -> Problem {
    let message = "what is asked has changed since it was looked at; look again";
    let card = card(&app.redactor, &(question, None)).value;
    Problem::new(ErrorCode::Conflict, message).with("card", card)
}

/// A yes to some paths; a slip of the finger is no answer, and the question stays open.
pub(super) async fn yes_to(
    app: &App,
    question: &Question,
    scope: &Scope,
    paths: Option<Vec<String>>,
) -> Result<Answer, Problem> {
    if let (Some(Evidence::Staged { turn, .. }), Some(_)) = (question.evidence(), &paths) {
        app.workbench.preview(scope, &Turn { paths: paths.clone(), ..turn.clone() }).await?;
    }
    Ok(Answer::Approve { paths })
}

/// A no.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RejectBody {
    /// Why; whoever asked reads it.
    message: Option<String>,
}

/// Says no.
pub(super) async fn reject(asked: Asked<NoFields, RejectBody>) -> Result<JsonReply<JsonOf<AnswerReply>>, Problem> {
    let (question, caller) = open(&asked.app, asked.caller()?, asked.part("id")?).await?;
    let answer = no_to(&question, asked.body.message.clone());
    settle(&asked.app, caller, question, answer).await
}

pub(super) fn no_to(question: &Question, message: Option<String>) -> Answer {
    if question.wants_a_result() {
        return Answer::Failed { code: None, message: message.unwrap_or_else(|| "it will not be done".to_owned()) };
    }
    Answer::Reject { message }
}

/// Somebody's yes, where approval rules decide who says it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AgreementView {
    /// The person, or the key where nobody is behind it.
    person: String,
    /// By what they said it.
    by: CallerRef,
    /// Through which door.
    source: Source,
    /// To what: the whole, some paths, or another input.
    answer: Value,
    /// The digest of what was asked.
    digest: String,
    /// The version of the approval rules that it was said under.
    rules_version: i64,
    at: Timestamp,
}

/// Who has agreed to a question, open or answered.
pub(super) async fn agreements(asked: Asked) -> Result<JsonReply<ListPage<AgreementView>>, Problem> {
    let (app, caller) = (&asked.app, asked.caller()?);
    let (question, _) = find(app, caller, asked.part("id")?).await?;
    let view = |agreement: AgreementRecord| AgreementView {
        person: agreement.person,
        by: agreement.given_by,
        source: agreement.source,
        answer: app.redactor.value(&json!(agreement.answer)),
        digest: agreement.digest,
        rules_version: agreement.rules_version,
        at: agreement.at,
    };
    let all = app.platform.agreements(&caller.scope, &question).await?;
    Ok(JsonReply::ok(ListPage::whole(all.into_iter().map(view).collect())))
}

/// What fills a form in, or is the result.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FillBody {
    values: Value,
}

/// Fills a form in, or gives the result that a call waits for.
pub(super) async fn fill(asked: Asked<NoFields, FillBody>) -> Result<JsonReply<JsonOf<AnswerReply>>, Problem> {
    let (question, caller) = open(&asked.app, asked.caller()?, asked.part("id")?).await?;
    let answer = match (&question.about, &asked.body.values) {
        (About::Form(form), Value::Object(values)) => Answer::Fill { values: form.filled(values.clone())? },
        (About::Form(_), _) => return Err(Problem::mistake("`values` is an object of fields and their values")),
        (About::Result(_), value) => Answer::Result { value: value.clone() },
        (About::Approval(_), _) => return Err(Problem::mistake("this waits for a yes or a no, not for values")),
    };
    settle(&asked.app, caller, question, answer).await
}

/// A yes that names its call.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PlainApproveBody {
    tool_call_id: String,
    /// This input in the place of the one that is asked about.
    #[serde(rename = "modifiedArgs")]
    modified_args: Option<Map<String, Value>>,
}

/// Says yes to a call that the body names.
pub(super) async fn plain_approve(
    asked: Asked<NoFields, PlainApproveBody>,
) -> Result<JsonReply<JsonOf<AnswerReply>>, Problem> {
    let (question, caller) = open(&asked.app, asked.caller()?, &asked.body.tool_call_id).await?;
    let answer = match &asked.body.modified_args {
        Some(input) => Answer::Edit { input: Value::Object(input.clone()) },
        None => Answer::Approve { paths: None },
    };
    settle(&asked.app, caller, question, answer).await
}

/// A no that names its call.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PlainRejectBody {
    tool_call_id: String,
    message: Option<String>,
}

/// Says no to a call that the body names.
pub(super) async fn plain_reject(
    asked: Asked<NoFields, PlainRejectBody>,
) -> Result<JsonReply<JsonOf<AnswerReply>>, Problem> {
    let (question, caller) = open(&asked.app, asked.caller()?, &asked.body.tool_call_id).await?;
    let answer = no_to(&question, asked.body.message.clone());
    settle(&asked.app, caller, question, answer).await
}

/// One answer to several questions that are alike.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AnswerAllBody {
    ids: Vec<String>,
    /// What all of their cards say as `alike`; for a single one its `digest` does as well.
    digest: String,
    answer: PlainAnswer,
    /// Why; whoever asked reads it.
    message: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum PlainAnswer {
    Approve,
    Reject,
}

/// Gives one answer to several questions; each says what became of it.
pub(super) async fn answer_all(asked: Asked<NoFields, AnswerAllBody>) -> Result<JsonReply<ListPage<Value>>, Problem> {
    let (app, caller, body) = (&asked.app, asked.caller()?, &asked.body);
    let mut questions = Vec::new();
    for id in &body.ids {
        let (question, caller) = open(app, caller, id).await?;
        let is_seen = alike_of(&question).as_ref() == Some(&body.digest)
            || (body.ids.len() == 1 && digest_of(&question) == body.digest);
        if !is_seen {
            return Err(changed(app, question));
        }
        questions.push((question, caller));
    }
    let mut items = Vec::new();
    for (question, caller) in questions {
        let answer = match body.answer {
            PlainAnswer::Approve => Answer::Approve { paths: None },
            PlainAnswer::Reject => no_to(&question, body.message.clone()),
        };
        let id = question.call.clone();
        let mut item = match given(app, caller, question, answer).await {
            Ok(given) => given.view(app),
            Err(problem) => problem.into_body(),
        };
        item["id"] = json!(id);
        items.push(item);
    }
    Ok(JsonReply::ok(ListPage::whole(items)))
}

/// The open question of a call, and the caller where it belongs.
pub(super) async fn open(app: &App, caller: &Caller, id: &str) -> Result<(Question, Caller), Problem> {
    match find(app, caller, id).await? {
        (question, None) => {
            let scope = question.scope(&caller.scope);
            Ok((question, Caller { scope, ..caller.clone() }))
        }
        (question, Some(first)) => Err(too_late(app, &question.call, &first)),
    }
}

fn too_late(app: &App, call: &CallId, first: &Answered) -> Problem {
    let message = match first.answer == Answer::Expire {
        true => format!("{call} expired: nobody answered in time"),
        false => format!("{call} was already answered by {}", first.by),
    };
    Problem::new(ErrorCode::Conflict, message)
        .status(StatusCode::CONFLICT)
        .with("decided", app.redactor.value(&json!(decided(first))))
}

/// An answer that counts.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct AnswerReply {
    /// Whether the question is answered by it.
    answered: bool,
    /// How many others have to say the same before it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    needed: Option<u32>,
    by: CallerRef,
    /// What the yes is remembered as.
    #[serde(skip_serializing_if = "Option::is_none")]
    grant: Option<GrantId>,
    /// How the call ended, where it did so soon.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) outcome: Option<Outcome>,
}

impl AnswerReply {
    fn view(&self, app: &App) -> Value {
        app.redactor.known_out_of(json!(self))
    }
}

async fn settle(
    app: &Arc<App>,
    caller: Caller,
    question: Question,
    answer: Answer,
) -> Result<JsonReply<JsonOf<AnswerReply>>, Problem> {
    Ok(JsonReply::ok(JsonOf::new(given(app, caller, question, answer).await?.view(app))))
}

/// Gives an answer. What follows from it goes on whether or not anybody waits for it.
pub(super) async fn given(
    app: &Arc<App>,
    caller: Caller,
    question: Question,
    answer: Answer,
) -> Result<AnswerReply, Problem> {
    let (by, call) = (caller.who(), question.call.clone());
    let grant = if let Answer::Always { grant } = &answer { Some(grant.id.clone()) } else { None };
    let (tell, told) = oneshot::channel();
    let carrying_on = app.carry_on({
        let app = Arc::clone(app);
        async move {
            let receipt = app.pipeline.give_answer(&caller, &question.id(), answer).await;
            let goes_on = matches!(receipt, Ok(AnswerReceipt::Taken)) && question.form().is_none();
            // Whoever asked may be gone.
            let _is_heard = tell.send(receipt);
            if goes_on { carried_on(&app, &caller.scope, &question.call).await } else { None }
        }
    });
    let broke_off = |_| Problem::new(ErrorCode::Internal, "the answer broke off by a fault in haft");
    match told.await.map_err(broke_off)?? {
        AnswerReceipt::Taken => {}
        AnswerReceipt::MoreNeeded(others) => {
            return Ok(AnswerReply { answered: false, needed: Some(others), by, grant: None, outcome: None });
        }
        AnswerReceipt::TooLate(first) => return Err(too_late(app, &call, &first)),
        AnswerReceipt::NoQuestion => return Err(Problem::not_found("such question")),
    }
    let ended = tokio::time::timeout(FOR_THE_END, carrying_on).await;
    Ok(AnswerReply { answered: true, needed: None, by, grant, outcome: ended.ok().and_then(Result::ok).flatten() })
}

/// How an answered call ended; of one with another input, how that one did.
async fn carried_on(app: &App, scope: &Scope, call: &CallId) -> Option<Outcome> {
    let outcome = match app.pipeline.carry(scope, call, Follower::default()).await {
        Ok(outcome) => outcome,
        Err(error) => {
            tracing::warn!(%call, error = error.message, "an answered call was not carried on");
            return None;
        }
    };
    match &outcome.end {
        End::Pending { pending } if pending.pending_tool_call_id != *call => {
            let child = app.journal.ended(scope, &pending.pending_tool_call_id, FOR_THE_END).await;
            Some(child.ok().flatten().unwrap_or(outcome))
        }
        End::Success { .. }
        | End::Error { .. }
        | End::Rejected { .. }
        | End::Pending { .. }
        | End::Cancelled { .. } => Some(outcome),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
    use super::*;

    #[test]
    fn a_cursor_names_a_question() {
        let call = CallId::new();
        let read = place(&format!("{call}.3")).unwrap();
        assert_eq!(read, QuestionId { call, number: 3 });
        for wrong in ["", "tc_1.1", "x", "tc_00000000000000000000000000000000", "tc_00000000000000000000000000000000.x"]
        {
            place(wrong).unwrap_err();
        }
    }
}
