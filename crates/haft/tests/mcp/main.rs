//! `haft mcp` as clients meet it, in both eras of the protocol: raw lines first, then the clients that people use.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[path = "../support/mod.rs"]
mod support;

mod approvals;
mod background;
mod choosing;
mod client;
mod frames;
mod http;
mod real;
mod serving;
mod streaming;
mod tasks;
mod telling;
