//! Which addresses are dialled, and which are refused before any packet leaves.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod allowed;
mod fetching;
mod names;
mod servers;
mod urls;
