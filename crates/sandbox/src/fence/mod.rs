//! The fence around processes: what they see, what they may do, and that none of them outlives its call.

mod job;

pub use job::{Bound, Job, Layered, Limits, Rung, View};
