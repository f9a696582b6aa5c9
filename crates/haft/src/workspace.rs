//! Which folder a command is about.

use std::{
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

/// What makes a folder a workspace.
const MARKERS: &[&str] = &[".haft", "haft.toml", ".git"];

/// The folder that was named, or the nearest one upward with a marker, or the current one.
pub(crate) fn find(named: Option<&Path>) -> Result<PathBuf> {
    let start = match named {
        Some(named) => named.to_owned(),
        None => std::env::current_dir().context("the current folder is gone; go to another one")?,
    };
    let start = start.canonicalize().with_context(|| format!("there is no folder {}", start.display()))?;
    if !start.is_dir() {
        bail!("{} is not a folder", start.display());
    }
    if start.to_str().is_none() {
        bail!("the path of {} is not UTF-8, which the journal cannot hold; rename the folder", start.display());
    }
    if named.is_some() {
        return Ok(start);
    }
    Ok(start.ancestors().find(|folder| has_marker(folder)).unwrap_or(&start).to_owned())
}

/// A marker that another user put there does not make a workspace.
fn has_marker(folder: &Path) -> bool {
    let me = rustix::process::geteuid().as_raw();
    let mine = |marker: &&str| folder.join(marker).symlink_metadata().is_ok_and(|meta| meta.uid() == me);
    MARKERS.iter().any(mine)
}
