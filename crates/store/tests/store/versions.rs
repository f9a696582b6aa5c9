//! A database that an older program made is brought up to date, and nothing of it is lost.

use haft_runtime::{CallState, Journal};
use haft_store::CallFilter;

use crate::{
    database,
    samples::{here, new_folder, open, opened, scope},
};

const FIRST: &str = include_str!("../../schema/0001.sql");
const NOTES: &str = "insert into meta (name, number) values ('schema', 1), ('oldest_reader', 1)";

#[tokio::test]
async fn a_database_of_the_first_version_goes_on() {
    let folder = new_folder().await;
    let in_words = |words: [&str; 5]| {
        let named = ["{int}", "{text}", "{bytes}", "{table}", "{small_table}"];
        let text = named.iter().zip(words).fold(FIRST.to_owned(), |text, (name, word)| text.replace(name, word));
        format!("{text};{NOTES}")
    };
    match database::options(folder.path()).url {
        Some(url) => {
            let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
            let connection = tokio::spawn(connection);
            let words = ["bigint", "text collate \"C\"", "bytea", "", ""];
            client.batch_execute(&in_words(words)).await.unwrap();
            drop(client);
            connection.await.unwrap().unwrap();
        }
        None => {
            let data = folder.path().join("data");
            std::fs::create_dir(&data).unwrap();
            let conn = rusqlite::Connection::open(data.join("haft.db")).unwrap();
            let words = ["integer", "text", "blob", "strict", "strict, without rowid"];
            conn.execute_batch(&in_words(words)).unwrap();
        }
    }
    let store = open(&folder).await;
    assert!(store.health().await.unwrap().schema_version > 1);
    store.record(&scope(), opened(CallState::Executing)).await.unwrap();
    assert_eq!(store.calls(&scope(), &here(), &CallFilter::default()).await.unwrap().len(), 1);
    assert_eq!(open(&folder).await.health().await.unwrap().calls, 1, "the next one finds it so");
}
