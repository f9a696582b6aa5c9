//! Several nodes on one PostgreSQL, raced, killed and cut off: what one of them is told counts on all, once. Where it makes
//! sense the same is done to one server on SQLite with other processes beside it.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test that cannot go on fails, says what it measured, and starts programs itself"
)]

mod agreements;
mod answers;
mod catalogue;
mod clocks;
mod cluster;
mod commits;
#[path = "../stories/database.rs"]
mod database;
mod events;
#[path = "../http_client/mod.rs"]
mod http_client;
mod kills;
mod outages;
mod proxy;
mod results;
mod site;
