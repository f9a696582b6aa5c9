//! What a workspace brings is obeyed only after somebody has trusted exactly those bytes.

mod brought;
mod record;
mod standing;

pub(crate) use brought::{Brought, Content, SETTINGS, hex};
pub(crate) use record::{forget, write};
pub(crate) use standing::{Difference, Looked, Standing, look};
