//! What is told of a call whose process died after it had acted.

use haft_runtime::{
    AutoApprove, CallState, ChangeState, End, Entry, ErrorCode, Journal, Outcome, ToolError, ToolOutput, Turn,
};
use serde_json::json;

use crate::stage::{Stage, call, kinds, request, success};

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_was_complete_is_told_as_committed() {
    let stage = Stage::new();
    stage.put("a", "a\n");
    let dying = stage.house().await;
    let waiting = call(&dying, "move_file", json!({"from": "a", "to": "b"})).await;
    let id = waiting.tool_call_id;
    let turn = Turn::commit(id.clone());
    let changes = dying.workbench.show(&id).await.unwrap();
    let mut foreseen = Outcome::refused("move_file", ToolError::new(ErrorCode::Internal, ""));
    foreseen.tool_call_id = id.clone();
    foreseen.end = End::Success { result: ToolOutput::default() };
    foreseen.changes = Some(changes);
    let entry = Entry {
        call: id.clone(),
        opening: None,
        state: CallState::Executing,
        turn: Some(turn.clone()),
        outcome: Some(foreseen),
        whole_output: None,
        events: Vec::new(),
    };
    dying.store.record(&dying.scope, entry).await.unwrap();
    dying.workbench.take(&turn).await.unwrap();
    drop(dying);
    let next = stage.house().await;
    assert_eq!(stage.text("b").as_deref(), Some("a\n"));
    let told = kinds(&next, &id).await;
    let end: Vec<&str> = told.iter().rev().take(2).rev().map(String::as_str).collect();
    assert_eq!(end, ["changes.committed", "tool.completed"], "{told:?}");
    let record = Journal::find(&next.store, &next.scope, &id).await.unwrap().unwrap();
    let outcome = record.outcome.unwrap();
    success(&outcome);
    let changes = outcome.changes.unwrap();
    assert_eq!((changes.0[0].from.as_deref(), changes.0[0].state), (Some("a"), ChangeState::Committed));
    assert!(outcome.undoable);
    let mut undo = request(&next, "undo_call", json!({"callId": id}));
    undo.auto_approve = AutoApprove::Everything;
    success(&next.pipeline.call(undo).await);
    assert_eq!(stage.text("a").as_deref(), Some("a\n"));
}
