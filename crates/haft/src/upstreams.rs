//! The upstream MCP servers of the settings: how they are started, where their pins lie, and who waits for them.

mod launch;
mod pins_file;
mod shared_login;
mod waiting;

use std::sync::Arc;

use futures_util::future::join_all;
use haft_mcp::{UpstreamPlan, Upstreams};
use haft_runtime::ToolError;
use haft_tools::Workspace;

use crate::settings::Settings;
pub(crate) use launch::{FIRST_ANSWER, blocking, client, revealed};
pub(crate) use pins_file::{PinsFile, was_met_in_a_workspace};
pub(crate) use shared_login::{SettingsLogins, can_log_in, owner};
pub(crate) use waiting::{told, told_of_a_call};

/// The servers that are used in a workspace.
pub(crate) fn of(settings: &Settings, workspace: &Arc<Workspace>, logins: &Arc<SettingsLogins>) -> Arc<Upstreams> {
    let used = settings.mcp.servers().into_iter().filter(|server| server.enabled);
    let plan = |server| UpstreamPlan {
        spec: launch::spec(&server, workspace, (settings, logins)),
        pins: Arc::new(PinsFile::of(&server, workspace.path(), &settings.data)),
        can_be_met: !server.is_list(),
    };
    Upstreams::new(used.map(plan).collect())
}

/// Starts the servers that were never met, side by side, while somebody looks on, and says what went wrong.
pub(crate) async fn meet_new(upstreams: &Upstreams) -> Vec<ToolError> {
    let met = join_all(upstreams.new_ones().map(|server| told(server.name(), server.meet_at_a_glance()))).await;
    met.into_iter().filter_map(Result::err).collect()
}

/// Starts the server that a name seems to belong to, if it was never met, while somebody looks on.
pub(crate) async fn meet_for(upstreams: &Upstreams, tool: &str) -> Result<(), ToolError> {
    match upstreams.server_of(tool) {
        Some(server) => told(server.name(), server.meet_if_new()).await,
        None => Ok(()),
    }
}
