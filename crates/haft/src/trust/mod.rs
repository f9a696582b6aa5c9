//! What a workspace brings is obeyed only after somebody has trusted exactly those bytes.

mod brought;
mod manifests;
mod record;
mod standing;

pub(crate) use brought::{Brought, Content, SETTINGS, hex};
pub(crate) use manifests::{ManifestFile, TOOLS};
pub(crate) use record::{Stamp, forget, place, read as recorded, stamp, write};
pub(crate) use standing::{Difference, Looked, Standing, look};
