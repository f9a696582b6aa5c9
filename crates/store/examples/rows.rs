//! Measures the store against SQLite itself: acknowledged entries each second, and the time that one entry takes.
#![expect(clippy::print_stdout, reason = "a benchmark prints its numbers")]
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on stops")]

use std::{
    path::Path,
    time::{Duration, Instant},
};

use haft_runtime::{
    AutoApprove, CallEvent, CallId, CallState, End, Entry, Isolation, Journal, Opening, Outcome, Scope, Source,
    ToolOutput,
};
use haft_store::{Store, Sync};
use jiff::Timestamp;
use serde_json::json;
use sqlx::{
    ConnectOptions, Connection, Executor, QueryBuilder, Sqlite, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteSynchronous},
};

const WRITERS: usize = 64;

#[tokio::main]
async fn main() {
    let mut each = 500;
    if let Some(wanted) = std::env::args().nth(1) {
        each = wanted.parse().unwrap();
    }
    for sync in [Sync::Normal, Sync::Full] {
        let raw = best_of_three(raw(sync, each)).await;
        let store = best_of_three(through_store(sync, each)).await;
        println!("{sync:?}, {WRITERS} writers: store {store:.0} entries/s, raw {raw:.0}, {:.0} %", 100.0 * store / raw);
        // In a task, as calls are: the main task lives on a thread of its own and would be woken across threads.
        let mut laps = tokio::spawn(one_by_one(sync)).await.unwrap();
        laps.sort();
        let (mut raw, mut trips) = tokio::spawn(raw_one_by_one(sync)).await.unwrap();
        raw.sort();
        trips.sort();
        println!(
            "{sync:?}, one record raw: p50 {:?}; `select 1`: p50 {:?}",
            raw[raw.len() / 2],
            trips[trips.len() / 2]
        );
        println!("{sync:?}, one record: p50 {:?}, p99 {:?}", laps[laps.len() / 2], laps[laps.len() * 99 / 100]);
    }
    opening().await;
}

async fn best_of_three<F: Future<Output = f64>>(mut run: impl FnMut() -> F) -> f64 {
    let mut best = 0.0_f64;
    for _ in 0..3 {
        best = best.max(run().await);
    }
    best
}

/// A whole call in one entry, as a read is recorded: one row, two events.
fn entry() -> Entry {
    let call = CallId::new();
    let at = Timestamp::now();
    let input = json!({"path": "crates/store/src/journal.rs", "offset": 1, "limit": 200});
    let called = CallEvent::Called { tool: "read_file".into(), called_as: None, args: input.clone() };
    let result = ToolOutput { content: "x".repeat(400), ..ToolOutput::default() };
    let outcome = Outcome {
        end: End::Success { result },
        tool_call_id: call.clone(),
        tool: "read_file".into(),
        changes: None,
        undoable: false,
        approved_by: None,
        grant: None,
        isolation: Isolation::None,
        attempts: 1,
        cached: false,
        started_at: at,
        finished_at: Some(at),
        execution_time_ms: 3,
    };
    Entry {
        call,
        opening: Some(Opening {
            tool: "read_file".into(),
            input,
            parent: None,
            caller: "bench".into(),
            source: Source::Cli,
            auto_approve: AutoApprove::Reads,
            at,
        }),
        state: CallState::Ended,
        turn: None,
        outcome: Some(outcome),
        whole_output: None,
        events: vec![(at, called), (at, CallEvent::Completed { execution_time_ms: 3 })],
    }
}

fn through_store(sync: Sync, each: usize) -> impl FnMut() -> futures_util::future::BoxFuture<'static, f64> {
    move || {
        Box::pin(async move {
            let folder = tempfile::tempdir().unwrap();
            let store = Store::open(folder.path(), sync).await.unwrap();
            let begin = Instant::now();
            let writers: Vec<_> = (0..WRITERS)
                .map(|_| {
                    let store = store.clone();
                    tokio::spawn(async move {
                        let scope = Scope::local("bench");
                        for _ in 0..each {
                            store.record(&scope, entry()).await.unwrap();
                        }
                    })
                })
                .collect();
            for writer in writers {
                writer.await.unwrap();
            }
            let rate = (WRITERS * each) as f64 / begin.elapsed().as_secs_f64();
            store.close().await.unwrap();
            rate
        })
    }
}

/// The same rows by one connection, 64 entries in each transaction, with nobody to answer.
fn raw(sync: Sync, each: usize) -> impl FnMut() -> futures_util::future::BoxFuture<'static, f64> {
    move || {
        Box::pin(async move {
            let folder = tempfile::tempdir().unwrap();
            Store::open(folder.path(), sync).await.unwrap().close().await.unwrap();
            let mut conn = connect(folder.path(), sync).await;
            let begin = Instant::now();
            for _ in 0..each {
                let entries: Vec<Entry> = (0..WRITERS).map(|_| entry()).collect();
                raw_batch(&mut conn, &entries).await;
            }
            let rate = (WRITERS * each) as f64 / begin.elapsed().as_secs_f64();
            conn.close().await.unwrap();
            rate
        })
    }
}

async fn connect(folder: &Path, sync: Sync) -> SqliteConnection {
    let synchronous = match sync {
        Sync::Normal => SqliteSynchronous::Normal,
        Sync::Full => SqliteSynchronous::Full,
    };
    SqliteConnectOptions::new().filename(folder.join("haft.db")).synchronous(synchronous).connect().await.unwrap()
}

async fn raw_batch(conn: &mut SqliteConnection, entries: &[Entry]) {
    conn.execute("begin immediate").await.unwrap();
    let mut calls = QueryBuilder::<Sqlite>::new(
        "insert into calls (tenant, id, workspace, tool, caller, source, auto_approve, state, status, owner, \
         stop_wanted, asked, started_at, finished_at, duration_ms, input, outcome) ",
    );
    calls.push_values(entries, |mut row, entry| {
        let opening = entry.opening.as_ref().unwrap();
        let outcome = entry.outcome.as_ref().unwrap();
        let at = opening.at.as_microsecond();
        row.push_bind("local").push_bind(entry.call.to_string()).push_bind("bench").push_bind(opening.tool.clone());
        row.push_bind("bench").push_bind("cli").push_bind("safe").push_bind("ended").push_bind("success");
        row.push_bind("ow_00000000000000000000000000000000").push_bind(false).push_bind(false);
        row.push_bind(at).push_bind(at).push_bind(3_i64);
        row.push_bind(opening.input.to_string()).push_bind(serde_json::to_string(outcome).unwrap());
    });
    calls.build().execute(&mut *conn).await.unwrap();
    let mut events = QueryBuilder::<Sqlite>::new("insert into events (tenant, call, at, kind, data) ");
    let all = entries.iter().flat_map(|entry| entry.events.iter().map(move |(at, event)| (&entry.call, at, event)));
    events.push_values(all, |mut row, (call, at, event)| {
        row.push_bind("local").push_bind(call.to_string()).push_bind(at.as_microsecond());
        row.push_bind("tool.call").push_bind(serde_json::to_string(event).unwrap());
    });
    events.build().execute(&mut *conn).await.unwrap();
    conn.execute("commit").await.unwrap();
}

async fn one_by_one(sync: Sync) -> Vec<Duration> {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), sync).await.unwrap();
    let scope = Scope::local("bench");
    let mut laps = Vec::new();
    for _ in 0..2000 {
        let entry = entry();
        let begin = Instant::now();
        store.record(&scope, entry).await.unwrap();
        laps.push(begin.elapsed());
    }
    store.close().await.unwrap();
    laps
}

/// The same row and events in a transaction of their own, straight on the connection.
/// Also the bare way to SQLite's thread and back, below which nothing can go.
async fn raw_one_by_one(sync: Sync) -> (Vec<Duration>, Vec<Duration>) {
    let folder = tempfile::tempdir().unwrap();
    Store::open(folder.path(), sync).await.unwrap().close().await.unwrap();
    let mut conn = connect(folder.path(), sync).await;
    let (mut laps, mut trips) = (Vec::new(), Vec::new());
    for _ in 0..2000 {
        let entry = entry();
        let begin = Instant::now();
        raw_batch(&mut conn, std::slice::from_ref(&entry)).await;
        laps.push(begin.elapsed());
        let begin = Instant::now();
        conn.execute("select 1").await.unwrap();
        trips.push(begin.elapsed());
    }
    (laps, trips)
}

async fn opening() {
    let folder = tempfile::tempdir().unwrap();
    for end in ["close", "close", "close", "leave", "leave", "leave"] {
        let begin = Instant::now();
        let store = Store::open(folder.path(), Sync::Normal).await.unwrap();
        let opened = begin.elapsed();
        store.record(&Scope::local("bench"), entry()).await.unwrap();
        let recorded = begin.elapsed();
        match end {
            "close" => store.close().await.unwrap(),
            _ => store.leave().await.unwrap(),
        }
        let ended = begin.elapsed() - recorded;
        println!("open {opened:?}, first record {:?}, {end} {ended:?}", recorded - opened);
    }
}
