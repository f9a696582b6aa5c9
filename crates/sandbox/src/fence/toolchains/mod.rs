//! The user's own tools, found rather than configured: what a fenced process may read and write of them.

mod environment;
mod find;
mod identity;
mod kits;
mod path;
mod secrets;
mod view;

pub use environment::{OFFLINE, refused_variable};
pub use find::{LeftOut, ToolCache, Toolchain, Toolchains, UserEnvironment, toolchains};
