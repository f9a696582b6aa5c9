//! Many entries at once: all there, in order, and only the guilty one fails.

use std::{fs, time::Duration};

use haft_runtime::{CallEvent, CallState, Entry, ErrorCode, Journal};
use haft_store::{CallFilter, StoreError};

use crate::{
    database::is_elsewhere,
    samples::{ended, here, house, later, new_store, now, open, opened, scope, success},
};

fn attempt(attempt: u32) -> Vec<(jiff::Timestamp, CallEvent)> {
    vec![(now(), CallEvent::Started { attempt })]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn ten_thousand_entries_of_many_tasks_are_all_there_and_in_order() {
    const TASKS: usize = 64;
    const ENTRIES: u32 = 157;
    let (_folder, store) = new_store().await;
    let mut tasks = Vec::new();
    for _ in 0..TASKS {
        let store = store.clone();
        tasks.push(tokio::spawn(async move {
            let first = opened(CallState::Executing);
            let call = first.call.clone();
            store.record_later(&scope(), Entry { events: attempt(0), ..first }).await.unwrap();
            for number in 1..ENTRIES {
                let entry = Entry { events: attempt(number), ..later(&call, CallState::Executing) };
                match number % 3 {
                    0 => store.record(&scope(), entry).await.unwrap(),
                    _ => store.record_later(&scope(), entry).await.unwrap(),
                }
            }
            store.record(&scope(), Entry { events: vec![], ..ended(&call) }).await.unwrap();
            call
        }));
    }
    let expected: Vec<CallEvent> = (0..ENTRIES).map(|attempt| CallEvent::Started { attempt }).collect();
    for task in tasks {
        let events = store.events(&scope(), &task.await.unwrap()).await.unwrap();
        let found: Vec<CallEvent> = events.into_iter().map(|(_, _, event)| event).collect();
        assert_eq!(found, expected);
    }
    let used = store.tools_used(&scope(), &here(), None).await.unwrap();
    assert_eq!((used[0].calls, used[0].success), (64, 64));
}

#[tokio::test]
async fn a_steady_stream_does_not_let_the_log_grow_for_ever() {
    if is_elsewhere() {
        return;
    }
    let (folder, store) = new_store().await;
    for _ in 0..6_000 {
        let first = opened(CallState::Executing);
        let end = Entry { events: vec![], ..ended(&first.call) };
        store.record(&scope(), first).await.unwrap();
        store.record_later(&scope(), end).await.unwrap();
    }
    Journal::caught_up(&store).await.unwrap();
    let log = fs::metadata(folder.path().join("data/haft.db-wal")).unwrap().len() >> 20;
    assert!(log < 30, "{log} MiB");
}

#[tokio::test]
async fn only_the_guilty_entry_of_a_batch_fails() {
    let (_folder, store) = new_store().await;
    let there = opened(CallState::Executing);
    store.record(&scope(), there.clone()).await.unwrap();
    let good: Vec<Entry> = (0..20).map(|_| opened(CallState::Executing)).collect();
    let mut entries = good.clone();
    entries.insert(5, there);
    entries.insert(11, later(&haft_runtime::CallId::new(), CallState::Ended));
    // All are queued before the writer wakes up, because this test has a single thread.
    let scope = scope();
    let results = futures_util::future::join_all(entries.into_iter().map(|entry| store.record(&scope, entry))).await;
    for (number, result) in results.iter().enumerate() {
        match number {
            5 | 11 => assert_eq!(result.as_ref().unwrap_err().code, ErrorCode::StoreUnavailable),
            _ => assert_eq!(*result, Ok(())),
        }
    }
    for entry in good {
        assert_eq!(store.events(&scope, &entry.call).await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn what_nobody_waits_for_is_there_for_others_soon() {
    let (folder, store) = new_store().await;
    let other = open(&folder).await;
    // One alone, some, and more than are gathered.
    for count in [1, 20, 400] {
        let mut last = None;
        for _ in 0..count {
            let entry = opened(CallState::Ended);
            last = Some(entry.call.clone());
            let outcome = Some(success(&entry.call, "done"));
            store.record_later(&scope(), Entry { outcome, ..entry }).await.unwrap();
        }
        let seen = other.ended(&scope(), &last.unwrap(), Duration::from_secs(20)).await.unwrap();
        assert!(seen.is_some(), "nothing was written of {count}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_log_stays_short_however_steady_the_stream_is() {
    if is_elsewhere() {
        return;
    }
    let (folder, store) = new_store().await;
    let mut longest = 0;
    for number in 0..40_000 {
        let entry = opened(CallState::Ended);
        let outcome = Some(success(&entry.call, "done"));
        store.record_later(&scope(), Entry { outcome, ..entry }).await.unwrap();
        if number % 1000 == 0 {
            longest = longest.max(fs::metadata(folder.path().join("data/haft.db-wal")).unwrap().len());
        }
    }
    assert!(longest > 0 && longest < 32 << 20, "{longest}");
}

#[tokio::test]
async fn closing_writes_what_nobody_waited_for() {
    let (folder, store) = new_store().await;
    for _ in 0..1000 {
        let entry = opened(CallState::Ended);
        let outcome = Some(success(&entry.call, "done"));
        store.record_later(&scope(), Entry { outcome, ..entry }).await.unwrap();
    }
    store.close().await.unwrap();
    store.close().await.unwrap();
    let refused = store.record(&scope(), opened(CallState::Executing)).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::StoreUnavailable);

    let store = open(&folder).await;
    let all = CallFilter { limit: 2000, ..CallFilter::default() };
    assert_eq!(store.calls(&scope(), &here(), &all).await.unwrap().len(), 1000);
    assert_eq!(store.tools_used(&scope(), &here(), None).await.unwrap()[0].calls, 1000);
}

#[tokio::test]
async fn leaving_writes_what_nobody_waited_for_too() {
    let (folder, store) = new_store().await;
    let entry = opened(CallState::Executing);
    store.record_later(&scope(), entry.clone()).await.unwrap();
    store.leave().await.unwrap();
    store.record(&scope(), opened(CallState::Executing)).await.unwrap_err();

    let next = open(&folder).await;
    let taken: Vec<_> = next.abandoned(&house()).await.unwrap().into_iter().map(|call| call.call).collect();
    assert_eq!(taken, [entry.call]);
}

#[tokio::test]
async fn closing_reports_what_was_lost() {
    let (_folder, store) = new_store().await;
    store.record_later(&scope(), later(&haft_runtime::CallId::new(), CallState::Ended)).await.unwrap();
    store.record(&scope(), opened(CallState::Executing)).await.unwrap();
    assert_eq!(store.health().await.unwrap().lost_entries, 1);
    let lost = store.close().await.unwrap_err();
    assert!(matches!(lost, StoreError::Lost { count: 1, .. }), "{lost:?}");
}
