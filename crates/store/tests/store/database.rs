//! The database that a test runs on: SQLite in a folder, or one of its own on the server that `TEST_POSTGRES` names.
#![expect(clippy::disallowed_methods, reason = "which database the tests run on is said by the environment")]
#![allow(clippy::print_stdout, reason = "a test that has nothing to do says so")]

use std::{path::Path, time::Duration};

use haft_store::{Durability, Faults, Options};

/// The server to use; without it the tests run on SQLite.
pub(crate) fn server() -> Option<String> {
    std::env::var("TEST_POSTGRES").ok()
}

/// How to open the store in a folder. With `TEST_FAULTS` transactions are lost and commits break off on purpose.
pub(crate) fn options(folder: &Path) -> Options {
    let faults = std::env::var("TEST_FAULTS").is_ok().then(Faults::default);
    Options { url: url(folder), lease: Duration::from_secs(2), faults, ..Durability::Normal.into() }
}

/// The address of the folder's own database.
fn url(folder: &Path) -> Option<String> {
    let (server, _) = server()?.rsplit_once('/').map(|(server, name)| (server.to_owned(), name.to_owned()))?;
    Some(format!("{server}/{}", name(folder)))
}

/// A database is named after its folder.
fn name(folder: &Path) -> String {
    folder.file_name().unwrap().to_string_lossy().replace('.', "haft_")
}

/// Makes the folder's own database, where it is on a server.
#[allow(dead_code, reason = "only one of the two programs that share this file makes databases")]
pub(crate) async fn create(folder: &Path) {
    let Some(server) = server() else { return };
    let (client, connection) = tokio_postgres::connect(&server, tokio_postgres::NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    client.batch_execute(&format!("create database \"{}\"", name(folder))).await.unwrap();
    drop(client);
    connection.await.unwrap().unwrap();
}

/// Whether a test that is about SQLite's own files has nothing to do here.
#[allow(dead_code, reason = "only one of the two programs that share this file skips tests")]
pub(crate) fn is_elsewhere() -> bool {
    let elsewhere = server().is_some();
    if elsewhere {
        println!("skipped: it is about SQLite's files");
    }
    elsewhere
}
