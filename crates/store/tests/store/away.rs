//! What comes back from elsewhere counts once: browsers that were at a provider, accounts there, and devices that wait.

use futures_util::future::join_all;
use haft_runtime::{Scope, TenantId};
use haft_store::{
    DeviceRecord, DeviceState, NewConsent, NewOAuthToken, OAuthTokenKind, OidcAccount, OidcRequest, PersonRecord, Store,
};
use jiff::SignedDuration;

use crate::samples::{house, new_store, now};

fn request(id: &str) -> OidcRequest {
    OidcRequest {
        id: id.into(),
        provider: "acme".into(),
        browser: "b".into(),
        tenant_slug: None,
        page: "/".into(),
        expires_at: now() + SignedDuration::from_mins(15),
    }
}

fn device(id: &str) -> DeviceRecord {
    DeviceRecord {
        id: id.into(),
        user_code: format!("code of {id}"),
        client: "c".into(),
        scopes: "tools:read".into(),
        resource: "r".into(),
        asked_from: Some("10.0.0.1".into()),
        state: DeviceState::Asked,
        created_at: now(),
        expires_at: now() + SignedDuration::from_mins(10),
        polled_at: None,
    }
}

fn yes(id: &str) -> (NewConsent, NewOAuthToken) {
    let consent = NewConsent {
        id: format!("oc {id}"),
        person: "ann".into(),
        client: "c".into(),
        client_name: "C".into(),
        scopes: "tools:read".into(),
        resource: "r".into(),
    };
    let (kind, expires_at) = (OAuthTokenKind::Device, now() + SignedDuration::from_mins(10));
    (consent, NewOAuthToken { id: id.into(), kind, redirect_uri: None, challenge: None, expires_at })
}

async fn acme(store: &Store) -> Scope {
    let id = TenantId::parse("acme").unwrap();
    assert!(store.add_tenant(&house(), (&id, "acme", "acme")).await.unwrap());
    let scope = store.tenant_by_slug(&house(), "acme").await.unwrap().unwrap().scope;
    let ann = PersonRecord { id: "ann".into(), name: "ann".into(), email: "a@example.org".into(), password: None };
    store.add_person(&house(), &ann).await.unwrap();
    assert!(store.add_member(&scope, "ann", "member").await.unwrap());
    scope
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_comes_back_once_and_is_the_one_that_left() {
    let (_folder, store) = new_store().await;
    store.add_oidc_request(&house(), &request("s")).await.unwrap();
    assert_eq!(store.use_oidc_request(&house(), "s", "another").await.unwrap(), None);
    let at_once = join_all((0..8).map(|_| async { store.use_oidc_request(&house(), "s", "b").await.unwrap() })).await;
    let came_back: Vec<OidcRequest> = at_once.into_iter().flatten().collect();
    assert_eq!((came_back.len(), came_back[0].page.as_str()), (1, "/"));
    let late = OidcRequest { expires_at: now() - SignedDuration::from_secs(1), ..request("late") };
    store.add_oidc_request(&house(), &late).await.unwrap();
    assert_eq!(store.use_oidc_request(&house(), "late", "b").await.unwrap(), None);
    store.forget_expired_oidc_requests(&house()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_is_one_person_and_a_person_has_one_of_each_provider() {
    let (_folder, store) = new_store().await;
    let account = |issuer, subject| OidcAccount { issuer, subject };
    let (people, house_wide) = (["ann", "bob", "cid"], house());
    let linked = join_all(people.map(|person| store.link_account(&house_wide, account("i", "s"), person))).await;
    assert_eq!(linked.into_iter().filter(|linked| *linked.as_ref().unwrap()).count(), 1);
    let whose = store.person_of_account(&house(), account("i", "s")).await.unwrap().unwrap();
    assert!(!store.link_account(&house(), account("i", "other"), &whose).await.unwrap());
    assert!(store.link_account(&house(), account("another", "s"), &whose).await.unwrap());
    assert!(store.unlink_accounts(&house(), &whose).await.unwrap());
    assert!(!store.unlink_accounts(&house(), &whose).await.unwrap());
    assert_eq!(store.person_of_account(&house(), account("another", "s")).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_is_answered_once() {
    let (_folder, store) = new_store().await;
    let scope = acme(&store).await;
    for round in 0..10 {
        let id = format!("d{round}");
        assert!(store.add_device(&house(), &device(&id)).await.unwrap());
        assert!(
            !store.add_device(&house(), &DeviceRecord { id: "x".into(), ..device(&id) }).await.unwrap(),
            "one code"
        );
        let ((consent, code), house_wide) = (yes(&id), house());
        let (allowed, denied) =
            tokio::join!(store.allow_device(&scope, &id, &consent, &code), store.deny_device(&house_wide, &id));
        let (allowed, denied) = (allowed.unwrap(), denied.unwrap());
        assert_ne!(allowed, denied, "{round}");
        let kept = store.device(&house(), &id).await.unwrap().unwrap();
        assert_eq!(kept.state, if allowed { DeviceState::Allowed } else { DeviceState::Denied });
        assert_eq!(store.oauth_token(&house(), &id).await.unwrap().is_some(), allowed, "a yes and its code are one");
        assert_eq!(store.device_asking(&house(), &kept.user_code).await.unwrap(), None);
    }
    let late = DeviceRecord { expires_at: now() - SignedDuration::from_mins(20), ..device("late") };
    store.add_device(&house(), &late).await.unwrap();
    let (consent, code) = yes("late");
    assert!(!store.allow_device(&scope, "late", &consent, &code).await.unwrap());
    store.note_device_poll(&house(), "late").await.unwrap();
    assert!(store.device(&house(), "late").await.unwrap().unwrap().polled_at.is_some());
    store.forget_expired_devices(&house()).await.unwrap();
    assert_eq!(store.device(&house(), "late").await.unwrap(), None);
}
