//! Upstream MCP servers: their tools, what is accepted of them, and that none of them can do harm by going wrong.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../support/mod.rs"]
mod support;

#[path = "../fenced/mod.rs"]
mod fenced;

#[path = "../mcp/client.rs"]
#[allow(dead_code, reason = "these tests use a part of it")]
mod client;

#[path = "../guarded_peer/mod.rs"]
mod guarded_peer;

mod asks;
mod bench;
mod elsewhere;
mod holds;
mod lists;
mod lives;
mod login;
mod names;
mod pasted;
mod starts;
mod works;
mod wrong;
