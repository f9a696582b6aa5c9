//! The program: settings, commands, and the houses they are built from.

pub mod cli;
mod commands;
pub mod complete;
mod edits;
pub mod exit;
pub mod house;
pub mod logging;
mod notify;
mod project;
pub mod retention;
mod rooms;
pub mod rules;
pub mod settings;
mod show;
mod solo;
mod trust;
mod upstreams;
mod workspace;
