//! The fence, with real processes, namespaces and mounts: what is held, what works inside, and what is left.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod attempts;
mod life;
mod limits;
mod loopback;
mod probe;
mod programs;
mod views;
mod world;
