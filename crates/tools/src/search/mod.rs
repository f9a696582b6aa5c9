//! The search tools, and what they and the listing share.

mod best;
mod cut;
mod found;
mod glob;
mod grep;
mod lines;
mod matcher;
mod names;
mod order;
mod pace;
mod pattern;
mod queue;
mod rules;
mod searching;
mod told;
mod walk;

pub(crate) use best::Best;
pub(crate) use glob::Glob;
pub(crate) use grep::Grep;
pub(crate) use pace::Pace;
pub(crate) use rules::{IgnoreRules, has, is_hidden};
pub(crate) use walk::{Visitor, Walk, WalkEntry};
