//! The folders that fenced processes of one workspace have to themselves, and what is kept of them.

mod abandoned;
mod folders;
mod keep;
mod lock;
mod merge;
mod record;
mod seed;

pub use abandoned::{AbandonedFolders, abandoned, bytes_in};
pub use folders::Private;
pub use keep::{keep, throw_away};
