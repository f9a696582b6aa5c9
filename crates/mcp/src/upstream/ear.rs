//! What a server says of its own accord: progress, and that its tools have changed. What it asks for is refused.

use std::{
    collections::HashMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use haft_runtime::ToolCtx;
use rmcp::{
    ClientHandler, RoleClient,
    model::{ClientCapabilities, ClientConfig, Implementation, ProgressNotificationParam, ProgressToken},
    service::NotificationContext,
};

/// Hears one server. It offers neither sampling nor elicitation, so a server that asks for either is refused.
#[derive(Default)]
pub(super) struct Ear {
    calls: Mutex<HashMap<ProgressToken, ToolCtx>>,
    changed: AtomicBool,
}

impl Ear {
    /// From now on a call hears of its progress.
    pub(super) fn listen_for(&self, token: ProgressToken, ctx: &ToolCtx) {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).insert(token, ctx.clone());
    }

    pub(super) fn forget(&self, token: &ProgressToken) {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).remove(token);
    }

    /// Whether the server has said that its tools have changed, since it was last asked here.
    pub(super) fn take_changed(&self) -> bool {
        self.changed.swap(false, Ordering::SeqCst)
    }
}

impl ClientHandler for Ear {
    fn get_info(&self) -> ClientConfig {
        let haft = Implementation::new("haft", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), haft)
    }

    async fn on_progress(&self, heard: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(ctx) = calls.get(&heard.progress_token) else { return };
        let part = heard.total.filter(|total| *total > 0.0).map(|total| heard.progress / total * 100.0);
        // A cast keeps within the bounds of the type.
        let percent = part.map(|part| part.min(100.0) as u8);
        ctx.progress(percent, heard.message.unwrap_or_else(|| format!("{} so far", heard.progress)));
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changed.store(true, Ordering::SeqCst);
    }
}
