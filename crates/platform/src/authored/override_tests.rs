//! What is changed of tools that are code, by whom, for whom, and how soon.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::future::BoxFuture;
use haft_runtime::{
    AnyTool, Asks, Caller, Catalog, Effect, ErrorCode, HouseWide, Layers, Permissions, Prepared, Ran, RegisteredTool,
    Registry, Scope, Source, TenantId, ToolCtx, ToolError, ToolOutput, ToolSpec, Within,
};
use haft_sandbox::web::{FetchLimits, WebClient, WebRules};
use haft_store::{Durability, Store};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::{AuthoredTool, AuthoredTools, PatchedTools, internal::InternalTool};
use crate::{MasterKey, Permission, Platform, TenantWeb};

/// A tool for some tenants only.
struct Restricted(InternalTool, &'static [&'static str]);

impl AnyTool for Restricted {
    fn spec(&self) -> &ToolSpec {
        self.0.spec()
    }

    fn tenants(&self) -> &[&str] {
        self.1
    }

    fn effect(&self, input: &Value) -> Effect {
        self.0.effect(input)
    }

    fn prepare<'a>(
        &'a self,
        ctx: &'a ToolCtx,
        input: &'a Value,
    ) -> BoxFuture<'a, Result<Prepared<ToolOutput>, ToolError>> {
        self.0.prepare(ctx, input)
    }

    fn run<'a>(&'a self, ctx: &'a ToolCtx, input: &'a Value) -> BoxFuture<'a, Result<Ran<ToolOutput>, ToolError>> {
        self.0.run(ctx, input)
    }
}

fn written(slug: &str) -> AuthoredTool {
    let object = json!({"type": "object"});
    let whole = json!({"slug": slug, "description": "d", "inputSchema": object, "executionType": "internal"});
    AuthoredTool::read(whole).unwrap()
}

/// One node: `look` and `deploy` are code, and so is `special` for the tenant `acme`.
struct Node {
    rows: Arc<AuthoredTools>,
    catalog: Layers,
}

async fn node(folder: &TempDir) -> Node {
    let store = Store::open(folder.path(), Durability::Normal).await.unwrap();
    let platform = Platform::new(store, HouseWide::of_house(Within::Everything), MasterKey::new(&[7; 32]));
    let tool = |spec: ToolSpec| -> Arc<dyn AnyTool> { Arc::new(InternalTool(spec)) };
    let look = ToolSpec { aliases: vec!["peek".to_owned()], asks: Asks::ByEffect, ..written("look").spec() };
    let deploy = ToolSpec { asks: Asks::Always, ..written("deploy").spec() };
    let special: Arc<dyn AnyTool> = Arc::new(Restricted(InternalTool(written("special").spec()), &["acme"]));
    let code = Arc::new(Registry::with([tool(look), tool(deploy), special]).unwrap());
    let client = WebClient::new(WebRules::default(), FetchLimits::default());
    let platform = Arc::new(platform);
    let web = TenantWeb::new(platform.clone(), client);
    let rows = Arc::new(AuthoredTools::new(platform, web, vec![code.clone()]));
    let patched = Arc::new(PatchedTools::new(code, rows.clone()));
    Node { catalog: Layers::new(vec![patched, rows.clone()]), rows }
}

impl Node {
    async fn tenant(&self, slug: &str) -> Caller {
        self.rows.platform.add_tenant(slug, None).await.unwrap();
        let scope = self.rows.platform.tenant(slug).await.unwrap().scope;
        Caller::owner("anna", scope, Source::Web)
    }

    async fn find(&self, caller: &Caller, name: &str) -> Option<Arc<RegisteredTool>> {
        match self.catalog.find(caller, name).await {
            Ok(found) => Some(found),
            Err(error) => {
                assert_eq!(error.code, ErrorCode::ToolNotFound);
                None
            }
        }
    }

    async fn change(&self, caller: &Caller, tool: &str, fields: Value) -> Result<(), ToolError> {
        let fields: Map<String, Value> = fields.as_object().unwrap().clone();
        self.rows.change(caller, tool, &fields).await.map(drop)
    }

    fn for_all(&self) -> Scope {
        self.rows.platform.house.all_tenants()
    }
}

/// The same caller without the right to loosen.
fn cautious(caller: &Caller) -> Caller {
    let all = Permission::ALL.iter().filter(|one| **one != Permission::ToolsPolicy);
    Caller { permissions: Permissions::only(all.map(|one| one.word().to_owned())), ..caller.clone() }
}

#[tokio::test]
async fn a_no_of_anybody_is_a_no_and_only_for_whom_it_is_meant() {
    let folder = tempfile::tempdir().unwrap();
    let node = node(&folder).await;
    let (acme, bolt) = (node.tenant("acme").await, node.tenant("bolt").await);
    node.change(&acme, "peek", json!({"enabled": false})).await.unwrap();
    assert!(node.find(&acme, "look").await.is_none() && node.find(&acme, "peek").await.is_none());
    assert!(node.find(&bolt, "look").await.is_some());
    let off = node.rows.switched_off(&acme.scope, None).await.unwrap();
    assert_eq!(off.iter().map(|tool| tool.spec().name.as_str()).collect::<Vec<_>>(), ["look"]);
    assert_eq!(node.rows.add(&acme, json!(written("look"))).await.unwrap_err().code, ErrorCode::AlreadyExists);
    node.change(&acme, "look", json!({"enabled": true})).await.unwrap();
    assert!(node.find(&acme, "look").await.is_some());

    node.rows.switch(&node.for_all(), "look", false).await.unwrap();
    // Another node has said so; this one hears of it with the next credential.
    for caller in [&acme, &bolt] {
        node.rows.platform.look_at_version(&caller.scope).await.unwrap();
        assert!(node.find(caller, "look").await.is_none(), "whatever the tenant says");
    }
    assert_eq!(node.rows.switch(&node.for_all(), "nothing", false).await.unwrap_err().code, ErrorCode::NotFound);
    node.rows.switch(&node.for_all(), "look", true).await.unwrap();
    node.rows.platform.look_at_version(&bolt.scope).await.unwrap();
    assert!(node.find(&bolt, "look").await.is_some());
}

#[tokio::test]
async fn one_s_own_tool_is_switched_off_alike() {
    let folder = tempfile::tempdir().unwrap();
    let node = node(&folder).await;
    let acme = node.tenant("acme").await;
    node.rows.add(&acme, json!(written("mine"))).await.unwrap();
    assert!(node.find(&acme, "mine").await.is_some());
    node.change(&acme, "mine", json!({"enabled": false})).await.unwrap();
    assert!(node.find(&acme, "mine").await.is_none());
    assert!(!node.rows.standing(&acme.scope, "mine").enabled);
    assert!(node.rows.out_of_sight(&acme.scope, "mine").await.unwrap().is_some());
    node.rows.switch(&acme.scope, "mine", true).await.unwrap();
    assert!(node.find(&acme, "mine").await.is_some());
}

#[tokio::test]
async fn a_tenant_s_words_stand_over_those_for_all_and_change_nothing_that_the_tool_does() {
    let folder = tempfile::tempdir().unwrap();
    let node = node(&folder).await;
    let acme = node.tenant("acme").await;
    let code = node.find(&acme, "look").await.unwrap().spec().clone();
    let for_all = Caller { scope: node.for_all(), ..acme.clone() };
    node.change(&for_all, "look", json!({"title": "For all", "description": "for all", "timeout": 5000}))
        .await
        .unwrap();
    node.change(&acme, "look", json!({"name": "Ours", "requiredPermission": "audit.tenant.read"})).await.unwrap();
    let spec = node.find(&acme, "look").await.unwrap().spec().clone();
    let told = (spec.title.as_str(), spec.description.as_str(), spec.timeout, spec.permission.as_str());
    assert_eq!(told, ("Ours", "for all", Duration::from_secs(5), "audit.tenant.read"));
    assert_eq!((&spec.name, &spec.input_schema, spec.effect), (&code.name, &code.input_schema, code.effect));
    node.change(&acme, "look", json!({"title": null, "requiredPermission": null})).await.unwrap();
    assert_eq!(node.find(&acme, "look").await.unwrap().spec().title, "For all");
    for wrong in [
        json!({"inputSchema": {}}),
        json!({"execution": {}}),
        json!({"tenantSlugs": []}),
        json!({"description": " "}),
        json!({"timeout": 0}),
        json!({"requiredPermission": "tools.tenant.fly"}),
        json!({"outputSections": "x"}),
        json!({"enabled": "no"}),
    ] {
        assert_eq!(
            node.change(&acme, "look", wrong.clone()).await.unwrap_err().code,
            ErrorCode::InvalidArgs,
            "{wrong}"
        );
    }
    assert_eq!(node.rows.versions(&acme.scope, "look").await.unwrap().len(), 2);
    node.rows.restore(&acme, "look", 1).await.unwrap();
    assert_eq!(node.find(&acme, "look").await.unwrap().spec().title, "Ours");
    node.rows.remove(&acme, "look").await.unwrap();
    assert_eq!(node.find(&acme, "look").await.unwrap().spec().title, "For all");
    assert_eq!(node.rows.remove(&acme, "look").await.unwrap_err().code, ErrorCode::NotFound);
}

#[tokio::test]
async fn only_some_may_have_a_tool_asked_for_less() {
    let folder = tempfile::tempdir().unwrap();
    let node = node(&folder).await;
    let acme = node.tenant("acme").await;
    let weak = cautious(&acme);
    let asks = async |tool: &str| node.find(&acme, tool).await.unwrap().spec().asks;
    let (auto, always) = (json!({"permissionPolicy": "auto"}), json!({"permissionPolicy": "always_ask"}));
    node.change(&weak, "look", always).await.unwrap();
    assert_eq!(asks("look").await, Asks::Always, "anybody may have it asked for more");
    let nothing = json!({"permissionPolicy": null});
    let easier = json!({"requiredPermission": "tools.tenant.read"});
    for (tool, fields) in [("look", &auto), ("look", &nothing), ("deploy", &auto), ("look", &easier)] {
        let error = node.change(&weak, tool, fields.clone()).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::Forbidden, "{tool} {fields}");
    }
    assert_eq!(node.rows.remove(&weak, "look").await.unwrap_err().code, ErrorCode::Forbidden);
    node.change(&weak, "look", json!({"title": "Look"})).await.unwrap();
    node.change(&acme, "look", nothing).await.unwrap();
    assert_eq!(node.rows.restore(&weak, "look", 2).await.map(|saved| saved.version).ok(), Some(4), "it asks for more");
    assert_eq!(node.rows.restore(&weak, "look", 3).await.unwrap_err().code, ErrorCode::Forbidden);

    node.change(&acme, "deploy", auto.clone()).await.unwrap();
    assert_eq!(asks("deploy").await, Asks::ByEffect, "what it does decides then");
    // Whoever may loosen nothing takes nothing back that is said for all tenants later.
    node.change(&acme, "look", json!({"permissionPolicy": null})).await.unwrap();
    node.change(&weak, "look", auto).await.unwrap();
    let for_all = Caller { scope: node.for_all(), ..acme.clone() };
    node.change(&for_all, "look", json!({"permissionPolicy": "always_ask"})).await.unwrap();
    node.rows.platform.look_at_version(&acme.scope).await.unwrap();
    assert_eq!(asks("look").await, Asks::Always);
}

#[tokio::test]
async fn a_tool_for_some_tenants_is_nobody_else_s() {
    let folder = tempfile::tempdir().unwrap();
    let node = node(&folder).await;
    let (acme, bolt) = (node.tenant("acme").await, node.tenant("bolt").await);
    let nobody = Caller::owner("x", Scope::of_house(TenantId::parse("tn_unknown").unwrap(), None), Source::House);
    assert!(node.find(&acme, "special").await.is_some());
    for other in [&bolt, &nobody] {
        assert!(node.find(other, "special").await.is_none());
        let listed = node.catalog.list(other).await.unwrap();
        assert!(listed.tools().iter().all(|tool| tool.spec().name != "special"));
        assert!(node.rows.out_of_sight(&other.scope, "special").await.unwrap().is_none());
    }
}

#[tokio::test]
async fn a_change_on_another_node_counts_within_a_second_or_with_the_next_credential() {
    let folder = tempfile::tempdir().unwrap();
    let (here, there) = (node(&folder).await, node(&folder).await);
    let acme = here.tenant("acme").await;
    assert!(there.find(&acme, "look").await.is_some());
    here.change(&acme, "look", json!({"enabled": false})).await.unwrap();
    let changed = Instant::now();
    while there.find(&acme, "look").await.is_some() {
        assert!(changed.elapsed() < Duration::from_secs(10), "nobody has noticed");
        tokio::task::yield_now().await;
    }
    assert!(changed.elapsed() < Duration::from_secs(2), "{:?}", changed.elapsed());
    here.change(&acme, "look", json!({"enabled": true})).await.unwrap();
    let version = here.rows.platform.version(&acme.scope).await.unwrap();
    there.rows.platform.saw_version(&acme.scope, version);
    assert!(there.find(&acme, "look").await.is_some(), "a credential brings the version");
}
