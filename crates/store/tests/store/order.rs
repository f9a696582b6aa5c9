//! One order for everybody: whoever follows the journal misses nothing and hears nothing twice, however many write and
//! however late their commits are.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use haft_runtime::{CallEvent, CallId, CallState, Entry, Journal, ToolOutput, Via};
use haft_store::{EventStream, EventsOf, JournalEvent, StreamItem};

use crate::{
    database,
    processes::Contender,
    samples::{ended, here, house, later, new_store, now, open, opened, scope, success},
};

const SOON: Duration = Duration::from_secs(120);
const WRITERS: usize = 3;

async fn next(stream: &mut EventStream) -> StreamItem {
    tokio::time::timeout(SOON, stream.next()).await.unwrap().unwrap()
}

async fn next_event(stream: &mut EventStream) -> JournalEvent {
    match next(stream).await {
        StreamItem::Event(event) => JournalEvent::clone(&event),
        StreamItem::Resync(to) => panic!("resync to {to}"),
    }
}

/// A call that ends at once, with so many events.
fn done(events: u32) -> Entry {
    let entry = opened(CallState::Ended);
    let started = (0..events).map(|attempt| (now(), CallEvent::Started { attempt })).collect();
    Entry { outcome: Some(success(&entry.call, "done")), events: started, ..entry }
}

/// Three processes write, and each commit is held back at random. The reader begins anew at the place where it was, again and
/// again, also inside of an entry.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_missed_or_repeated_while_late_commits_of_several_processes_come_in() {
    let (folder, store) = new_store().await;
    let longest_ms = if database::server().is_some() { "2000" } else { "20" };
    let mut writers: Vec<_> = (0..WRITERS).map(|_| Contender::start(&folder, "late", longest_ms)).collect();
    writers.iter_mut().for_each(Contender::go);
    let mut written = tokio::task::spawn_blocking(move || {
        let lines: Vec<String> = writers.iter_mut().flat_map(|writer| writer.lines_until("done")).collect();
        (lines, writers)
    });
    let mut heard: BTreeMap<i64, CallId> = BTreeMap::new();
    let mut stream = store.listen(&scope(), EventsOf::Tenant, Some(0)).await.unwrap();
    let mut last = 0;
    let expected = loop {
        tokio::select! {
            event = next_event(&mut stream) => {
                assert!(event.seq > last, "{} came after {last}", event.seq);
                last = event.seq;
                assert!(heard.insert(event.seq, event.call).is_none());
                if heard.len().is_multiple_of(7) {
                    stream = store.listen(&scope(), EventsOf::Tenant, Some(last)).await.unwrap();
                }
            }
            done = &mut written => break done.unwrap().0,
        }
    };
    while heard.len() < expected.len() * 3 {
        let event = next_event(&mut stream).await;
        assert!(event.seq > last && heard.insert(event.seq, event.call).is_none());
        last = event.seq;
    }
    let calls: BTreeSet<String> = heard.values().map(ToString::to_string).collect();
    assert_eq!(calls, expected.into_iter().collect(), "every acknowledged call, and no other");
    assert_eq!(heard.keys().copied().collect::<Vec<_>>(), (1..=last).collect::<Vec<_>>(), "without a gap");

    // Whoever reads everything later sees the same.
    let mut again = open(&folder).await.listen(&scope(), EventsOf::Tenant, Some(0)).await.unwrap();
    for (seq, call) in &heard {
        let event = next_event(&mut again).await;
        assert_eq!((event.seq, &event.call), (*seq, call));
    }
}

#[tokio::test]
async fn a_stream_goes_on_inside_of_an_entry() {
    let (_folder, store) = new_store().await;
    store.record(&scope(), done(5)).await.unwrap();
    store.record(&scope(), done(2)).await.unwrap();
    for after in 0..7 {
        let mut stream = store.listen(&scope(), EventsOf::Tenant, Some(after)).await.unwrap();
        let numbers = [next_event(&mut stream).await.seq].map(|first| first - after);
        assert_eq!(numbers, [1]);
    }
}

#[tokio::test]
async fn the_stream_of_a_call_has_only_its_events_and_hears_what_comes() {
    let (folder, store) = new_store().await;
    let first = opened(CallState::Executing);
    let call = first.call.clone();
    store.record(&scope(), first).await.unwrap();
    store.record(&scope(), done(3)).await.unwrap();
    let mut stream = store.listen(&scope(), EventsOf::Call(call.clone()), Some(0)).await.unwrap();
    assert!(matches!(next_event(&mut stream).await.event, CallEvent::Called { .. }));
    let other = open(&folder).await;
    let (heard, ()) = tokio::join!(next_event(&mut stream), async {
        store.record(&scope(), done(1)).await.unwrap();
        store.record(&scope(), later(&call, CallState::Executing)).await.unwrap();
        other.record(&scope(), done(1)).await.unwrap();
    });
    assert_eq!((heard.call.clone(), heard.event), (call.clone(), CallEvent::Started { attempt: 1 }));
    store.record(&scope(), ended(&call)).await.unwrap();
    assert!(matches!(next_event(&mut stream).await.event, CallEvent::Completed { .. }));
}

#[tokio::test]
async fn listeners_hear_the_events_of_their_session_run_agent_or_space() {
    let (folder, store) = new_store().await;
    let name = |part: &str| Some(part.to_owned());
    let parts = [
        Via { session: name("a"), ..Via::default() },
        Via { run: name("a"), agent: name("b"), ..Via::default() },
        Via { space: name("a"), agent: name("a"), ..Via::default() },
        Via::default(),
    ];
    let mut calls = Vec::new();
    for via in parts {
        let entry = Entry { via: Arc::new(via), ..done(2) };
        calls.push(entry.call.clone());
        store.record(&scope(), entry).await.unwrap();
    }
    let wanted: [(EventsOf, usize); 4] = [
        (EventsOf::Session("a".to_owned()), 0),
        (EventsOf::Run("a".to_owned()), 1),
        (EventsOf::Agent("b".to_owned()), 1),
        (EventsOf::Space("a".to_owned()), 2),
    ];
    let other = open(&folder).await;
    for (of, call) in wanted {
        // What happened before is read from the database, what comes is heard as it comes.
        let mut stream = other.listen(&scope(), of, Some(0)).await.unwrap();
        for _ in 0..2 {
            assert_eq!(next_event(&mut stream).await.call, calls[call]);
        }
        let via =
            Arc::new(Via { session: name("a"), run: name("a"), agent: name("b"), space: name("a"), ..Via::default() });
        let (unheard, heard) = (done(1), Entry { via: Arc::clone(&via), ..done(1) });
        let expected = heard.call.clone();
        store.record(&scope(), unheard).await.unwrap();
        store.record(&scope(), heard).await.unwrap();
        let event = next_event(&mut stream).await;
        assert_eq!((event.call.clone(), Arc::clone(&event.via)), (expected.clone(), via));
        store.forget_calls(&scope(), &[expected]).await.unwrap();
    }
}

#[tokio::test]
async fn a_reader_behind_what_was_deleted_is_told_so() {
    let (folder, store) = new_store().await;
    let (old, new) = (done(3), done(1));
    let whole_output = Some(ToolOutput::default());
    let forgotten = old.call.clone();
    store.record(&scope(), Entry { whole_output, ..old }).await.unwrap();
    store.record(&scope(), new.clone()).await.unwrap();
    store.forget_calls(&scope(), &[forgotten]).await.unwrap();
    let reader = open(&folder).await;
    let mut stream = reader.listen(&scope(), EventsOf::Tenant, Some(1)).await.unwrap();
    assert_eq!(next(&mut stream).await, StreamItem::Resync(3));
    assert_eq!(next_event(&mut stream).await.call, new.call);
    // Whoever begins at the beginning, or after what is gone, misses nothing that is kept.
    for after in [0, 3] {
        let mut stream = reader.listen(&scope(), EventsOf::Tenant, Some(after)).await.unwrap();
        assert_eq!(next_event(&mut stream).await.call, new.call);
    }
}

#[tokio::test]
async fn what_another_process_carries_now_is_not_ended_by_the_one_before() {
    let (folder, store) = new_store().await;
    let first = opened(CallState::Executing);
    let call = first.call.clone();
    store.record(&scope(), first).await.unwrap();
    store.close().await.unwrap();
    let (next, late) = (open(&folder).await, open(&folder).await);
    assert_eq!(next.abandoned(&house()).await.unwrap().len(), 1);
    late.record(&scope(), ended(&call)).await.unwrap_err();
    late.record(&scope(), later(&call, CallState::Executing)).await.unwrap_err();
    next.record(&scope(), ended(&call)).await.unwrap();
    late.record(&scope(), ended(&call)).await.unwrap_err();
    assert_eq!(next.tools_used(&scope(), &here(), None).await.unwrap()[0].calls, 1);
    assert_eq!(next.events(&scope(), &call).await.unwrap().len(), 2, "one beginning, one end");
}
