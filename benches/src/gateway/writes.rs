//! Calls of a tool that writes: each is in the journal before it acts, and its outcome before it is answered.

use anyhow::Result;
use haft_store::Durability;

use super::{
    calls::said,
    load::{Connection, Load},
    served::Served,
};
use crate::{
    Measured,
    rows::{self, postgres},
};

const TOOL: &str = "note";
const ON_POSTGRES: &str = "64 writing callers, PostgreSQL";
const ROUNDS: usize = 2;

/// On both databases, beside the rows of as many calls put straight into them, 64 in each transaction.
pub(super) async fn measure() -> Result<Vec<Measured>> {
    let mut table = Vec::new();
    let (mut haft, mut raw) = (None, 0.0_f64);
    for _ in 0..ROUNDS {
        raw = raw.max(rows::straight(Durability::Full).await?);
        keep_best(&mut haft, through_haft(None).await?);
    }
    table.extend(haft.map(|haft| beside_raw("64 writing callers, SQLite", &haft, raw)));
    let Some(url) = postgres::url() else {
        table.push(Measured::new(ON_POSTGRES, postgres::ABSENT, "", true));
        return Ok(table);
    };
    let (mut haft, mut raw) = (None, 0.0_f64);
    for round in 0..ROUNDS {
        keep_best(&mut haft, through_haft(Some(&url)).await?);
        raw = raw.max(postgres::straight(&url, 100 + round).await?);
    }
    table.extend(haft.map(|haft| beside_raw(ON_POSTGRES, &haft, raw)));
    Ok(table)
}

fn keep_best(so_far: &mut Option<Load>, new: Load) {
    if so_far.as_ref().is_none_or(|best| best.rate < new.rate) {
        *so_far = Some(new);
    }
}

async fn through_haft(database: Option<&str>) -> Result<Load> {
    let folder = tempfile::tempdir()?;
    let served = Served::start(&folder.path().join("data"), database)?;
    // A database outlives the folder, so that each run has a tenant of its own.
    let key = served.key(&format!("acme-{}", jiff::Timestamp::now().as_millisecond()))?;
    key.add_tool(&mut Connection::open(served.address).await?, TOOL, "write").await?;
    Load::of(served.address, |_| key.call(TOOL)).await
}

fn beside_raw(what: &'static str, haft: &Load, raw: f64) -> Measured {
    let share = 100.0 * haft.rate / raw;
    let found = format!("{}, raw {raw:.0} calls/s: {share:.0} %", said(haft));
    Measured::new(what, found, ">= 50 % of raw", share >= 50.0)
}
