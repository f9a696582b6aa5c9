//! Measures haft beside its peers, side by side in one run, and prints one table. Run by `make bench`.
#![expect(clippy::print_stdout, reason = "a benchmark prints its numbers")]

mod catalogue;
mod day;
mod fence;
mod files;
mod gateway;
mod git;
mod journal;
mod line;
mod lsp;
mod mcp;
mod memory;
mod policy;
mod program;
mod rows;
mod search;
mod web;

use std::time::Duration;

use anyhow::Result;

/// One row of the table.
pub(crate) struct Measured {
    what: &'static str,
    found: String,
    goal: &'static str,
    held: bool,
}

impl Measured {
    pub(crate) fn new(what: &'static str, found: impl Into<String>, goal: &'static str, held: bool) -> Self {
        Self { what, found: found.into(), goal, held }
    }
}

/// The programs that haft is measured beside are parts of this one; `None` when a name is none of them.
async fn serve_beside(part: &str) -> Option<Result<()>> {
    match part {
        "echo" => Some(mcp::echo()),
        "least" => Some(mcp::writes(&std::env::args().nth(2).unwrap_or_default())),
        "http-echo" => Some(gateway::serve_echo().await),
        "mcp-server" => Some(gateway::serve_mcp()),
        _ => None,
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    // Only the parts that are named, as `cargo xtask bench files`.
    let only: Vec<String> = std::env::args().skip(1).collect();
    if let Some(part) = only.first()
        && let Some(served) = serve_beside(part).await
    {
        return served;
    }
    let wanted = |part: &str| only.is_empty() || only.iter().any(|only| only == part);
    let mut table = Vec::new();
    if wanted("line") {
        table.extend(line::measure().await?);
    }
    if wanted("catalogue") {
        table.extend(catalogue::measure().await?);
    }
    if wanted("files") {
        table.extend(files::measure().await?);
    }
    if wanted("policy") {
        table.extend(policy::measure().await?);
    }
    if wanted("rows") {
        table.extend(rows::measure().await?);
    }
    if wanted("program") {
        table.extend(program::measure()?);
    }
    if wanted("search") {
        table.extend(search::measure().await?);
    }
    if wanted("journal") {
        table.extend(journal::measure().await?);
    }
    if wanted("fence") {
        table.extend(fence::measure().await?);
    }
    if wanted("git") {
        table.extend(git::measure().await?);
    }
    if wanted("lsp") {
        table.extend(lsp::measure().await?);
    }
    if wanted("mcp") {
        table.extend(mcp::measure()?);
    }
    if wanted("gateway") {
        table.extend(gateway::measure(&only)?);
    }
    if wanted("web") {
        table.extend(web::measure().await?);
    }
    if wanted("day") {
        table.extend(day::measure()?);
    }
    println!("{:<44} {:<44} {:<22} held", "what", "measured", "goal");
    for row in &table {
        let held = if row.held { "yes" } else { "NO" };
        println!("{:<44} {:<44} {:<22} {held}", row.what, row.found, row.goal);
    }
    Ok(())
}

/// The median of the quietest of ten stretches: whatever else the machine does can only add to it.
pub(crate) fn quiet_median(laps: &[Duration]) -> Duration {
    let stretches = laps.chunks(laps.len().div_ceil(10).max(1));
    stretches.map(|stretch| median(stretch.to_vec())).min().unwrap_or_default()
}

/// The middle one of many laps.
pub(crate) fn median(mut laps: Vec<Duration>) -> Duration {
    laps.sort();
    laps.get(laps.len() / 2).copied().unwrap_or_default()
}
