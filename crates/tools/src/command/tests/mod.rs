//! Commands of both sides, in tables.

mod explained;
mod hostile;
mod refused;
