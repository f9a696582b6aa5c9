//! Answers that are given again: only to the same caller, only unasked, only while they hold.

use std::{fs, sync::Arc};

use haft::house::House;
use haft_runtime::{ApprovedBy, AutoApprove, Caller, Outcome, Scope, Source, TenantId};
use serde_json::{Value, json};

use crate::stage::{Stage, call, kinds, request, success, yes};

/// File systems whose stamps tell all; elsewhere every file is read anew.
const KNOWN: &[i64] = &[0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010];

fn remembers(stage: &Stage) -> bool {
    KNOWN.contains(&rustix::fs::statfs(stage.path("")).unwrap().f_type)
}

async fn read(house: &House, input: Value) -> Outcome {
    let outcome = call(house, "read_file", input).await;
    success(&outcome);
    outcome
}

fn text(outcome: &Outcome) -> &str {
    success(outcome).structured["content"].as_str().unwrap()
}

/// Reads until a file that was just written has come to rest.
async fn settle(stage: &Stage, house: &House, input: Value) {
    while remembers(stage) && !read(house, input.clone()).await.cached {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_read_is_answered_again_and_still_recorded() {
    let stage = Stage::new();
    stage.put("a", "one\n");
    let house = stage.house().await;
    settle(&stage, &house, json!({"path": "a"})).await;
    let again = read(&house, json!({"lineNumbers": true, "path": "a"})).await;
    assert_eq!((again.cached, text(&again)), (remembers(&stage), "one\n"), "the same in other words");
    assert_eq!(again.attempts, u32::from(!again.cached), "nothing was tried");
    house.close().await.unwrap();
    let house = stage.house().await;
    let record = haft_runtime::Journal::find(&house.store, &house.scope, &again.tool_call_id).await.unwrap().unwrap();
    assert_eq!(record.outcome.unwrap(), again);
    if again.cached {
        assert_eq!(kinds(&house, &again.tool_call_id).await, ["tool.call", "tool.approved", "tool.completed"]);
    }
    let counted = house.store.tools_used(&house.scope, &house.here, None).await.unwrap();
    let rows = house
        .store
        .calls(&house.scope, &house.here, &haft_store::CallFilter { limit: 10_000, ..Default::default() })
        .await;
    assert_eq!(counted[0].calls, i64::try_from(rows.unwrap().len()).unwrap(), "each is counted");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_by_anybody_is_seen_at_once() {
    let stage = Stage::new();
    stage.put("a", "one\n");
    let (house, other) = (stage.house().await, stage.house().await);
    let input = json!({"path": "a"});
    settle(&stage, &house, input.clone()).await;
    stage.put("a", "two\n");
    assert_eq!(text(&read(&house, input.clone()).await), "two\n", "another program, the same size");
    settle(&stage, &house, input.clone()).await;
    let pending = call(&other, "write_file", json!({"path": "a", "content": "six\n"})).await;
    assert_eq!(text(&read(&house, input.clone()).await), "two\n", "staged is not committed");
    yes(&other, &pending.tool_call_id).await;
    assert_eq!(text(&read(&house, input.clone()).await), "six\n", "another haft");
    settle(&stage, &house, input.clone()).await;
    let undo = call(&house, "undo_call", json!({"callId": pending.tool_call_id})).await;
    yes(&house, &undo.tool_call_id).await;
    assert_eq!(text(&read(&house, input.clone()).await), "two\n", "taken back: the old inode with its old times");
    settle(&stage, &house, input.clone()).await;
    fs::remove_file(stage.path("a")).unwrap();
    assert_eq!(call(&house, "read_file", input).await.end.status(), "error");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_leads_elsewhere_now_is_read_there() {
    let stage = Stage::new();
    stage.put("a", "one\n");
    stage.put("b", "two\n");
    std::os::unix::fs::symlink("a", stage.path("link")).unwrap();
    let house = stage.house().await;
    settle(&stage, &house, json!({"path": "link"})).await;
    settle(&stage, &house, json!({"path": "b"})).await;
    fs::remove_file(stage.path("link")).unwrap();
    std::os::unix::fs::symlink("b", stage.path("link")).unwrap();
    assert_eq!(text(&read(&house, json!({"path": "link"})).await), "two\n");
    fs::hard_link(stage.path("b"), stage.path(".env")).unwrap();
    let refused = call(&house, "read_file", json!({"path": "b"})).await;
    assert_eq!(refused.end.status(), "error", "what became a secret meanwhile is one");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_wants_it_fresh_or_must_ask_gets_no_old_answer() {
    let stage = Stage::new();
    stage.put("a", "one\n");
    let house = stage.house().await;
    settle(&stage, &house, json!({"path": "a"})).await;
    let mut wish = request(&house, "read_file", json!({"path": "a"}));
    wish.fresh = true;
    let fresh = house.pipeline.call(wish).await;
    assert_eq!((fresh.cached, fresh.attempts), (false, 1));
    let mut wish = request(&house, "read_file", json!({"path": "a"}));
    wish.auto_approve = AutoApprove::Nothing;
    let pending = house.pipeline.call(wish).await;
    assert_eq!(pending.end.status(), "pending");
    let asked = yes(&house, &pending.tool_call_id).await;
    assert_eq!((asked.cached, asked.approved_by), (false, Some(ApprovedBy::User)));
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_gets_another_caller_s_answer() {
    let stage = Stage::new();
    stage.put("a", "one\n");
    let house = stage.house().await;
    settle(&stage, &house, json!({"path": "a"})).await;
    let mut wish = request(&house, "read_file", json!({"path": "a"}));
    wish.caller = Caller { name: "another client".into(), ..house.caller.clone() };
    assert!(house.pipeline.call(wish).await.cached, "a name is only shown");
    let mut wish = request(&house, "read_file", json!({"path": "a"}));
    wish.caller = Caller { source: Source::Mcp, ..house.caller.clone() };
    assert!(!house.pipeline.call(wish).await.cached);
    let mut wish = request(&house, "read_file", json!({"path": "a"}));
    let scope = Scope::of_house(TenantId::parse("other").unwrap(), house.scope.workspace().cloned());
    wish.caller = Caller::owner("eve", scope, Source::Cli);
    assert_eq!(house.pipeline.call(wish).await.end.status(), "error", "the guard comes first");
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_and_an_editor_at_once_see_only_what_is_there() {
    let stage = Arc::new(Stage::new());
    stage.put("a", "0\n");
    let house = Arc::new(stage.house().await);
    let written = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let editor = {
        let (stage, written) = (stage.clone(), written.clone());
        tokio::task::spawn_blocking(move || {
            for version in 1..300_u32 {
                let other = stage.path("new");
                fs::write(&other, format!("{version}\n")).unwrap();
                fs::rename(&other, stage.path("a")).unwrap();
                written.store(version, std::sync::atomic::Ordering::SeqCst);
            }
        })
    };
    while !editor.is_finished() {
        let at_least = written.load(std::sync::atomic::Ordering::SeqCst);
        let outcome = read(&house, json!({"path": "a"})).await;
        let seen: u32 = text(&outcome).trim().parse().unwrap();
        assert!(seen >= at_least, "{seen} was read after {at_least} had been written");
    }
    assert_eq!(text(&read(&house, json!({"path": "a"})).await), "299\n");
}
