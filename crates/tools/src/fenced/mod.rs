//! Commands in the fence: started, heard, ended, and what they changed.

mod around;
mod commands;
mod companion;
mod derived;
mod errand;
mod leash;
mod owners;
mod running;
mod said;
mod secrets;

pub use around::Around;
pub(crate) use around::Fenced;
pub use companion::Companion;
pub(crate) use errand::{Done, Errand, Pinned};
pub(crate) use running::{Bench, Writes, keep, throw_away};
