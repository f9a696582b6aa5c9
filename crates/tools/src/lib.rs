//! The built-in workspace tools.
