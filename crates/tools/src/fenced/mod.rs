//! Commands in the fence: started, heard, ended, and what they changed.

mod commands;
mod derived;
mod errand;
mod fence;
mod leash;
mod long_lived;
mod owners;
mod running;
mod said;
mod secrets;

pub(crate) use errand::{Done, Errand, Pinned};
pub use fence::FenceConfig;
pub(crate) use fence::Fenced;
pub use long_lived::LongLivedProcess;
pub(crate) use running::{Bench, Writes, keep, throw_away};
