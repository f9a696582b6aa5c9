//! The rules that a tenant decides by.

use std::collections::{HashMap, hash_map::Entry};

use axum::http::Method;
use haft_platform::{Permission, TenantRules, read_rules};
use haft_runtime::{AutoApprove, Caller, Policy, ReplayReport, Rule, Within};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    app::App,
    problem::Problem,
    route::{Asked, JsonReply, NoFields, Route, RouteAccess, route},
};

/// Its routes.
pub(super) fn routes() -> Vec<Route> {
    use RouteAccess::Needs;
    vec![
        route(Method::GET, "/api/policy", Needs(Permission::ApprovalsRead), "Shows the rules in force.", show),
        route(Method::PUT, "/api/policy", Needs(Permission::PolicyUpdate), "Puts other rules in force.", set),
        route(Method::POST, "/api/policy/replay", Needs(Permission::PolicyUpdate), "Tries rules on calls.", replay),
    ]
}

/// How many calls rules are tried on where nobody says, and at most.
const LAST: u32 = 50;
const MOST: u32 = 500;

/// The rules in force, and what decides where none of them matches.
pub(super) async fn show(asked: Asked) -> Result<JsonReply<Value>, Problem> {
    let (app, caller) = (&asked.app, asked.caller()?);
    let rules = app.platform.rules(&caller.scope).await?;
    Ok(JsonReply::ok(view(app, caller, &rules).await?))
}

async fn view(app: &App, caller: &Caller, rules: &TenantRules) -> Result<Value, Problem> {
    let policy = app.pipeline.policy(&caller.scope).await?;
    let default = |rule: &Rule| {
        let mut view = rule.written();
        view["name"] = json!(rule.name);
        view
    };
    let written: Vec<Value> = rules.rules.iter().map(Rule::written).collect();
    let defaults: Vec<Value> = policy.defaults.iter().map(default).collect();
    let mut view = json!({
        "version": rules.version,
        "rules": written,
        "autoApprove": rules.auto_approve,
        "defaults": defaults,
    });
    if let Some((by, at)) = &rules.saved {
        view["savedBy"] = json!(by);
        view["savedAt"] = json!(at);
    }
    Ok(view)
}

/// What may happen without asking.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum ModeWord {
    /// Nothing, not even reading.
    None,
    /// Reading.
    #[default]
    Safe,
    /// Everything but what is asked in every mode.
    All,
}

impl ModeWord {
    fn mode(self) -> AutoApprove {
        match self {
            Self::None => AutoApprove::Nothing,
            Self::Safe => AutoApprove::Reads,
            Self::All => AutoApprove::Everything,
        }
    }
}

/// Rules to be put in the place of others.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct PolicyBody {
    /// Each as `{ tool?, bounds?, decision: allow|ask|deny, reason? }`; the first that matches decides.
    rules: Vec<Value>,
    /// What may happen without asking.
    #[serde(default)]
    auto_approve: ModeWord,
    /// The version that they take the place of.
    version: i64,
}

/// Puts other rules in force, everywhere and at once: 409 when somebody else has done so meanwhile.
pub(super) async fn set(asked: Asked<NoFields, PolicyBody>) -> Result<JsonReply<Value>, Problem> {
    let (app, caller, body) = (&asked.app, asked.caller()?, &asked.body);
    let rules = read_rules(&body.rules)?;
    let set = app.platform.set_rules(caller, (&rules, body.auto_approve.mode()), body.version).await?;
    Ok(JsonReply::ok(view(app, caller, &set).await?))
}

/// Rules to be tried.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ReplayBody {
    /// Each as `{ tool?, bounds?, decision: allow|ask|deny, reason? }`.
    rules: Vec<Value>,
    /// What may happen without asking.
    #[serde(default)]
    auto_approve: ModeWord,
    /// On how many of the last calls; 50 by default, 500 at most.
    last: Option<u32>,
}

/// Decides the last calls again by these rules, and says which would be decided otherwise. Nothing is run.
pub(super) async fn replay(asked: Asked<NoFields, ReplayBody>) -> Result<JsonReply<Value>, Problem> {
    let (app, caller, body) = (&asked.app, asked.caller()?, &asked.body);
    let last = match body.last.unwrap_or(LAST) {
        last @ 1..=MOST => last,
        _ => return Err(Problem::mistake(format!("`last` is a number from 1 to {MOST}"))),
    };
    let rules = read_rules(&body.rules)?;
    let mode = Some(body.auto_approve.mode());
    let (mut report, mut policies) = (ReplayReport::default(), HashMap::new());
    for past in app.platform.last_calls(caller, &Within::Everything, last).await? {
        let there = Caller { scope: past.record.scope.clone(), ..caller.clone() };
        let tool = app.catalog.find(&there, &past.record.opening.tool).await.ok();
        let grants = app.questions.grants(&there.scope, &past.record.opening.tool).await?;
        let policy = match policies.entry(there.scope.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let in_force = app.pipeline.policy(&there.scope).await?;
                new.insert(Policy { rules: named(app, &there, &rules).await, mode, ..Policy::clone(&in_force) })
            }
        };
        report.add(&past, tool.as_deref(), policy, &grants);
    }
    Ok(JsonReply::ok(app.redactor.value(&report.document())))
}

/// The same rules, each with its tool's own name.
async fn named(app: &App, caller: &Caller, rules: &[Rule]) -> Vec<Rule> {
    let mut rules = rules.to_vec();
    for tool in rules.iter_mut().filter_map(|rule| rule.tool.as_mut()) {
        if let Ok(found) = app.catalog.find(caller, tool).await {
            found.spec().name.clone_into(tool);
        }
    }
    rules
}
