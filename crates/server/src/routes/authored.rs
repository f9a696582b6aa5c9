//! Tools that people write, and what they change of others: saving, trying and deleting.

use std::{convert::Infallible, pin::Pin, sync::Arc, time::Duration};

use axum::{
    body::Body,
    http::Method,
    response::{
        IntoResponse, Response, Sse,
        sse::{Event, KeepAlive},
    },
};
use futures_util::stream;
use haft_platform::{AuthoredTool, EventStream, EventsOf, Permission, StreamItem, VersionView};
use haft_runtime::{CallId, CallRequest, Caller, Outcome, Scope, Trial};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    DONE, Done, ListPage,
    calls::answered,
    tools::{ToolView, shown},
};
use crate::{
    app::App,
    event_view::view,
    problem::Problem,
    route::{Asked, JsonOf, JsonReply, LONGEST_BODY, NoFields, Route, RouteAccess, json_body, raw_route, route},
};

/// Its routes.
pub(super) fn routes() -> Vec<Route> {
    use RouteAccess::Needs;
    vec![
        route(Method::POST, "/api/tools", Needs(Permission::ToolsCreate), "Makes a tool.", add),
        route(Method::PATCH, "/api/tools/{slug}", Needs(Permission::ToolsUpdate), "Changes a tool.", change),
        route(Method::DELETE, "/api/tools/{slug}", Needs(Permission::ToolsDelete), "Deletes a tool.", remove),
        route(Method::GET, "/api/tools/{slug}/versions", Needs(Permission::ToolsRead), "Lists its saves.", versions),
        route(
            Method::POST,
            "/api/tools/{slug}/versions/{n}/restore",
            Needs(Permission::ToolsUpdate),
            "Makes an old version the newest.",
            restore,
        ),
        route(Method::POST, "/api/tools/{slug}/test", Needs(Permission::ToolsExecute), "Tries a tool.", test),
        raw_route(
            Method::POST,
            "/api/tools/{slug}/test/stream",
            Needs(Permission::ToolsExecute),
            "Tries a tool and tells what happens.",
            test_stream,
        ),
    ]
}

/// How long a trial may take.
const TRIAL: Duration = Duration::from_secs(30);

/// Makes a tool: 409 when its name is taken.
pub(super) async fn add(asked: Asked<NoFields, JsonOf<AuthoredTool>>) -> Result<JsonReply<JsonOf<ToolView>>, Problem> {
    let (app, caller) = (&asked.app, asked.caller()?);
    let made = Value::Object(app.authored.add(caller, asked.body.value.clone()).await?.fields());
    let shown = shown(app, caller, made["slug"].as_str().unwrap_or_default()).await;
    // Whoever may make a tool may not see it where it is off.
    Ok(JsonReply::created(shown.unwrap_or_else(|_| JsonOf::new(made))))
}

/// Changes some of its fields, for this tenant where it is code; what is then no tool changes nothing.
pub(super) async fn change(asked: Asked<NoFields, Map<String, Value>>) -> Result<JsonReply<JsonOf<ToolView>>, Problem> {
    let (app, caller, slug) = (&asked.app, asked.caller()?, asked.part("slug")?);
    app.authored.change(caller, slug, &asked.body).await?;
    Ok(JsonReply::ok(shown(app, caller, slug).await?))
}

/// Deletes it: 409 with what still names it. Of a tool that is code, takes back what was changed.
pub(super) async fn remove(asked: Asked) -> Result<JsonReply<Done>, Problem> {
    asked.app.authored.remove(asked.caller()?, asked.part("slug")?).await?;
    Ok(JsonReply::ok(DONE))
}

/// Every save of it, newest first.
pub(super) async fn versions(asked: Asked) -> Result<JsonReply<ListPage<VersionView>>, Problem> {
    let all = asked.app.authored.versions(&asked.caller()?.scope, asked.part("slug")?).await?;
    Ok(JsonReply::ok(ListPage::whole(all)))
}

/// Makes an old version the newest.
pub(super) async fn restore(asked: Asked) -> Result<JsonReply<JsonOf<ToolView>>, Problem> {
    let (app, caller, slug) = (&asked.app, asked.caller()?, asked.part("slug")?);
    let version = asked.part("n")?.parse().map_err(|_| Problem::not_found("such version"))?;
    app.authored.restore(caller, slug, version).await?;
    Ok(JsonReply::ok(shown(app, caller, slug).await?))
}

/// What a tool is tried with.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TrialBody {
    #[serde(default)]
    input: Map<String, Value>,
    /// A tool as it would be saved; it is tried in the place of the saved one, and saved nowhere.
    draft: Option<Value>,
}

/// Calls it like anybody would, for half a minute at most. The call is recorded as a trial and counted nowhere.
pub(super) async fn test(asked: Asked<NoFields, TrialBody>) -> Result<JsonReply<JsonOf<Outcome>>, Problem> {
    let (app, caller, slug) = (&asked.app, asked.caller()?, asked.part("slug")?);
    answered(app, &app.pipeline.call(trial(app, caller, slug, &asked.body).await?).await)
}

/// The same, told as it happens: the events of the call, and last its envelope as `outcome`.
pub(super) async fn test_stream(asked: Asked<NoFields, Body>) -> Result<Response, Problem> {
    let Asked { app, identity, path, query, body, headers, from } = asked;
    let body: TrialBody = json_body(&headers, body, LONGEST_BODY).await?;
    let asked = Asked { app, identity, path, query, body, headers, from };
    let (app, caller) = (asked.app.clone(), asked.caller()?);
    let request = trial(&app, caller, asked.part("slug")?, &asked.body).await?;
    let (scope, call) = (caller.scope.clone(), request.id.clone());
    let events = app.platform.listen(&scope, EventsOf::Call(call.clone()), Some(0)).await?;
    let running = Box::pin(app.pipeline.call(request));
    let told = TrialStream { app, scope, call, events, last: 0, stage: TrialStage::Running(running) };
    let frames = stream::unfold(told, |told| async move { told.next().await });
    Ok(Sse::new(frames).keep_alive(KeepAlive::new().interval(Duration::from_secs(15))).into_response())
}

async fn trial(app: &App, caller: &Caller, slug: &str, body: &TrialBody) -> Result<CallRequest, Problem> {
    let draft = match &body.draft {
        Some(written) => Some(app.authored.draft(caller, slug, written.clone()).await?),
        None => None,
    };
    let tool = match &draft {
        Some(draft) => draft.clone(),
        None => app.catalog.find(caller, slug).await?,
    };
    app.guard.permit(caller, tool.spec()).await?;
    let mut caller = caller.clone();
    caller.via.trial = Some(if draft.is_some() { Trial::Draft } else { Trial::Saved });
    let mut request = CallRequest::new(caller, slug, Value::Object(body.input.clone()));
    request.draft = draft;
    request.wait = TRIAL;
    request.timeout = Some(TRIAL);
    request.hand_back = app.stop.clone();
    Ok(request)
}

/// A trial that somebody watches. When they go away, the call is cancelled.
struct TrialStream {
    app: Arc<App>,
    scope: Scope,
    call: CallId,
    events: EventStream,
    /// The last event that was told.
    last: i64,
    stage: TrialStage,
}

enum TrialStage {
    Running(Pin<Box<dyn Future<Output = Outcome> + Send>>),
    /// It has ended, and what happened up to this event is still to be told.
    Ended(Box<Outcome>, i64),
    Told,
}

impl TrialStream {
    /// The next frame, and the rest of the stream.
    async fn next(mut self) -> Option<(Result<Event, Infallible>, Self)> {
        loop {
            let item = match &mut self.stage {
                TrialStage::Told => return None,
                TrialStage::Running(running) => tokio::select! {
                    item = self.events.next() => item.ok()?,
                    outcome = running => {
                        let last = self.app.platform.last_event_of(&self.scope, &self.call).await.ok()?;
                        self.stage = TrialStage::Ended(Box::new(outcome), last);
                        continue;
                    }
                },
                TrialStage::Ended(outcome, last) if self.last >= *last => {
                    let data = self.app.redactor.known_out_of(json!(outcome));
                    self.stage = TrialStage::Told;
                    return Some((Ok(Event::default().event("outcome").data(data.to_string())), self));
                }
                TrialStage::Ended(..) => self.events.next().await.ok()?,
            };
            let StreamItem::Event(event) = item else { continue };
            self.last = event.seq;
            let (name, data) = view(&event, &self.app.redactor);
            let frame = Event::default().id(event.seq.to_string()).event(name).data(data.to_string());
            return Some((Ok(frame), self));
        }
    }
}
