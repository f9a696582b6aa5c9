//! What is told of a call whose process died after it had acted.

use std::sync::Arc;

use haft::house::House;
use haft_runtime::{
    AutoApprove, CallId, CallState, ChangeState, End, Entry, ErrorCode, Journal, Outcome, ToolError, ToolOutput, Turn,
};
use serde_json::json;

use crate::{
    aside,
    stage::{Stage, call, kinds, request, success},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_was_complete_is_told_as_committed() {
    let stage = Stage::new();
    stage.put("a", "a\n");
    let dying = stage.house().await;
    let waiting = call(&dying, "move_file", json!({"from": "a", "to": "b"})).await;
    let id = waiting.tool_call_id;
    let turn = Turn::commit(id.clone());
    let changes = dying.workbench.show(&dying.scope, &id).await.unwrap();
    let mut foreseen = Outcome::refused("move_file", ToolError::new(ErrorCode::Internal, ""));
    foreseen.tool_call_id = id.clone();
    foreseen.end = End::Success { result: ToolOutput::default() };
    foreseen.changes = Some(changes);
    let entry = Entry {
        call: id.clone(),
        via: Arc::default(),
        opening: None,
        state: CallState::Executing,
        turn: Some(turn.clone()),
        outcome: Some(Arc::new(foreseen)),
        whole_output: None,
        result_of: None,
        events: Vec::new(),
    };
    dying.store.record(&dying.scope, entry).await.unwrap();
    dying.workbench.take(&dying.scope, &turn).await.unwrap();
    let next = stage.heir(dying, &id).await;
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

/// A call that was approved and ran aside, in a house that dies before it has told the end.
struct Dying {
    stage: Stage,
    house: House,
    id: CallId,
}

impl Dying {
    /// It has made `a` and the flagged `.envrc`, and the journal only knows that it was acting.
    async fn after_the_run() -> Self {
        let stage = Stage::new();
        let house = aside::house(&stage).await;
        let input = json!({"files": ["a", ".envrc"], "made": "before"});
        let id = call(&house, "aside", input.clone()).await.tool_call_id;
        let dying = Self { stage, house, id };
        let opening = Journal::find(&dying.house.store, &dying.house.scope, &dying.id).await.unwrap().unwrap().opening;
        // The same changes under the id of a call that could only be described.
        let id = CallId::new();
        let changes = dying.stage.settings.data.join("changes");
        std::fs::rename(changes.join(dying.id.as_str()), changes.join(id.as_str())).unwrap();
        let dying = Self { id, ..dying };
        let entry = Entry { opening: Some(opening), ..dying.acting(None) };
        dying.house.store.record(&dying.house.scope, entry).await.unwrap();
        dying
    }

    fn acting(&self, turn: Option<Turn>) -> Entry {
        let (call, state) = (self.id.clone(), CallState::Executing);
        Entry {
            call,
            via: Arc::default(),
            opening: None,
            state,
            turn,
            outcome: None,
            whole_output: None,
            result_of: None,
            events: Vec::new(),
        }
    }

    /// The journal also knows which turn it is about to take, and how it will have ended then.
    async fn about_to_commit(&self) -> Turn {
        let turn = Turn { paths: Some(vec!["a".into()]), ..Turn::commit(self.id.clone()) };
        let mut foreseen = Outcome::refused("aside", ToolError::new(ErrorCode::Internal, ""));
        foreseen.tool_call_id = self.id.clone();
        foreseen.end = End::Success { result: ToolOutput::default() };
        foreseen.changes = Some(self.house.workbench.show(&self.house.scope, &self.id).await.unwrap().without_diffs());
        let entry = Entry { outcome: Some(Arc::new(foreseen)), ..self.acting(Some(turn.clone())) };
        self.house.store.record(&self.house.scope, entry).await.unwrap();
        turn
    }

    /// Dies, and gives what the next process tells of the call.
    async fn told(self) -> (Stage, House, Outcome) {
        let next = self.stage.heir(self.house, &self.id).await;
        let record = Journal::find(&next.store, &next.scope, &self.id).await.unwrap().unwrap();
        (self.stage, next, record.outcome.unwrap())
    }
}

fn states(outcome: &Outcome) -> Vec<(String, ChangeState)> {
    let changes = outcome.changes.iter().flat_map(|changes| &changes.0);
    changes.map(|change| (change.path.clone(), change.state)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_died_before_its_commit_leaves_its_changes_staged() {
    let staged = [(".envrc".to_owned(), ChangeState::Staged), ("a".to_owned(), ChangeState::Staged)];
    let (stage, next, outcome) = Dying::after_the_run().await.told().await;
    let error = outcome.end.error().unwrap();
    assert_eq!((error.code, outcome.undoable), (ErrorCode::Interrupted, false));
    assert!(error.message.contains("may or may not have happened; Not applied yet"), "{}", error.message);
    assert_eq!((states(&outcome).as_slice(), stage.text("a")), (&staged[..], None));
    let mut commit = request(&next, "commit_call", json!({"callId": outcome.tool_call_id}));
    commit.auto_approve = AutoApprove::Everything;
    success(&next.pipeline.call(commit).await);
    assert_eq!(stage.text("a").as_deref(), Some("made aside\n"));

    let dying = Dying::after_the_run().await;
    dying.about_to_commit().await;
    let (stage, _next, outcome) = dying.told().await;
    let error = outcome.end.error().unwrap();
    assert!(error.message.contains("the commit had not begun"), "{}", error.message);
    assert_eq!((states(&outcome).as_slice(), stage.text("a")), (&staged[..], None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_died_after_its_commit_ends_as_foreseen_with_the_flagged_rest_staged() {
    let dying = Dying::after_the_run().await;
    let turn = dying.about_to_commit().await;
    dying.house.workbench.take(&dying.house.scope, &turn).await.unwrap();
    let (stage, _next, outcome) = dying.told().await;
    success(&outcome);
    let expected = [(".envrc".to_owned(), ChangeState::Staged), ("a".to_owned(), ChangeState::Committed)];
    assert_eq!((states(&outcome).as_slice(), outcome.undoable), (&expected[..], true));
    assert_eq!((stage.text("a").as_deref(), stage.text(".envrc")), (Some("made aside\n"), None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_died_at_work_leaves_nothing() {
    let dying = Dying::after_the_run().await;
    let folder = dying.stage.settings.data.join("changes").join(dying.id.as_str());
    std::fs::remove_file(folder.join("log.jsonl")).unwrap();
    let (_stage, _next, outcome) = dying.told().await;
    assert!(
        outcome.changes.is_none() && outcome.end.error().unwrap().message.ends_with("may or may not have happened")
    );
    assert!(!folder.exists(), "half a plan is nothing to anybody");
}
