//! The program: settings, commands, and the houses they are built from.

mod backend;
mod backup;
pub mod cli;
mod commands;
pub mod complete;
mod demo;
mod edits;
pub mod exit;
mod gateway;
pub mod house;
pub mod logging;
mod logins;
mod master_key;
mod notify;
mod open_files;
mod project;
mod remote;
pub mod retention;
mod rooms;
pub mod rules;
pub mod settings;
mod show;
mod solo;
mod telemetry;
mod trust;
mod upstreams;
mod workspace;
