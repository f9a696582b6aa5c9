//! The store through its doors, on real databases.

mod batches;
mod doors;
mod plans;
mod processes;
mod refusals;
mod samples;
mod tenants;
