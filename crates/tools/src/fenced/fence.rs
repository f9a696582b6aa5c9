//! What is around every command of a workspace: the fence, the toolchains, the folders of its own.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Mutex, OnceLock, PoisonError},
    time::Duration,
};

use haft_runtime::{ErrorCode, Isolation, ToolError};
use haft_sandbox::{
    Root,
    fence::{
        self, Fence, FenceError, FenceJob, FenceLimits, LayeredFolder, Missing, Private, Probe, Rung, Toolchains,
        UserEnvironment, WorkspaceView,
    },
};

use super::{command_spec::CommandSpec, hints::how_to_show, secrets::Secrets};
use crate::git::OutsideRepository;

/// What the house knows of its surroundings; the rooms below read no environment.
#[derive(Clone, Debug)]
pub struct FenceConfig {
    /// The program that builds the fence when it is started again: haft itself.
    pub program: PathBuf,
    /// The user's home folder.
    pub home: PathBuf,
    /// The user's variables, from which toolchains are found.
    pub variables: BTreeMap<String, String>,
    /// How much a command may take.
    pub limits: FenceLimits,
    /// The lowest rung on which a command may run at all.
    pub minimum: Isolation,
    /// More folders that commands may read.
    pub readable: Vec<PathBuf>,
    /// Names that hold secrets beside the usual ones.
    pub hide: Vec<String>,
    /// Folders outside that a project tool may name to write into.
    pub writable: Vec<PathBuf>,
    /// How long a command may run when its call does not say.
    pub timeout: Duration,
    /// Where the user sets what commands may read, as people write it.
    pub settings_file: String,
}

/// The fence around the commands of one workspace.
#[derive(Debug)]
pub(crate) struct WorkspaceFence {
    fence: Fence,
    config: FenceConfig,
    workspace: PathBuf,
    data: PathBuf,
    toolchains: OnceLock<Toolchains>,
    probe: OnceLock<Probe>,
    secrets: Mutex<Secrets>,
}

impl WorkspaceFence {
    pub(crate) fn new(config: FenceConfig, workspace: &Path, data: &Path) -> Self {
        let fence = Fence::new(&config.program);
        let (workspace, data) = (workspace.to_owned(), data.to_owned());
        Self {
            fence,
            config,
            workspace,
            data,
            toolchains: OnceLock::new(),
            probe: OnceLock::new(),
            secrets: Mutex::default(),
        }
    }

    pub(crate) fn fence(&self) -> &Fence {
        &self.fence
    }

    pub(crate) fn config(&self) -> &FenceConfig {
        &self.config
    }

    /// What works here, tried once.
    pub(crate) fn probe(&self) -> &Probe {
        self.probe.get_or_init(|| {
            let probe = self.fence.probe(&self.data.join(PROBE));
            match probe.rung {
                Some(rung) => tracing::info!(?rung, "commands run in a fence"),
                None => tracing::warn!("no fence can be built here, so no command runs"),
            }
            probe
        })
    }

    /// Lets the next process find out again what works here: something did not that should.
    pub(crate) fn doubt_probe(&self) {
        Fence::forget(&self.data.join(PROBE));
    }

    /// What was found on the user's `PATH`.
    pub(crate) fn toolchains(&self) -> &Toolchains {
        self.toolchains.get_or_init(|| {
            let FenceConfig { home, variables, .. } = &self.config;
            fence::toolchains(&UserEnvironment { home, workspace: &self.workspace, variables })
        })
    }

    /// The rung that a command runs on; refused when it is lower than what the settings demand.
    pub(crate) fn rung(&self) -> Result<Rung, ToolError> {
        let probe = self.probe();
        match probe.rung {
            Some(Rung::Landlock) if fence::needs_namespaces(&self.workspace) => {
                let why =
                    "root owns the workspace, and nothing runs as root; give it to another user, or get namespaces";
                Err(unavailable(&probe.namespaces, why))
            }
            Some(rung) if isolation(rung) >= self.config.minimum => Ok(rung),
            Some(_) => Err(unavailable(&probe.namespaces, "the settings demand the rung `namespaces`")),
            None => Err(unavailable(&probe.landlock, "no fence can be built here")),
        }
    }

    /// The job for a command. `dir` is the folder of the call's changes, where its own layers go.
    pub(crate) fn job(
        &self,
        root: &Root,
        dir: &Path,
        spec: &CommandSpec,
        run: (Rung, WorkspaceView),
    ) -> Result<FenceJob, ToolError> {
        let layered = match run.0 {
            Rung::Namespaces => self.layers(dir)?,
            // Only namespaces have layers.
            Rung::Landlock => Vec::new(),
        };
        Ok(self.job_over(root, spec, run, layered))
    }

    /// The same with these folders of its own.
    pub(crate) fn job_over(
        &self,
        root: &Root,
        spec: &CommandSpec,
        run: (Rung, WorkspaceView),
        layered: Vec<LayeredFolder>,
    ) -> FenceJob {
        let (rung, view) = run;
        let toolchains = self.toolchains();
        let secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner).find(root);
        let mut hidden = vec![self.data.clone()];
        hidden.extend(toolchains.hidden.iter().cloned());
        let outside = OutsideRepository::of(root);
        let readable = toolchains.readable.iter().chain(&self.config.readable);
        FenceJob {
            command: spec.command.clone(),
            folder: root.path().join(spec.folder.as_path()),
            environment: outside.environment.into_iter().chain(environment(toolchains, spec)).collect(),
            stdin: spec.stdin.clone().into_bytes(),
            workspace: root.path().to_owned(),
            view,
            layered,
            readable: readable.cloned().chain(outside.folders).collect(),
            writable: spec.writable.clone(),
            hidden,
            masks: root.masks(&secrets),
            network: spec.network,
            limits: self.config.limits.clone(),
            rung,
        }
    }

    /// Whether commands see a path of the outside.
    pub(super) fn shows(&self, root: &Root, path: &Path) -> bool {
        let readable = self.toolchains().readable.iter().chain(&self.config.readable).map(PathBuf::as_path);
        let shown = fence::SYSTEM.iter().map(Path::new).chain(readable).chain([root.path()]);
        shown.into_iter().any(|folder| path.starts_with(folder)) || path.starts_with(&self.data)
    }

    /// What a call is told when the fence could not be had.
    pub(crate) fn refused(&self, err: &FenceError) -> ToolError {
        if let FenceError::NotFound { program } = err
            && let path = Path::new(program)
            && path.is_absolute()
            && path.is_file()
            && let Some(how) = how_to_show(path, &self.config)
        {
            let message = format!("cannot run `{program}`: {how}");
            return ToolError::new(ErrorCode::ExecutionError, message);
        }
        let code = match err {
            FenceError::Unavailable { .. } | FenceError::Helper { .. } => {
                self.doubt_probe();
                ErrorCode::SandboxUnavailable
            }
            FenceError::NotFound { .. }
            | FenceError::NotRun { .. }
            | FenceError::Order(_)
            | FenceError::Lost
            | FenceError::Output(_) => ErrorCode::ExecutionError,
        };
        ToolError::new(code, format!("cannot run the command: {err}"))
    }

    /// What fenced processes of this workspace have to themselves.
    pub(crate) fn private(&self) -> std::io::Result<Private> {
        Private::open(&self.data, &self.workspace)
    }

    /// Folders of its own for one command: caches, a home folder, `/tmp`.
    fn layers(&self, dir: &Path) -> Result<Vec<LayeredFolder>, ToolError> {
        self.private()
            .and_then(|private| private.layers(&dir.join(PRIVATE), self.toolchains()))
            .map_err(|err| ToolError::new(ErrorCode::ExecutionError, format!("cannot run the command: {err}")))
    }
}

/// The toolchains' variables, then what keeps tools from waiting for a network that is off, then the caller's own.
fn environment(toolchains: &Toolchains, spec: &CommandSpec) -> Vec<(String, String)> {
    let offline = if spec.network { &[] } else { fence::OFFLINE };
    let offline = offline.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let mut all: BTreeMap<String, String> = toolchains.environment.iter().cloned().chain(offline).collect();
    all.extend(spec.environment.clone());
    all.into_iter().collect()
}

/// Where in the data folder it is remembered what works here.
const PROBE: &str = "fence.json";

/// Where in the folder of its changes a call's own layers lie.
pub(crate) const PRIVATE: &str = "private";

/// The runtime's word for a rung.
pub(crate) fn isolation(rung: Rung) -> Isolation {
    match rung {
        Rung::Landlock => Isolation::Landlock,
        Rung::Namespaces => Isolation::Namespaces,
    }
}

fn unavailable(tried: &Result<(), Missing>, why: &str) -> ToolError {
    let message = match tried {
        Ok(()) => format!("{why}; `haft doctor` says what is missing"),
        Err(Missing { step, why: cause, fix }) => format!("{why}: {step} failed ({cause}); {fix}"),
    };
    ToolError::new(ErrorCode::SandboxUnavailable, message)
}
