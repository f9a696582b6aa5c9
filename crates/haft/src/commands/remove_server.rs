//! A server that is taken out of the user's own list.

use std::path::Path;

use anyhow::{Context, Result};
use haft_runtime::{ErrorCode, ToolError, nearest};

use crate::{
    commands::user_settings,
    edits,
    settings::{
        Settings,
        mcp::{self, USER_LIST, WORKSPACE_LIST},
    },
    show::style::WARN,
    upstreams::PinsFile,
};

/// Removes its entry and what was accepted of it; everything else in the list stays as it is.
pub(crate) fn remove(name: &str) -> Result<()> {
    let settings = user_settings()?;
    let list = settings.config.as_deref().map(|config| config.join(USER_LIST));
    let text = list.as_deref().map(edits::read).transpose()?.flatten().unwrap_or_default();
    let (Some(list), Some(written)) = (list, mcp::written_as(&text, name)) else {
        return Err(ToolError::new(ErrorCode::NotFound, not_in_the_list(name, &settings)).into());
    };
    let server = settings.mcp.servers().into_iter().find(|server| server.name == name);
    let left = edits::json::remove(&text, &["mcpServers", &written]).with_context(|| list.display().to_string())?;
    edits::replace(&list, &left)?;
    if let Some(server) = server {
        PinsFile::of(&server, Path::new("/"), &settings.data).forget();
    }
    if settings.mcp.is_in_settings(name) {
        anstream::eprintln!(
            "{WARN}haft:{WARN:#} your haft.toml still has `[mcp.servers.{name}]`; remove that, too, if you want it gone"
        );
    }
    Ok(())
}

/// Why there is nothing to remove, and where the server stands instead.
fn not_in_the_list(name: &str, settings: &Settings) -> String {
    if settings.mcp.is_in_settings(name) {
        return format!("`{name}` stands in your haft.toml; remove `[mcp.servers.{name}]` there");
    }
    let all = settings.mcp.servers();
    let hint = match nearest(name, all.iter().map(|server| server.name.as_str())).first() {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("a workspace's own servers are in its {WORKSPACE_LIST}"),
    };
    format!("your {USER_LIST} has no server `{name}`; {hint}")
}
