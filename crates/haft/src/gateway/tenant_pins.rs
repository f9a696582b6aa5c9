//! What is known of a tenant's server, in the database that all nodes share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use haft_mcp::{PinStore, ServerPins};
use haft_platform::{PinsChange, Platform, ServerReach, ServerRecord};
use haft_runtime::{Scope, ToolError};

/// What is known of one server, as of the last look.
pub(super) struct TenantPins {
    platform: Arc<Platform>,
    scope: Scope,
    name: String,
    /// Where the server is that this is known of.
    reach: ServerReach,
    known: Mutex<(i64, Arc<ServerPins>)>,
}

impl TenantPins {
    pub(super) fn new(platform: &Arc<Platform>, scope: &Scope, (reach, record): (&ServerReach, &ServerRecord)) -> Self {
        Self {
            platform: platform.clone(),
            scope: scope.clone(),
            name: record.definition.name.clone(),
            reach: reach.clone(),
            known: Mutex::new((record.revision, Arc::new(ServerPins::parsed(record.pins.as_deref())))),
        }
    }

    /// Takes in what another node has written.
    pub(super) async fn catch_up(&self, revision: i64) -> Result<(), ToolError> {
        if self.known().0 < revision {
            self.take(&self.platform.server(&self.scope, &self.name).await?);
        }
        Ok(())
    }

    fn take(&self, record: &ServerRecord) {
        let pins = Arc::new(ServerPins::parsed(record.pins.as_deref()));
        let mut known = self.known();
        // Of two that look at the same time the later one may have read first.
        if known.0 < record.revision {
            *known = (record.revision, pins);
        }
    }

    fn known(&self) -> MutexGuard<'_, (i64, Arc<ServerPins>)> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PinStore for TenantPins {
    fn read(&self) -> ServerPins {
        let pins = Arc::clone(&self.known().1);
        ServerPins::clone(&pins)
    }

    fn change<'a>(
        &'a self,
        change: &'a mut (dyn FnMut(&mut ServerPins) + Send),
    ) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move {
            let change = &mut |record: &ServerRecord| {
                // What was heard of a server says nothing of another one that has its name by now.
                if record.definition.reach != self.reach {
                    return PinsChange::Nothing;
                }
                changed(record, &mut *change)
            };
            self.take(&self.platform.change_server_pins(&self.scope, &self.name, change).await?);
            Ok(())
        })
    }

    fn version(&self) -> String {
        self.known().0.to_string()
    }
}

/// What a change makes of what is known.
pub(super) fn changed(record: &ServerRecord, change: impl FnOnce(&mut ServerPins)) -> PinsChange {
    let before = ServerPins::parsed(record.pins.as_deref());
    let mut pins = before.clone();
    change(&mut pins);
    let Ok(text) = serde_json::to_string(&pins) else { return PinsChange::Nothing };
    if pins == before {
        PinsChange::Nothing
    } else if pins.has_other_tools(&before) {
        PinsChange::Tools(text)
    } else {
        PinsChange::State(text)
    }
}
