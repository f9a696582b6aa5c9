//! Questions and answers: who may answer, what an answer sets going, and what happens when nobody does.

use std::time::Duration;

use haft_runtime::{Answer, ApprovedBy, CallId, ChangeState, End, Evidence, Reply};
use serde_json::json;

use crate::stage::{Stage, ann, answer, call, code, counted, kinds, request, start_waiting, success, yes};

#[tokio::test(flavor = "multi_thread")]
async fn reading_needs_nobody_and_is_recorded_behind_the_answer() {
    let stage = Stage::new();
    stage.put("a.txt", "hello\n");
    let house = stage.house().await;
    let outcome = call(&house, "read_file", json!({"path": "a.txt"})).await;
    assert_eq!(success(&outcome).structured["content"], "hello\n");
    assert_eq!(outcome.approved_by, Some(ApprovedBy::Auto));
    house.close().await.unwrap();
    let house = stage.house().await;
    assert_eq!(
        kinds(&house, &outcome.tool_call_id).await,
        ["tool.call", "tool.approved", "tool.started", "tool.completed"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_waiting_owner_hears_an_answer_from_another_process() {
    let stage = Stage::new();
    let (owner, other) = (stage.house().await, stage.house().await);
    let (id, waiting) =
        start_waiting(&owner, request(&owner, "write_file", json!({"path": "a", "content": "a\n"}))).await;
    assert_eq!(stage.text("a"), None);
    let told = yes(&other, &id).await;
    let outcome = waiting.await.unwrap();
    assert_eq!(told, outcome, "whoever answered learns how it ended");
    assert_eq!(outcome.approved_by, Some(ApprovedBy::User));
    assert_eq!(stage.text("a").as_deref(), Some("a\n"));
    assert_eq!(
        kinds(&other, &id).await,
        [
            "tool.call",
            "tool.staged",
            "tool.needs_approval",
            "tool.approved",
            "tool.started",
            "changes.committed",
            "tool.completed"
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_answers_carries_on_a_call_whose_owner_is_gone() {
    let stage = Stage::new();
    let owner = stage.house().await;
    let pending = call(&owner, "write_file", json!({"path": "a", "content": "a\n"})).await;
    assert_eq!(pending.end.status(), "pending");
    drop(owner);
    let other = stage.house().await;
    let outcome = yes(&other, &pending.tool_call_id).await;
    assert_eq!(success(&outcome).structured["created"], true);
    assert_eq!(stage.text("a").as_deref(), Some("a\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_was_handed_back_is_carried_on_though_its_process_lives() {
    let stage = Stage::new();
    let (owner, other) = (stage.house().await, stage.house().await);
    let pending = call(&owner, "write_file", json!({"path": "a", "content": "a\n"})).await;
    yes(&other, &pending.tool_call_id).await;
    assert_eq!(stage.text("a").as_deref(), Some("a\n"));
    let late = answer(&owner, &pending.tool_call_id, Answer::Reject { message: None }).await;
    assert!(matches!(late, Reply::TooLate(first) if first.by.name == "ann"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_no_keeps_everything_and_hands_on_the_words() {
    let stage = Stage::new();
    stage.put("a", "keep\n");
    let house = stage.house().await;
    let pending = call(&house, "delete_file", json!({"path": "a"})).await;
    let no = Answer::Reject { message: Some("I need it".into()) };
    let outcome = counted(answer(&house, &pending.tool_call_id, no).await);
    let End::Rejected { user_message, .. } = &outcome.end else { panic!("{outcome:?}") };
    assert_eq!(user_message.as_deref(), Some("I need it"));
    assert_eq!(code(&outcome), "REJECTED");
    assert_eq!(stage.text("a").as_deref(), Some("keep\n"));
    let changes = house.workbench.show(&house.scope, &pending.tool_call_id).await.unwrap();
    assert!(changes.0.iter().all(|change| change.state == ChangeState::Discarded), "{changes:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_answering_in_time_is_a_no() {
    let mut stage = Stage::new();
    stage.settings.expire = Duration::ZERO;
    let house = stage.house().await;
    let pending = call(&house, "write_file", json!({"path": "a", "content": "a\n"})).await;
    let id = match &pending.end {
        End::Pending { pending } => pending.pending_tool_call_id.clone(),
        _ => pending.tool_call_id.clone(),
    };
    drop(house);
    let house = stage.house().await;
    let record = haft_runtime::Journal::find(&house.store, &house.scope, &id).await.unwrap().unwrap();
    assert_eq!(code(&record.outcome.unwrap()), "APPROVAL_EXPIRED");
    assert_eq!(stage.text("a"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edited_input_is_a_call_of_its_own() {
    let stage = Stage::new();
    let house = stage.house().await;
    let pending = call(&house, "write_file", json!({"path": "wrong", "content": "x\n"})).await;
    let edit = Answer::Edit { input: json!({"path": "right", "content": "x\n"}) };
    let (question, _) = house.question(&pending.tool_call_id).await.unwrap().unwrap();
    let input = json!({"path": "right", "content": "x\n"});
    let preview = house.pipeline.preview_edit(&ann(&house), &question, &input).await.unwrap();
    let Some(Evidence::Staged { changes, .. }) = preview.evidence() else { panic!("it is shown: {preview:?}") };
    assert_eq!(
        (changes.paths(), stage.text("right")),
        (vec!["right".to_owned()], None),
        "nothing is applied by looking"
    );
    let child = counted(answer(&house, &pending.tool_call_id, edit).await);
    assert_ne!(child.tool_call_id, pending.tool_call_id);
    assert_eq!(success(&child).metadata["args_modified"], true, "the edit was the yes");
    assert_eq!((stage.text("wrong"), stage.text("right").as_deref()), (None, Some("x\n")));
    let waited = call(&house, "wait_call", json!({"callId": pending.tool_call_id, "timeoutMs": 0})).await;
    assert_eq!(success(&waited).structured["status"], "success", "waiting for the parent leads to the child");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_caller_of_an_edited_call_gets_the_child_s_outcome() {
    let stage = Stage::new();
    let (owner, other) = (stage.house().await, stage.house().await);
    let (id, waiting) =
        start_waiting(&owner, request(&owner, "write_file", json!({"path": "wrong", "content": "x\n"}))).await;
    let answering = {
        let id = id.clone();
        tokio::spawn(async move {
            answer(&other, &id, Answer::Edit { input: json!({"path": "right", "content": "y\n"}) }).await
        })
    };
    let outcome = waiting.await.unwrap();
    let told = success(&outcome);
    let input = json!({"path": "right", "content": "y\n"});
    assert_eq!((&told.metadata["args_modified"], &told.structured["argsModified"]), (&json!(true), &input));
    assert!(told.content.contains(&format!("[a person changed your input before approving it; it ran with {input}]")));
    assert_eq!(owner.store.children(&owner.scope, &id).await.unwrap(), std::slice::from_ref(&outcome.tool_call_id));
    assert_eq!(stage.text("right").as_deref(), Some("y\n"));
    answering.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_that_deletes_what_its_card_did_not_show_is_asked_about() {
    let stage = Stage::new();
    let house = stage.house().await;
    for name in ["seen", "unseen"] {
        stage.put(name, "x\n");
    }
    let pending = call(&house, "delete_file", json!({"path": "seen"})).await;
    let edit = Answer::Edit { input: json!({"path": "unseen"}) };
    let child = counted(answer(&house, &pending.tool_call_id, edit).await);
    let End::Pending { pending: waiting } = &child.end else { panic!("it is asked about: {child:?}") };
    assert_eq!(stage.text("unseen").as_deref(), Some("x\n"));
    yes(&house, &waiting.pending_tool_call_id).await;
    assert_eq!((stage.text("seen").as_deref(), stage.text("unseen")), (Some("x\n"), None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slip_in_an_edited_input_leaves_the_question_open() {
    let stage = Stage::new();
    let house = stage.house().await;
    let pending = call(&house, "write_file", json!({"path": "a", "content": "x\n"})).await;
    let call = &pending.tool_call_id;
    let (question, _) = house.question(call).await.unwrap().unwrap();
    for (input, code) in [
        (json!({"path": 5, "content": "y\n"}), "INVALID_ARGS"),
        (json!({"path": "a"}), "INVALID_ARGS"),
        (json!({"path": "../outside", "content": "y\n"}), "INVALID_PATH"),
        (json!({"path": "no/such/folder", "content": "y\n", "createDirs": false}), "FILE_NOT_FOUND"),
    ] {
        let slip = house.pipeline.answer(&ann(&house), &question.id(), Answer::Edit { input }).await.unwrap_err();
        assert_eq!(slip.code.to_string(), code, "{slip}");
    }
    assert!(house.question(call).await.unwrap().unwrap().1.is_none(), "it was closed by a slip");
    success(&yes(&house, call).await);
    assert_eq!(stage.text("a").as_deref(), Some("x\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_underneath_is_a_conflict_and_nothing_is_lost() {
    let stage = Stage::new();
    stage.put("a", "old\n");
    let house = stage.house().await;
    let pending = call(&house, "write_file", json!({"path": "a", "content": "mine\n"})).await;
    stage.put("a", "yours\n");
    let outcome = yes(&house, &pending.tool_call_id).await;
    assert_eq!(code(&outcome), "CONFLICT");
    assert_eq!(stage.text("a").as_deref(), Some("yours\n"));
    let dropped = call(&house, "discard_call", json!({"callId": pending.tool_call_id})).await;
    assert_eq!(dropped.end.status(), "pending", "dropping is asked for");
    let dropped = yes(&house, &dropped.tool_call_id).await;
    assert_eq!(success(&dropped).structured["discarded"], json!(["a"]));
    assert_eq!(stage.text("a").as_deref(), Some("yours\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn some_of_the_changes_can_be_committed_and_the_rest_later() {
    let stage = Stage::new();
    let house = stage.house().await;
    let input = json!({"path": "d/a", "content": "a\n", "createDirs": true});
    let pending = call(&house, "write_file", input).await;
    let some = Answer::Approve { paths: Some(vec!["d".into()]) };
    let outcome = counted(answer(&house, &pending.tool_call_id, some).await);
    let states: Vec<_> = outcome.changes.unwrap().0.iter().map(|change| (change.path.clone(), change.state)).collect();
    assert_eq!(states, [("d".to_owned(), ChangeState::Committed), ("d/a".to_owned(), ChangeState::Staged)]);
    assert!(stage.path("d").is_dir() && stage.text("d/a").is_none());
    let rest = call(&house, "commit_call", json!({"callId": pending.tool_call_id})).await;
    let rest = yes(&house, &rest.tool_call_id).await;
    let told = &success(&rest).structured;
    assert_eq!((&told["committed"], &told["left"], &told["changed"]), (&json!(["d/a"]), &json!([]), &json!(["d/a"])));
    assert_eq!(stage.text("d/a").as_deref(), Some("a\n"));
    let undone = call(&house, "undo_call", json!({"callId": rest.tool_call_id})).await;
    yes(&house, &undone.tool_call_id).await;
    assert!(stage.path("d").is_dir() && stage.text("d/a").is_none(), "only the late commit is taken back");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_the_call_does_not_touch_cannot_be_committed() {
    let stage = Stage::new();
    let house = stage.house().await;
    let pending = call(&house, "write_file", json!({"path": "a", "content": "a\n"})).await;
    let some = Answer::Approve { paths: Some(vec!["b".into()]) };
    let outcome = counted(answer(&house, &pending.tool_call_id, some).await);
    assert_eq!(outcome.end.status(), "error", "{outcome:?}");
    assert_eq!((stage.text("a"), stage.text("b")), (None, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn there_is_nothing_to_answer_where_nothing_was_asked() {
    let stage = Stage::new();
    let house = stage.house().await;
    let reply = answer(&house, &CallId::new(), Answer::Approve { paths: None }).await;
    assert!(matches!(reply, Reply::NoQuestion));
}
