//! A PostgreSQL server that refuses, goes away, is slow, or is not as it should be. Without one there is nothing to try.
#![expect(clippy::print_stdout, reason = "a test that has nothing to do says so")]

use std::{path::Path, time::Duration};

use haft_runtime::{CallState, Journal};
use haft_store::{Durability, Options, Store, StoreError};
use tokio_postgres::{Client, NoTls};

use crate::{
    database,
    samples::{ended, new_folder, new_store, open, opened, scope},
};

/// A connection to a database of the server, as its operator has one.
async fn operator(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

fn is_missing() -> bool {
    let missing = database::server().is_none();
    if missing {
        println!("skipped: it is about a PostgreSQL server");
    }
    missing
}

fn url(folder: &Path) -> String {
    database::options(folder).url.unwrap()
}

async fn refused(url: &str) -> StoreError {
    let options = Options { url: Some(url.to_owned()), ..Durability::Normal.into() };
    Store::open(Path::new("nowhere"), options).await.err().unwrap()
}

#[tokio::test]
async fn a_server_that_cannot_be_used_is_named_without_its_password() {
    if is_missing() {
        return;
    }
    let server = database::server().unwrap();
    let unknown = refused(&server.replace("/postgres", "/nobody_made_this").replace("haft@", "haft:hunter22@")).await;
    assert!(matches!(unknown, StoreError::NotLetIn { .. }), "{unknown:?}");
    let away = refused("postgres://haft:hunter22@%2Fnowhere/haft").await;
    assert!(matches!(away, StoreError::Unreachable { .. }), "{away:?}");
    let closed = refused("postgres://haft:hunter22@127.0.0.1:1/haft").await;
    assert!(matches!(closed, StoreError::Unreachable { .. }), "{closed:?}");
    for err in [unknown, away, closed] {
        let told = format!("{err} {}", haft_runtime::ToolError::from(err.clone()));
        assert!(told.contains("store.url") && !told.contains("hunter22"), "{told}");
    }
    assert!(matches!(refused("postgres://[").await, StoreError::Url));
}

#[tokio::test]
async fn a_database_in_another_alphabet_or_of_somebody_else_is_refused() {
    if is_missing() {
        return;
    }
    let server = operator(&database::server().unwrap()).await;
    let name = |what: &str| format!("{what}_{}", haft_runtime::CallId::new());
    let (latin, foreign) = (name("latin"), name("foreign"));
    let make = format!("create database \"{latin}\" encoding 'LATIN1' locale 'C' template template0");
    server.batch_execute(&make).await.unwrap();
    server.batch_execute(&format!("create database \"{foreign}\"")).await.unwrap();
    let at = |name: &str| database::server().unwrap().replace("/postgres", &format!("/{name}"));
    let err = refused(&at(&latin)).await;
    assert!(matches!(&err, StoreError::Encoding { encoding, .. } if encoding == "LATIN1"), "{err:?}");
    operator(&at(&foreign)).await.batch_execute("create table calls (id text)").await.unwrap();
    let err = refused(&at(&foreign)).await;
    assert!(matches!(err, StoreError::Foreign { .. }), "{err:?}");
}

#[tokio::test]
async fn a_newer_or_read_only_database_is_refused() {
    if is_missing() {
        return;
    }
    let (folder, store) = new_store().await;
    store.close().await.unwrap();
    let url = url(folder.path());
    let client = operator(&url).await;
    client.batch_execute("update meta set number = 99 where name = 'schema'").await.unwrap();
    open(&folder).await.close().await.unwrap();
    client.batch_execute("update meta set number = 99 where name = 'oldest_reader'").await.unwrap();
    let err = refused(&url).await;
    assert!(matches!(err, StoreError::Newer { needs: 99, .. }), "{err:?}");

    let empty = new_folder().await;
    let url = database::options(empty.path()).url.unwrap();
    let client = operator(&url).await;
    let name: String = client.query_one("select current_database()::text", &[]).await.unwrap().get(0);
    client.batch_execute(&format!("alter database \"{name}\" set default_transaction_read_only = on")).await.unwrap();
    let err = refused(&url).await;
    assert!(matches!(err, StoreError::ReadOnly(_)), "{err:?}");
}

#[tokio::test]
async fn connections_that_the_server_ends_are_made_anew() {
    if is_missing() {
        return;
    }
    let (folder, store) = new_store().await;
    let client = operator(&url(folder.path())).await;
    for _ in 0..5 {
        let entry = opened(CallState::Executing);
        let call = entry.call.clone();
        store.record(&scope(), entry).await.unwrap();
        let end = "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() \
                   and pid <> pg_backend_pid()";
        client.batch_execute(end).await.unwrap();
        assert!(Journal::find(&store, &scope(), &call).await.unwrap().is_some());
        client.batch_execute(end).await.unwrap();
        store.record(&scope(), ended(&call)).await.unwrap();
        assert_eq!(store.events(&scope(), &call).await.unwrap().len(), 2, "nothing is lost, nothing is there twice");
    }
}

#[tokio::test]
async fn a_slow_server_is_waited_for_and_its_time_zone_does_not_matter() {
    if is_missing() {
        return;
    }
    let (folder, store) = new_store().await;
    let mut client = operator(&url(folder.path())).await;
    let name: String = client.query_one("select current_database()::text", &[]).await.unwrap().get(0);
    client.batch_execute(&format!("alter database \"{name}\" set timezone = 'Asia/Kathmandu'")).await.unwrap();
    let lock = client.transaction().await.unwrap();
    lock.batch_execute("lock table heads in access exclusive mode").await.unwrap();
    let elsewhere = open(&folder).await;
    let entry = opened(CallState::Executing);
    let (call, opening) = (entry.call.clone(), entry.opening.clone().unwrap());
    let scope = scope();
    let recording = elsewhere.record(&scope, entry);
    tokio::pin!(recording);
    assert!(tokio::time::timeout(Duration::from_millis(500), &mut recording).await.is_err(), "it waits");
    lock.commit().await.unwrap();
    recording.await.unwrap();
    let found = Journal::find(&store, &scope, &call).await.unwrap().unwrap();
    assert_eq!(found.opening, opening);
}
