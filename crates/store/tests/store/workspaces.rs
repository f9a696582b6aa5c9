//! Workspaces that live on one of several nodes: any node records an answer, that one carries it out.
#![allow(clippy::print_stdout, reason = "a test that has nothing to do says so")]

use haft_runtime::{CallId, CallState, ClaimResult, Journal, Questions, Scope, WorkspaceId};
use haft_store::{Options, Store};
use tempfile::TempDir;

use crate::{
    database::{options, server},
    samples::{Answering, answered, first, house, new_folder, opened, question, scope},
};

/// One more store on the same folder, which serves as a node of this name.
async fn node(folder: &TempDir, name: &str) -> Store {
    let options = Options { node: Some(name.to_owned()), ..options(folder.path()) };
    Store::open(&folder.path().join("data"), options).await.unwrap()
}

/// A workspace of the tenant that calls of the samples belong to.
async fn workspace(store: &Store) -> Scope {
    let tenant = Scope::of_house(scope().tenant().clone(), None);
    store.add_workspace(&tenant, &WorkspaceId::new("w"), ("shop", None)).await.unwrap();
    scope()
}

/// A call that waits for its yes, handed back by a node that is gone.
async fn left_waiting(folder: &TempDir, name: &str) -> CallId {
    let store = node(folder, name).await;
    let entry = opened(CallState::Waiting);
    let call = entry.call.clone();
    store.ask(&scope(), &question(&call), entry).await.unwrap();
    store.close().await.unwrap();
    call
}

#[tokio::test]
async fn an_answered_call_is_carried_on_by_the_node_of_its_workspace() {
    if server().is_none() {
        println!("skipped: only PostgreSQL serves several nodes");
        return;
    }
    let folder = new_folder().await;
    let (a, b) = (node(&folder, "a").await, node(&folder, "b").await);
    let shop = workspace(&a).await;
    assert_eq!(b.workspace_elsewhere(&shop).await.unwrap(), None, "the first node that works there has it");
    assert_eq!(a.workspace_elsewhere(&shop).await.unwrap().as_deref(), Some("b"));
    let call = left_waiting(&folder, "b").await;
    assert_eq!(a.waiting_for_node(&shop, &call).await.unwrap(), None, "it waits for a person");
    a.reply(&shop, &first(&call), &answered("anna")).await.unwrap();
    assert_eq!(a.waiting_for_node(&shop, &call).await.unwrap().as_deref(), Some("b"));
    assert_eq!(a.claim(&shop, &call).await.unwrap(), ClaimResult::OfNode("b".to_owned()));
    assert_eq!(b.waiting_for_node(&shop, &call).await.unwrap(), None);
    assert_eq!(b.claim(&shop, &call).await.unwrap(), ClaimResult::Claimed);
    let moved = left_waiting(&folder, "b").await;
    a.reply(&shop, &first(&moved), &answered("anna")).await.unwrap();
    assert!(a.move_workspace(&shop, "a").await.unwrap());
    assert_eq!(b.claim(&shop, &moved).await.unwrap(), ClaimResult::OfNode("a".to_owned()));
    assert_eq!(a.claim(&shop, &moved).await.unwrap(), ClaimResult::Claimed);
}

#[tokio::test]
async fn what_a_dead_node_left_in_its_workspace_is_ended_there() {
    if server().is_none() {
        println!("skipped: only PostgreSQL serves several nodes");
        return;
    }
    let folder = new_folder().await;
    let (a, b) = (node(&folder, "a").await, node(&folder, "b").await);
    let shop = workspace(&a).await;
    assert_eq!(b.workspace_elsewhere(&shop).await.unwrap(), None);
    let entry = opened(CallState::Executing);
    let call = entry.call.clone();
    b.record(&shop, entry).await.unwrap();
    b.close().await.unwrap();
    assert!(a.abandoned(&house()).await.unwrap().is_empty());
    let again = node(&folder, "b").await;
    let taken = again.abandoned(&house()).await.unwrap();
    assert_eq!(taken.iter().map(|record| &record.call).collect::<Vec<_>>(), [&call]);
}

#[tokio::test]
async fn a_file_has_one_node_whatever_it_is_called() {
    if crate::database::is_elsewhere() {
        return;
    }
    let folder = new_folder().await;
    let (a, b) = (node(&folder, "a").await, node(&folder, "b").await);
    let shop = workspace(&a).await;
    for store in [&a, &b] {
        assert_eq!(store.workspace_elsewhere(&shop).await.unwrap(), None);
    }
}
