//! No tenant and no workspace sees another's.

use haft_runtime::{
    Answer, Caller, CallerId, CallerKind, ErrorCode, Journal, Questions, Reply, Scope, Source, TenantId, Within,
};
use serde_json::json;

use crate::stage::{Stage, call, code, request, yes};

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

#[tokio::test(flavor = "multi_thread")]
async fn only_the_owner_answers_and_a_stranger_leaves_the_question_open() {
    let stage = Stage::new();
    let house = stage.house().await;
    let pending = call(&house, "write_file", json!({"path": "a", "content": "a\n"})).await;
    let (question, _) = house.question(&pending.tool_call_id).await.unwrap().unwrap();
    let id = CallerId { kind: CallerKind::Person, id: "eve".into() };
    let eve = Caller { id, ..house.caller.clone() };
    for answer in [Answer::Approve { paths: None }, Answer::Reject { message: None }, Answer::Cancel] {
        let refused = house.pipeline.answer(&eve, &question.id(), answer).await.unwrap_err();
        assert_eq!(refused.code, ErrorCode::Forbidden, "{refused:?}");
    }
    let elsewhere = Scope::of_house(TenantId::parse("other").unwrap(), house.scope.workspace().cloned());
    let other = Caller::owner("eve", elsewhere, Source::Cli);
    let reply = house.pipeline.answer(&other, &question.id(), Answer::Cancel).await.unwrap();
    assert!(matches!(reply, Reply::NoQuestion), "another tenant's question does not exist: {reply:?}");
    assert_eq!(house.question(&pending.tool_call_id).await.unwrap(), Some((question, None)));
    assert_eq!(yes(&house, &pending.tool_call_id).await.end.status(), "success");
}
