//! What a command has left in its layer over the workspace becomes changes.

mod below;
mod compare;
mod deed;
mod git;
mod links;
mod marks;
mod moves;
mod objects;
mod pin;
mod ready;
mod sift;
mod sketch;
mod split;
mod steering;
mod take;
mod whole;
mod within;

pub(super) use split::real_paths;
pub use steering::Steering;
pub use take::{LayerNotes, PathOrigin};
