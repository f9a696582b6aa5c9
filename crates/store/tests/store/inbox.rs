//! A result from outside reaches its caller once: as the answer to its request, or through its inbox.

use haft_runtime::{
    About, Answer, Answered, ApprovedBy, AwaitedResult, CallEvent, CallId, CallRecord, CallState, Caller, CallerId,
    CallerKind, ClaimResult, Delivered, End, Entry, ErrorCode, Journal, LateResult, Question, Questions, Scope,
    Submission, TenantId, ToolError, Via,
};
use haft_store::{EventsOf, InboxItem, InboxOrder, InboxPage, InboxState, Store, StreamItem};
use serde_json::json;

use crate::samples::{
    Answering, anna, answered, first, house, later, new_store, now, open, opened, outcome, pending, question, scope,
    success,
};

/// A question for a result, whose caller waits for it or does not.
fn wanted(call: &CallId, delivered: Delivered) -> Question {
    let awaited = AwaitedResult {
        schema: json!(true),
        message: "a parcel".into(),
        answerers: haft_runtime::Answerers::Permitted,
        execution_type: "external".into(),
        delivered,
        approved_by: ApprovedBy::Config,
        grant: None,
        worked_ms: 3,
        attempts: 1,
    };
    Question { about: About::Result(awaited), ..question(call) }
}

async fn ask(store: &Store, delivered: Delivered) -> CallId {
    let entry = opened(CallState::Waiting);
    let call = entry.call.clone();
    store.ask(&scope(), &wanted(&call, delivered), entry).await.unwrap();
    call
}

fn given() -> Answered {
    Answered { answer: Answer::Result { value: json!({"n": 1}) }, ..answered("postman") }
}

/// The end of a call by the answer to its first question.
fn ended_by_its_answer(call: &CallId) -> Entry {
    Entry {
        outcome: Some(success(call, "done")),
        events: vec![(now(), CallEvent::Completed { execution_time_ms: 7, late: false })],
        result_of: Some(1),
        ..later(call, CallState::Ended)
    }
}

fn page(state: InboxState, order: InboxOrder) -> InboxPage {
    InboxPage { state, order, after: None, limit: 50 }
}

async fn inbox(store: &Store, caller: &Caller) -> Vec<InboxItem> {
    store.inbox(caller, &page(InboxState::Open, InboxOrder::OldestFirst)).await.unwrap()
}

async fn delivered(store: &Store, call: &CallId) -> Delivered {
    let (question, _) = Questions::find(store, &scope(), call).await.unwrap().unwrap();
    let About::Result(awaited) = question.about else { panic!() };
    awaited.delivered
}

#[tokio::test]
async fn a_result_goes_to_the_inbox_unless_its_caller_waits_for_it() {
    let (_folder, store) = new_store().await;
    let (inline, apart, given_up) = (
        ask(&store, Delivered::Inline).await,
        ask(&store, Delivered::Inbox).await,
        ask(&store, Delivered::Inline).await,
    );
    assert!(store.stop_waiting(&scope(), &first(&given_up)).await.unwrap());
    assert!(!store.stop_waiting(&scope(), &first(&given_up)).await.unwrap(), "nobody waits any more");
    assert!(!store.stop_waiting(&scope(), &first(&apart)).await.unwrap(), "nobody has waited");
    for call in [&inline, &apart, &given_up] {
        store.reply(&scope(), &first(call), &given()).await.unwrap();
        assert!(!store.stop_waiting(&scope(), &first(call)).await.unwrap(), "the answer is there");
        assert!(!inbox(&store, &anna()).await.iter().any(|item| item.call_id.as_ref() == Some(call)));
        store.record(&scope(), ended_by_its_answer(call)).await.unwrap();
        // Said once more, it is said to nobody.
        store.record(&scope(), ended_by_its_answer(call)).await.unwrap();
    }
    let items = inbox(&store, &anna()).await;
    let calls: Vec<_> = items.iter().filter_map(|item| item.call_id.clone()).collect();
    assert_eq!(calls, [apart.clone(), given_up]);
    let body = json!({"callId": apart, "tool": "write_file", "status": "success", "result": {"n": 1}});
    assert_eq!((items[0].kind.as_str(), &items[0].body), ("tool_result", &body));
    assert_eq!(delivered(&store, &inline).await, Delivered::Inline);
    assert_eq!(delivered(&store, &apart).await, Delivered::Inbox);
}

#[tokio::test]
async fn an_item_says_which_run_its_call_was_part_of_and_why_it_failed() {
    let (_folder, store) = new_store().await;
    let call = ask(&store, Delivered::Inbox).await;
    let error = ToolError::new(ErrorCode::Expired, "nobody gave the result in time");
    let via = std::sync::Arc::new(Via { run: Some("r1".into()), ..Via::default() });
    let end = Some(outcome(&call, End::Cancelled { error: error.clone() }));
    store.record(&scope(), Entry { outcome: end, via, ..ended_by_its_answer(&call) }).await.unwrap();
    let items = inbox(&store, &anna()).await;
    let body = json!({"callId": call, "tool": "write_file", "status": "cancelled", "error": error, "runId": "r1"});
    assert_eq!(items[0].body, body);
}

#[tokio::test]
async fn of_an_answer_and_the_end_of_the_wait_one_comes_first() {
    let (folder, store) = new_store().await;
    let other = open(&folder).await;
    for round in 0..60 {
        let call = ask(&store, Delivered::Inline).await;
        let (scope, id, given) = (scope(), first(&call), given());
        let (answer, stop) = (other.reply(&scope, &id, &given), store.stop_waiting(&scope, &id));
        // Whoever is asked first starts first.
        let (receipt, stopped) = if round % 2 == 0 {
            tokio::join!(answer, stop)
        } else {
            let (stopped, receipt) = tokio::join!(stop, answer);
            (receipt, stopped)
        };
        assert_eq!(receipt.unwrap(), haft_runtime::AnswerReceipt::Taken);
        let stopped = stopped.unwrap();
        assert_eq!(delivered(&store, &call).await == Delivered::Inbox, stopped);
        store.record(&scope, ended_by_its_answer(&call)).await.unwrap();
        let page = InboxPage { limit: 200, ..page(InboxState::Open, InboxOrder::NewestFirst) };
        let items = store.inbox(&anna(), &page).await.unwrap();
        let found = items.iter().filter(|item| item.call_id.as_ref() == Some(&call)).count();
        assert_eq!(found, usize::from(stopped));
    }
}

#[tokio::test]
async fn whoever_follows_a_dead_waiter_delivers_to_the_inbox() {
    let (folder, store) = new_store().await;
    let call = ask(&store, Delivered::Inline).await;
    let next = open(&folder).await;
    next.reply(&scope(), &first(&call), &given()).await.unwrap();
    assert_eq!(next.claim(&scope(), &call).await.unwrap(), ClaimResult::NotClaimed, "the waiter lives");
    assert_eq!(delivered(&next, &call).await, Delivered::Inline);
    store.close().await.unwrap();
    assert_eq!(next.claim(&scope(), &call).await.unwrap(), ClaimResult::Claimed);
    next.record(&scope(), ended_by_its_answer(&call)).await.unwrap();
    assert_eq!(inbox(&next, &anna()).await.len(), 1);
    assert_eq!(delivered(&next, &call).await, Delivered::Inbox);
}

#[tokio::test]
async fn a_call_that_is_handed_back_just_after_its_answer_is_found_by_whoever_starts_next() {
    let (_folder, store) = new_store().await;
    let call = ask(&store, Delivered::Inline).await;
    assert!(store.stop_waiting(&scope(), &first(&call)).await.unwrap());
    store.reply(&scope(), &first(&call), &given()).await.unwrap();
    let handed_back = Entry { outcome: Some(pending(&call)), events: vec![], ..later(&call, CallState::Waiting) };
    store.record(&scope(), handed_back).await.unwrap();
    assert_eq!(store.answered(&house()).await.unwrap(), [(scope(), call)]);
}

async fn timed_out(store: &Store) -> CallRecord {
    let call = ask(store, Delivered::Inline).await;
    let record = Journal::find(store, &scope(), &call).await.unwrap().unwrap();
    assert!(!store.keep_late(&record, &late(1)).await.unwrap(), "nothing is late before the end");
    let no_time = Answered { answer: Answer::TimedOut { after_ms: 5 }, ..answered("haft") };
    store.reply(&scope(), &first(&call), &no_time).await.unwrap();
    let error = ToolError::new(ErrorCode::Timeout, "Tool timed out after 5ms");
    let events = vec![(now(), CallEvent::Failed { error: error.clone(), late: false })];
    let end = Some(outcome(&call, End::Error { error }));
    store.record(&scope(), Entry { outcome: end, events, ..ended_by_its_answer(&call) }).await.unwrap();
    Journal::find(store, &scope(), &call).await.unwrap().unwrap()
}

fn late(n: u32) -> LateResult {
    LateResult { submission: Submission::Result(json!({"n": n})), by: anna().who(), at: now() }
}

#[tokio::test]
async fn a_late_result_is_kept_once_beside_its_call() {
    let (folder, store) = new_store().await;
    let record = timed_out(&store).await;
    let call = &record.call;
    let (before, kept) = (store.events(&scope(), call).await.unwrap(), late(1));
    let other = open(&folder).await;
    let second = late(2);
    let (one, two) = tokio::join!(store.keep_late(&record, &kept), other.keep_late(&record, &second));
    let (one, two) = (one.unwrap(), two.unwrap());
    assert!(one != two, "one of them");
    let first = if one { kept } else { second };
    assert_eq!(store.late_result(&scope(), call).await.unwrap(), Some(first.clone()));
    assert_eq!(Journal::find(&store, &scope(), call).await.unwrap().unwrap(), record, "the call stays as it was");

    let events = store.events(&scope(), call).await.unwrap();
    let [.., (seq, _, event)] = events.as_slice() else { panic!() };
    assert_eq!((events.len(), event), (before.len() + 1, &CallEvent::Completed { execution_time_ms: 7, late: true }));
    assert!(before.iter().all(|(earlier, _, _)| earlier < seq));
    let Submission::Result(value) = first.submission else { panic!() };
    let items = inbox(&store, &anna()).await;
    let body = json!({"callId": call, "tool": "write_file", "status": "success", "result": value, "late": true});
    assert_eq!(items.iter().map(|item| &item.body).collect::<Vec<_>>(), [&body]);
}

#[tokio::test]
async fn what_is_late_is_forgotten_with_its_call() {
    let (folder, store) = new_store().await;
    let record = timed_out(&store).await;
    let new = opened(CallState::Executing);
    store.record(&scope(), new.clone()).await.unwrap();
    assert!(store.keep_late(&record, &late(1)).await.unwrap());
    let last = store.events(&scope(), &record.call).await.unwrap().last().unwrap().0;
    store.forget_calls(&scope(), std::slice::from_ref(&record.call)).await.unwrap();
    assert_eq!(store.late_result(&scope(), &record.call).await.unwrap(), None);
    let reader = open(&folder).await;
    let mut stream = reader.listen(&scope(), EventsOf::Tenant, Some(1)).await.unwrap();
    assert_eq!(stream.next().await.unwrap(), StreamItem::Resync(last), "a reader is told of all that is gone");
}

#[tokio::test]
async fn an_inbox_is_read_page_by_page_and_only_by_its_caller() {
    let (_folder, store) = new_store().await;
    for _ in 0..5 {
        let call = ask(&store, Delivered::Inbox).await;
        store.record(&scope(), ended_by_its_answer(&call)).await.unwrap();
    }
    let all: Vec<_> = inbox(&store, &anna()).await.into_iter().map(|item| item.id).collect();
    assert!(all.is_sorted() && all.len() == 5);
    for order in [InboxOrder::OldestFirst, InboxOrder::NewestFirst] {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = InboxPage { after, limit: 2, ..page(InboxState::Open, order) };
            let items = store.inbox(&anna(), &page).await.unwrap();
            let Some(last) = items.last() else { break };
            after = Some(last.id.clone());
            found.extend(items.into_iter().map(|item| item.id));
        }
        if order == InboxOrder::NewestFirst {
            found.reverse();
        }
        assert_eq!(found, all);
    }

    let stranger = Caller { id: CallerId { kind: CallerKind::Person, id: "bob".into() }, ..anna() };
    let elsewhere = Scope::of_house(TenantId::parse("other").unwrap(), None);
    for other in [stranger, Caller { scope: elsewhere, ..anna() }] {
        assert!(inbox(&store, &other).await.is_empty());
        assert_eq!(store.consume(&other, &all[1]).await.unwrap(), None);
    }
    let done = store.consume(&anna(), &all[1]).await.unwrap().unwrap();
    assert!(done.consumed_at.is_some());
    assert_eq!(store.consume(&anna(), &all[1]).await.unwrap(), Some(done.clone()), "it may be said again");
    assert_eq!(inbox(&store, &anna()).await.len(), 4);
    for order in [InboxOrder::OldestFirst, InboxOrder::NewestFirst] {
        let consumed = store.inbox(&anna(), &page(InboxState::Consumed, order)).await.unwrap();
        assert_eq!(consumed, std::slice::from_ref(&done));
    }
}
