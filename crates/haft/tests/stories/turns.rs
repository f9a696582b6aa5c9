//! Undo, redo, and what a crash leaves behind.

use haft_runtime::{AutoApprove, Journal};
use serde_json::json;

use crate::stage::{Stage, call, code, request, success};

async fn in_mode_all(house: &haft::house::House, tool: &str, input: serde_json::Value) -> haft_runtime::Outcome {
    let mut request = request(house, tool, input);
    request.auto_approve = AutoApprove::Everything;
    house.pipeline.call(request).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undo_can_be_undone_again_and_again() {
    let stage = Stage::new();
    stage.put("a", "old\n");
    let house = stage.house().await;
    let written = in_mode_all(&house, "write_file", json!({"path": "a", "content": "new\n"})).await;
    let mut last = written.tool_call_id;
    for expected in ["old\n", "new\n", "old\n", "new\n"] {
        let turned = in_mode_all(&house, "undo_call", json!({"callId": last})).await;
        success(&turned);
        assert!(turned.undoable);
        assert_eq!(stage.text("a").as_deref(), Some(expected));
        last = turned.tool_call_id;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_undone_already_cannot_be_undone_twice() {
    let stage = Stage::new();
    let house = stage.house().await;
    let written = in_mode_all(&house, "write_file", json!({"path": "a", "content": "a\n"})).await;
    let id = written.tool_call_id;
    success(&in_mode_all(&house, "undo_call", json!({"callId": id})).await);
    let twice = in_mode_all(&house, "undo_call", json!({"callId": id})).await;
    assert_eq!(twice.end.status(), "error", "{twice:?}");
    assert_eq!(stage.text("a"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_undone_out_of_order_do_not_lose_anything() {
    let stage = Stage::new();
    stage.put("a", "0\n");
    let house = stage.house().await;
    let first = in_mode_all(&house, "write_file", json!({"path": "a", "content": "1\n"})).await;
    let second = in_mode_all(&house, "write_file", json!({"path": "a", "content": "2\n"})).await;
    let early = in_mode_all(&house, "undo_call", json!({"callId": first.tool_call_id})).await;
    assert_eq!(code(&early), "CONFLICT", "the second write came after it");
    assert_eq!(stage.text("a").as_deref(), Some("2\n"));
    success(&in_mode_all(&house, "undo_call", json!({"callId": second.tool_call_id})).await);
    success(&in_mode_all(&house, "undo_call", json!({"callId": first.tool_call_id})).await);
    assert_eq!(stage.text("a").as_deref(), Some("0\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_dies_leaves_interrupted_calls_and_touches_nobody_else_s() {
    let stage = Stage::new();
    let living = stage.house().await;
    let waiting = call(&living, "write_file", json!({"path": "b", "content": "b\n"})).await;
    let dying = stage.house().await;
    let mut entry = haft_runtime::Entry {
        call: haft_runtime::CallId::new(),
        via: std::sync::Arc::default(),
        opening: Some(haft_runtime::Opening {
            tool: "write_file".into(),
            input: json!({"path": "a", "content": "a\n"}),
            parent: None,
            caller: dying.caller.record(),
            auto_approve: AutoApprove::Reads,
            at: jiff::Timestamp::now(),
        }),
        state: haft_runtime::CallState::Preparing,
        turn: None,
        outcome: None,
        whole_output: None,
        result_of: None,
        events: Vec::new(),
    };
    dying.store.record(&dying.scope, entry.clone()).await.unwrap();
    let theirs = entry.call.clone();
    entry.call = haft_runtime::CallId::new();
    living.store.record(&living.scope, entry.clone()).await.unwrap();
    let next = stage.heir(dying, &theirs).await;
    let ended = next.store.find_call(&theirs).await;
    assert_eq!(code(&ended.outcome.unwrap()), "INTERRUPTED");
    let lives = next.store.find_call(&entry.call).await;
    assert_eq!(lives.state, haft_runtime::CallState::Preparing, "its owner lives");
    let waits = next.store.find_call(&waiting.tool_call_id).await;
    assert_eq!(waits.state, haft_runtime::CallState::Waiting);
}

trait FindCall {
    async fn find_call(&self, call: &haft_runtime::CallId) -> haft_runtime::CallRecord;
}

impl FindCall for haft_store::Store {
    async fn find_call(&self, call: &haft_runtime::CallId) -> haft_runtime::CallRecord {
        let everywhere = haft_runtime::Scope::local("");
        Journal::find(self, &everywhere, call).await.unwrap().unwrap()
    }
}
