//! A database that cannot be used is refused in a sentence and left as it is.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use haft_runtime::{CallState, ErrorCode, Journal};
use haft_store::{Durability, Store, StoreError};
use rusqlite::Connection;

use crate::{
    database::is_elsewhere,
    samples::{new_folder, new_store, open, opened, scope},
};

async fn refused(data: &Path) -> StoreError {
    let database = data.join("haft.db");
    let before = fs::read(&database).unwrap();
    let err = Store::open(data, Durability::Normal).await.err().unwrap();
    assert!(fs::read(&database).unwrap() == before, "it was rewritten");
    err
}

#[tokio::test]
async fn a_newer_database_is_refused() {
    if is_elsewhere() {
        return;
    }
    let (folder, store) = new_store().await;
    store.close().await.unwrap();
    let data = folder.path().join("data");
    let conn = Connection::open(data.join("haft.db")).unwrap();
    let change = |name: &str, number: i64| {
        let text = "update meta set number = ?2 where name = ?1";
        assert_eq!(conn.execute(text, rusqlite::params![name, number]).unwrap(), 1);
    };
    change("schema", 99);
    let newer = Store::open(&data, Durability::Normal).await.expect("what was only added does no harm");
    // Whoever closes the database last brings its log in; that must not be this store, some time later.
    newer.close().await.unwrap();
    change("oldest_reader", 99);
    drop(conn);
    let err = refused(&data).await;
    assert!(matches!(err, StoreError::Newer { needs: 99, known: 2, .. }), "{err:?}");
    assert!(err.to_string().contains("needs a newer haft"), "{err}");
}

#[tokio::test]
async fn a_damaged_database_is_refused() {
    if is_elsewhere() {
        return;
    }
    let (folder, store) = new_store().await;
    store.record(&scope(), opened(CallState::Executing)).await.unwrap();
    store.close().await.unwrap();
    let data = folder.path().join("data");
    let database = data.join("haft.db");
    let whole = fs::read(&database).unwrap();
    for broken in [&whole[..whole.len() / 2 / 4096 * 4096], &whole[..5000], &whole[..100], &[7; 10_000][..]] {
        fs::write(&database, broken).unwrap();
        let err = refused(&data).await;
        assert!(matches!(err, StoreError::Damaged(_)), "{err:?}");
    }
}

#[tokio::test]
async fn a_folder_that_cannot_be_made_is_refused() {
    if is_elsewhere() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let err = Store::open(&file.join("data"), Durability::Full).await.err().unwrap();
    assert!(matches!(err, StoreError::Folder { .. }), "{err:?}");
}

#[tokio::test]
async fn a_damaged_row_is_an_error_that_names_the_call() {
    if is_elsewhere() {
        return;
    }
    let (folder, store) = new_store().await;
    let entry = opened(CallState::Executing);
    let call = entry.call.clone();
    store.record(&scope(), entry).await.unwrap();
    let database = folder.path().join("data/haft.db");
    let conn = Connection::open(database).unwrap();
    conn.execute_batch("update open_calls set input = '{'; update entries set events = 'x'").unwrap();
    let err = Journal::find(&store, &scope(), &call).await.unwrap_err();
    assert_eq!(err.code, ErrorCode::StoreUnavailable);
    assert!(err.message.contains(call.as_str()) && err.message.contains("input"), "{err}");
    let err = store.events(&scope(), &call).await.unwrap_err();
    assert!(matches!(&err, StoreError::Row { of, column: "events", .. } if of == call.as_str()), "{err:?}");
    conn.execute_batch("update open_calls set state = 'flying', input = '{}'").unwrap();
    let err = Journal::find(&store, &scope(), &call).await.unwrap_err();
    assert!(err.message.contains("state"), "{err}");
}

#[tokio::test]
async fn the_files_belong_to_the_owner_alone() {
    if is_elsewhere() {
        return;
    }
    let (folder, store) = new_store().await;
    store.record(&scope(), opened(CallState::Executing)).await.unwrap();
    let data = folder.path().join("data");
    let mode = |path: &str| fs::metadata(data.join(path)).unwrap().permissions().mode() & 0o777;
    let modes = ["", "haft.db", "haft.db-wal", "haft.db-shm", "owners"].map(mode);
    assert_eq!(modes, [0o700, 0o600, 0o600, 0o600, 0o700]);
    assert_eq!(mode(&format!("owners/{}", store.owner())), 0o600);
    store.close().await.unwrap();
    assert!(!data.join("owners").join(store.owner()).exists());
}

#[tokio::test]
async fn many_may_make_the_same_database_at_once() {
    let folder = new_folder().await;
    let stores = futures_util::future::join_all((0..16).map(|_| open(&folder))).await;
    for store in &stores {
        store.record(&scope(), opened(CallState::Executing)).await.unwrap();
    }
    assert_eq!(stores[0].health().await.unwrap().calls, 16);
}
