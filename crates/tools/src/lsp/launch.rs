//! Starting a language server in the fence.

use std::{collections::BTreeMap, os::unix::net::UnixStream, path::Path};

use haft_runtime::{ErrorCode, ToolError};
use haft_sandbox::{
    WorkspacePath,
    fence::{Private, Process, Rung, WorkspaceView},
};

use super::servers::{LanguageServer, LanguageServers};
use crate::fenced::{CommandContext, CommandSpec};

/// Where a server sees the folder of its own that lasts.
const BUILD: &str = "/var/cache/language-servers";
/// A server lives long; what it may use of the processor is not what keeps it in bounds.
const CPU_SECONDS: u64 = 1 << 32;

/// Starts a server that reads the workspace and writes nothing of it, without a network.
pub(super) fn launch(
    context: &CommandContext,
    server: &LanguageServer,
    all: &LanguageServers,
) -> Result<(Process, UnixStream), ToolError> {
    if context.fenced.rung()? != Rung::Namespaces {
        let message = "language servers run only behind the fence `namespaces`; `haft doctor` says what is missing";
        return Err(ToolError::new(ErrorCode::SandboxUnavailable, message));
    }
    let spec = CommandSpec {
        command: server.command.clone(),
        folder: WorkspacePath::root(),
        environment: variables(),
        stdin: String::new(),
        network: false,
        writable: Vec::new(),
        pinned: Vec::new(),
        secrets: haft_runtime::Redactor::default(),
        limit: std::time::Duration::MAX,
    };
    let mut job =
        context.fenced.job(&context.root, &context.dir, &spec, (Rung::Namespaces, WorkspaceView::ReadOnly))?;
    let own = context.fenced.private().and_then(|private: Private| private.lasting(FOLDER, Path::new(BUILD)));
    job.layered.push(own.map_err(|err| {
        ToolError::new(ErrorCode::ExecutionError, format!("cannot start the language server: {err}"))
    })?);
    job.limits.memory = all.memory;
    job.limits.cpu_seconds = CPU_SECONDS;
    // A program that the user names by its path may lie anywhere.
    let program = server.command.first().map(Path::new).filter(|program| program.is_absolute());
    job.readable.extend(program.and_then(Path::parent).map(Path::to_owned));
    context.fenced.fence().converse(&job).map_err(|err| context.fenced.refused(&err))
}

/// What it is called in the workspace's private folders.
const FOLDER: &str = "language-servers";

/// What leads build output away from the workspace, which can only be read.
fn variables() -> BTreeMap<String, String> {
    [("CARGO_TARGET_DIR", "rust"), ("GOCACHE", "go"), ("XDG_CACHE_HOME", "cache"), ("PYTHONPYCACHEPREFIX", "python")]
        .map(|(name, folder)| (name.to_owned(), format!("{BUILD}/{folder}")))
        .into()
}
