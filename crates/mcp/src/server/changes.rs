//! Telling clients that the tools are no longer those that they have listed.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

use haft_runtime::to_mcp;
use rmcp::{ErrorData, Peer, RoleServer, service::SubscriptionContext};
use tokio::time::sleep;

use super::callers::ClientRequest;

/// How often the tools are looked at: they change when a person edits a file or accepts a definition.
const LOOK: Duration = Duration::from_secs(2);

/// Tells a client of the later era, until it wants to hear no more.
pub(super) async fn tell(server: &ClientRequest, listening: &SubscriptionContext) -> Result<(), ErrorData> {
    let mut known = look(server).await;
    // It may have listed them before it began to listen, so it is told once in any case.
    loop {
        if listening.sink().notify_tool_list_changed().await.is_err() {
            return Ok(());
        }
        tokio::select! {
            () = listening.cancelled() => return Ok(()),
            now = change(server, known) => known = now,
        }
    }
}

/// Tells a client of the earlier era, as long as it is there.
pub(super) async fn tell_peer(server: &ClientRequest, peer: &Peer<RoleServer>) {
    let mut known = look(server).await;
    while !peer.is_transport_closed() {
        let Ok(now) = tokio::time::timeout(LOOK * 2, change(server, known)).await else { continue };
        known = now;
        if peer.notify_tool_list_changed().await.is_err() {
            return;
        }
    }
}

/// Returns when the tools are others than the known ones.
async fn change(server: &ClientRequest, known: u64) -> u64 {
    loop {
        sleep(LOOK).await;
        let now = look(server).await;
        if now != known {
            return now;
        }
    }
}

/// The tools as one number.
async fn look(server: &ClientRequest) -> u64 {
    // What cannot be looked at now is not known to have changed; the next look tells.
    let listing = server.ground.catalog.list(&server.caller).await.unwrap_or_default();
    let mut hasher = DefaultHasher::new();
    for tool in listing.offered() {
        to_mcp(std::slice::from_ref(tool.spec())).to_string().hash(&mut hasher);
    }
    hasher.finish()
}
