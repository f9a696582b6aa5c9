//! A yes that is remembered: how it may be, and what it would have covered.

use std::time::Duration;

use axum::http::Method;
use haft_platform::Permission;
use haft_runtime::{Answer, Bounds, Breadth, Caller, Coverage, Grant, Offer, Question, Within};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::approvals::open;
use crate::{
    app::App,
    problem::Problem,
    route::{Asked, JsonReply, Route, RouteAccess, route},
};

/// Its routes.
pub(super) fn routes() -> Vec<Route> {
    let (path, may) = ("/api/approvals/{id}/offers", RouteAccess::Needs(Permission::ApprovalsDecide));
    vec![route(Method::GET, path, may, "Shows how a yes can be remembered.", offers)]
}

/// What a remembered yes covers.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AlwaysBody {
    kind: AlwaysKind,
    /// How long: `30m`, `8h`, `7d`; until it is revoked when absent.
    #[serde(rename = "for")]
    lasting: Option<String>,
    /// How often; without limit when absent.
    uses: Option<u32>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum AlwaysKind {
    /// This very call.
    Call,
    /// The same tool within this folder.
    Folder,
    /// The same tool on any path, with no more and no other kinds of change.
    Bounds,
}

impl From<Breadth> for AlwaysKind {
    fn from(breadth: Breadth) -> Self {
        match breadth {
            Breadth::Call => Self::Call,
            Breadth::Folder => Self::Folder,
            Breadth::Bounds => Self::Bounds,
        }
    }
}

/// The yes that is remembered as somebody wishes.
pub(super) async fn remembered(
    app: &App,
    caller: &Caller,
    question: &Question,
    always: &AlwaysBody,
) -> Result<Answer, Problem> {
    let breadth = match always.kind {
        AlwaysKind::Call => Breadth::Call,
        AlwaysKind::Folder => Breadth::Folder,
        AlwaysKind::Bounds => Breadth::Bounds,
    };
    if always.uses == Some(0) {
        return Err(Problem::mistake("`uses` is at least 1"));
    }
    let lasting = always.lasting.as_deref().map(length_of_time).transpose()?;
    let offers = app.pipeline.offers(caller, question).await;
    let offers = offers.map_err(|why| Problem::mistake(format!("a yes cannot be remembered: {why}")))?;
    let offer = offers.into_iter().find(|offer| offer.breadth == breadth).ok_or_else(|| {
        Problem::mistake("only `call` can be remembered here: what the call does cannot be seen before")
    })?;
    let grant = Grant {
        // A grant is for whoever asked.
        caller: Some(question.asked_by.id.clone()),
        until: lasting.map(|lasting| app.questions.now().checked_add(lasting).unwrap_or(Timestamp::MAX)),
        uses_left: always.uses,
        ..Grant::new(&question.tool, offer.bounds)
    };
    Ok(Answer::Always { grant: Box::new(grant) })
}

/// How many recorded calls an offer is held against.
const LAST: u32 = 500;

/// The yeses that can be made of one.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct OffersView {
    /// Narrowest first; none where a yes cannot be remembered.
    offers: Vec<OfferView>,
    /// Why it cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    withheld: Option<String>,
}

/// One of them.
#[derive(Debug, Serialize, JsonSchema)]
struct OfferView {
    kind: AlwaysKind,
    #[schemars(with = "Value")]
    bounds: Bounds,
    /// How many of the last calls it would have covered, in words.
    covered: String,
}

/// Shows how a yes can be remembered, and what of the past that would have covered. Nothing is answered.
async fn offers(asked: Asked) -> Result<JsonReply<OffersView>, Problem> {
    let app = &asked.app;
    let (question, caller) = open(app, asked.caller()?, asked.part("id")?).await?;
    let offers = match app.pipeline.offers(&caller, &question).await {
        Ok(offers) => offers,
        Err(why) => return Ok(JsonReply::ok(OffersView { offers: Vec::new(), withheld: Some(why.to_string()) })),
    };
    let within = question.workspace.clone().map_or(Within::Everything, Within::Only);
    // What it would have covered is a courtesy.
    let past = app.platform.last_calls(&caller, &within, LAST).await.unwrap_or_default();
    let tool = app.catalog.find(&caller, &question.tool).await.ok();
    let view = |Offer { breadth, bounds }: Offer| {
        let grant = Grant::new(&question.tool, bounds.clone());
        let covered = Coverage::of(&grant, tool.as_deref(), &past).to_string();
        OfferView { kind: breadth.into(), bounds, covered }
    };
    Ok(JsonReply::ok(OffersView { offers: offers.into_iter().map(view).collect(), withheld: None }))
}

/// Such as `30m`, `8h` or `7d`.
pub(super) fn length_of_time(text: &str) -> Result<Duration, Problem> {
    let wrong = || Problem::mistake("`for` is a length of time such as `30m`, `8h` or `7d`");
    haft_platform::length_of_time(text).ok_or_else(wrong)
}
