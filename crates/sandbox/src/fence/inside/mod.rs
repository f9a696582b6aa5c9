//! What happens in the processes that build and keep a fence: the keeper outside, the first process inside, and the
//! command's own process until it becomes the command.

mod command;
mod fork;
mod identity;
mod init;
mod keeper;
mod landlock;
mod mask_layer;
mod masks;
mod mounts;
mod names;
mod root;
mod seccomp;
mod sources;
mod spaces;
mod syscalls;
mod watch;

pub(super) use identity::UNUSED;
pub use identity::{changes_files_of, needs_namespaces, runs_as};
pub use keeper::become_helper_if_asked;
