//! No tenant and no workspace sees another's.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use haft::house::OwnerGuard;
use haft_runtime::{
    Answer, AutoApprove, Caller, CallerId, CallerKind, CallerRecord, Doors, ErrorCode, Guard, HouseWide, Isolation,
    Journal, Limits, OnePolicy, Permissions, Pipeline, Policy, Question, Questions, Reply, Scope, Source, TenantId,
    ToolError, ToolSpec, Within,
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

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_uses_only_what_the_permissions_name() {
    let stage = Stage::new();
    stage.put("a", "a\n");
    let house = stage.house().await;
    let reads = Permissions::only(["workspace.read".to_owned()]);
    let mut wish = request(&house, "read_file", json!({"path": "a"}));
    wish.caller.permissions = reads.clone();
    assert_eq!(house.pipeline.call(wish).await.end.status(), "success");
    let mut wish = request(&house, "write_file", json!({"path": "b", "content": "b\n"}));
    wish.caller.permissions = reads;
    assert_eq!(code(&house.pipeline.call(wish).await), "FORBIDDEN");
}

/// Lets the owner do everything, but change nothing unasked.
struct Cautious(OwnerGuard);

impl Guard for Cautious {
    fn permit<'a>(&'a self, caller: &'a Caller, tool: &'a ToolSpec) -> BoxFuture<'a, Result<(), ToolError>> {
        self.0.permit(caller, tool)
    }

    fn may_answer<'a>(&'a self, caller: &'a Caller, question: &'a Question) -> BoxFuture<'a, Result<(), ToolError>> {
        self.0.may_answer(caller, question)
    }

    fn most_unasked(&self, _caller: &Caller) -> AutoApprove {
        AutoApprove::Reads
    }

    fn permissions_of<'a>(
        &'a self,
        scope: &'a Scope,
        recorded: &'a CallerRecord,
    ) -> BoxFuture<'a, Result<Permissions, ToolError>> {
        self.0.permissions_of(scope, recorded)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_lets_more_happen_unasked_than_the_guard_does() {
    let stage = Stage::new();
    let house = stage.house().await;
    let rules = Policy::without_rules(Isolation::None);
    let pipeline = Pipeline::new(Doors {
        catalog: house.catalog.clone(),
        guard: Arc::new(Cautious(OwnerGuard::new(house.scope.clone()))),
        workbench: house.workbench.clone(),
        questions: Arc::new(house.store.clone()),
        journal: Arc::new(house.store.clone()),
        deliveries: Vec::new(),
        house: HouseWide::of_house(house.here.clone()),
        policies: Arc::new(OnePolicy::new(rules)),
        limits: Limits::default(),
        spans: None,
    });
    let mut wish = request(&house, "write_file", json!({"path": "a", "content": "a\n"}));
    wish.auto_approve = AutoApprove::Everything;
    let outcome = pipeline.call(wish).await;
    assert_eq!((outcome.end.status(), stage.text("a")), ("pending", None));
    let record = Journal::find(&house.store, &house.scope, &outcome.tool_call_id).await.unwrap().unwrap();
    assert_eq!(record.opening.auto_approve, AutoApprove::Reads, "the journal knows what held");
}
