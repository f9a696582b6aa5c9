//! What a fenced process will see of the machine, as it is put together.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::fence::job::SYSTEM;
use crate::sensitive::is_sensitive_name;

/// The home folder, the workspace, and what has been made readable beside the system.
pub(super) struct HomeView {
    pub(super) home: PathBuf,
    pub(super) workspace: PathBuf,
    pub(super) readable: Vec<PathBuf>,
}

impl HomeView {
    /// Whether a path is seen already.
    pub(super) fn shows(&self, path: &Path) -> bool {
        is_system(path)
            || path.starts_with(&self.workspace)
            || self.readable.iter().any(|shown| path.starts_with(shown))
    }

    /// Makes a file or folder readable, both where it is named and where it really lies.
    pub(super) fn show(&mut self, place: &Path) {
        let Ok(real) = place.canonicalize() else { return };
        if self.refusal(&real).is_some() {
            return;
        }
        for path in [real.as_path(), place] {
            if !self.shows(path) {
                self.readable.retain(|shown| !shown.starts_with(path));
                self.readable.push(path.to_owned());
            }
        }
    }

    /// Why a real folder must not be readable as a whole.
    pub(super) fn refusal(&self, real: &Path) -> Option<&'static str> {
        if real == self.home {
            return Some("it is the home folder itself");
        }
        if self.home.starts_with(real) {
            return Some("the home folder lies in it");
        }
        let in_home = real.strip_prefix(&self.home).unwrap_or(Path::new(""));
        // Of npm's settings the content tells.
        if in_home.iter().any(|name| is_sensitive_name(name) && name != ".npmrc") {
            return Some("its name says that it holds secrets");
        }
        // The workspace is seen in any case, and written anyway.
        let is_open = real.metadata().is_ok_and(|meta| meta.is_dir() && meta.mode() & 0o002 != 0);
        if is_open && !real.starts_with(&self.workspace) {
            return Some("everybody may write into it");
        }
        None
    }
}

/// Whether a path belongs to the system, which every fenced process may read.
pub(super) fn is_system(path: &Path) -> bool {
    SYSTEM.iter().any(|system| path.starts_with(system))
}
