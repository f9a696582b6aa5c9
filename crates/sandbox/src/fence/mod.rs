//! The fence around processes: what they see, what they may do, and that none of them outlives its call.

mod error;
mod file_time;
mod inside;
mod job;
mod keeper;
mod loopback;
mod mounts;
mod private;
mod probe;
mod process;
mod start;
mod toolchains;
mod wire;

pub use error::FenceError;
pub use file_time::FileTime;
pub use inside::{become_helper_if_asked, changes_files_of, needs_namespaces, runs_as};
pub(crate) use job::STEERING;
pub use job::SYSTEM;
pub use job::{Bound, FenceJob, FenceLimits, LayeredFolder, Mask, MaskContent, Rung, WorkspaceView};
pub use mounts::mounts_within;
pub use private::{AbandonedFolders, Private, abandoned, bytes_in, keep, throw_away};
pub use probe::{Missing, Probe};
pub use process::{CommandExit, CommandStream, FenceStopper, Process, ProcessEnd, Signal};
pub use start::{Fence, HELPER};
pub use toolchains::{
    LeftOut, OFFLINE, ToolCache, Toolchain, Toolchains, UserEnvironment, refused_variable, toolchains,
};
