//! A program of somebody else's that is talked with for as long as haft lives, such as an MCP server.

use std::{
    collections::BTreeMap,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    time::Duration,
};

use haft_runtime::{ErrorCode, ToolError};
use haft_sandbox::fence::{Process, Rung, WorkspaceView};

use super::{command_spec::CommandSpec, fence::WorkspaceFence};
use crate::{project::Script, workspace::Workspace};

/// What is started, and what it may see and take.
#[derive(Clone, Debug)]
pub struct LongLivedProcess {
    /// Names its private home, which lasts; only letters, digits, `_` and `-`.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The folder of the workspace that it starts in.
    pub folder: String,
    /// Files of the workspace that its command names, which must be as they were trusted.
    pub scripts: Vec<Script>,
    /// What is added to its variables.
    pub environment: BTreeMap<String, String>,
    /// Whether it reaches the network, which is then all of it.
    pub network: bool,
    /// Whether it writes into the workspace itself, which nobody can undo; otherwise it only reads.
    pub writes: bool,
    /// Seconds of processor time, for each of its processes.
    pub cpu_seconds: u64,
    /// Bytes of resident memory of all its processes.
    pub memory: u64,
    /// Open files, for each of its processes.
    pub open_files: u64,
}

/// The folder of a program, where its libraries may lie; the program alone where the home folder would come with it.
fn around(program: &Path, fenced: &WorkspaceFence) -> PathBuf {
    let folder = program.parent().unwrap_or(program);
    if fenced.config().home.starts_with(folder) { program.to_owned() } else { folder.to_owned() }
}

impl Workspace {
    /// Starts such a process. What is written into the socket is its standard input, what is read from it is its standard
    /// output; [`Process::wait`] hears its standard error, and must be waiting.
    pub fn converse(&self, wanted: &LongLivedProcess) -> Result<(Process, UnixStream), ToolError> {
        let fenced = self.commands.fenced()?;
        if fenced.rung()? != Rung::Namespaces {
            let message = "MCP servers run only behind the fence `namespaces`; `haft doctor` says what is missing";
            return Err(ToolError::new(ErrorCode::SandboxUnavailable, message));
        }
        for script in &wanted.scripts {
            script.checked(self.files.root(), &wanted.name)?;
        }
        let spec = CommandSpec {
            command: wanted.command.clone(),
            folder: self.folder(&wanted.folder)?,
            environment: wanted.environment.clone(),
            stdin: String::new(),
            network: wanted.network,
            writable: Vec::new(),
            pinned: Vec::new(),
            secrets: haft_runtime::Redactor::default(),
            limit: Duration::MAX,
        }
        .checked()?;
        let own = fenced.private().and_then(|private| private.lasting_layers(&wanted.name, fenced.toolchains()));
        let own =
            own.map_err(|err| ToolError::new(ErrorCode::ExecutionError, format!("cannot start a server: {err}")))?;
        let view = if wanted.writes { WorkspaceView::Direct } else { WorkspaceView::ReadOnly };
        let mut job = fenced.job_over(self.files.root(), &spec, (Rung::Namespaces, view), own);
        job.limits.cpu_seconds = wanted.cpu_seconds;
        job.limits.memory = wanted.memory;
        job.limits.open_files = wanted.open_files;
        // A program that the user names by its path may lie anywhere.
        let program = wanted.command.first().map(Path::new).filter(|program| program.is_absolute());
        let real = program.and_then(|program| program.canonicalize().ok());
        job.readable.extend(program.into_iter().chain(real.as_deref()).map(|program| around(program, fenced)));
        fenced.fence().converse(&job).map_err(|err| fenced.refused(&err))
    }
}
