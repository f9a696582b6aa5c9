//! Telling clients that the tools are no longer those that they have listed.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use haft_runtime::{ToolListing, to_mcp};
use rmcp::{ErrorData, Peer, RoleServer, service::SubscriptionContext};
use tokio::time::sleep;

use super::callers::ClientRequest;

/// How often the tools are looked at: they change when a person edits a file or accepts a definition.
const LOOK: Duration = Duration::from_secs(2);

/// Tells a client of the later era, until it wants to hear no more.
pub(super) async fn tell(server: &ClientRequest, listening: &SubscriptionContext) -> Result<(), ErrorData> {
    let mut known = SeenTools::look(server).await;
    // It may have listed them before it began to listen, so it is told once in any case.
    loop {
        if listening.sink().notify_tool_list_changed().await.is_err() {
            return Ok(());
        }
        tokio::select! {
            () = listening.cancelled() => return Ok(()),
            () = known.change(server) => {}
        }
    }
}

/// Tells a client of the earlier era, as long as it is there.
pub(super) async fn tell_peer(server: &ClientRequest, peer: &Peer<RoleServer>) {
    let mut known = SeenTools::look(server).await;
    while !peer.is_transport_closed() {
        if tokio::time::timeout(LOOK * 2, known.change(server)).await.is_err() {
            continue;
        }
        if peer.notify_tool_list_changed().await.is_err() {
            return;
        }
    }
}

/// The tools that a client was last told of.
struct SeenTools {
    listing: Arc<ToolListing>,
    hash: u64,
}

impl SeenTools {
    async fn look(server: &ClientRequest) -> Self {
        // What cannot be looked at now is not known to have changed; the next look tells.
        let listing = server.ground.catalog.list(&server.caller).await.unwrap_or_default();
        Self { hash: hash(&listing), listing }
    }

    /// Returns when the tools are others.
    async fn change(&mut self, server: &ClientRequest) {
        loop {
            sleep(LOOK).await;
            let Ok(listing) = server.ground.catalog.list(&server.caller).await else { continue };
            // As long as nothing has changed it is the very same list.
            if Arc::ptr_eq(&listing, &self.listing) {
                continue;
            }
            let before = std::mem::replace(&mut self.hash, hash(&listing));
            self.listing = listing;
            if self.hash != before {
                return;
            }
        }
    }
}

/// What clients are told of the tools, as one number.
fn hash(listing: &ToolListing) -> u64 {
    let mut hasher = DefaultHasher::new();
    for tool in listing.offered() {
        to_mcp(std::slice::from_ref(tool.spec())).to_string().hash(&mut hasher);
    }
    hasher.finish()
}
