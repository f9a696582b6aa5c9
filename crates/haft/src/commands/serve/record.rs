//! Where the server of a data folder is found: a record beside the data, which counts while its lock is held.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::commands::mcp::write_aside;

/// Where others find the server of a data folder, and what it holds locked while it lives.
const RECORD: &str = "server.json";
const LOCK: &str = "server.lock";

/// What others learn of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServerAddress {
    /// The address of its pages.
    pub(crate) url: String,
    /// Its process.
    pub(crate) process: u32,
}

/// Whether a data folder has a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ServerState {
    /// None.
    Absent,
    /// One that does not listen yet.
    Starting,
    /// One that listens.
    Running(ServerAddress),
}

impl ServerState {
    /// As it is now.
    pub(crate) fn of(data: &Path) -> Self {
        let Ok(lock) = File::open(data.join(LOCK)) else { return Self::Absent };
        if !matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)) {
            return Self::Absent;
        }
        let known = fs::read(data.join(RECORD)).ok().and_then(|known| serde_json::from_slice(&known).ok());
        known.map_or(Self::Starting, Self::Running)
    }

    /// Where it listens.
    pub(crate) fn url(self) -> Option<String> {
        match self {
            Self::Running(address) => Some(address.url),
            Self::Absent | Self::Starting => None,
        }
    }
}

/// Makes a data folder, where there is none, that only its owner can look into.
pub(crate) fn make_private(data: &Path) -> Result<()> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(data);
    made.with_context(|| format!("cannot make {}", data.display()))
}

/// Says where the server of this data folder listens; locked for as long as it lives.
pub(crate) struct RunningServer {
    path: PathBuf,
    _lock: File,
}

impl RunningServer {
    /// The right to be the only server of a data folder; `None` where another one is.
    pub(crate) fn lock(data: &Path) -> Result<Option<Self>> {
        make_private(data)?;
        let (path, locked) = (data.join(RECORD), data.join(LOCK));
        let lock = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&locked)?;
        match lock.try_lock() {
            Ok(()) => {
                // A server that was killed has left its record, which would count again now.
                fs::remove_file(&path).ok();
                Ok(Some(Self { path, _lock: lock }))
            }
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(err)) => Err(err).with_context(|| format!("cannot lock {}", locked.display())),
        }
    }

    pub(crate) fn tell(&self, url: &str) -> Result<()> {
        let address = ServerAddress { url: url.to_owned(), process: std::process::id() };
        let aside = write_aside(&self.path, serde_json::to_string(&address)?.as_bytes())?;
        fs::rename(aside, &self.path).with_context(|| format!("cannot write {}", self.path.display()))
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        // A record that stays behind is known to be old by its lock.
        fs::remove_file(&self.path).ok();
    }
}
