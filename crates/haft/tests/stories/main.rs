//! Stories: what happens to a call from door to outcome, in a real house on a real store.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "a test that cannot go on fails")]

mod aliases;
mod answers;
mod aside;
mod awaited;
mod batch;
mod cache;
mod catalogue;
mod database;
mod forms;
mod grants;
mod limits;
mod recovery;
mod references;
mod retry;
mod runs;
mod stage;
mod submitted;
mod tenants;
mod turns;
