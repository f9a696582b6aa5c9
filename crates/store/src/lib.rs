//! Every SQL statement: keeps the journal, the questions and everything else.

mod addition;
mod batch;
mod calls;
mod columns;
mod counters;
mod error;
mod grants;
mod journal;
mod outputs;
mod owner;
mod past;
mod questions;
mod schema;
mod store;
mod watch;
mod writer;

pub use calls::{CallFilter, CallRow, Counts};
pub use counters::ToolUse;
pub use error::StoreError;
pub use store::{Health, Store, Sync};
pub use watch::Waiter;
