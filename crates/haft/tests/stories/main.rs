//! Stories: what happens to a call from door to outcome, in a real house on a real store.

mod answers;
mod limits;
mod stage;
mod tenants;
mod turns;
