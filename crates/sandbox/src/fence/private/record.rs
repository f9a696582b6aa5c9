//! What the folder of one call says about its private layers, so that any process can keep them later.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The file that holds it. While it is there, the layers have not been kept whole.
pub(super) const RECORD: &str = "private.json";

/// Beneath haft's data folder: a folder for each workspace.
pub(super) const FOLDER: &str = "private";
/// Beneath a workspace's folder: a link to the workspace.
pub(super) const WORKSPACE: &str = "workspace";
/// Beneath a workspace's folder: what it gathers over the user's caches.
pub(super) const CACHES: &str = "caches";
/// Beneath a workspace's folder: what lies lowest in its private folders.
pub(super) const SEEDS: &str = "seeds";

/// The private layers of one call.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PrivateRecord {
    /// The workspace itself, for whoever looks at its folder.
    pub(super) workspace: PathBuf,
    /// The folder of the workspace, which the layers are merged into.
    pub(super) home: PathBuf,
    /// The boot in which the call ran.
    pub(super) boot: String,
    pub(super) layers: Vec<PrivateLayer>,
}

/// One layer of a call.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PrivateLayer {
    pub(super) name: String,
    /// The cache of the user's that it lies over. What lies over nothing is new after a boot or a day of rest.
    pub(super) over: Option<PathBuf>,
}

impl PrivateRecord {
    /// Where the workspace gathers a layer.
    pub(super) fn gathered(&self, layer: &PrivateLayer) -> PathBuf {
        gathered(&self.home, &self.boot, layer)
    }

    pub(super) fn write(&self, dir: &Path) -> io::Result<()> {
        std::fs::write(dir.join(RECORD), serde_json::to_vec(self)?)
    }

    /// Reads it; `None` when the layers were never made whole, or are kept already.
    pub(super) fn read(dir: &Path) -> io::Result<Option<PrivateRecord>> {
        match std::fs::read(dir.join(RECORD)) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Where a workspace gathers a layer.
pub(super) fn gathered(home: &Path, boot: &str, layer: &PrivateLayer) -> PathBuf {
    let under = if layer.over.is_some() { CACHES } else { boot };
    home.join(under).join(&layer.name)
}

/// Tells this boot of the machine from all others.
pub(super) fn boot() -> io::Result<String> {
    Ok(std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}
