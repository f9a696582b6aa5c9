//! Following, numbers and forgetting.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use haft_runtime::{
    CallId, CallState, End, Entry, ErrorCode, Journal, Questions, Scope, ToolError, ToolOutput, Trial, Turn, Via,
    Within,
};
use haft_store::{CallFilter, Durability, Store};
use jiff::SignedDuration;
use rusqlite::Connection;

use crate::database::is_elsewhere;
use crate::samples::{ended, here, later, new_store, now, open, opened, outcome, question, scope, success};

const SOON: Duration = Duration::from_secs(30);

fn done(tool: &str) -> Entry {
    let mut entry = opened(CallState::Ended);
    entry.opening.as_mut().unwrap().tool = tool.into();
    entry.events.extend(ended(&entry.call).events);
    Entry { outcome: Some(success(&entry.call, "done")), ..entry }
}

async fn next(follower: &mut haft_store::CallFollower) -> CallId {
    tokio::time::timeout(SOON, follower.next()).await.unwrap().unwrap().id
}

#[tokio::test(flavor = "multi_thread")]
async fn following_misses_and_repeats_nothing_while_others_write() {
    let (folder, store) = new_store().await;
    let mut follower = store.follow(&scope(), &here(), &CallFilter::default()).await.unwrap();
    let mut writers = Vec::new();
    for _ in 0..4 {
        let store = open(&folder).await;
        writers.push(tokio::spawn(async move {
            let mut made = BTreeSet::new();
            for number in 0..400 {
                let entry = done("read_file");
                made.insert(entry.call.clone());
                match number % 2 {
                    0 => store.record(&scope(), entry).await.unwrap(),
                    _ => store.record_later(&scope(), entry).await.unwrap(),
                }
            }
            store.close().await.unwrap();
            made
        }));
    }
    let mut told = BTreeSet::new();
    for _ in 0..1600 {
        assert!(told.insert(next(&mut follower).await), "a call was repeated");
    }
    let mut made = BTreeSet::new();
    for writer in writers {
        made.extend(writer.await.unwrap());
    }
    assert_eq!(told, made);
}

#[tokio::test]
async fn a_trial_is_recorded_and_counted_nowhere() {
    let (_folder, store) = new_store().await;
    let tried = |entry: Entry| {
        let mut entry = entry;
        let via = Via { trial: Some(Trial::Saved), ..Via::default() };
        entry.opening.as_mut().unwrap().caller.via = via.clone();
        Entry { via: Arc::new(via), ..entry }
    };
    let failed = |entry: Entry| {
        let error = ToolError::new(ErrorCode::Internal, "broken");
        Entry { outcome: Some(outcome(&entry.call, End::Error { error })), ..entry }
    };
    let (meant, trial, broken) = (failed(done("grep")), tried(failed(done("grep"))), tried(failed(done("glob"))));
    for entry in [&meant, &trial, &broken] {
        store.record(&scope(), entry.clone()).await.unwrap();
    }
    let used = store.tools_used(&scope(), &here(), None).await.unwrap();
    assert_eq!(used.iter().map(|tool| (tool.tool.as_str(), tool.calls)).collect::<Vec<_>>(), [("grep", 1)]);
    let last = async |tool| store.last_error(&scope(), &here(), (tool, None)).await.unwrap();
    assert_eq!(last("grep").await.unwrap().call, meant.call, "not the trial, which came later");
    assert!(last("glob").await.is_none());
    let runs = store.ended_calls_of(&scope(), ("grep", None), 10).await.unwrap();
    let trials: Vec<_> = runs.iter().map(|run| (&run.call, run.opening.caller.via.trial)).collect();
    assert_eq!(trials, [(&trial.call, Some(Trial::Saved)), (&meant.call, None)]);
    let older = store.ended_calls_of(&scope(), ("grep", Some(&trial.call)), 10).await.unwrap();
    assert_eq!(older.len(), 1);
}

#[tokio::test]
async fn a_late_record_of_an_early_call_is_told() {
    let (_folder, store) = new_store().await;
    let early = opened(CallState::Executing);
    let call = early.call.clone();
    store.record(&scope(), early).await.unwrap();
    let mut follower = store.follow(&scope(), &here(), &CallFilter::default()).await.unwrap();
    let other = done("read_file");
    store.record(&scope(), other.clone()).await.unwrap();
    store.record(&scope(), ended(&call)).await.unwrap();
    assert_eq!([next(&mut follower).await, next(&mut follower).await], [other.call, call]);
}

#[tokio::test]
async fn following_is_filtered_and_begins_with_the_last() {
    let (_folder, store) = new_store().await;
    let mut made = Vec::new();
    for tool in ["read_file", "grep", "read_file"] {
        let entry = done(tool);
        made.push(entry.call.clone());
        store.record(&scope(), entry).await.unwrap();
    }
    let elsewhere = Scope::local("elsewhere");
    let filter = CallFilter { tool: Some("read_file".into()), limit: 1, ..CallFilter::default() };
    let mut follower = store.follow(&scope(), &here(), &filter).await.unwrap();
    store.record(&elsewhere, done("read_file")).await.unwrap();
    store.record(&scope(), done("grep")).await.unwrap();
    let last = done("read_file");
    store.record(&scope(), last.clone()).await.unwrap();
    assert_eq!([next(&mut follower).await, next(&mut follower).await], [made[2].clone(), last.call]);
}

#[tokio::test]
async fn what_is_told_is_how_the_call_stood() {
    let (_folder, store) = new_store().await;
    let mut follower = store.follow(&scope(), &here(), &CallFilter::default()).await.unwrap();
    let mut asks = opened(CallState::Waiting);
    let call = asks.call.clone();
    asks.events.push((
        now(),
        haft_runtime::CallEvent::NeedsApproval { effect: haft_runtime::Effect::Write, reason: "it writes".into() },
    ));
    store.ask(&scope(), &question(&call), asks).await.unwrap();
    store.record(&scope(), ended(&call)).await.unwrap();
    // Both are read after it has ended.
    let (asked, over) = (follower.next().await.unwrap(), follower.next().await.unwrap());
    assert_eq!((asked.state, asked.status.as_deref(), asked.finished_at), (CallState::Waiting, Some("pending"), None));
    assert_eq!((over.state, over.status.as_deref(), over.duration_ms), (CallState::Ended, Some("success"), Some(7)));
}

#[tokio::test]
async fn numbers_are_counted_by_day_and_by_how_long_it_took() {
    let (_folder, store) = new_store().await;
    let yesterday = now() - SignedDuration::from_hours(24);
    for (ms, at, attempts) in [(3, now(), 1), (700, now(), 4), (20_000, yesterday, 2)] {
        let entry = done("read_file");
        let mut outcome = Arc::unwrap_or_clone(entry.outcome.clone().unwrap());
        (outcome.execution_time_ms, outcome.finished_at, outcome.attempts) = (ms, Some(at), attempts);
        outcome.cached = ms == 3;
        store.record(&scope(), Entry { outcome: Some(Arc::new(outcome)), ..entry }).await.unwrap();
    }
    let failed = opened(CallState::Executing);
    store.record(&scope(), failed.clone()).await.unwrap();
    let error = ToolError::new(ErrorCode::Conflict, "changed underneath");
    let end = Some(outcome(&failed.call, End::Error { error }));
    store.record(&scope(), Entry { outcome: end, ..later(&failed.call, CallState::Ended) }).await.unwrap();

    let all = store.tools_used(&scope(), &here(), None).await.unwrap();
    let read = &all[0];
    assert_eq!((read.calls, read.cached, read.retries, read.total_ms), (3, 1, 4, 20_703));
    assert_eq!(read.took.percentile(1), Some(3));
    assert!(read.took.percentile(50).unwrap().abs_diff(700) < 90, "{read:?}");
    assert!(read.took.percentile(99).unwrap().abs_diff(20_000) < 2600, "{read:?}");
    assert_eq!((all[1].tool.as_str(), all[1].error), ("write_file", 1));
    let today = store.tools_used(&scope(), &here(), Some(now())).await.unwrap();
    assert_eq!(today[0].calls, 2);
    store.forget_counters(&scope(), now()).await.unwrap();
    assert_eq!(store.tools_used(&scope(), &Within::Everything, None).await.unwrap()[0].calls, 2);
}

#[tokio::test]
async fn a_call_is_forgotten_with_all_that_belongs_to_it_unless_it_is_under_way() {
    let (_folder, store) = new_store().await;
    let mut old = done("read_file");
    old.whole_output = Some(ToolOutput { content: "long".into(), ..ToolOutput::default() });
    old.turn = Some(Turn::commit(old.call.clone()));
    let waits = opened(CallState::Waiting);
    let (call, waiting) = (old.call.clone(), waits.call.clone());
    store.record(&scope(), old).await.unwrap();
    store.ask(&scope(), &question(&waiting), waits).await.unwrap();
    assert!(store.old_calls(&scope(), now() - SignedDuration::from_secs(60), None, 10).await.unwrap().is_empty());
    let soon = now() + SignedDuration::from_secs(1);
    let found = store.old_calls(&scope(), soon, None, 10).await.unwrap();
    assert_eq!(found.iter().map(|old| (&old.id, &old.turn_of)).collect::<Vec<_>>(), [(&call, &Some(call.clone()))]);
    assert!(store.old_calls(&scope(), soon, Some(&call), 10).await.unwrap().is_empty());

    let held = store.holding(&scope(), &call).await.unwrap().unwrap();
    assert!(!held.in_use && !held.asked && held.last_turn <= now());
    assert!(store.holding(&scope(), &waiting).await.unwrap().unwrap().in_use);
    assert_eq!(store.kept_outputs(&scope(), None, 10).await.unwrap()[0].call, call);

    store.forget_calls(&scope(), &[call.clone(), waiting.clone()]).await.unwrap();
    assert_eq!(Journal::find(&store, &scope(), &call).await.unwrap(), None);
    assert!(store.events(&scope(), &call).await.unwrap().is_empty());
    assert!(store.kept_outputs(&scope(), None, 10).await.unwrap().is_empty());
    assert!(Questions::find(&store, &scope(), &waiting).await.unwrap().is_some(), "an open question stays");
    assert!(!store.events(&scope(), &waiting).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_database_of_somebody_else_is_left_alone() {
    if is_elsewhere() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("haft.db");
    let conn = Connection::open(&path).unwrap();
    conn.execute_batch("create table songs (name text)").unwrap();
    drop(conn);
    let before = std::fs::read(&path).unwrap();
    let err = Store::open(folder.path(), Durability::Normal).await.err().unwrap();
    assert!(err.to_string().contains("move it away"), "{err}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}
