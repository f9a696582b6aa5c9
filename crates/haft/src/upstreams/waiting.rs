//! Says whom somebody at a command line waits for.

use std::time::Duration;

use haft_mcp::Upstreams;
use tokio::time::timeout;

use crate::show::style::DIM;

/// How long nobody wonders.
const MOMENT: Duration = Duration::from_secs(1);

/// Waits for a server, and after a moment says so.
pub(crate) async fn told<T>(server: &str, work: impl Future<Output = T>) -> T {
    told_while(|| true, server, work).await
}

/// Does the work of a call, and after a moment says so where it waits for a server that was never met.
pub(crate) async fn told_of_a_call<T>(upstreams: &Upstreams, tool: &str, work: impl Future<Output = T>) -> T {
    match upstreams.server_of(tool) {
        Some(server) => told_while(|| !server.was_met(), server.name(), work).await,
        None => work.await,
    }
}

async fn told_while<T>(is_waited_for: impl Fn() -> bool, server: &str, work: impl Future<Output = T>) -> T {
    tokio::pin!(work);
    if let Ok(done) = timeout(MOMENT, &mut work).await {
        return done;
    }
    if is_waited_for() {
        anstream::eprintln!("{DIM}haft: waiting for the MCP server `{server}` …{DIM:#}");
    }
    work.await
}
