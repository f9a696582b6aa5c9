//! The same on PostgreSQL, in the server that `scripts/with-postgres` starts.

use std::time::Instant;

use anyhow::{Context, Result};
use futures_util::future::try_join_all;
use haft_runtime::Entry;
use haft_store::{Durability, Options};
use tokio_postgres::{Client, NoTls, Statement, Transaction, types::ToSql};

use super::{EACH, OWNER, WRITERS, beside_raw, entry, through_the_store};
use crate::Measured;

const WHAT: &str = "64 writers, PostgreSQL";
/// What is said where there is no server.
pub(crate) const ABSENT: &str = "absent: run by scripts/with-postgres";

/// Through the store, and straight by one connection.
pub(super) async fn measure() -> Result<Measured> {
    let Some(url) = url() else { return Ok(Measured::new(WHAT, ABSENT, "", true)) };
    let folder = tempfile::tempdir()?;
    let options = || Options { url: Some(url.clone()), ..Options::from(Durability::Normal) };
    let (mut store, mut raw) = (0.0_f64, 0.0_f64);
    for round in 0..3 {
        store = store.max(through_the_store(folder.path(), options()).await?);
        raw = raw.max(straight(&url, round).await?);
    }
    Ok(beside_raw(WHAT, store, raw))
}

/// The server that the script started.
pub(crate) fn url() -> Option<String> {
    #[expect(clippy::disallowed_methods, reason = "a benchmark is told of its server by the script that starts it")]
    std::env::var("TEST_POSTGRES").ok()
}

/// 64 entries in each transaction, all of them sent before the first is answered.
pub(crate) async fn straight(url: &str, round: usize) -> Result<f64> {
    let (mut client, connection) = tokio_postgres::connect(url, NoTls).await?;
    let connection = tokio::spawn(connection);
    let calls = client.prepare(
        "insert into calls (tenant, id, workspace, tool, caller, source, auto_approve, status, owner, ended_seq, asked, \
         isolation, started_at, finished_at, duration_ms, input, outcome) \
         values ($1, $2, 'bench', $3, 'bench', 'cli', 'safe', 'success', $4, $5, 0, 'none', $6, $6, 3, $7, $8)",
    );
    let calls = calls.await?;
    let journal = client.prepare(
        "insert into entries (tenant, seq, at, call, kinds, events) \
         values ($1, $2, $3, $4, 'tool.call tool.completed', $5)",
    );
    let journal = journal.await?;
    let (tenant, mut seq) = (format!("raw{round}"), 0);
    let begin = Instant::now();
    for _ in 0..EACH {
        let entries: Vec<Entry> = (0..WRITERS).map(|_| entry()).collect();
        batch(&mut client, (&calls, &journal), &tenant, &entries, &mut seq).await?;
    }
    let rate = (WRITERS * EACH) as f64 / begin.elapsed().as_secs_f64();
    drop(client);
    connection.await??;
    Ok(rate)
}

async fn batch(
    client: &mut Client,
    statements: (&Statement, &Statement),
    tenant: &str,
    entries: &[Entry],
    seq: &mut i64,
) -> Result<()> {
    let transaction = client.transaction().await?;
    let mut inserts = Vec::new();
    for entry in entries {
        *seq += 2;
        inserts.push(insert(&transaction, statements, tenant, entry, *seq));
    }
    try_join_all(inserts).await?;
    Ok(transaction.commit().await?)
}

async fn insert(
    transaction: &Transaction<'_>,
    (calls, journal): (&Statement, &Statement),
    tenant: &str,
    entry: &Entry,
    seq: i64,
) -> Result<()> {
    let opening = entry.opening.as_ref().context("an entry that opens a call")?;
    let events: Vec<_> = entry.events.iter().map(|(at, event)| (at.as_microsecond(), event)).collect();
    let (id, tool, at) = (entry.call.as_str(), opening.tool.as_str(), opening.at.as_microsecond());
    let (input, outcome) = (opening.input.to_string(), serde_json::to_string(&entry.outcome)?);
    let events = serde_json::to_string(&events)?;
    let call: [&(dyn ToSql + Sync); 8] = [&tenant, &id, &tool, &OWNER, &seq, &at, &input, &outcome];
    let entry: [&(dyn ToSql + Sync); 5] = [&tenant, &seq, &at, &id, &events];
    tokio::try_join!(transaction.execute(calls, &call), transaction.execute(journal, &entry))?;
    Ok(())
}
