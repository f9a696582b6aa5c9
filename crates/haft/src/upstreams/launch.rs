//! A server of the settings, ready to be started in the fence of a workspace.

use std::{sync::Arc, time::Duration};

use haft_mcp::{Endpoint, Launch, LaunchedServer, Transport, UpstreamSpec};
use haft_runtime::{ErrorCode, Redactor, ToolError};
use haft_sandbox::web::{FetchLimits, Url, WebClient};
use haft_tools::{LongLivedProcess, Script, Workspace};

use crate::{
    settings::{
        McpServer, Settings,
        mcp::{Reached, ResolvedSecrets, ServerOrigin},
    },
    trust,
};

/// How long the first answer of a server elsewhere may take at least.
const FIRST_ANSWER: Duration = Duration::from_secs(30);

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
        writes: server.writes,
        host: host(server, workspace, settings),
    }
}

/// Where it runs, if that is elsewhere: its host, or what is written down while that names none.
fn host(server: &McpServer, workspace: &Workspace, settings: &Settings) -> Option<String> {
    let Reached::Url { url: written, .. } = &server.reached else { return None };
    let url = Url::parse(written).ok().or_else(|| match revealed(server, workspace, settings).ok()?.reached {
        Reached::Url { url, .. } => Url::parse(&url).ok(),
        Reached::Command { .. } | Reached::Unknown { .. } => None,
    });
    let host = url.and_then(|url| url.host_str().map(str::to_owned));
    Some(host.unwrap_or_else(|| written.clone()))
}

fn launch(server: &McpServer, workspace: &Arc<Workspace>, settings: &Settings) -> Launch {
    let (server, workspace, settings) = (server.clone(), Arc::clone(workspace), settings.clone());
    Arc::new(move || {
        let ResolvedSecrets { reached, secrets, named } = revealed(&server, &workspace, &settings)?;
        let transport = match reached {
            Reached::Url { url, headers } => {
                let client = Arc::new(client(&server, &url, &settings));
                let headers = headers.into_iter().collect();
                Transport::Http(Endpoint {
                    name: server.name.clone(),
                    client,
                    url,
                    headers,
                    patience: server.timeout.max(FIRST_ANSWER),
                })
            }
            Reached::Command { command, env, cwd } => {
                let (process, socket) = workspace.converse(&LongLivedProcess {
                    name: format!("mcp-{}", server.name),
                    scripts: scripts(&server, &command, &cwd, (&workspace, &settings))?,
                    command,
                    folder: cwd,
                    environment: env,
                    network: server.network,
                    writes: server.writes,
                    cpu_seconds: server.cpu.as_secs().max(1),
                    memory: server.memory,
                    open_files: server.open_files,
                })?;
                Transport::Process(process, socket)
            }
            Reached::Unknown { why } => return Err(ToolError::new(ErrorCode::ExecutionError, why)),
        };
        let [redactor, named] = [secrets, named].map(|known| Redactor::knowing(Vec::new(), known));
        Ok(LaunchedServer { transport, redactor, named })
    })
}

/// The entry with secrets and variables in the place of their names.
fn revealed(server: &McpServer, workspace: &Workspace, settings: &Settings) -> Result<ResolvedSecrets, ToolError> {
    server.revealed(settings, workspace.path()).map_err(|err| {
        let message = format!("the MCP server `{}` was not started: {err:#}", server.name);
        ToolError::new(ErrorCode::ExecutionError, message)
    })
}

/// The guarded client. Where the user names a server by its URL, that very host and port may be reached.
fn client(server: &McpServer, url: &str, settings: &Settings) -> WebClient {
    let mut rules = settings.web.rules();
    let named =
        Url::parse(url).ok().and_then(|url| Some(format!("{}:{}", url.host_str()?, url.port_or_known_default()?)));
    match server.from {
        ServerOrigin::ByTheUser => rules.allowed.extend(named.and_then(|named| named.parse().ok())),
        ServerOrigin::ByTheWorkspace => {}
    }
    let silence = server.timeout.max(FIRST_ANSWER);
    WebClient::new(rules, FetchLimits { connect: settings.web.connect, silence })
}

/// The files that the command of a workspace's server names, as they were trusted. What the user names is the user's.
fn scripts(
    server: &McpServer,
    command: &[String],
    cwd: &str,
    (workspace, settings): (&Workspace, &Settings),
) -> Result<Vec<Script>, ToolError> {
    match server.from {
        ServerOrigin::ByTheUser => Ok(Vec::new()),
        ServerOrigin::ByTheWorkspace => {
            let record = trust::recorded(&settings.data, workspace.path()).ok().flatten();
            let message = "this workspace is no longer trusted, so its MCP servers are not started; see `haft trust`";
            let record = record.ok_or_else(|| ToolError::new(ErrorCode::NotTrusted, message))?;
            record.brought.scripts_of_command(command, cwd, workspace.path())
        }
    }
}
