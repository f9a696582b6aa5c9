//! Logins at upstream servers: one of many has the turn, a late word counts no more, and they go with their server and person.

use std::time::Duration;

use haft_runtime::{Scope, TenantId};
use haft_store::{LoginAttemptRow, LoginKey, NewMcpServer, Store};
use jiff::SignedDuration;

use crate::samples::{new_store, now, open, scope};

const LONG: Duration = Duration::from_secs(600);

fn key(holder: &str) -> LoginKey {
    LoginKey { server: "docs".to_owned(), holder: holder.to_owned() }
}

fn other_tenant() -> Scope {
    Scope::of_house(TenantId::parse("bolt").unwrap(), None)
}

async fn revision(store: &Store, key: &LoginKey) -> i64 {
    store.upstream_login(&scope(), key).await.unwrap().unwrap().revision
}

fn attempt(id: &str) -> LoginAttemptRow {
    LoginAttemptRow {
        id: id.to_owned(),
        key: key("person:ann"),
        person: "ann".to_owned(),
        sign_in: String::new(),
        sealed: vec![1, 2, 3],
        expires_at: now() + SignedDuration::from_mins(15),
    }
}

#[tokio::test]
async fn one_of_many_has_the_turn_and_a_late_word_counts_no_more() {
    let (folder, store) = new_store().await;
    let (other, mine, ann) = (open(&folder).await, scope(), key("person:ann"));
    store.set_upstream_login(&mine, &ann, vec![1]).await.unwrap();
    let first = revision(&other, &ann).await;
    let mut taken = 0;
    for store in [&store, &other, &store, &other] {
        taken += i32::from(store.take_login_turn(&mine, (&ann, first), LONG).await.unwrap());
    }
    assert_eq!(taken, 1);
    assert!(store.save_upstream_login(&mine, (&ann, first), vec![2]).await.unwrap());
    assert!(!other.save_upstream_login(&mine, (&ann, first), vec![3]).await.unwrap(), "it was saved meanwhile");
    assert!(!other.take_login_turn(&mine, (&ann, first), LONG).await.unwrap(), "of a login that is another by now");
    let second = revision(&other, &ann).await;
    assert!(other.take_login_turn(&mine, (&ann, second), Duration::ZERO).await.unwrap(), "saving ends the turn");
    let again = async {
        while !store.take_login_turn(&mine, (&ann, second), LONG).await.unwrap() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), again).await.unwrap();
    store.set_upstream_login(&mine, &ann, vec![4]).await.unwrap();
    assert!(!other.save_upstream_login(&mine, (&ann, second), vec![5]).await.unwrap(), "somebody has logged in anew");
    assert_eq!(store.upstream_login(&mine, &ann).await.unwrap().unwrap().sealed, [4]);
    assert!(revision(&store, &ann).await > second);
}

#[tokio::test]
async fn a_login_that_was_begun_is_used_once_and_only_in_its_tenant() {
    let (folder, store) = new_store().await;
    let (other, mine) = (open(&folder).await, scope());
    store.add_login_attempt(&mine, &attempt("a")).await.unwrap();
    assert!(store.login_attempt(&other_tenant(), "a").await.unwrap().is_none());
    assert!(!store.use_login_attempt(&other_tenant(), "a").await.unwrap());
    assert!(other.login_attempt(&mine, "a").await.unwrap() == Some(attempt_as_kept(&store).await));
    let used = [store.use_login_attempt(&mine, "a").await.unwrap(), other.use_login_attempt(&mine, "a").await.unwrap()];
    assert_eq!(used, [true, false]);
}

async fn attempt_as_kept(store: &Store) -> LoginAttemptRow {
    store.login_attempt(&scope(), "a").await.unwrap().unwrap()
}

#[tokio::test]
async fn logins_go_with_their_server_and_their_person_and_are_no_other_tenants() {
    let (_folder, store) = new_store().await;
    let (mine, [ann, bob, all]) = (scope(), ["person:ann", "person:bob", "tenant"].map(key));
    let server = NewMcpServer { name: "docs".to_owned(), body: "{}".to_owned(), saved_by: "ann".to_owned() };
    assert!(store.add_mcp_server(&mine, &server).await.unwrap());
    for key in [&ann, &bob, &all] {
        store.set_upstream_login(&mine, key, vec![1]).await.unwrap();
        store.set_upstream_login(&other_tenant(), key, vec![2]).await.unwrap();
    }
    assert!(store.remove_upstream_login(&mine, &ann).await.unwrap());
    assert!(!store.remove_upstream_login(&mine, &ann).await.unwrap());
    store.add_login_attempt(&mine, &attempt("a")).await.unwrap();
    assert!(store.remove_mcp_server(&mine, "docs").await.unwrap());
    for key in [&bob, &all] {
        assert!(store.upstream_login(&mine, key).await.unwrap().is_none());
        assert_eq!(store.upstream_login(&other_tenant(), key).await.unwrap().unwrap().sealed, [2]);
    }
    assert!(store.login_attempt(&mine, "a").await.unwrap().is_none());
}
