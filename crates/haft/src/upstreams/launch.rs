//! A server of the settings, ready to be started in the fence of a workspace.

use std::{path::Path, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use haft_mcp::{Endpoint, EndpointLogin, EntryPlace, Launch, LaunchedServer, Transport, UpstreamSpec};
use haft_runtime::{ErrorCode, Redactor, ToolError};
use haft_sandbox::web::{FetchLimits, Url, WebClient};
use haft_tools::{LongLivedProcess, Script, Workspace};

use super::shared_login::{SettingsLogins, SharedLogin, can_log_in};
use crate::{
    settings::{
        McpServer, Settings,
        mcp::{Reached, ResolvedSecrets, ServerOrigin},
    },
    trust,
};

/// How long the first answer of a server elsewhere may take at least.
pub(crate) const FIRST_ANSWER: Duration = Duration::from_secs(30);

/// What `haft-mcp` needs to know of a server.
pub(super) fn spec(
    server: &McpServer,
    workspace: &Arc<Workspace>,
    (settings, logins): (&Settings, &Arc<SettingsLogins>),
) -> UpstreamSpec {
    UpstreamSpec {
        name: server.name.clone(),
        command: at_home(&server.reached, &settings.home).shown(),
        launch: launch(server, workspace, (settings, logins)),
        timeout: server.timeout,
        allowed_tools: server.allowed_tools.clone(),
        denied_tools: server.denied_tools.clone(),
        effects: server.effects.clone(),
        trusted: server.trusted,
        network: server.network,
        writes: server.writes,
        host: host(server, workspace, settings),
        entry: EntryPlace::Settings,
        logins: can_log_in(server).then(|| Arc::new(SharedLogin) as _),
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

/// What is started, where `~` at the beginning of a word is the user's home folder: no shell reads the words.
fn at_home(reached: &Reached, home: &Path) -> Reached {
    let Reached::Command { command, env, cwd } = reached else { return reached.clone() };
    let word = |word: &String| match word.strip_prefix("~/") {
        Some(rest) => home.join(rest).display().to_string(),
        None => word.clone(),
    };
    Reached::Command { command: command.iter().map(word).collect(), env: env.clone(), cwd: cwd.clone() }
}

fn launch(
    server: &McpServer,
    workspace: &Arc<Workspace>,
    (settings, logins): (&Settings, &Arc<SettingsLogins>),
) -> Launch {
    let needed = Arc::new((server.clone(), Arc::clone(workspace), settings.clone(), Arc::clone(logins)));
    Arc::new(move |_person| {
        let needed = Arc::clone(&needed);
        blocking(move || launched(&needed.0, &needed.1, (&needed.2, &needed.3)))
    })
}

/// Starts a server on a thread that may wait.
pub(crate) fn blocking(
    start: impl FnOnce() -> Result<LaunchedServer, ToolError> + Send + 'static,
) -> BoxFuture<'static, Result<LaunchedServer, ToolError>> {
    let failed = |_| Err(ToolError::new(ErrorCode::ExecutionError, "starting it failed"));
    Box::pin(async move { tokio::task::spawn_blocking(start).await.unwrap_or_else(failed) })
}

fn launched(
    server: &McpServer,
    workspace: &Arc<Workspace>,
    (settings, logins): (&Settings, &SettingsLogins),
) -> Result<LaunchedServer, ToolError> {
    let ResolvedSecrets { reached, secrets, named } = revealed(server, workspace, settings)?;
    let transport = match at_home(&reached, &settings.home) {
        Reached::Url { url, headers } => {
            let client = Arc::new(client(server, &url, settings));
            let login = can_log_in(server).then(|| logins.login(settings, (&server.name, &url), &client)).flatten();
            Transport::Http(Endpoint {
                name: server.name.clone(),
                client,
                url,
                headers: headers.into_iter().collect(),
                patience: server.timeout.max(FIRST_ANSWER),
                entry: EntryPlace::Settings,
                login: login.map_or(EndpointLogin::Impossible, EndpointLogin::Of),
            })
        }
        Reached::Command { command, env, cwd } => {
            let (process, socket) = workspace.converse(&LongLivedProcess {
                name: format!("mcp-{}", server.name),
                scripts: scripts(server, &command, &cwd, (workspace, settings))?,
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
        Reached::Unknown { why } => return Err(ToolError::new(ErrorCode::InvalidArgs, why)),
    };
    let [redactor, named] = [secrets, named].map(|known| Redactor::knowing(Vec::new(), known));
    Ok(LaunchedServer { transport, redactor, named })
}

/// The entry with secrets and variables in the place of their names.
pub(crate) fn revealed(
    server: &McpServer,
    workspace: &Workspace,
    settings: &Settings,
) -> Result<ResolvedSecrets, ToolError> {
    server.revealed(settings, workspace.path()).map_err(|err| {
        let message = format!("the MCP server `{}` was not started: {err:#}", server.name);
        ToolError::new(ErrorCode::InvalidArgs, message)
    })
}

/// The guarded client. Where the user names a server by its URL, that very host and port may be reached.
pub(crate) fn client(server: &McpServer, url: &str, settings: &Settings) -> WebClient {
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
            let scripts = record.brought.scripts_of_command(command, cwd, workspace.path());
            scripts.map_err(|error| {
                let message = format!("the MCP server `{}` was not started: {}", server.name, error.message);
                ToolError { message, ..error }
            })
        }
    }
}
