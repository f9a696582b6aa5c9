//! No tenant and no workspace sees another's.

use haft_runtime::{Caller, Journal, Scope, Source, TenantId};
use serde_json::json;

use crate::stage::{Stage, call, code, request};

#[tokio::test(flavor = "multi_thread")]
async fn another_tenant_sees_nothing() {
    let stage = Stage::new();
    let house = stage.house().await;
    let pending = call(&house, "write_file", json!({"path": "a", "content": "a\n"})).await;
    let other = Scope { tenant: TenantId("other".into()), workspace: None };
    assert!(Journal::find(&house.store, &other, &pending.tool_call_id).await.unwrap().is_none());
    assert!(house.open_questions(&other).await.unwrap().is_empty());
    assert!(house.store.calls(&other, &haft_store::CallFilter::default()).await.unwrap().is_empty());
    assert!(house.store.events(&other, &pending.tool_call_id).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_owner_is_let_in() {
    let stage = Stage::new();
    let house = stage.house().await;
    let mut wish = request(&house, "list_directory", json!({}));
    let scope = Scope { tenant: TenantId("other".into()), workspace: house.scope.workspace.clone() };
    wish.caller = Caller { name: "eve".into(), scope, source: Source::Cli };
    assert_eq!(code(&house.pipeline.call(wish).await), "FORBIDDEN");
}
