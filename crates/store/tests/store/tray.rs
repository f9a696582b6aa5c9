//! Entries that lie in the tray: there for everybody at once, filed once, by whoever comes first.

use haft_runtime::{CallEvent, CallId, CallState, Entry, ErrorCode, Journal, Questions};
use haft_store::{CallFilter, Store};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::samples::{ended, here, later, new_store, now, open, opened, question, scope};

/// How many entries lie in the tray, and how many were refused.
fn lying(folder: &TempDir) -> (i64, i64) {
    let conn = Connection::open(folder.path().join("data/haft.db")).unwrap();
    let count = "select count(*) filter (where lies and not refused), count(*) filter (where refused) from tray";
    conn.query_row(count, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
}

async fn recorded(store: &Store) -> CallId {
    let entry = opened(CallState::Executing);
    let call = entry.call.clone();
    store.record(&scope(), entry).await.unwrap();
    call
}

#[tokio::test]
async fn what_is_acknowledged_is_there_for_every_view_of_every_store() {
    let (folder, store) = new_store().await;
    let other = open(&folder).await;
    for number in 0..50 {
        let call = recorded(&store).await;
        match number % 5 {
            0 => assert!(Journal::find(&other, &scope(), &call).await.unwrap().is_some()),
            1 => assert_eq!(other.events(&scope(), &call).await.unwrap().len(), 1),
            2 => assert_eq!(other.calls(&scope(), &here(), &CallFilter::default()).await.unwrap()[0].id, call),
            3 => assert!(other.want_stop(&scope(), &call).await.unwrap()),
            _ => assert_eq!(store.events(&scope(), &call).await.unwrap().len(), 1),
        }
    }
}

#[tokio::test]
async fn what_asks_is_asked_at_once_whatever_the_call_does_meanwhile() {
    let (folder, store) = new_store().await;
    let other = open(&folder).await;
    for state in [CallState::Preparing, CallState::Executing, CallState::Waiting] {
        let entry = opened(state);
        let asked = question(&entry.call);
        store.ask(&scope(), &asked, entry).await.unwrap();
        assert_eq!(Questions::find(&other, &scope(), &asked.call).await.unwrap(), Some((asked, None)));
    }
}

#[tokio::test]
async fn each_entry_is_filed_once_whoever_does_it() {
    let (folder, store) = new_store().await;
    let other = open(&folder).await;
    let mut calls = Vec::new();
    for number in 0..200 {
        let call = recorded(&store).await;
        if number % 3 == 0 {
            other.calls(&scope(), &here(), &CallFilter::default()).await.unwrap();
        }
        let event = vec![(now(), CallEvent::Started { attempt: 2 })];
        store.record_later(&scope(), Entry { events: event, ..later(&call, CallState::Executing) }).await.unwrap();
        store.record_later(&scope(), Entry { events: vec![], ..ended(&call) }).await.unwrap();
        calls.push(call);
    }
    store.close().await.unwrap();
    assert_eq!(lying(&folder), (0, 0));
    for call in &calls {
        assert_eq!(other.events(&scope(), call).await.unwrap().len(), 2);
    }
    let used = other.tools_used(&scope(), &here(), None).await.unwrap();
    assert_eq!((used[0].calls, other.health().await.unwrap().lost_entries), (200, 0));
}

#[tokio::test]
async fn no_call_begins_twice_whether_its_first_entry_lies_or_is_filed() {
    let (folder, store) = new_store().await;
    let other = open(&folder).await;
    let entry = opened(CallState::Executing);
    store.record(&scope(), entry.clone()).await.unwrap();
    for again in [&store, &store, &other] {
        let refused = again.record(&scope(), entry.clone()).await.unwrap_err();
        assert_eq!(refused.code, ErrorCode::StoreUnavailable);
        assert_eq!(other.events(&scope(), &entry.call).await.unwrap().len(), 1);
    }
    assert_eq!((lying(&folder), other.health().await.unwrap().lost_entries), ((0, 0), 0));
}

#[tokio::test]
async fn a_damaged_one_keeps_nobody_from_reading() {
    let (folder, store) = new_store().await;
    let conn = Connection::open(folder.path().join("data/haft.db")).unwrap();
    conn.execute("insert into tray values (1, 'local', 'tc_x', false, '{\"tenant\": 1}', true)", []).unwrap();
    let call = recorded(&store).await;
    assert!(Journal::find(&store, &scope(), &call).await.unwrap().is_some());
    assert_eq!((lying(&folder), store.health().await.unwrap().lost_entries), ((0, 1), 1));
}

#[tokio::test]
async fn a_long_one_is_filed_at_once() {
    let (folder, store) = new_store().await;
    let mut entry = opened(CallState::Executing);
    if let Some(opening) = &mut entry.opening {
        opening.input = serde_json::json!({ "content": "x".repeat(100_000) });
    }
    store.record(&scope(), entry.clone()).await.unwrap();
    assert_eq!(lying(&folder), (0, 0));
    let found = Journal::find(&store, &scope(), &entry.call).await.unwrap().unwrap();
    assert_eq!(found.opening.input, entry.opening.unwrap().input);
}
