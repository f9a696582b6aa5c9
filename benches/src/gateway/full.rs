//! A store in which much has happened: what is asked for must cost what it costs on a new one.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::Result;
use rusqlite::{Connection as Database, params};
use serde_json::json;

use super::{
    load::Connection,
    served::{Bearer, Served},
};
use crate::{Measured, median};

const LAPS: usize = 300;
/// How long the server has nothing to do.
const IDLE: Duration = Duration::from_secs(10);
/// How many tools there are before, and how many calls: a page of either is full then, as it is afterwards.
const FEW: usize = 60;
const FEW_CALLS: usize = 200;
/// Put before everything, so that the bulk comes after what is there.
const NUMBERS: &str = "with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < ?1) ";

/// How much there is.
struct FillAmount {
    journal: u64,
    tenants: u64,
    /// Tools of the tenant that asks, and of each other one.
    tools: u64,
    tools_of_others: u64,
    questions: u64,
}

impl FillAmount {
    /// All of it with `BENCH_FULL=1`, which takes an hour and 20 GB; otherwise a tenth of the journal and a hundredth of
    /// the other tenants' tools.
    fn wanted() -> Self {
        #[expect(clippy::disallowed_methods, reason = "a benchmark is told how much it shall do")]
        let is_full = std::env::var_os("BENCH_FULL").is_some();
        let (journal, tools_of_others) = if is_full { (10_000_000, 10_000) } else { (1_000_000, 100) };
        Self { journal, tenants: 1000, tools: 10_000, tools_of_others, questions: 100_000 }
    }
}

/// How long each view takes.
struct Views {
    list: Duration,
    call: Duration,
    history: Duration,
}

/// The views before and after, and what a server on the full store takes for itself.
pub(super) async fn measure() -> Result<Vec<Measured>> {
    let (folder, amount) = (tempfile::tempdir()?, FillAmount::wanted());
    let data = folder.path().join("data");
    let served = Served::start(&data, None)?;
    let (on_new, key) = (served.ready, served.key("acme")?);
    lay_out(&served, &key).await?;
    let before = Views::of(&served, &key).await?;
    drop(served);
    fill(&data, &amount)?;
    let served = Served::start(&data, None)?;
    let (ready, memory) = (served.ready, served.memory()?);
    // What is left to do after the start is done by then.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let worked = served.worked()?;
    tokio::time::sleep(IDLE).await;
    let idle = 100.0 * (served.worked()? - worked).as_secs_f64() / IDLE.as_secs_f64();
    let after = Views::of(&served, &key).await?;
    let much = format!(
        "{} M journal rows, {} tools and {} x {} of others",
        amount.journal / 1_000_000,
        amount.tools,
        amount.tenants,
        amount.tools_of_others
    );
    let row = |what, before: Duration, after: Duration| {
        let times = after.as_secs_f64() / before.as_secs_f64();
        let found = format!("{after:.0?}, on a new store {before:.0?}: {times:.2} x ({much})");
        Measured::new(what, found, "<= 1.3 x", times <= 1.3)
    };
    let memory = memory as f64 / 1024.0;
    let found = format!("{idle:.2} % of a processor with {} open questions", amount.questions);
    Ok(vec![
        row("a page of tools", before.list, after.list),
        row("a call", before.call, after.call),
        row("a page of history", before.history, after.history),
        Measured::new("an idle server", found, "< 1 %", idle < 1.0),
        Measured::new("its private memory", format!("{memory:.1} MiB"), "< 64 MiB", memory < 64.0),
        Measured::new(
            "from start to ready",
            format!("{ready:.0?}, on a new store {on_new:.0?}"),
            "< 1 s",
            ready < Duration::from_secs(1),
        ),
    ])
}

/// A few tools, a few calls, and one that waits.
async fn lay_out(served: &Served, key: &Bearer) -> Result<()> {
    let mut connection = Connection::open(served.address).await?;
    for number in 0..FEW {
        key.add_tool(&mut connection, &slug(number), "read").await?;
    }
    for _ in 0..FEW_CALLS {
        connection.ask(&key.call(&slug(0))).await?;
    }
    let asks = json!({
        "slug": "asks", "description": "Asks first.", "executionType": "internal", "permissionPolicy": "always_ask",
        "inputSchema": {"type": "object", "properties": {}},
    });
    connection.ask(&key.request("POST", "/api/tools", &asks.to_string())).await?;
    let body = json!({"input": {}, "wait": 0}).to_string();
    connection.ask(&key.request("POST", "/api/tools/asks/calls", &body)).await?;
    Ok(())
}

fn slug(number: usize) -> String {
    format!("t{number:07}")
}

impl Views {
    async fn of(served: &Served, key: &Bearer) -> Result<Self> {
        let mut connection = Connection::open(served.address).await?;
        let (list, history) =
            (key.request("GET", "/api/tools?limit=50", ""), key.request("GET", "/api/calls?limit=50", ""));
        Ok(Self {
            list: timed(&mut connection, &list).await?,
            call: timed(&mut connection, &key.call(&slug(0))).await?,
            history: timed(&mut connection, &history).await?,
        })
    }
}

async fn timed(connection: &mut Connection, request: &[u8]) -> Result<Duration> {
    let mut laps = Vec::new();
    for _ in 0..LAPS {
        let begun = Instant::now();
        connection.ask(request).await?;
        laps.push(begun.elapsed());
    }
    Ok(median(laps))
}

/// Copies what is there as often as is wanted.
fn fill(data: &Path, amount: &FillAmount) -> Result<()> {
    let mut database = Database::open(data.join("haft.db"))?;
    database.pragma_update(None, "synchronous", "off")?;
    let transaction = database.transaction()?;
    let tenant: String = transaction.query_row("select id from tenants where slug = 'acme'", [], |row| row.get(0))?;
    fill_journal(&transaction, &tenant, amount.journal)?;
    fill_questions(&transaction, &tenant, amount.questions)?;
    fill_tools(&transaction, &tenant, amount)?;
    transaction.commit()?;
    Ok(())
}

/// The columns of a table, with some put in the place of what a row of it has.
fn copied(database: &Database, table: &str, instead: &[(&str, &str)]) -> Result<(String, String)> {
    let mut columns = database.prepare(&format!("select name from pragma_table_info('{table}')"))?;
    let names = columns.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
    let value = |name: &String| {
        let put = instead.iter().find(|(column, _)| column == name);
        put.map_or_else(|| format!("old.{name}"), |(_, put)| (*put).to_owned())
    };
    Ok((names.join(", "), names.iter().map(value).collect::<Vec<_>>().join(", ")))
}

/// Ids of calls that are older than all that are there.
const ENDED: &str = "printf('tc_%012x7000%016x', 1700000000000 + n, n)";
const WAITING: &str = "printf('tc_%012x7000%016x', 1600000000000 + n, n)";

fn fill_journal(database: &Database, tenant: &str, count: u64) -> Result<()> {
    let ended: String =
        database
            .query_row("select id from calls where tenant = ?1 order by id desc limit 1", [tenant], |row| row.get(0))?;
    let last: i64 = database.query_row("select seq from heads where tenant = ?1", [tenant], |row| row.get(0))?;
    let (into, of) = copied(database, "calls", &[("id", ENDED), ("ended_seq", "?4 + 2 * n")])?;
    let copy = format!(
        "{NUMBERS} insert into calls ({into}) select {of} from calls old, numbers where old.tenant = ?2 and old.id = ?3"
    );
    database.execute(&copy, params![number(count)?, tenant, ended, last])?;
    let (into, of) = copied(database, "entries", &[("call", ENDED), ("seq", "?4 + 2 * n")])?;
    let copy = format!(
        "{NUMBERS} insert into entries ({into}) select {of} from entries old, numbers where old.tenant = ?2 and old.call = ?3"
    );
    database.execute(&copy, params![number(count)?, tenant, ended, last])?;
    database.execute(
        "update heads set seq = seq + 2 * ?1, version = version + 1 where tenant = ?2",
        params![number(count)?, tenant],
    )?;
    Ok(())
}

fn fill_questions(database: &Database, tenant: &str, count: u64) -> Result<()> {
    let waits: String =
        database.query_row("select call from questions where tenant = ?1", [tenant], |row| row.get(0))?;
    let (into, of) = copied(
        database,
        "open_calls",
        &[("id", WAITING), ("outcome", &format!("replace(old.outcome, old.id, {WAITING})"))],
    )?;
    let copy = format!(
        "{NUMBERS} insert into open_calls ({into}) select {of} from open_calls old, numbers where old.tenant = ?2 and old.id = ?3"
    );
    database.execute(&copy, params![number(count)?, tenant, waits])?;
    let body = format!("replace(old.body, old.call, {WAITING})");
    let (into, of) = copied(database, "questions", &[("call", WAITING), ("body", &body)])?;
    let copy = format!(
        "{NUMBERS} insert into questions ({into}) select {of} from questions old, numbers where old.tenant = ?2 and old.call = ?3"
    );
    database.execute(&copy, params![number(count)?, tenant, waits])?;
    Ok(())
}

fn fill_tools(database: &Database, tenant: &str, amount: &FillAmount) -> Result<()> {
    let first = slug(0);
    let slug = "printf('t%07d', 100 + n)";
    let body = format!("replace(old.body, old.slug, {slug})");
    let (into, of) = copied(database, "tools", &[("slug", slug), ("body", &body)])?;
    let copy = format!(
        "{NUMBERS} insert into tools ({into}) select {of} from tools old, numbers where old.tenant = ?2 and old.slug = ?3"
    );
    database.execute(&copy, params![number(amount.tools)?, tenant, first])?;
    let (into, of) =
        copied(database, "tenants", &[("id", "printf('tn_%032x', n)"), ("slug", "printf('other-%d', n)")])?;
    let copy =
        format!("{NUMBERS} insert into tenants ({into}) select {of} from tenants old, numbers where old.id = ?2");
    database.execute(&copy, params![number(amount.tenants)?, tenant])?;
    let (into, of) = copied(database, "tools", &[("tenant", "other.id"), ("slug", slug), ("body", &body)])?;
    let copy = format!(
        "{NUMBERS} insert into tools ({into}) select {of} from tools old, numbers, tenants other \
         where old.tenant = ?2 and old.slug = ?3 and other.slug like 'other-%'"
    );
    database.execute(&copy, params![number(amount.tools_of_others)?, tenant, first])?;
    database.execute("update tenants set version = version + 1 where id = ?1", [tenant])?;
    Ok(())
}

/// A count as the database takes it.
fn number(count: u64) -> Result<i64> {
    Ok(i64::try_from(count)?)
}
