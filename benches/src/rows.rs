//! Acknowledged rows each second, with 64 writers, beside the database's own group commit of the same rows.

pub(crate) mod postgres;

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use haft_runtime::{
    AutoApprove, CallEvent, CallId, CallState, Caller, End, Entry, Journal, Opening, Outcome, Scope, Source, ToolOutput,
};
use haft_store::{Durability, Options, Store};
use jiff::Timestamp;
use rusqlite::{Connection, params};
use serde_json::json;

use crate::{Measured, median};

const WRITERS: usize = 64;
const EACH: usize = 400;
const OWNER: &str = "ow_00000000000000000000000000000000";

/// Both kinds of sync and both databases, through the store and straight.
pub(crate) async fn measure() -> Result<Vec<Measured>> {
    let mut table = vec![postgres::measure().await?];
    for (sync, what) in [(Durability::Normal, "64 writers, NORMAL"), (Durability::Full, "64 writers, FULL")] {
        let (mut store, mut raw) = (0.0_f64, 0.0_f64);
        // The best of three each, taken in turns so that a busy moment hits both.
        for _ in 0..3 {
            raw = raw.max(straight(sync).await?);
            let folder = tempfile::tempdir()?;
            store = store.max(through_the_store(folder.path(), sync).await?);
        }
        table.push(beside_raw(what, store, raw));
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

fn beside_raw(what: &'static str, store: f64, raw: f64) -> Measured {
    let share = 100.0 * store / raw;
    let found = format!("{store:.0} entries/s, raw {raw:.0}: {share:.0} %");
    Measured::new(what, found, "≥ 60 % of raw", share >= 60.0)
}

/// A whole call in one entry, as a read is recorded: one row, two events.
fn entry() -> Entry {
    let at = Timestamp::now();
    let input = json!({"path": "crates/store/src/journal.rs", "offset": 1, "limit": 200});
    let called = CallEvent::Called {
        tool: "read_file".into(),
        called_as: None,
        remove_by: None,
        args: input.clone(),
        test: false,
    };
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
        via: Arc::default(),
        opening: Some(opening),
        state: CallState::Ended,
        turn: None,
        outcome: Some(Arc::new(outcome)),
        whole_output: None,
        result_of: None,
        events: vec![(at, called), (at, CallEvent::Completed { execution_time_ms: 3, late: false })],
    }
}

async fn through_the_store(folder: &Path, options: impl Into<Options>) -> Result<f64> {
    let store = Store::open(folder, options).await?;
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
pub(crate) async fn straight(sync: Durability) -> Result<f64> {
    let folder = tempfile::tempdir()?;
    Store::open(folder.path(), sync).await?.close().await?;
    let mut conn = Connection::open(folder.path().join("haft.db"))?;
    let synchronous = match sync {
        Durability::Normal => "normal",
        Durability::Full => "full",
    };
    conn.pragma_update(None, "synchronous", synchronous)?;
    let begin = Instant::now();
    let mut seq = 0;
    for _ in 0..EACH {
        let entries: Vec<Entry> = (0..WRITERS).map(|_| entry()).collect();
        batch(&mut conn, &entries, &mut seq)?;
    }
    Ok((WRITERS * EACH) as f64 / begin.elapsed().as_secs_f64())
}

fn batch(conn: &mut Connection, entries: &[Entry], seq: &mut i64) -> Result<()> {
    let transaction = conn.transaction()?;
    {
        let mut calls = transaction.prepare_cached(
            "insert into calls (tenant, id, workspace, tool, caller, source, auto_approve, status, owner, ended_seq, asked, \
             isolation, started_at, finished_at, duration_ms, input, outcome) \
             values ('local', ?, 'bench', ?, 'bench', 'cli', 'safe', 'success', ?, ?, 0, 'none', ?, ?, 3, ?, ?)",
        )?;
        let mut journal = transaction.prepare_cached(
            "insert into entries (tenant, seq, at, call, kinds, events) \
             values ('local', ?, ?, ?, 'tool.call tool.completed', ?)",
        )?;
        for entry in entries {
            let opening = entry.opening.as_ref().context("an entry that opens a call")?;
            let (id, at) = (entry.call.as_str(), opening.at.as_microsecond());
            let events: Vec<_> = entry.events.iter().map(|(at, event)| (at.as_microsecond(), event)).collect();
            let (input, outcome) = (opening.input.to_string(), serde_json::to_string(&entry.outcome)?);
            *seq += 2;
            calls.execute(params![id, opening.tool, OWNER, *seq, at, at, input, outcome])?;
            journal.execute(params![*seq, at, id, serde_json::to_string(&events)?])?;
        }
    }
    transaction.commit()?;
    Ok(())
}

async fn one_by_one() -> Result<Duration> {
    let folder = tempfile::tempdir()?;
    let store = Store::open(folder.path(), Durability::Normal).await?;
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
