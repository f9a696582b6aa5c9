//! The folder that something new comes into.

use haft_runtime::{ErrorCode, ToolError};
use haft_sandbox::{PathError, Root, WorkspacePath, changes::ChangesError};

use crate::refusal::{Trying, cannot};

/// Refuses a place whose folder does not exist; `next` says how to get one.
pub(super) fn needs_its_folder(root: &Root, place: &WorkspacePath, doing: &str, next: &str) -> Result<(), ToolError> {
    let folder = root.resolve_entry(place).trying(doing)?.parent().unwrap_or_else(WorkspacePath::root);
    if root.meta(&folder).trying(doing)?.is_some() {
        return Ok(());
    }
    let why = format!("its folder `{folder}` does not exist; {next}, or correct the path");
    Err(cannot(ErrorCode::FileNotFound, doing, &place.to_string(), &why))
}

/// Says whether the refusal is about what is to come or about where it comes to.
pub(super) fn on_the_way_to<T>(
    to: &WorkspacePath,
    doing: &str,
    planned: Result<T, ChangesError>,
) -> Result<T, ToolError> {
    let about_the_end = match &planned {
        Err(
            ChangesError::AlreadyExists { path }
            | ChangesError::FolderInTheWay { path }
            | ChangesError::SameEntry { path }
            | ChangesError::Path(PathError::IsDirectory { path } | PathError::NotDirectory { path }),
        ) => *path == to.to_string(),
        Ok(_) | Err(_) => false,
    };
    if about_the_end { planned.trying(&format!("{doing} to")) } else { planned.trying(doing) }
}
