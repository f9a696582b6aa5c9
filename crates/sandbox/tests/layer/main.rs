//! What commands leave in their layers over a workspace: planned, shown, committed in whole or in part, undone.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that cannot go on fails")]
#![expect(clippy::disallowed_methods, reason = "the tests run commands over a workspace")]

mod conflicts;
mod git;
mod kinds;
mod moves;
mod odd;
mod overlay;
mod parts;
mod random;
#[path = "../support/mod.rs"]
mod support;
