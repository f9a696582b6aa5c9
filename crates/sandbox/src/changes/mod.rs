//! Files that a call would create, change or delete: planned, shown, committed, undone and recovered.

mod change;
mod check;
mod content;
mod copying;
mod deletion;
mod draft;
mod ends;
mod error;
mod flags;
mod folder;
mod git_config;
mod lock;
mod moving;
mod plan;
mod progress;
mod recover;
mod rename;
mod sealed;
mod select;
mod show;
mod siblings;
mod stage;
mod swap;
mod trail;
mod tree;
mod turn;

pub use change::{Change, ChangeKind, ChangeState, Direction, Selection};
pub use copying::{Copied, Folders};
pub use draft::{Draft, Expected, Written};
pub use error::ChangesError;
pub use flags::{Flag, Subject, flags};
pub use plan::Sync;
pub use progress::Progress;
pub use recover::{Recovered, recover, remove};
pub use sealed::Changes;
pub use show::diff;
