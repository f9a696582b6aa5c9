//! Who belongs to a tenant: its last owner stays, and whoever leaves takes their keys and sign-ins with them.

use haft_runtime::{Scope, TenantId};
use haft_store::{NewApiKey, NewSignIn, PersonRecord, Store};
use jiff::SignedDuration;

use crate::samples::{house, new_store, now};

async fn tenant(store: &Store, slug: &str) -> Scope {
    let id = TenantId::parse(slug).unwrap();
    assert!(store.add_tenant(&house(), (&id, slug, slug)).await.unwrap());
    store.tenant_by_slug(&house(), slug).await.unwrap().unwrap().scope
}

async fn person(store: &Store, scope: &Scope, id: &str, role: &str) {
    let email = format!("{id}@example.org");
    let new = PersonRecord { id: id.into(), name: id.into(), email, password: None };
    store.add_person(&house(), &new).await.unwrap();
    assert!(store.add_member(scope, id, role).await.unwrap());
}

async fn signed_in(store: &Store, scope: &Scope, id: &str, person: &str) {
    let expires_at = now() + SignedDuration::from_hours(1);
    let new = NewSignIn { id: id.into(), person: person.into(), csrf: "c".into(), process: None, expires_at };
    store.add_sign_in(scope, &new).await.unwrap();
}

fn key(id: &str, made_by: &str) -> NewApiKey {
    let (name, secret, scopes) = ("k".into(), "s".into(), "tools:read".into());
    NewApiKey { id: id.into(), name, secret, scopes, made_by: Some(made_by.into()), expires_at: None }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_owners_that_leave_at_once_one_stays() {
    let (_folder, store) = new_store().await;
    let acme = tenant(&store, "acme").await;
    for round in 0..10 {
        let (ann, bob) = (format!("ann{round}"), format!("bob{round}"));
        for owner in [&ann, &bob] {
            person(&store, &acme, owner, "owner").await;
        }
        // The owner of the round before goes, now that there are others.
        if round > 0 {
            for before in ["ann", "bob"] {
                store.remove_member(&acme, &format!("{before}{}", round - 1)).await.unwrap();
            }
        }
        let (one, other) =
            tokio::join!(store.change_role(&acme, (&ann, "viewer"), ""), store.remove_member(&acme, &bob));
        assert_ne!(one.unwrap(), other.unwrap(), "exactly one of them may go");
        let members = store.members(&acme).await.unwrap();
        assert_eq!(members.iter().filter(|member| member.role == "owner").count(), 1, "{members:?}");
    }
}

#[tokio::test]
async fn whoever_leaves_or_changes_is_signed_in_no_longer() {
    let (_folder, store) = new_store().await;
    let (acme, bolt) = (tenant(&store, "acme").await, tenant(&store, "bolt").await);
    person(&store, &acme, "ann", "owner").await;
    person(&store, &acme, "bob", "member").await;
    assert!(!store.add_member(&acme, "bob", "owner").await.unwrap(), "nobody is added twice");
    assert!(store.add_member(&bolt, "bob", "viewer").await.unwrap());
    for (scope, id) in [(&acme, "here"), (&acme, "also"), (&bolt, "there")] {
        signed_in(&store, scope, id, "bob").await;
    }
    store.add_api_key(&acme, &key("k1", "bob")).await.unwrap();
    store.add_api_key(&bolt, &key("k2", "bob")).await.unwrap();
    let version = store.tenant_version(&acme).await.unwrap();
    assert!(store.change_role(&acme, ("bob", "viewer"), "here").await.unwrap());
    let ids = |all: Vec<haft_store::SignInRecord>| all.into_iter().map(|one| one.id).collect::<Vec<_>>();
    assert_eq!(ids(store.sign_ins_of(&house(), "bob").await.unwrap()), ["here", "there"]);
    assert!(store.tenant_version(&acme).await.unwrap() > version, "whoever listens looks again");
    assert!(!store.name_person(&acme, "bob", "Robert").await.unwrap(), "he is not theirs alone");
    assert!(store.remove_member(&acme, "bob").await.unwrap());
    assert_eq!(ids(store.sign_ins_of(&house(), "bob").await.unwrap()), ["there"]);
    assert!(store.api_key(&house(), "k1").await.unwrap().is_none());
    assert!(store.api_key(&house(), "k2").await.unwrap().is_some());
    assert!(store.name_person(&bolt, "bob", "Robert").await.unwrap());
    signed_in(&store, &bolt, "new", "bob").await;
    let version = store.tenant_version(&bolt).await.unwrap();
    assert!(store.set_password(&bolt, ("bob", "hash"), "new").await.unwrap());
    assert_eq!(ids(store.sign_ins_of(&house(), "bob").await.unwrap()), ["new"]);
    assert!(store.tenant_version(&bolt).await.unwrap() > version);
    assert!(!store.remove_member(&acme, "ann").await.unwrap(), "the last owner stays");
    assert!(!store.change_role(&acme, ("ann", "admin"), "").await.unwrap());
}

#[tokio::test]
async fn a_key_knows_until_when_and_when_it_was_used() {
    let (_folder, store) = new_store().await;
    let acme = tenant(&store, "acme").await;
    let until = now() + SignedDuration::from_hours(1);
    store.add_api_key(&acme, &NewApiKey { expires_at: Some(until), made_by: None, ..key("k1", "") }).await.unwrap();
    let known = store.api_key(&house(), "k1").await.unwrap().unwrap();
    assert_eq!((known.expires_at, known.last_used_at), (Some(until), None));
    let before = now() - SignedDuration::from_secs(1);
    store.note_use_of_key(&house(), "k1").await.unwrap();
    haft_runtime::Journal::caught_up(&store).await.unwrap();
    let known = store.api_key(&house(), "k1").await.unwrap().unwrap();
    assert!(known.last_used_at.is_some_and(|used| used >= before), "{known:?}");
}

#[tokio::test]
async fn a_secret_that_is_set_again_keeps_its_hosts() {
    let (_folder, store) = new_store().await;
    let acme = tenant(&store, "acme").await;
    store.set_secret(&acme, ("TOKEN", "api.example.org"), vec![1]).await.unwrap();
    store.set_secret(&acme, ("TOKEN", ""), vec![2]).await.unwrap();
    let secret = store.secret(&acme, "TOKEN").await.unwrap().unwrap();
    assert_eq!((secret.hosts.as_str(), secret.sealed.as_slice()), ("api.example.org", &[2][..]), "its hosts stay");
}
