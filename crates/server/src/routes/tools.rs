//! The tools there are.

use std::sync::Arc;

use axum::http::Method;
use haft_platform::{Permission, TenantGuard, ToolStanding};
use haft_runtime::{Caller, ErrorCode, RegisteredTool, Shown, ToolListing, ToolSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{ListPage, PageQuery};
use crate::{
    app::App,
    problem::Problem,
    route::{Asked, JsonOf, JsonReply, Route, RouteAccess, route},
};

/// Its routes.
pub(super) fn routes() -> Vec<Route> {
    use RouteAccess::Needs;
    vec![
        route(Method::GET, "/api/tools", Needs(Permission::ToolsRead), "Lists the tools there are.", list),
        route(Method::GET, "/api/tools/{slug}", Needs(Permission::ToolsRead), "Shows a tool.", show),
    ]
}

/// Which tools.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(super) struct ToolsQuery {
    limit: Option<u32>,
    after: Option<String>,
    /// Only tools that come from here: `code`, `tenant`, `upstream` or `project`.
    origin: Option<String>,
    /// Only tools of this kind: `system`, `system_override` or `tenant_custom`.
    kind: Option<String>,
    /// Only tools of this category.
    category: Option<String>,
    /// Only tools whose name or description has this text.
    q: Option<String>,
    /// Only tools that are on, or only those that are off.
    enabled: Option<bool>,
    /// The tools as they are in this workspace; that of the key by default.
    workspace: Option<String>,
}

/// Where a tool is looked at.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(super) struct ToolQuery {
    /// As it is in this workspace; that of the key by default.
    workspace: Option<String>,
}

/// The caller in the workspace that a query names.
async fn placed(app: &App, caller: &Caller, workspace: Option<&str>) -> Result<Caller, Problem> {
    Ok(match workspace {
        Some(name) => app.platform.in_workspace(caller.clone(), name).await?,
        None => caller.clone(),
    })
}

/// The tools, by name. Whoever may change tools sees those that are switched off, too.
pub(super) async fn list(asked: Asked<ToolsQuery>) -> Result<JsonReply<ListPage<JsonOf<ToolView>>>, Problem> {
    let (app, query) = (&asked.app, &asked.query);
    let caller = &placed(app, asked.caller()?, query.workspace.as_deref()).await?;
    let page = PageQuery { limit: query.limit, after: query.after.clone() };
    let (limit, after) = (page.limit()? as usize, page.after.as_deref());
    let listing = app.catalog.list(caller).await?;
    let there = listing.tools();
    let there = &there[there.partition_point(|tool| after.is_some_and(|after| tool.spec().name.as_str() <= after))..];
    let off = if may_change(caller) { app.authored.switched_off(&caller.scope, after).await? } else { Vec::new() };
    // Nobody looks further than the page and one more.
    let shown = |tools: &[Arc<RegisteredTool>]| -> Vec<Value> {
        let wanted = tools.iter().map(|tool| view(app, caller, tool, &listing)).filter(|view| query.wants(view));
        wanted.take(limit + 1).collect()
    };
    let mut items = [shown(there), shown(&off)].concat();
    items.sort_by(|one, other| name(one).cmp(name(other)));
    let ListPage { items, next } = ListPage::cut(items, &page, |view| name(view).to_owned())?;
    Ok(JsonReply::ok(ListPage { items: items.into_iter().map(JsonOf::new).collect(), next }))
}

impl ToolsQuery {
    fn wants(&self, view: &Value) -> bool {
        let is = |field: &str, wanted: &Option<String>| wanted.as_ref().is_none_or(|wanted| view[field] == **wanted);
        let has = |text: &String| {
            let text = text.to_lowercase();
            ["name", "description"]
                .iter()
                .any(|field| view[field].as_str().is_some_and(|value| value.to_lowercase().contains(&text)))
        };
        is("origin", &self.origin)
            && is("kind", &self.kind)
            && is("category", &self.category)
            && self.enabled.is_none_or(|enabled| view["enabled"] == enabled)
            && self.q.as_ref().is_none_or(has)
    }
}

fn name(view: &Value) -> &str {
    view["name"].as_str().unwrap_or_default()
}

/// One tool with both schemas.
pub(super) async fn show(asked: Asked<ToolQuery>) -> Result<JsonReply<JsonOf<ToolView>>, Problem> {
    let caller = placed(&asked.app, asked.caller()?, asked.query.workspace.as_deref()).await?;
    Ok(JsonReply::ok(shown(&asked.app, &caller, asked.part("slug")?).await?))
}

/// A tool with what somebody has saved of it.
pub(super) async fn shown(app: &App, caller: &Caller, slug: &str) -> Result<JsonOf<ToolView>, Problem> {
    let found = app.catalog.find(caller, slug).await;
    let is_there = found.is_ok();
    let tool = match found {
        Err(error) if error.code == ErrorCode::ToolNotFound && may_change(caller) => {
            app.authored.out_of_sight(&caller.scope, slug).await?.ok_or(error)?
        }
        found => found?,
    };
    let mut view = view(app, caller, &tool, &*app.catalog.list(caller).await?);
    if !is_there {
        view["usable"] = json!(false);
    }
    match (app.authored.find(&caller.scope, &tool.spec().name).await, &mut view) {
        (Ok(saved), Value::Object(fields)) => fields.extend(saved.fields()),
        (Err(error), _) if error.code != ErrorCode::NotFound => return Err(error.into()),
        (Ok(_) | Err(_), _) => {}
    }
    Ok(JsonOf::new(view))
}

fn may_change(caller: &Caller) -> bool {
    caller.permissions.allow(Permission::ToolsUpdate.word())
}

/// A tool as it is shown. One that somebody has saved has the fields that they wrote, too.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ToolView {
    slug: String,
    /// Whether the caller can call it.
    usable: bool,
    /// What its definition costs a model, in tokens.
    tokens: usize,
    /// Whether models are shown it: `always`, `never`, `fits` or `deferred`.
    shown: &'static str,
    #[serde(flatten)]
    spec: ToolSpec,
    #[serde(flatten)]
    standing: ToolStanding,
}

fn view(app: &App, caller: &Caller, tool: &RegisteredTool, listing: &ToolListing) -> Value {
    let spec = tool.spec();
    let shown = match tool.shown() {
        Shown::Always | Shown::ForOthers => "always",
        Shown::Never => "never",
        Shown::WhileThereIsRoom if listing.deferred().is_empty() => "fits",
        Shown::WhileThereIsRoom => "deferred",
    };
    let standing = app.authored.standing(&caller.scope, &spec.name);
    let usable = standing.enabled && TenantGuard::may_use(caller, spec);
    json!(ToolView { slug: spec.name.clone(), usable, tokens: tool.tokens(), shown, spec: spec.clone(), standing })
}
