//! Commands in the fence: started, heard, ended, and what they changed.

mod command_spec;
mod commands;
mod derived;
mod fence;
mod hints;
mod long_lived;
mod output;
mod owners;
mod running;
mod secrets;
mod stopper;

pub(crate) use command_spec::{CommandResult, CommandSpec, PinnedFile};
pub use fence::FenceConfig;
pub(crate) use fence::WorkspaceFence;
pub use long_lived::LongLivedProcess;
pub(crate) use running::{CommandContext, WriteLocation, keep, throw_away};
