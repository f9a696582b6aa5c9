//! A store of a million calls stays quick: no list reads a whole table.

use haft_runtime::{CallState, Journal};
use sqlx::{ConnectOptions, Row, sqlite::SqliteConnectOptions};

use crate::samples::{new_store, opened, scope};

const CALLS: &str = "select id, workspace, tool, caller, source, state, status, code, started_at, finished_at, \
                     duration_ms, asked from calls where tenant = ? ";

#[tokio::test]
async fn no_list_scans_a_table() {
    let (folder, store) = new_store().await;
    store.record(&scope(), opened(CallState::Executing)).await.unwrap();
    store.close().await.unwrap();
    let database = folder.path().join("data/haft.db");
    let mut conn = SqliteConnectOptions::new().filename(database).connect().await.unwrap();
    let lists = [
        ("", "order by id desc limit 50"),
        ("and workspace = ?", "order by id desc limit 50"),
        ("and tool = ?", "and id < ? order by id desc limit 50"),
        ("and workspace = ? and tool = ?", "and id < ? order by id desc limit 50"),
        ("and id >= ? and started_at >= ?", "order by id desc limit 50"),
        ("and state = ? and state <> 'ended'", "order by id desc limit 50"),
        ("and parent = ?", "order by id"),
        ("and turn_of = ? and state = 'ended' and status = 'success'", ""),
        ("and state <> 'ended' and state <> 'waiting' and owner <> ?", ""),
    ];
    let mut texts: Vec<String> = lists.iter().map(|(only, order)| format!("{CALLS}{only} {order}")).collect();
    texts.push("select seq, at, data from events where tenant = ? and call = ? order by seq".into());
    texts.push("select call, body from questions where tenant = ? and open = true order by call".into());
    texts.push("select id from grants where tenant = ? and tool = ? order by id desc".into());
    texts.push("select status, count(*) from calls where tenant = ? and id >= ? group by status".into());
    for text in texts {
        let plan = sqlx::query(sqlx::AssertSqlSafe(format!("explain query plan {text}")));
        for step in plan.fetch_all(&mut conn).await.unwrap() {
            let step: String = step.get("detail");
            assert!(!step.starts_with("SCAN"), "{text}\n{step}");
            assert!(!step.contains("FOR ORDER BY"), "{text}\n{step}");
        }
    }
}
