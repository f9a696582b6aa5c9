//! Work that is done aside: what a yes to a run commits, and what is left when it is cut short.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use haft::{house::House, rules};
use haft_runtime::{
    Answer, ApprovedBy, AutoApprove, CallEvent, CallRequest, ChangeState, End, Evidence, Isolation, Journal, Outcome,
};
use serde_json::{Value, json};

use crate::{
    aside,
    stage::{Stage, answer, call, code, kinds, request, success, yes},
};

/// The paths of the outcome's changes and where each stands.
fn states(outcome: &Outcome) -> Vec<(&str, ChangeState)> {
    let changes = outcome.changes.iter().flat_map(|changes| &changes.0);
    changes.map(|change| (change.path.as_str(), change.state)).collect()
}

async fn in_mode_all(house: &House, tool: &str, input: Value) -> Outcome {
    let mut request = request(house, tool, input);
    request.auto_approve = AutoApprove::Everything;
    house.pipeline.call(request).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_yes_to_a_run_commits_what_it_made_but_for_what_is_flagged() {
    let stage = Stage::new();
    let house = aside::house(&stage).await;
    let files = ["a", ".envrc", "d/b", ".github/workflows/ci.yml"];
    let asked = call(&house, "aside", json!({"files": files, "made": "after"})).await;
    assert_eq!((asked.end.status(), stage.text("a")), ("pending", None));
    let done = yes(&house, &asked.tool_call_id).await;
    let (staged, committed) = (ChangeState::Staged, ChangeState::Committed);
    let left: Vec<&str> =
        states(&done).into_iter().filter(|(_, state)| *state == staged).map(|(path, _)| path).collect();
    assert!(left.contains(&".envrc") && left.contains(&".github/workflows/ci.yml"), "{left:?}");
    assert!(states(&done).contains(&("a", committed)) && states(&done).contains(&("d/b", committed)));
    assert_eq!(stage.text("d/b").as_deref(), Some("made aside\n"));
    assert_eq!((stage.text(".envrc"), done.isolation, done.undoable), (None, Isolation::Namespaces, true));
    let told = &success(&done).content;
    assert!(
        told.starts_with("[Not applied yet: `.envrc`")
            && told.contains("\n\ndone\n[changed ")
            && told.contains("commit_call"),
        "{told}"
    );
    let rest = in_mode_all(&house, "commit_call", json!({"callId": asked.tool_call_id, "paths": [".envrc"]})).await;
    success(&rest);
    assert!(stage.text(".envrc").is_some());
    success(&in_mode_all(&house, "undo_call", json!({"callId": asked.tool_call_id})).await);
    assert_eq!((stage.text("a"), stage.text(".envrc").is_some()), (None, true), "only its own turn is taken back");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_made_only_flagged_files_commits_nothing() {
    let stage = Stage::new();
    let house = aside::house(&stage).await;
    let done = in_mode_all(&house, "aside", json!({"files": [".envrc"], "made": "after"})).await;
    success(&done);
    assert_eq!((states(&done), done.undoable), (vec![(".envrc", ChangeState::Staged)], false));
    assert_eq!((stage.text(".envrc"), done.approved_by), (None, Some(ApprovedBy::Config)));
    let kinds = kinds(&house, &done.tool_call_id).await;
    assert!(kinds.contains(&"tool.staged".to_owned()) && !kinds.contains(&"changes.committed".to_owned()), "{kinds:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_files_were_touched_meanwhile_leaves_all_of_it_staged() {
    let stage = Stage::new();
    let house = aside::house(&stage).await;
    let overtaken = json!({"files": ["a", "b"], "made": "after", "ends": "overtaken"});
    let outcome = in_mode_all(&house, "aside", overtaken).await;
    assert_eq!((code(&outcome).as_str(), stage.text("b")), ("CONFLICT", None));
    assert_eq!(stage.text("a").as_deref(), Some("somebody's\n"));
    assert_eq!(states(&outcome), [("a", ChangeState::Staged), ("b", ChangeState::Staged)]);
    assert_eq!((outcome.isolation, outcome.undoable), (Isolation::Namespaces, false));
    success(&in_mode_all(&house, "commit_call", json!({"callId": outcome.tool_call_id, "paths": ["b"]})).await);
}

/// Who stops the work.
#[derive(PartialEq)]
enum Stops {
    ItsTime,
    Somebody,
}

/// The same for what is prepared and what is run: `made` says which.
async fn cut_short(made: &str, ends: &str, stops: Stops) -> (Stage, House, Outcome) {
    let stage = Stage::new();
    let house = aside::house(&stage).await;
    let mut wish = request(&house, "aside", json!({"files": ["a", "b"], "made": made, "ends": ends}));
    wish.auto_approve = AutoApprove::Everything;
    if stops == Stops::Somebody {
        wish.timeout = Some(Duration::from_secs(60));
        let cancel = wish.cancel.clone();
        wish.listener = Some(Arc::new(move |event| {
            if matches!(event, CallEvent::OutputAppended { .. }) {
                cancel.cancel();
            }
        }));
    }
    let outcome = house.pipeline.call(wish).await;
    (stage, house, outcome)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_cut_short_commits_nothing_and_can_be_committed_or_dropped_later() {
    for made in ["before", "after"] {
        for (ends, expected) in [
            ("at_a_limit", "RESOURCE_LIMIT"),
            ("when_stopped", "TIMEOUT"),
            ("when_stopped_and_unknown", "OUTCOME_UNKNOWN"),
        ] {
            let (stage, house, outcome) = cut_short(made, ends, Stops::ItsTime).await;
            let id = &outcome.tool_call_id;
            let error = outcome.end.error().unwrap();
            assert_eq!(error.code.to_string(), expected, "{made} {ends}: {error:?}");
            assert_eq!((&error.details["exitCode"], outcome.isolation), (&json!(137), Isolation::Namespaces));
            assert!(error.details["partialOutput"].as_str().unwrap().starts_with("at work"));
            assert!(error.message.contains("Not applied yet: `a`, `b`"), "{}", error.message);
            let both = vec![("a", ChangeState::Staged), ("b", ChangeState::Staged)];
            assert_eq!((states(&outcome), outcome.undoable, stage.text("a")), (both, false, None));
            let kinds = kinds(&house, id).await;
            assert!(kinds.contains(&"tool.staged".to_owned()), "{kinds:?}");
            let committed = in_mode_all(&house, "commit_call", json!({"callId": id, "paths": ["a"]})).await;
            success(&committed);
            let dropped = in_mode_all(&house, "discard_call", json!({"callId": id})).await;
            assert_eq!(success(&dropped).structured["discarded"], json!(["b"]));
            assert_eq!((stage.text("a").as_deref(), stage.text("b")), (Some("made aside\n"), None));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_cancels_finds_what_it_had_changed_so_far() {
    for made in ["before", "after"] {
        let (_stage, house, outcome) = cut_short(made, "when_stopped", Stops::Somebody).await;
        assert!(matches!(outcome.end, End::Cancelled { .. }), "{made}: {outcome:?}");
        assert_eq!(states(&outcome).len(), 2);
        let record = Journal::find(&house.store, &house.scope, &outcome.tool_call_id).await.unwrap().unwrap();
        assert_eq!(states(record.outcome.as_ref().unwrap()), states(&outcome));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_does_not_stop_is_left_behind() {
    let (_stage, _house, outcome) = cut_short("before", "never", Stops::ItsTime).await;
    assert_eq!((code(&outcome).as_str(), outcome.changes.is_none()), ("TIMEOUT", true));
}

/// Everything that the listener of a call hears of its output.
fn overheard(request: &mut CallRequest) -> Arc<Mutex<String>> {
    let heard = Arc::new(Mutex::new(String::new()));
    let ear = heard.clone();
    request.listener = Some(Arc::new(move |event| {
        if let CallEvent::OutputAppended { chunk, .. } = event {
            ear.lock().unwrap().push_str(chunk);
        }
    }));
    heard
}

#[tokio::test(flavor = "multi_thread")]
async fn where_reads_are_asked_for_nothing_is_heard_before_the_yes() {
    let stage = Stage::new();
    let house = aside::house(&stage).await;
    let wish = || {
        let mut wish = request(&house, "aside", json!({"files": [], "made": "before"}));
        wish.auto_approve = AutoApprove::Nothing;
        wish.wait = Duration::from_secs(60);
        let heard = overheard(&mut wish);
        (wish, heard)
    };
    for (answered, expected) in [
        (Answer::Reject { message: None }, ("rejected", "")),
        (Answer::Approve { paths: None }, ("success", "at work")),
    ] {
        let (wish, heard) = wish();
        let id = wish.id.clone();
        let calling = tokio::spawn(house.pipeline.call(wish));
        while house.question(&id).await.unwrap().is_none() {
            tokio::task::yield_now().await;
        }
        assert_eq!(*heard.lock().unwrap(), "");
        answer(&house, &id, answered).await;
        let outcome = calling.await.unwrap();
        assert_eq!((outcome.end.status(), heard.lock().unwrap().as_str()), expected);
        assert!(!serde_json::to_string(&outcome).unwrap().contains("at work"));
        let kinds = kinds(&house, &id).await;
        assert!(kinds.contains(&"tool.output_appended".to_owned()), "the journal has it all the same: {kinds:?}");
    }
    let mut stopped = request(&house, "aside", json!({"files": ["a"], "made": "before", "ends": "at_a_limit"}));
    stopped.auto_approve = AutoApprove::Nothing;
    let heard = overheard(&mut stopped);
    let outcome = house.pipeline.call(stopped).await;
    assert_eq!((code(&outcome).as_str(), heard.lock().unwrap().as_str()), ("RESOURCE_LIMIT", ""));
    assert!(!outcome.end.error().unwrap().details.contains_key("partialOutput"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_about_paths_holds_back_what_a_run_made_there() {
    let mut stage = Stage::new();
    let table: toml::Table = "[[rule]]\ndecision = 'deny'\nbounds = { paths = ['secret/**'] }".parse().unwrap();
    stage.settings.rules = rules::read(&table["rule"], "your settings").unwrap();
    let house = aside::house(&stage).await;
    let done = in_mode_all(&house, "aside", json!({"files": ["a", "secret/b"], "made": "after"})).await;
    success(&done);
    assert!(states(&done).contains(&("secret/b", ChangeState::Staged)) && stage.text("secret/b").is_none());
    assert!(stage.text("a").is_some());
    let late = in_mode_all(&house, "commit_call", json!({"callId": done.tool_call_id, "paths": ["secret/b"]})).await;
    assert_eq!((code(&late).as_str(), stage.text("secret/b")), ("FORBIDDEN", None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_staged_what_it_ran_is_decided_again_as_what_could_only_be_described() {
    let stage = Stage::new();
    let house = aside::house(&stage).await;
    let done = in_mode_all(&house, "aside", json!({"files": ["a"], "made": "after"})).await;
    let aside = house.store.past(&house.scope, &done.tool_call_id).await.unwrap().unwrap();
    assert!(aside.staged.is_some() && aside.staged_late);
    let asked = call(&house, "aside", json!({"files": ["b"], "made": "before"})).await;
    yes(&house, &asked.tool_call_id).await;
    let staged = house.store.past(&house.scope, &asked.tool_call_id).await.unwrap().unwrap();
    assert!(staged.staged.is_some() && !staged.staged_late);
    let tool = house.tools().get("aside");
    for (past, plain) in [(&aside, true), (&staged, false)] {
        let replay = past.replay(tool.as_deref()).unwrap();
        assert_eq!(matches!(replay.evidence(), Evidence::Plain(_)), plain);
    }
}
