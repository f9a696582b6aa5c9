//! `haft serve` under load: beside a bare server, `mcp-proxy` and the databases themselves, with many listeners, and on a
//! store in which much has happened. Client and server have processors of their own.

mod calls;
mod full;
mod load;
mod peers;
mod served;
mod streams;
mod writes;

use anyhow::{Result, anyhow};
pub(crate) use peers::{serve_echo, serve_mcp};

use crate::{Measured, mcp::stay_on};

/// The rows about the gateway: those of the sections that are named, as `cargo xtask bench gateway calls`, or all.
pub(crate) fn measure(named: &[String]) -> Result<Vec<Measured>> {
    let is_section = |name: &&String| ["calls", "writes", "streams", "full"].contains(&name.as_str());
    let sections: Vec<String> = named.iter().filter(is_section).cloned().collect();
    let last = std::thread::available_parallelism()?.get() - 1;
    stay_on("0")?;
    // A thread inherits where it may run; one runtime on it is the whole client.
    let measured = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(rows(&sections))
    });
    let measured = measured.join().map_err(|_| anyhow!("the client broke off"))?;
    stay_on(&format!("0-{last}"))?;
    measured
}

async fn rows(sections: &[String]) -> Result<Vec<Measured>> {
    let wanted = |section: &str| sections.is_empty() || sections.iter().any(|named| named == section);
    let mut table = Vec::new();
    if wanted("calls") {
        table.extend(calls::measure().await?);
    }
    if wanted("writes") {
        table.extend(writes::measure().await?);
    }
    if wanted("streams") {
        table.push(streams::measure().await?);
    }
    if wanted("full") {
        table.extend(full::measure().await?);
    }
    Ok(table)
}

/// All processors but the first, as far as there are others.
fn server_processors(count: usize) -> String {
    format!("{}-{}", (count - 1).min(1), count - 1)
}
