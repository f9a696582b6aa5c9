//! The database that the stories play on: SQLite, or one of its own for each on the server that `TEST_POSTGRES` names.

use std::{path::Path, thread};

/// The address of the folder's own database; nothing where the stories play on SQLite.
pub(crate) fn address(folder: &Path) -> Option<String> {
    let server = server()?;
    let (before, _) = server.rsplit_once('/')?;
    Some(format!("{before}/{}", name(folder)))
}

/// Makes that database, and gives back its address.
pub(crate) fn create(folder: &Path) -> Option<String> {
    let (server, name) = (server()?, name(folder));
    // A story may have begun already, and a runtime cannot wait for another one.
    let making = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(&server, tokio_postgres::NoTls).await.unwrap();
            let connection = tokio::spawn(connection);
            client.batch_execute(&format!("create database \"{name}\"")).await.unwrap();
            drop(client);
            connection.await.unwrap().unwrap();
        });
    });
    making.join().unwrap();
    address(folder)
}

#[expect(clippy::disallowed_methods, reason = "which database the tests run on is said by the environment")]
fn server() -> Option<String> {
    std::env::var("TEST_POSTGRES").ok()
}

/// A database is named after its folder.
fn name(folder: &Path) -> String {
    folder.file_name().unwrap().to_string_lossy().replace('.', "haft_")
}
