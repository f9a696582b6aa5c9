//! The store through its doors, on real databases.
#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

mod audit;
mod authored;
mod batches;
mod copies;
mod database;
mod doors;
mod grants;
mod idempotency;
mod inbox;
mod jobs;
mod mcp_servers;
mod media;
mod members;
mod order;
mod processes;
mod refusals;
mod samples;
mod servers;
mod sessions;
mod tenants;
mod versions;
mod views;
mod workspaces;
