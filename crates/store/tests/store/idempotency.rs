//! A key stands for one call, whichever process is asked.

use haft_runtime::{CallId, CallState, CallsInHand, Journal};
use haft_store::KeyUse;

use crate::samples::{anna, new_store, open, opened, scope};

#[tokio::test(flavor = "multi_thread")]
async fn a_key_stands_for_the_first_call() {
    let (_folder, store) = new_store().await;
    let (first, second, hands) = (CallId::new(), CallId::new(), CallsInHand::default());
    let in_hand = hands.hold(&first);
    assert_eq!(store.use_idempotency_key(&anna(), ("k", "digest"), (&first, &hands)).await.unwrap(), KeyUse::New);
    let again = store.use_idempotency_key(&anna(), ("k", "digest"), (&second, &hands)).await.unwrap();
    assert_eq!(again, KeyUse::Before(first.clone(), "digest".to_owned()));
    drop(in_hand);
    let let_go = store.use_idempotency_key(&anna(), ("k", "digest"), (&second, &hands)).await.unwrap();
    assert_eq!(let_go, KeyUse::New, "the first was never started, and nobody will");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_a_dead_process_never_started_is_started_once() {
    let (folder, store) = new_store().await;
    let dead = open(&folder).await;
    let (lost, started, hands) = (CallId::new(), opened(CallState::Preparing), CallsInHand::default());
    let use_key = async |store: &haft_store::Store, key: &str, digest: &str| {
        let call = CallId::new();
        // It is in hand until the end of the test.
        std::mem::forget(hands.hold(&call));
        let used = store.use_idempotency_key(&anna(), (key, digest), (&call, &hands)).await.unwrap();
        (call, used)
    };
    assert_eq!(dead.use_idempotency_key(&anna(), ("lost", "d"), (&lost, &hands)).await.unwrap(), KeyUse::New);
    assert_eq!(dead.use_idempotency_key(&anna(), ("kept", "d"), (&started.call, &hands)).await.unwrap(), KeyUse::New);
    let call = started.call.clone();
    dead.record(&scope(), started).await.unwrap();
    let alive = use_key(&store, "lost", "d").await.1;
    assert_eq!(alive, KeyUse::Before(lost.clone(), "d".to_owned()), "its process may still start it");
    dead.leave().await.unwrap();
    drop(dead);
    assert_eq!(use_key(&store, "kept", "d").await.1, KeyUse::Before(call, "d".to_owned()), "it was started");
    assert_eq!(
        use_key(&store, "lost", "other").await.1,
        KeyUse::Before(lost, "d".to_owned()),
        "that is another request"
    );
    let (new, used) = use_key(&store, "lost", "d").await;
    assert_eq!(used, KeyUse::New);
    assert_eq!(use_key(&store, "lost", "d").await.1, KeyUse::Before(new, "d".to_owned()));
}
