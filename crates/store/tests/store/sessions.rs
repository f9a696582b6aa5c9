//! Sessions, and the calls that belong to them.

use std::sync::Arc;

use haft_runtime::{
    CallState, Caller, CallerId, CallerKind, Journal, Permissions, Scope, Source, TenantId, Via, Within,
};
use haft_store::{CallFilter, SessionCalls};

use crate::samples::{anna, ended, new_store, opened, scope};

fn key(id: &str) -> Caller {
    let id = CallerId { kind: CallerKind::Key, id: id.into() };
    let (permissions, via) = (Permissions::none(), Via::default());
    Caller { id, name: "k".into(), scope: scope(), permissions, source: Source::Api, via }
}

#[tokio::test]
async fn calls_are_found_by_their_session() {
    let (_folder, store) = new_store().await;
    store.add_session(&anna(), ("se_1", "Work")).await.unwrap();
    store.add_session(&key("a"), ("se_2", "Other")).await.unwrap();
    let mut calls = Vec::new();
    for (session, state) in
        [(Some("se_1"), CallState::Ended), (Some("se_1"), CallState::Waiting), (None, CallState::Ended)]
    {
        let mut entry = opened(CallState::Executing);
        let via = Via { session: session.map(str::to_owned), ..Via::default() };
        entry.via = Arc::new(via.clone());
        entry.opening.as_mut().unwrap().caller.via = via;
        calls.push(entry.call.clone());
        store.record(&scope(), entry).await.unwrap();
        let last = calls.last().unwrap();
        match state {
            CallState::Ended => store.record(&scope(), ended(last)).await.unwrap(),
            CallState::Preparing | CallState::Waiting | CallState::Executing => {
                store.record(&scope(), crate::samples::later(last, state)).await.unwrap();
            }
        }
    }
    let of = |session: &str| CallFilter { session: Some(session.into()), ..CallFilter::default() };
    let found = store.calls(&scope(), &Within::Everything, &of("se_1")).await.unwrap();
    let ids: Vec<_> = found.iter().map(|row| row.id.clone()).collect();
    assert_eq!(ids, [calls[1].clone(), calls[0].clone()], "those that have ended and those that have not");
    assert!(found.iter().all(|row| row.via.session.as_deref() == Some("se_1")));
    assert!(store.calls(&scope(), &Within::Everything, &of("se_2")).await.unwrap().is_empty());
    let counts = store.calls_of_session(&scope(), "se_1").await.unwrap();
    assert_eq!(counts, SessionCalls { total: 2, waiting: 1, running: 0 });
    let other = Scope::of_house(TenantId::parse("other").unwrap(), None);
    assert_eq!(store.calls_of_session(&other, "se_1").await.unwrap(), SessionCalls::default());
    assert_eq!(store.session(&other, "se_1").await.unwrap(), None);
    assert_eq!(store.session(&scope(), "se_1").await.unwrap().unwrap().by, anna().who());
    let page = |of: Option<CallerId>, before: Option<&'static str>| {
        let store = store.clone();
        async move {
            let found = store.sessions(&scope(), of.as_ref(), (before, 10)).await.unwrap();
            found.into_iter().map(|session| session.id).collect::<Vec<_>>()
        }
    };
    assert_eq!(page(None, None).await, ["se_2", "se_1"], "newest first");
    assert_eq!(page(None, Some("se_2")).await, ["se_1"]);
    assert_eq!(page(Some(key("a").id), None).await, ["se_2"]);
    assert_eq!(store.caller_of(&scope(), &calls[0]).await.unwrap(), Some(anna().who()));
    assert_eq!(store.caller_of(&other, &calls[0]).await.unwrap(), None);
}
