//! What a fenced process is: everything that the process which builds the fence has to know.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::workspace_path::WorkspacePath;

/// What every process may read of the system, where it exists.
pub const SYSTEM: [&str; 9] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt"];

/// What steers haft and git in a workspace from within it. A command that writes into the workspace itself may only read
/// what is there of it.
pub(crate) const STEERING: [&str; 6] = [".git", ".git/hooks", ".git/config", ".haft", ".mcp.json", "haft.toml"];

/// How strong a fence is; a stronger one is more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rung {
    /// Landlock and seccomp, without namespaces: nothing can be staged.
    Landlock,
    /// Namespaces and a root of its own, with Landlock and seccomp inside.
    Namespaces,
}

/// One command and the fence around it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FenceJob {
    /// The program and its arguments. A name without a slash is looked for in the `PATH` of `environment`.
    pub command: Vec<String>,
    /// Where it starts: an absolute path in the workspace.
    pub folder: PathBuf,
    /// All variables that it gets; nothing is inherited.
    pub environment: Vec<(String, String)>,
    /// What it reads from its standard input.
    pub stdin: Vec<u8>,
    /// The workspace, at its real path.
    pub workspace: PathBuf,
    /// How it sees the workspace.
    pub view: WorkspaceView,
    /// Folders of its own, each over what it may only read.
    pub layered: Vec<LayeredFolder>,
    /// Files and folders outside that it may read, beside the system's.
    pub readable: Vec<PathBuf>,
    /// Folders outside that it may write: the user has declared them.
    pub writable: Vec<PathBuf>,
    /// What it must not see, wherever it lies: haft's own data, and secrets outside the workspace.
    pub hidden: Vec<PathBuf>,
    /// What it sees in the place of what holds secrets in the workspace.
    pub masks: Vec<Mask>,
    /// Whether it reaches the network, which is then all of it.
    pub network: bool,
    /// How much of everything it may take.
    pub limits: FenceLimits,
    /// The fence that it runs in; it never runs in a weaker one.
    pub rung: Rung,
}

/// What a process sees at a place of the workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mask {
    /// The real place; no link leads to it.
    #[serde(serialize_with = "as_shown", deserialize_with = "from_shown")]
    pub place: WorkspacePath,
    /// What it sees there.
    pub content: MaskContent,
}

/// What a process sees in the place of something else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MaskContent {
    /// Nothing. Where the workspace itself is seen and not a layer over it, something that cannot be opened.
    Nothing,
    /// A file as the commit that is checked out has it.
    Head {
        /// Its bytes, which are handed over by themselves.
        #[serde(skip)]
        bytes: Vec<u8>,
        /// Its permission bits.
        mode: u32,
        /// When it was changed, in seconds and nanoseconds.
        modified: (i64, u32),
        /// Whether the workspace has the same bytes there, so that the process may change them.
        is_same: bool,
    },
}

fn as_shown<S: serde::Serializer>(place: &WorkspacePath, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&place.to_string())
}

fn from_shown<'de, D: serde::Deserializer<'de>>(from: D) -> Result<WorkspacePath, D::Error> {
    WorkspacePath::from_shown(&String::deserialize(from)?).map_err(serde::de::Error::custom)
}

/// How a process sees the workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceView {
    /// It may only read.
    ReadOnly,
    /// It writes into the workspace itself; settings and hooks in it are read-only.
    Direct,
    /// It writes into a layer of its own over the workspace.
    Aside {
        /// A folder with the empty folders `upper` and `work`, made by whoever asks for the job.
        layer: PathBuf,
    },
}

/// A folder that a process may write, over others that it then only reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayeredFolder {
    /// Where the process sees it.
    pub at: PathBuf,
    /// What lies beneath, the uppermost first. There may be none.
    pub beneath: Vec<PathBuf>,
    /// A folder with the empty folders `upper` and `work`, made by whoever asks for the job.
    pub layer: PathBuf,
    /// The folder in `work` that is its own, where others use the same `upper` at the same time.
    pub own_work: Option<String>,
}

/// How much a command and everything that it starts may take together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FenceLimits {
    /// Seconds of processor time, for each process.
    pub cpu_seconds: u64,
    /// Bytes of resident memory of the whole tree.
    pub memory: u64,
    /// Processes and threads at once.
    pub processes: u64,
    /// Open files, for each process.
    pub open_files: u64,
    /// Bytes of the largest file that it may write.
    pub file_size: u64,
    /// Bytes that it may write into its layers, all together.
    pub written_bytes: u64,
    /// Files and folders that it may make in its layers, all together.
    pub written_files: u64,
}

/// What a command ran into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// Processor time.
    Cpu,
    /// Resident memory.
    Memory,
    /// Processes.
    Processes,
    /// What it wrote into its layers.
    Disk,
}

impl Default for FenceLimits {
    fn default() -> FenceLimits {
        FenceLimits {
            cpu_seconds: 3600,
            memory: 4 << 30,
            processes: 1024,
            open_files: 4096,
            file_size: 8 << 30,
            written_bytes: 16 << 30,
            written_files: 1_000_000,
        }
    }
}
