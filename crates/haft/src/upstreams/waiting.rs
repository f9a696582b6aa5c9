//! Says whom somebody at a command line waits for.

use std::time::Duration;

use tokio::time::timeout;

use crate::show::style::DIM;

/// How long nobody wonders.
const MOMENT: Duration = Duration::from_secs(1);

/// Waits for a server, and after a moment says so.
pub(crate) async fn told<T>(server: &str, work: impl Future<Output = T>) -> T {
    tokio::pin!(work);
    if let Ok(done) = timeout(MOMENT, &mut work).await {
        return done;
    }
    anstream::eprintln!("{DIM}haft: waiting for the MCP server `{server}` …{DIM:#}");
    work.await
}
