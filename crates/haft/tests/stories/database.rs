//! The database that the stories play on: SQLite, or one of its own for each on the server that `HAFT_TEST_POSTGRES` names.

use std::{path::Path, thread};

/// Makes a database named after the folder, and gives back its address; nothing where the stories play on SQLite.
#[expect(clippy::disallowed_methods, reason = "which database the tests run on is said by the environment")]
pub(crate) fn create(folder: &Path) -> Option<String> {
    let server = std::env::var("HAFT_TEST_POSTGRES").ok()?;
    let name = folder.file_name()?.to_str()?.replace('.', "haft_");
    let (before, _) = server.rsplit_once('/')?;
    let url = format!("{before}/{name}");
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
    Some(url)
}
