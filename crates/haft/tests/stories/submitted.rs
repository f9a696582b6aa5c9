//! A program outside gives the result of a call: it reaches the caller once, inline or through the inbox, also when it races.
#![expect(clippy::disallowed_methods, reason = "this story stops a process")]

use std::{process::Command, time::Duration};

use haft::house::House;
use haft_runtime::{
    Answer, CallEvent, CallId, CallState, Caller, CallerId, CallerKind, Delivered, End, ErrorCode, Outcome, Scope,
    Submission, SubmitReply, TenantId, ToolError, typed,
};
use haft_store::{InboxItem, InboxOrder, InboxPage, InboxState};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    awaited::{Deliver, LIMIT, Waiting, assert_ended_once, deliver, events, haft, house, terminal},
    stage::{Stage, ann, answer, code, success},
};

fn at(time: &str) -> Submission {
    Submission::Result(json!({"at": time}))
}

async fn submit(house: &House, call: &CallId, submission: Submission) -> SubmitReply {
    house.pipeline.submit(&ann(house), call, submission).await.unwrap()
}

async fn inbox(house: &House, call: &CallId) -> Vec<InboxItem> {
    let page = InboxPage { state: InboxState::Open, order: InboxOrder::NewestFirst, after: None, limit: 200 };
    let mut items = house.store.inbox(&house.caller, &page).await.unwrap();
    items.retain(|item| item.call_id.as_ref() == Some(call));
    items
}

async fn late_event(house: &House, call: &CallId) -> Option<CallEvent> {
    let is_late = |event: &CallEvent| {
        matches!(event, CallEvent::Completed { late: true, .. } | CallEvent::Failed { late: true, .. })
    };
    let events = events(house, call).await;
    assert!(events.iter().filter(|event| is_late(event)).count() <= 1, "{events:#?}");
    events.into_iter().find(is_late)
}

/// Starts a call whose caller is held, and gives its end once its question is open.
async fn held(house: &House, input: Value, wait: Duration) -> (CallId, tokio::task::JoinHandle<Outcome>) {
    let mut wish = deliver(house, input);
    wish.wait = wait;
    let call = wish.id.clone();
    let calling = tokio::spawn(house.pipeline.call(wish));
    while house.question(&call).await.unwrap().is_none() {
        tokio::task::yield_now().await;
    }
    (call, calling)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_async_call_is_pending_at_once_and_its_result_comes_through_the_inbox() {
    let stage = Stage::new();
    let house = house(&stage).await;
    let mut wish = deliver(&house, json!({"to": "anna", "within": 0, "space": true}));
    wish.wait = LIMIT;
    let outcome = house.pipeline.call(wish).await;
    let call = &outcome.tool_call_id;
    assert_eq!(outcome.end.status(), "pending", "however long its caller would wait");
    let told = events(&house, call).await;
    let pending = serde_json::to_value(told.last().unwrap()).unwrap();
    assert_eq!((&pending["executionType"], &pending["waited"]), (&json!("space"), &json!(false)));
    assert!(pending["expiresAt"].is_string() && pending["tool"] == "deliver" && pending["args"]["to"] == "anna");
    let (question, _) = house.question(call).await.unwrap().unwrap();
    assert_eq!(question.kind(), "form", "people fill it in");

    let wrong = submit(&house, call, Submission::Result(json!({"on": "monday"}))).await;
    let SubmitReply::NotFitting(why) = wrong else { panic!("{wrong:?}") };
    assert_eq!(why.code, ErrorCode::InvalidArgs);
    assert!(why.message.contains("at"), "{why}");
    let resolved = SubmitReply::Resolved { delivered: Delivered::Inbox };
    assert_eq!(submit(&house, call, at("noon")).await, resolved, "it has waited on");
    let items = inbox(&house, call).await;
    let body = json!({"callId": call, "tool": "deliver", "status": "success", "result": {"at": "noon"}});
    assert_eq!(items.iter().map(|item| &item.body).collect::<Vec<_>>(), [&body]);

    let again = SubmitReply::AlreadyEqual { delivered: Delivered::Inbox };
    assert_eq!(submit(&house, call, at("noon")).await, again);
    assert_eq!(submit(&house, call, at("night")).await, SubmitReply::Conflict);
    assert_eq!(
        submit(&house, call, Submission::Error { code: None, message: "no".into() }).await,
        SubmitReply::Conflict
    );
    assert_eq!(submit(&house, &CallId::new(), at("noon")).await, SubmitReply::Unknown);
    let elsewhere = Scope::of_house(TenantId::parse("other").unwrap(), None);
    let stranger = Caller { scope: elsewhere, ..ann(&house) };
    assert_eq!(house.pipeline.submit(&stranger, call, at("noon")).await.unwrap(), SubmitReply::Unknown);
    assert_eq!(inbox(&house, call).await.len(), 1);
    assert_ended_once(&house, call).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_is_held_gets_the_result_and_its_inbox_stays_empty() {
    let stage = Stage::new();
    let house = house(&stage).await;
    let (call, calling) = held(&house, json!({"to": "anna"}), LIMIT).await;
    let told = serde_json::to_value(events(&house, &call).await.last().unwrap()).unwrap();
    assert_eq!((&told["executionType"], &told["waited"]), (&json!("external"), &json!(true)));
    let numbers = Submission::Result(json!({"at": "noon", "weights": [0.1, 1e22, 123456789012345680.0, 2.5e-8]}));
    let (resolved, again) = (
        SubmitReply::Resolved { delivered: Delivered::Inline },
        SubmitReply::AlreadyEqual { delivered: Delivered::Inline },
    );
    assert_eq!(submit(&house, &call, numbers.clone()).await, resolved);
    assert_eq!(success(&calling.await.unwrap()).structured["at"], "noon");
    assert_eq!(submit(&house, &call, numbers).await, again, "to the last digit");
    assert!(inbox(&house, &call).await.is_empty());
    assert_ended_once(&house, &call).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_keeps_the_code_that_it_has_outside() {
    let stage = Stage::new();
    let house = house(&stage).await;
    let (call, calling) = held(&house, json!({"to": "anna"}), LIMIT).await;
    let failed = Submission::Error { code: Some("VAN_BROKE_DOWN".into()), message: "the van broke down".into() };
    let resolved = SubmitReply::Resolved { delivered: Delivered::Inline };
    assert_eq!(submit(&house, &call, failed.clone()).await, resolved);
    let End::Error { error } = calling.await.unwrap().end else { panic!() };
    assert_eq!((error.code, error.message.as_str()), (ErrorCode::ExecutionError, "the van broke down"));
    assert_eq!(error.details["code"], "VAN_BROKE_DOWN");
    let again = SubmitReply::AlreadyEqual { delivered: Delivered::Inline };
    assert_eq!(submit(&house, &call, failed).await, again);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_waits_less_than_the_tool_would_is_handed_back() {
    let stage = Stage::new();
    let house = house(&stage).await;
    let (call, calling) = held(&house, json!({"to": "anna"}), Duration::from_millis(1)).await;
    assert_eq!(calling.await.unwrap().end.status(), "pending");
    assert_eq!(submit(&house, &call, at("noon")).await, SubmitReply::Resolved { delivered: Delivered::Inbox });
    assert_eq!(inbox(&house, &call).await.len(), 1);
    let (left, calling) = {
        let mut wish = deliver(&house, json!({"to": "bob"}));
        wish.wait = LIMIT;
        let (call, hand_back) = (wish.id.clone(), wish.hand_back.clone());
        let calling = tokio::spawn(house.pipeline.call(wish));
        while house.question(&call).await.unwrap().is_none() {
            tokio::task::yield_now().await;
        }
        hand_back.cancel();
        (call, calling)
    };
    assert_eq!(calling.await.unwrap().end.status(), "pending", "a process that ends hands back what waits");
    assert_eq!(submit(&house, &left, at("noon")).await, SubmitReply::Resolved { delivered: Delivered::Inbox });
    assert_ended_once(&house, &left).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sync_call_times_out_and_what_comes_late_is_kept_beside_it() {
    let stage = Stage::new();
    let house = house(&stage).await;
    let mut wish = deliver(&house, json!({"to": "anna", "within": 5000}));
    wish.wait = LIMIT;
    let outcome = house.pipeline.call(wish).await;
    let call = &outcome.tool_call_id;
    let End::Error { error } = &outcome.end else { panic!("{outcome:?}") };
    assert_eq!((error.code, error.message.as_str()), (ErrorCode::Timeout, "Tool timed out after 5ms"));
    assert_eq!((error.recoverable, outcome.attempts), (true, 1));
    assert_ended_once(&house, call).await;
    let record = haft_runtime::Journal::find(&house.store, &house.scope, call).await.unwrap().unwrap();

    let wrong = submit(&house, call, Submission::Result(json!({"on": "monday"}))).await;
    assert!(matches!(wrong, SubmitReply::NotFitting(_)), "{wrong:?}");
    assert_eq!(late_event(&house, call).await, None);
    let approved = haft(&stage, &["approve", call.as_str(), "--input", r#"{"at": "noon"}"#]);
    assert!(String::from_utf8_lossy(&approved.stderr).contains("timed out after 5 ms"), "{approved:?}");
    let resolved = SubmitReply::Resolved { delivered: Delivered::Inbox };
    assert_eq!(submit(&house, call, at("noon")).await, resolved);
    assert_eq!(submit(&house, call, at("noon")).await, SubmitReply::AlreadyEqual { delivered: Delivered::Inbox });
    assert_eq!(submit(&house, call, at("night")).await, SubmitReply::Conflict);

    assert!(matches!(late_event(&house, call).await, Some(CallEvent::Completed { .. })));
    let items = inbox(&house, call).await;
    let body = json!({"callId": call, "tool": "deliver", "status": "success", "result": {"at": "noon"}, "late": true});
    assert_eq!(items.iter().map(|item| &item.body).collect::<Vec<_>>(), [&body]);
    let late = house.store.late_result(&house.scope, call).await.unwrap().unwrap();
    assert_eq!((late.submission, late.by.name.as_str()), (at("noon"), "ann"));
    let now = haft_runtime::Journal::find(&house.store, &house.scope, call).await.unwrap().unwrap();
    assert_eq!(now, record, "the call stays as it ended");
    let told = haft(&stage, &["log", "show", call.as_str()]);
    assert!(String::from_utf8_lossy(&told.stdout).contains("came too late"), "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_that_comes_late_is_told_as_one() {
    let stage = Stage::new();
    let house = house(&stage).await;
    let mut wish = deliver(&house, json!({"to": "anna", "within": 1}));
    wish.wait = LIMIT;
    let call = house.pipeline.call(wish).await.tool_call_id;
    let failed = Submission::Error { code: Some("LOST".into()), message: "the parcel is lost".into() };
    assert_eq!(submit(&house, &call, failed).await, SubmitReply::Resolved { delivered: Delivered::Inbox });
    let Some(CallEvent::Failed { error, .. }) = late_event(&house, &call).await else { panic!() };
    assert_eq!(error.details["code"], "LOST");
    let items = inbox(&house, &call).await;
    assert_eq!((&items[0].body["status"], &items[0].body["late"]), (&json!("error"), &json!(true)));
    assert_eq!(items[0].body["error"], serde_json::to_value(error).unwrap());
}

/// What a submission came to, whichever came first: the caller hears of it once.
async fn assert_heard_once(house: &House, (call, outcome): (&CallId, &Outcome), reply: &SubmitReply) -> Delivered {
    let items = inbox(house, call).await;
    let late = house.store.late_result(&house.scope, call).await.unwrap();
    let delivered = match (&outcome.end, reply) {
        (End::Success { .. }, SubmitReply::Resolved { delivered: Delivered::Inline }) => {
            assert!(items.is_empty() && late.is_none(), "{items:?}");
            Delivered::Inline
        }
        (End::Error { error }, SubmitReply::Resolved { delivered: Delivered::Inbox }) => {
            assert_eq!(error.code, ErrorCode::Timeout, "{error}");
            assert!(late.is_some() && items.len() == 1 && items[0].body["late"] == true, "{items:?}");
            Delivered::Inbox
        }
        (End::Pending { .. }, SubmitReply::Resolved { delivered: Delivered::Inbox }) => {
            assert!(late.is_none() && items.len() == 1 && items[0].body["late"].is_null(), "{items:?}");
            Delivered::Inbox
        }
        (end, reply) => panic!("{end:?}, {reply:?}"),
    };
    let events = events(house, call).await;
    let in_time = |event: &&&CallEvent| {
        !matches!(event, CallEvent::Completed { late: true, .. } | CallEvent::Failed { late: true, .. })
    };
    assert_eq!(terminal(&events).iter().filter(in_time).count(), 1, "{events:#?}");
    delivered
}

/// Races a submission, from here and from another process, against the end of the wait, many times, so that both come first.
async fn race(stage: &Stage, input: impl Fn(u64) -> Value, wait: impl Fn(u64) -> Duration) {
    // Nobody dies here, however slow the machine is.
    let (one, other) = (stage.living_house().await, stage.living_house().await);
    one.registry.register(typed(Deliver)).unwrap();
    let mut ways = Vec::new();
    let mut micros = 500;
    for round in 0..60 {
        let giver = if round % 2 == 0 { &one } else { &other };
        let (call, calling) = held(&one, input(micros), wait(micros)).await;
        let reply = submit(giver, &call, at("noon")).await;
        let outcome = calling.await.unwrap();
        let way = assert_heard_once(&one, (&call, &outcome), &reply).await;
        // Whoever was first gets less time in the next round.
        micros = match way {
            Delivered::Inline => micros * 2 / 3,
            Delivered::Inbox => micros * 3 / 2 + 100,
        };
        ways.push(way);
    }
    for way in [Delivered::Inline, Delivered::Inbox] {
        assert!(ways.contains(&way), "{way:?} never came first");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_races_the_time_out_reaches_the_caller_once() {
    race(&Stage::new(), |micros| json!({"to": "anna", "within": micros.max(1)}), |_| LIMIT).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_races_the_handing_back_reaches_the_caller_once() {
    race(&Stage::new(), |_| json!({"to": "anna"}), |micros| Duration::from_micros(micros.max(1))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiter_that_is_killed_between_answer_and_record_leaves_the_result_to_the_inbox() {
    let stage = Stage::new();
    let waiting = Waiting::start(&stage);
    let call = waiting.call.clone();
    // It cannot hear the answer any more, and nobody can tell yet that it will not.
    let stopped = Command::new("kill").args(["-STOP", &waiting.child.id().to_string()]).status().unwrap();
    assert!(stopped.success());
    let house = stage.house().await;
    let (pipeline, caller, id) = (house.pipeline.clone(), ann(&house), call.clone());
    let giving = tokio::spawn(async move { pipeline.submit(&caller, &id, at("noon")).await });
    while matches!(house.question(&call).await.unwrap(), Some((_, None))) {
        tokio::task::yield_now().await;
    }
    waiting.kill();
    let reply = giving.await.unwrap().unwrap();
    assert_eq!(reply, SubmitReply::Resolved { delivered: Delivered::Inbox });
    assert_eq!(inbox(&house, &call).await.len(), 1);
    assert_ended_once(&house, &call).await;
    assert_eq!(submit(&house, &call, at("noon")).await, SubmitReply::AlreadyEqual { delivered: Delivered::Inbox });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiter_and_whoever_answered_may_both_be_killed() {
    let stage = Stage::new();
    let waiting = Waiting::start(&stage);
    let call = waiting.call.clone();
    {
        let dying = stage.house().await;
        let (question, _) = dying.question(&call).await.unwrap().unwrap();
        let given = Answer::Result { value: json!({"at": "noon"}) };
        waiting.kill();
        dying.pipeline.give_answer(&ann(&dying), &question.id(), given).await.unwrap();
    }
    // Whoever starts next ends it, as soon as nobody can take the waiter for alive.
    let house = stage.house().await;
    while inbox(&house, &call).await.is_empty() {
        house.pipeline.recover().await.unwrap();
        tokio::task::yield_now().await;
    }
    assert_eq!(inbox(&house, &call).await.len(), 1);
    assert_ended_once(&house, &call).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_expired_or_is_not_wanted_takes_no_result() {
    let stage = Stage::new();
    let house = house(&stage).await;
    let old = house.pipeline.call(deliver(&house, json!({"to": "anna", "expires_after": 1}))).await;
    let call = &old.tool_call_id;
    let End::Pending { pending } = &old.end else { panic!("{old:?}") };
    while Timestamp::now() < pending.expires_at {
        tokio::task::yield_now().await;
    }
    assert_eq!(submit(&house, call, at("noon")).await, SubmitReply::Expired, "although nobody had looked yet");
    assert_eq!(submit(&house, call, at("noon")).await, SubmitReply::Expired);
    let record = haft_runtime::Journal::find(&house.store, &house.scope, call).await.unwrap().unwrap();
    let ended = record.outcome.unwrap();
    assert_eq!((record.state, ended.end.status(), code(&ended).as_str()), (CallState::Ended, "cancelled", "EXPIRED"));
    assert_eq!(terminal(&events(&house, call).await), [&CallEvent::Cancelled { reason: "expired".into() }]);
    let items = inbox(&house, call).await;
    assert_eq!((items.len(), &items[0].body["status"]), (1, &json!("cancelled")));
    let error: ToolError = serde_json::from_value(items[0].body["error"].clone()).unwrap();
    assert_eq!(error.code, ErrorCode::Expired);

    let unwanted = house.pipeline.call(deliver(&house, json!({"to": "anna"}))).await.tool_call_id;
    answer(&house, &unwanted, Answer::Cancel).await;
    assert_eq!(submit(&house, &unwanted, at("noon")).await, SubmitReply::Cancelled);
    let held = house.pipeline.call(deliver(&house, json!({"to": "anna", "expires_after": 1}))).await.tool_call_id;
    while submit(&house, &held, Submission::Result(json!(1))).await != SubmitReply::Expired {
        tokio::task::yield_now().await;
    }
    house.pipeline.expire().await.unwrap();
    assert_ended_once(&house, &held).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_waits_past_the_expiry_hears_of_it_inline() {
    let stage = Stage::new();
    let house = house(&stage).await;
    let mut wish = deliver(&house, json!({"to": "anna", "expires_after": 1}));
    wish.wait = LIMIT;
    let outcome = house.pipeline.call(wish).await;
    assert_eq!((outcome.end.status(), code(&outcome).as_str()), ("cancelled", "EXPIRED"));
    assert!(inbox(&house, &outcome.tool_call_id).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_may_not_give_a_result_learns_nothing() {
    let stage = Stage::new();
    let house = house(&stage).await;
    let call = house.pipeline.call(deliver(&house, json!({"to": "anna", "only": "postman"}))).await.tool_call_id;
    let stranger = Caller { id: CallerId { kind: CallerKind::Person, id: "postman".into() }, ..ann(&house) };
    for what_of_it in ["it waits", "it has ended"] {
        // The tool does not mean the one, and the guard does not let the other.
        for caller in [&house.caller, &stranger] {
            let refused = house.pipeline.submit(caller, &call, at("noon")).await.unwrap_err();
            assert_eq!(refused.code, ErrorCode::Forbidden, "{what_of_it}");
        }
        answer(&house, &call, Answer::Cancel).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_waits_for_a_yes_takes_no_result() {
    let stage = Stage::new();
    let house = house(&stage).await;
    let asked = house.pipeline.call(crate::stage::request(&house, "deliver", json!({"to": "anna"}))).await;
    assert_eq!(submit(&house, &asked.tool_call_id, at("noon")).await, SubmitReply::Unknown);
    assert!(house.question(&asked.tool_call_id).await.unwrap().unwrap().1.is_none());
}
