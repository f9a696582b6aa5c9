//! A server of the settings, ready to be started in the fence of a workspace.

use std::{collections::BTreeMap, sync::Arc};

use haft_mcp::{Launch, UpstreamSpec};
use haft_runtime::{ErrorCode, ToolError};
use haft_tools::{Companion, Script, Workspace};

use crate::{
    settings::{
        McpServer, Settings,
        mcp::{Reached, Wanted},
    },
    trust,
};

/// What `haft-mcp` needs to know of a server.
pub(super) fn spec(server: &McpServer, workspace: &Arc<Workspace>, settings: &Settings) -> UpstreamSpec {
    UpstreamSpec {
        name: server.name.clone(),
        command: server.reached.shown(),
        launch: launch(server, workspace, settings),
        timeout: server.timeout,
        allowed_tools: server.allowed_tools.clone(),
        denied_tools: server.denied_tools.clone(),
        effects: server.effects.clone(),
        trusted: server.trusted,
        network: server.network,
    }
}

fn launch(server: &McpServer, workspace: &Arc<Workspace>, settings: &Settings) -> Launch {
    let (server, workspace, settings) = (server.clone(), Arc::clone(workspace), settings.clone());
    Arc::new(move || {
        let Reached::Command { command, env, cwd } = &server.reached else {
            let message = format!(
                "the MCP server `{}` is reached over HTTP, which this version does not do; if it can be started as a \
                 command, write `command` in the place of `url`",
                server.name
            );
            return Err(ToolError::new(ErrorCode::ExecutionError, message));
        };
        workspace.converse(&Companion {
            name: format!("mcp-{}", server.name),
            command: command.clone(),
            folder: cwd.clone(),
            scripts: scripts(&server, command, cwd, (&workspace, &settings))?,
            environment: revealed(env, &server.name, &settings)?,
            network: server.network,
            writes: server.writes,
            cpu_seconds: server.cpu.as_secs().max(1),
            memory: server.memory,
            open_files: server.open_files,
        })
    })
}

/// The files that the command of a workspace's server names, as they were trusted. What the user names is the user's.
fn scripts(
    server: &McpServer,
    command: &[String],
    cwd: &str,
    (workspace, settings): (&Workspace, &Settings),
) -> Result<Vec<Script>, ToolError> {
    match server.from {
        Wanted::ByTheUser => Ok(Vec::new()),
        Wanted::ByTheWorkspace => {
            let record = trust::recorded(&settings.data, workspace.path()).ok().flatten();
            let message = "this workspace is no longer trusted, so its MCP servers are not started; see `haft trust`";
            let record = record.ok_or_else(|| ToolError::new(ErrorCode::NotTrusted, message))?;
            Ok(record.brought.scripts_of_command(command, cwd, workspace.path()))
        }
    }
}

/// The variables with secrets in the place of their names.
fn revealed(
    env: &BTreeMap<String, String>,
    server: &str,
    settings: &Settings,
) -> Result<BTreeMap<String, String>, ToolError> {
    let one = |(name, value): (&String, &String)| match settings.revealed(value) {
        Ok(value) => Ok((name.clone(), value)),
        Err(err) => {
            let message = format!("the MCP server `{server}` was not started: its variable `{name}`: {err:#}");
            Err(ToolError::new(ErrorCode::ExecutionError, message))
        }
    };
    env.iter().map(one).collect()
}
