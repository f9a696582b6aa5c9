//! No tenant and no workspace sees another's.

use haft_runtime::{Caller, CallerId, CallerKind, Journal, Questions, Scope, Source, TenantId, Within};
use serde_json::json;

use crate::stage::{Stage, call, code, request};

#[tokio::test(flavor = "multi_thread")]
async fn another_tenant_sees_nothing() {
    let stage = Stage::new();
    let house = stage.house().await;
    let pending = call(&house, "write_file", json!({"path": "a", "content": "a\n"})).await;
    let other = Scope::of_house(TenantId::parse("other").unwrap(), None);
    assert!(Journal::find(&house.store, &other, &pending.tool_call_id).await.unwrap().is_none());
    let all = Within::Everything;
    assert!(Questions::open(&house.store, &other, &all).await.unwrap().is_empty());
    assert!(house.store.calls(&other, &all, &haft_store::CallFilter::default()).await.unwrap().is_empty());
    assert!(house.store.events(&other, &pending.tool_call_id).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_owner_is_let_in() {
    let stage = Stage::new();
    let house = stage.house().await;
    let mut wish = request(&house, "list_directory", json!({}));
    let scope = Scope::of_house(TenantId::parse("other").unwrap(), house.scope.workspace().cloned());
    wish.caller = Caller::owner("eve", scope, Source::Cli);
    assert_eq!(code(&house.pipeline.call(wish.clone()).await), "FORBIDDEN");
    let id = CallerId { kind: CallerKind::Person, id: "eve".into() };
    wish.caller = Caller { id, ..house.caller.clone() };
    assert_eq!(code(&house.pipeline.call(wish).await), "FORBIDDEN", "whatever scope they come with");
}
