//! The versions of the database and the way from one to the next.

use std::{path::Path, time::Duration};

use sqlx::{AssertSqlSafe, Connection, Executor, SqliteConnection};
use tokio::time::{Instant, sleep};

use crate::StoreError;

/// Each text leads from the version that is its index to the next.
const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/0001_init.sql"),
    include_str!("../migrations/0002_views.sql"),
    include_str!("../migrations/0003_questions.sql"),
];

/// Whether there are tables, but no version: they are not ours, or the header was overwritten.
const FOREIGN: &str = "select user_version = 0 and exists (select 1 from sqlite_schema) from pragma_user_version";

/// How long processes that make the same database wait for each other.
const PATIENCE: Duration = Duration::from_secs(10);

/// The newest version that is known here.
pub(crate) fn known() -> i64 {
    i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX)
}

/// The version of the database.
pub(crate) async fn version(conn: &mut SqliteConnection) -> Result<i64, StoreError> {
    Ok(sqlx::query_scalar("pragma user_version").fetch_one(conn).await?)
}

/// Brings the database to the newest version; touches nothing when it is there or beyond.
pub(crate) async fn bring_up(conn: &mut SqliteConnection, path: &Path) -> Result<(), StoreError> {
    let found = version(conn).await?;
    if found > known() {
        return Err(StoreError::Newer { path: path.to_owned(), found, known: known() });
    }
    if found == known() {
        return Ok(());
    }
    // Both in one look: another process may be making it.
    let foreign: bool = sqlx::query_scalar(FOREIGN).fetch_one(&mut *conn).await?;
    if foreign {
        return Err(StoreError::Foreign { path: path.to_owned() });
    }
    switch_to_wal(conn).await?;
    let mut tx = conn.begin_with("begin immediate").await?;
    // Another process may have done it while this one waited for the lock.
    let found = usize::try_from(version(&mut tx).await?).unwrap_or(0);
    for migration in MIGRATIONS.iter().skip(found) {
        tx.execute(*migration).await?;
    }
    tx.execute(AssertSqlSafe(format!("pragma user_version = {}", known()))).await?;
    tx.commit().await?;
    Ok(())
}

/// SQLite does not wait for others in this one step, so we do.
async fn switch_to_wal(conn: &mut SqliteConnection) -> Result<(), StoreError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match conn.execute("pragma journal_mode = wal").await.map_err(StoreError::from) {
            Ok(_) => return Ok(()),
            Err(StoreError::Busy(_)) if Instant::now() < deadline => sleep(Duration::from_millis(5)).await,
            Err(err) => return Err(err),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use sqlx::{AssertSqlSafe, ConnectOptions, Executor, Row, sqlite::SqliteConnectOptions};

    /// The steps that SQLite would take for a statement.
    pub(crate) async fn plan(statement: &str) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("haft.db");
        let options = SqliteConnectOptions::new().filename(&path).create_if_missing(true);
        let mut conn = options.connect().await.unwrap();
        super::bring_up(&mut conn, &path).await.unwrap();
        let plan = sqlx::query(AssertSqlSafe(format!("explain query plan {statement}")));
        plan.fetch_all(&mut conn).await.unwrap().iter().map(|step| step.get("detail")).collect()
    }

    #[tokio::test]
    async fn an_open_question_of_the_version_before_is_the_first_of_its_call() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("haft.db");
        let options = SqliteConnectOptions::new().filename(&path).create_if_missing(true);
        let mut conn = options.connect().await.unwrap();
        for migration in &super::MIGRATIONS[..2] {
            conn.execute(*migration).await.unwrap();
        }
        conn.execute("pragma user_version = 2").await.unwrap();
        let asked = "insert into questions (tenant, call, asked_at, expires_at, open, body) values ('t', 'c', 1, 2, true, '{}')";
        conn.execute(asked).await.unwrap();
        super::bring_up(&mut conn, &path).await.unwrap();
        let kept = sqlx::query("select number from questions where tenant = 't' and call = 'c' and open = true");
        assert_eq!(kept.fetch_one(&mut conn).await.unwrap().get::<i64, _>("number"), 1);
    }

    /// Fails when one of the statements reads a whole table, or sorts what an index could give in order.
    pub(crate) async fn assert_quick(statements: &[&str]) {
        for statement in statements {
            for step in plan(statement).await {
                assert!(!step.starts_with("SCAN"), "{statement}\n{step}");
                assert!(!step.contains("TREE FOR ORDER BY"), "{statement}\n{step}");
            }
        }
    }
}
