//! The versions of the database and the way from one to the next.

use std::{
    path::Path,
    thread::sleep,
    time::{Duration, Instant},
};

use rusqlite::{Connection, TransactionBehavior};

use crate::StoreError;

/// Each text leads from the version that is its index to the next.
const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/0001_init.sql"),
    include_str!("../migrations/0002_views.sql"),
    include_str!("../migrations/0003_questions.sql"),
    include_str!("../migrations/0004_packed_outputs.sql"),
    include_str!("../migrations/0005_tray.sql"),
    include_str!("../migrations/0006_places.sql"),
];

/// The version of the database.
pub(crate) const VERSION: &str = "pragma user_version";
/// Whether there are tables, but no version: they are not ours, or the header was overwritten.
const FOREIGN: &str = "select user_version = 0 and exists (select 1 from sqlite_schema) from pragma_user_version";

/// How long processes that make the same database wait for each other.
const PATIENCE: Duration = Duration::from_secs(10);

/// The newest version that is known here.
pub(crate) fn known() -> i64 {
    i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX)
}

fn version(conn: &Connection) -> Result<i64, StoreError> {
    Ok(conn.query_row(VERSION, [], |row| row.get(0))?)
}

/// Brings the database to the newest version; touches nothing when it is there or beyond.
pub(crate) fn bring_up(conn: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let found = version(conn)?;
    if found > known() {
        return Err(StoreError::Newer { path: path.to_owned(), found, known: known() });
    }
    if found == known() {
        return Ok(());
    }
    // Both in one look: another process may be making it.
    let foreign: bool = conn.query_row(FOREIGN, [], |row| row.get(0))?;
    if foreign {
        return Err(StoreError::Foreign { path: path.to_owned() });
    }
    switch_to_wal(conn)?;
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have done it while this one waited for the lock.
    let found = usize::try_from(version(&tx)?).unwrap_or(0);
    for migration in MIGRATIONS.iter().skip(found) {
        tx.execute_batch(migration)?;
    }
    tx.pragma_update(None, "user_version", known())?;
    tx.commit()?;
    Ok(())
}

/// SQLite does not wait for others in this one step, so we do.
fn switch_to_wal(conn: &Connection) -> Result<(), StoreError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match conn.pragma_update(None, "journal_mode", "wal").map_err(StoreError::from) {
            Ok(_) => return Ok(()),
            Err(StoreError::Busy(_)) if Instant::now() < deadline => sleep(Duration::from_millis(5)),
            Err(err) => return Err(err),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use rusqlite::Connection;

    /// The steps that SQLite would take for a statement.
    pub(crate) fn plan(statement: &str) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("haft.db");
        let mut conn = Connection::open(&path).unwrap();
        super::bring_up(&mut conn, &path).unwrap();
        let mut plan = conn.prepare(&format!("explain query plan {statement}")).unwrap();
        let steps = plan.raw_query().mapped(|step| step.get("detail"));
        steps.collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn an_open_question_of_the_version_before_is_the_first_of_its_call() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("haft.db");
        let mut conn = Connection::open(&path).unwrap();
        bring_to(&mut conn, 2);
        let asked = "insert into questions (tenant, call, asked_at, expires_at, open, body) \
                     values ('t', 'c', 1, 2, true, '{}')";
        conn.execute_batch(asked).unwrap();
        super::bring_up(&mut conn, &path).unwrap();
        let kept = "select number from questions where tenant = 't' and call = 'c' and open = true";
        assert_eq!(conn.query_row(kept, [], |row| row.get::<_, i64>(0)).unwrap(), 1);
    }

    /// A new database of an earlier version.
    pub(crate) fn bring_to(conn: &mut Connection, version: usize) {
        for migration in &super::MIGRATIONS[..version] {
            conn.execute_batch(migration).unwrap();
        }
        conn.pragma_update(None, "user_version", version as i64).unwrap();
    }

    /// Fails when one of the statements reads a whole table, or sorts what an index could give in order.
    pub(crate) fn assert_quick(statements: &[&str]) {
        for statement in statements {
            for step in plan(statement) {
                // A row of constants is no table.
                assert!(!step.starts_with("SCAN") || step == "SCAN CONSTANT ROW", "{statement}\n{step}");
                assert!(!step.contains("TREE FOR ORDER BY"), "{statement}\n{step}");
            }
        }
    }
}
