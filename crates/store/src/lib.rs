//! Every SQL statement: keeps the journal, the questions and everything else.

mod addition;
mod batch;
mod calls;
mod columns;
mod counters;
mod error;
mod follow;
mod grants;
mod journal;
mod outputs;
mod owner;
mod packing;
mod past;
mod pen;
mod questions;
mod retention;
mod schema;
mod store;
mod took;
mod tray;
mod watch;
mod writer;

pub use calls::{CallFilter, CallRow};
pub use counters::ToolUse;
pub use error::StoreError;
pub use follow::Follower;
pub use retention::{Holding, KeptOutput, OldCall};
pub use store::{Health, Store, Sync};
pub use took::Took;
pub use watch::Waiter;
