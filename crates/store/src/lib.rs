//! Every SQL statement: keeps the journal, the questions and everything else.

mod batch;
mod calls;
mod columns;
mod copy;
mod counters;
mod db;
mod duration_histogram;
mod error;
mod faults;
mod follow;
mod grants;
mod journal;
mod journal_write;
mod live;
mod lock;
mod nodes;
mod outputs;
mod past;
mod postgres;
mod questions;
mod retention;
mod schema;
mod sql;
mod sqlite;
mod store;
mod write_queue;

pub use calls::{CallFilter, CallRow};
pub use copy::CopiedTable;
pub use counters::ToolUse;
pub use duration_histogram::DurationHistogram;
pub use error::StoreError;
pub use faults::Faults;
pub use follow::CallFollower;
pub use live::{EventStream, EventsOf, JournalEvent, StreamItem, Waiter};
pub use retention::{Holding, KeptOutput, OldCall};
pub use store::{Durability, Health, Options, Store};
