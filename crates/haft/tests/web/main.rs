//! The web tools, from the command line to servers on this machine.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[path = "../support/mod.rs"]
mod support;

mod asking;
mod fetch;
mod living;
mod search;
mod secure;
mod server;
