//! Who decides about what.

use axum::http::Method;
use haft_platform::{ApprovalRules, Permission, WrittenApprovalRule};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    problem::Problem,
    route::{Asked, JsonReply, NoFields, Route, RouteAccess, route},
};

/// Its routes.
pub(super) fn routes() -> Vec<Route> {
    use RouteAccess::Needs;
    let (path, see, change) = ("/api/approval-rules", Permission::ApprovalsRead, Permission::PolicyUpdate);
    vec![
        route(Method::GET, path, Needs(see), "Shows who decides about what.", show),
        route(Method::PUT, path, Needs(change), "Changes who decides about what.", set),
    ]
}

/// The rules in force.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ApprovalRulesView {
    version: i64,
    /// The first that is about a call counts.
    rules: Vec<WrittenApprovalRule>,
    #[serde(skip_serializing_if = "Option::is_none")]
    saved_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    saved_at: Option<Timestamp>,
}

impl From<&ApprovalRules> for ApprovalRulesView {
    fn from(rules: &ApprovalRules) -> Self {
        let (saved_by, saved_at) = rules.saved.clone().unzip();
        Self { version: rules.version, rules: rules.written().into_iter().cloned().collect(), saved_by, saved_at }
    }
}

/// The rules in force.
pub(super) async fn show(asked: Asked) -> Result<JsonReply<ApprovalRulesView>, Problem> {
    let rules = asked.app.platform.approval_rules(&asked.caller()?.scope).await?;
    Ok(JsonReply::ok((&rules).into()))
}

/// Rules to be put in the place of others.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ApprovalRulesBody {
    rules: Vec<WrittenApprovalRule>,
    /// The version that they take the place of.
    version: i64,
}

/// Puts other rules in force, also for what is asked already: 409 when somebody else has done so meanwhile.
pub(super) async fn set(asked: Asked<NoFields, ApprovalRulesBody>) -> Result<JsonReply<ApprovalRulesView>, Problem> {
    let body = &asked.body;
    let rules = asked.app.platform.set_approval_rules(asked.caller()?, body.rules.clone(), body.version).await?;
    Ok(JsonReply::ok((&rules).into()))
}
