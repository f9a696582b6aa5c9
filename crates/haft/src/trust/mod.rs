//! What a workspace brings is obeyed only after somebody has trusted exactly those bytes.

mod brought;
mod links;
mod manifests;
mod record;
mod standing;

pub(crate) use brought::{Brought, BroughtContent, SETTINGS, hex};
pub(crate) use manifests::{ManifestFile, TOOLS};
pub(crate) use record::{RecordStamp, forget, place, read as recorded, stamp, write};
pub(crate) use standing::{TrustDifference, TrustStatus, WorkspaceTrust, look};
