//! Language servers: kept in step, waited for, and held in bounds when they go wrong; then real ones.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../support/mod.rs"]
mod support;

#[path = "../fenced/mod.rs"]
mod fenced;

mod bench;
mod in_step;
mod life;
mod positions;
mod project;
mod real;
mod wrong;
