//! What a command has left in its layer over the workspace becomes changes.

mod compare;
mod git;
mod git_action;
mod links;
mod lower_folder;
mod marks;
mod moves;
mod objects;
mod permissions;
mod pin;
mod scan;
mod sketch;
mod split;
mod steering;
mod take;
mod whole_folder;
mod within;

pub(super) use split::real_paths;
pub use steering::Steering;
pub use take::{LayerNotes, OutsideLayer, PathOrigin};
