//! Acknowledged rows each second, with 64 writers, beside SQLite's own group commit of the same rows.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use haft_runtime::{
    AutoApprove, CallEvent, CallId, CallState, Caller, End, Entry, Journal, Opening, Outcome, Scope, Source, ToolOutput,
};
use haft_store::{Store, Sync};
use jiff::Timestamp;
use serde_json::json;
use sqlx::{
    ConnectOptions, Connection, Executor, QueryBuilder, Sqlite, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteSynchronous},
};

use crate::{Measured, median};

const WRITERS: usize = 64;
const EACH: usize = 400;

/// Both kinds of sync, through the store and straight.
pub(crate) async fn measure() -> Result<Vec<Measured>> {
    let mut table = Vec::new();
    for (sync, what) in [(Sync::Normal, "64 writers, NORMAL"), (Sync::Full, "64 writers, FULL")] {
        let (mut store, mut raw) = (0.0_f64, 0.0_f64);
        // The best of three each, taken in turns so that a busy moment hits both.
        for _ in 0..3 {
            raw = raw.max(straight(sync).await?);
            store = store.max(through_the_store(sync).await?);
        }
        let share = 100.0 * store / raw;
        let found = format!("{store:.0} entries/s, raw {raw:.0}: {share:.0} %");
        table.push(Measured::new(what, found, "≥ 60 % of raw", share >= 60.0));
    }
    // From a task of the runtime, as a call would record it.
    let lap = tokio::spawn(one_by_one()).await??;
    table.push(Measured::new(
        "one durable entry (NORMAL)",
        format!("p50 {lap:?}"),
        "p50 < 100 µs",
        lap < Duration::from_micros(100),
    ));
    Ok(table)
}

/// A whole call in one entry, as a read is recorded: one row, two events.
fn entry() -> Entry {
    let at = Timestamp::now();
    let input = json!({"path": "crates/store/src/journal.rs", "offset": 1, "limit": 200});
    let called = CallEvent::Called { tool: "read_file".into(), called_as: None, remove_by: None, args: input.clone() };
    let result = ToolOutput { content: "x".repeat(400), ..ToolOutput::default() };
    let mut outcome =
        Outcome::refused("read_file", haft_runtime::ToolError::new(haft_runtime::ErrorCode::Internal, ""));
    outcome.end = End::Success { result };
    let opening = Opening {
        tool: "read_file".into(),
        input,
        parent: None,
        caller: Caller::owner("bench", Scope::local("bench"), Source::Cli).record(),
        auto_approve: AutoApprove::Reads,
        at,
    };
    Entry {
        call: CallId::new(),
        opening: Some(opening),
        state: CallState::Ended,
        turn: None,
        outcome: Some(Arc::new(outcome)),
        whole_output: None,
        events: vec![(at, called), (at, CallEvent::Completed { execution_time_ms: 3 })],
    }
}

async fn through_the_store(sync: Sync) -> Result<f64> {
    let folder = tempfile::tempdir()?;
    let store = Store::open(folder.path(), sync).await?;
    let begin = Instant::now();
    let mut writers = Vec::new();
    for _ in 0..WRITERS {
        let store = store.clone();
        writers.push(tokio::spawn(async move {
            let scope = Scope::local("bench");
            for _ in 0..EACH {
                store.record(&scope, entry()).await?;
            }
            anyhow::Ok(())
        }));
    }
    for writer in writers {
        writer.await??;
    }
    let rate = (WRITERS * EACH) as f64 / begin.elapsed().as_secs_f64();
    store.close().await?;
    Ok(rate)
}

/// The same rows by one connection, 64 entries in each transaction, with nobody to answer.
async fn straight(sync: Sync) -> Result<f64> {
    let folder = tempfile::tempdir()?;
    Store::open(folder.path(), sync).await?.close().await?;
    let mut conn = connect(folder.path(), sync).await?;
    let begin = Instant::now();
    for _ in 0..EACH {
        let entries: Vec<Entry> = (0..WRITERS).map(|_| entry()).collect();
        batch(&mut conn, &entries).await?;
    }
    let rate = (WRITERS * EACH) as f64 / begin.elapsed().as_secs_f64();
    conn.close().await?;
    Ok(rate)
}

async fn connect(folder: &Path, sync: Sync) -> Result<SqliteConnection> {
    let synchronous = match sync {
        Sync::Normal => SqliteSynchronous::Normal,
        Sync::Full => SqliteSynchronous::Full,
    };
    Ok(SqliteConnectOptions::new().filename(folder.join("haft.db")).synchronous(synchronous).connect().await?)
}

async fn batch(conn: &mut SqliteConnection, entries: &[Entry]) -> Result<()> {
    conn.execute("begin immediate").await?;
    let mut calls = QueryBuilder::<Sqlite>::new(
        "insert into calls (tenant, id, workspace, tool, caller, source, auto_approve, state, status, owner, \
         stop_wanted, asked, started_at, finished_at, duration_ms, input, outcome) ",
    );
    let mut rows = Vec::new();
    for entry in entries {
        let opening = entry.opening.as_ref().context("an entry that opens a call")?;
        rows.push((entry.call.to_string(), opening, serde_json::to_string(&entry.outcome)?));
    }
    calls.push_values(rows, |mut row, (id, opening, outcome)| {
        let at = opening.at.as_microsecond();
        row.push_bind("local").push_bind(id).push_bind("bench").push_bind(opening.tool.clone());
        row.push_bind("bench").push_bind("cli").push_bind("safe").push_bind("ended").push_bind("success");
        row.push_bind("ow_00000000000000000000000000000000").push_bind(false).push_bind(false);
        row.push_bind(at).push_bind(at).push_bind(3_i64);
        row.push_bind(opening.input.to_string()).push_bind(outcome);
    });
    calls.build().execute(&mut *conn).await?;
    let mut events = QueryBuilder::<Sqlite>::new("insert into events (tenant, call, at, kind, data) ");
    let all = entries.iter().flat_map(|entry| entry.events.iter().map(move |(at, event)| (&entry.call, at, event)));
    events.push_values(all, |mut row, (call, at, event)| {
        row.push_bind("local").push_bind(call.to_string()).push_bind(at.as_microsecond());
        row.push_bind("tool.call").push_bind(serde_json::to_string(event).unwrap_or_default());
    });
    events.build().execute(&mut *conn).await?;
    conn.execute("commit").await?;
    Ok(())
}

async fn one_by_one() -> Result<Duration> {
    let folder = tempfile::tempdir()?;
    let store = Store::open(folder.path(), Sync::Normal).await?;
    let scope = Scope::local("bench");
    let mut laps = Vec::new();
    for _ in 0..2000 {
        let entry = entry();
        let begin = Instant::now();
        store.record(&scope, entry).await?;
        laps.push(begin.elapsed());
    }
    store.close().await?;
    Ok(median(laps))
}
