//! Files that a call would create, change or delete: planned, shown, committed, undone and recovered.

mod change;
mod check;
mod content;
mod deletion;
mod draft;
mod error;
mod flags;
mod folder;
mod git_config;
mod lock;
mod plan;
mod recover;
mod sealed;
mod select;
mod show;
mod siblings;
mod stage;
mod swap;
mod turn;

pub use change::{Change, ChangeKind, ChangeState, Direction, Selection};
pub use draft::{Draft, Expected, Written};
pub use error::ChangesError;
pub use flags::{Flag, Subject, flags};
pub use plan::Sync;
pub use recover::{Recovered, recover, remove};
pub use sealed::Changes;
pub use show::diff;
