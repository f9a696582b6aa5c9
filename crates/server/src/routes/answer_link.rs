//! `/a/…`: the page of a link by which one person answers one question. Looking decides nothing, and neither does one press:
//! a yes or no is chosen, then confirmed on the next page.

use std::{sync::Arc, time::Duration};

use axum::{
    body::Body,
    http::{HeaderMap, Method, StatusCode},
    response::Response,
};
use haft_platform::{ChosenAnswer, Credential, LinkHolder, digest_of};
use haft_runtime::{Answer, Answered, Caller, ErrorCode, Question, Source};
use serde::{Deserialize, de::DeserializeOwned};

use super::{
    answer_page::{self, LinkCard},
    approvals::{given, no_to},
};
use crate::{
    admit::cookie,
    app::App,
    problem::Problem,
    route::{Asked, NoFields, Route, RouteAccess, raw_route, whole_body},
};

/// The longest form.
const LONGEST_FORM: usize = 16 << 10;
/// The longest word to whoever asked.
const LONGEST_MESSAGE: usize = 2000;

/// Its routes.
pub(super) fn routes() -> Vec<Route> {
    use RouteAccess::Open;
    vec![
        raw_route(Method::GET, "/a/{token}", Open, "Shows what somebody is asked by a link.", look),
        raw_route(Method::POST, "/a/{token}", Open, "Chooses an answer, which decides nothing yet.", choose),
        raw_route(Method::POST, "/a/{token}/confirm", Open, "Confirms the answer that was chosen.", confirm),
    ]
}

/// A link that counts, and what it is about.
struct OpenedLink {
    token: String,
    holder: LinkHolder,
    /// Whether that person is signed in, too.
    signed_in: bool,
    question: Option<Question>,
    answered: Option<Answered>,
}

impl OpenedLink {
    /// Who answers, as well as they are known.
    fn caller(&self, question: &Question) -> Caller {
        let caller = self.holder.caller.clone();
        let source = if self.signed_in { Source::Web } else { Source::Link };
        Caller { scope: question.scope(&caller.scope), source, ..caller }
    }

    /// What people call the workspace that a question is about.
    async fn workspace(&self, app: &App, question: &Question) -> Result<Option<String>, Problem> {
        let Some(wanted) = &question.workspace else { return Ok(None) };
        let all = app.platform.workspaces(&self.holder.caller.scope).await?;
        let found = all.into_iter().find(|known| known.scope.workspace() == Some(wanted));
        Ok(Some(found.map_or_else(|| wanted.as_str().to_owned(), |known| known.name)))
    }

    async fn shown<'a>(&'a self, app: &'a App, question: &'a Question) -> Result<LinkCard<'a>, Problem> {
        let needs_sign_in = app.platform.needs_sign_in(&self.holder.caller.scope, question).await? && !self.signed_in;
        Ok(LinkCard {
            token: &self.token,
            holder: &self.holder,
            signed_in: self.signed_in,
            needs_sign_in,
            question,
            workspace: self.workspace(app, question).await?,
            redactor: &app.redactor,
        })
    }
}

/// The link of a request; `None` where it leads nowhere.
async fn opened(app: &App, token: &str, headers: &HeaderMap) -> Result<Option<OpenedLink>, Problem> {
    let Some(holder) = app.platform.link_holder(token).await? else { return Ok(None) };
    let (scope, id) = (&holder.caller.scope, &holder.question);
    let found = app.questions.find(scope, &id.call).await?.filter(|(question, _)| question.id() == *id);
    let (question, answered) = match found {
        Some((question, answered)) => (Some(question), answered),
        // The call has asked something else since.
        None => (None, app.questions.wait(scope, id, Duration::ZERO).await?),
    };
    let signed_in = is_signed_in(app, &holder, headers).await;
    Ok(Some(OpenedLink { token: token.to_owned(), holder, signed_in, question, answered }))
}

/// Whether whoever the link was sent to is also signed in here.
async fn is_signed_in(app: &App, holder: &LinkHolder, headers: &HeaderMap) -> bool {
    let Some(cookie) = cookie(headers) else { return false };
    let known = app.platform.identify(Credential::Cookie(cookie), Source::Web).await;
    known.is_ok_and(|known| known.caller.id == holder.caller.id)
}

/// Shows what is asked, or what was decided.
pub(super) async fn look(asked: Asked<NoFields, Body>) -> Result<Response, Problem> {
    let token = asked.part("token")?.to_owned();
    let Asked { app, headers, .. } = asked;
    let Some(link) = opened(&app, &token, &headers).await? else { return Ok(answer_page::nowhere()) };
    match (&link.question, &link.answered) {
        (Some(question), None) => Ok(link.shown(&app, question).await?.card()),
        (_, answered) => Ok(answer_page::decided(StatusCode::OK, &link.holder, answered.as_ref())),
    }
}

/// A press of one of the two buttons.
#[derive(Deserialize)]
struct ChoiceForm {
    answer: String,
}

/// Takes a choice, and asks for it to be confirmed.
pub(super) async fn choose(asked: Asked<NoFields, Body>) -> Result<Response, Problem> {
    let token = asked.part("token")?.to_owned();
    let Asked { app, headers, body, .. } = asked;
    let form: ChoiceForm = form(&headers, body).await?;
    let Some(link) = opened(&app, &token, &headers).await? else { return Ok(answer_page::nowhere()) };
    let (Some(question), None) = (&link.question, &link.answered) else {
        return Ok(answer_page::decided(StatusCode::CONFLICT, &link.holder, link.answered.as_ref()));
    };
    let shown = link.shown(&app, question).await?;
    let yes = match form.answer.as_str() {
        "yes" if shown.may_say_yes() => true,
        "no" => false,
        _ => return Ok(shown.card()),
    };
    let chosen = ChosenAnswer { yes, digest: digest_of(question) };
    let nonce = app.platform.choose_answer(&link.holder, &chosen).await?;
    Ok(shown.confirmation(yes, &nonce))
}

/// The second press.
#[derive(Deserialize)]
struct ConfirmForm {
    nonce: String,
    #[serde(default)]
    message: String,
}

/// Answers with what was chosen.
pub(super) async fn confirm(asked: Asked<NoFields, Body>) -> Result<Response, Problem> {
    let token = asked.part("token")?.to_owned();
    let Asked { app, headers, body, .. } = asked;
    let form: ConfirmForm = form(&headers, body).await?;
    let Some(link) = opened(&app, &token, &headers).await? else { return Ok(answer_page::nowhere()) };
    let (Some(question), None) = (&link.question, &link.answered) else {
        return Ok(answer_page::decided(StatusCode::CONFLICT, &link.holder, link.answered.as_ref()));
    };
    let chosen = app.platform.confirm_answer(&link.holder, &form.nonce).await?;
    let Some(chosen) = chosen.filter(|chosen| chosen.digest == digest_of(question)) else {
        let why = "This page was used before, or was open for too long. Nothing was decided by it.";
        return Ok(answer_page::again(StatusCode::CONFLICT, &token, why));
    };
    let message = Some(form.message.trim()).filter(|message| !message.is_empty()).map(str::to_owned);
    if message.as_ref().is_some_and(|message| message.chars().count() > LONGEST_MESSAGE) {
        let why = format!("That are more than {LONGEST_MESSAGE} characters. Nothing was decided.");
        return Ok(answer_page::again(StatusCode::BAD_REQUEST, &token, &why));
    }
    let answer = if chosen.yes { Answer::Approve { paths: None } } else { no_to(question, message) };
    settle(&app, &link, question, answer).await
}

async fn settle(app: &Arc<App>, link: &OpenedLink, question: &Question, answer: Answer) -> Result<Response, Problem> {
    let yes = matches!(answer, Answer::Approve { .. });
    let problem = match given(app, link.caller(question), question.clone(), answer).await {
        Ok(reply) => return Ok(answer_page::done(&link.holder, yes, &reply)),
        Err(problem) => problem,
    };
    let code = problem.error().code;
    if code == ErrorCode::Conflict {
        let first = app.questions.wait(&link.holder.caller.scope, &question.id(), Duration::ZERO).await?;
        return Ok(answer_page::decided(StatusCode::CONFLICT, &link.holder, first.as_ref()));
    }
    if code == ErrorCode::Forbidden {
        let why = answer_page::sentence(&problem.error().message);
        return Ok(answer_page::again(StatusCode::FORBIDDEN, &link.token, &why));
    }
    Err(problem)
}

async fn form<T: DeserializeOwned>(headers: &HeaderMap, body: Body) -> Result<T, Problem> {
    let bytes = whole_body(headers, body, LONGEST_FORM).await?;
    serde_urlencoded::from_bytes(&bytes).map_err(|_| Problem::mistake("the form cannot be read; open the link again"))
}
