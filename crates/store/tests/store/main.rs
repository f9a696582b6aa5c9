//! The store through its doors, on real databases.
#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

mod batches;
mod copies;
mod database;
mod doors;
mod grants;
mod order;
mod processes;
mod refusals;
mod samples;
mod servers;
mod tenants;
mod views;
