//! What is known of a server, in a file of the data folder that all processes share.

use std::{
    fmt::Display,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{ErrorKind, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use futures_util::future::BoxFuture;
use haft_mcp::{PinStore, ServerPins};
use haft_runtime::ToolError;
use rustix::fs::FlockOperation;
use uuid::Uuid;

use crate::{
    settings::{
        McpServer,
        mcp::{Reached, ServerOrigin},
    },
    trust,
};

/// Where in the data folder the files lie.
const FOLDER: &str = "servers";
/// Digits of a hash that tell workspaces apart.
const DIGITS: usize = 16;

/// What is known of one server.
pub(crate) enum PinsFile {
    /// What is in its file. The user's own server is one for all workspaces; that of a workspace is its own.
    File(PathBuf),
    /// Only why its entry cannot be understood.
    Refused(String),
}

impl PinsFile {
    pub(crate) fn of(server: &McpServer, workspace: &Path, data: &Path) -> Self {
        if let Reached::Unknown { why } = &server.reached {
            return Self::Refused(why.clone());
        }
        let name = match server.from {
            ServerOrigin::ByTheUser => server.name.clone(),
            ServerOrigin::ByTheWorkspace => {
                let hash = trust::hex(workspace.as_os_str().as_encoded_bytes());
                format!("{}.{}", server.name, &hash[..DIGITS])
            }
        };
        Self::File(data.join(FOLDER).join(format!("{name}.json")))
    }
}

impl PinsFile {
    /// Forgets what is known; another server of the same name is met as a new one.
    pub(crate) fn forget(&self) {
        if let Self::File(file) = self {
            // What is not there need not be removed.
            let _ = fs::remove_file(file);
        }
    }

    fn change_now(&self, change: &mut (dyn FnMut(&mut ServerPins) + Send)) {
        let Self::File(file) = self else { return };
        let Some(folder) = file.parent() else { return };
        let _ = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        let lock = OpenOptions::new().create(true).append(true).mode(0o600).open(folder.join("lock"));
        let _held = lock.ok().filter(|lock| rustix::fs::flock(lock, FlockOperation::LockExclusive).is_ok());
        let before = read(file);
        let mut pins = before.clone();
        change(&mut pins);
        if pins != before {
            let _ = write(file, &pins);
        }
    }
}

impl PinStore for PinsFile {
    /// Each state is a new file.
    fn version(&self) -> String {
        let meta = match self {
            Self::File(file) => file.symlink_metadata().ok(),
            Self::Refused(_) => None,
        };
        meta.map(|meta| format!("{} {} {}", meta.ino(), meta.ctime(), meta.ctime_nsec())).unwrap_or_default()
    }

    /// What is known. Of a server whose file is there and cannot be read, nothing is accepted.
    fn read(&self) -> ServerPins {
        match self {
            Self::File(file) => read(file),
            Self::Refused(why) => ServerPins { last_error: Some(why.clone()), ..ServerPins::default() },
        }
    }

    /// Only one process does so at a time; what cannot be written is known here no longer than now.
    fn change<'a>(
        &'a self,
        change: &'a mut (dyn FnMut(&mut ServerPins) + Send),
    ) -> BoxFuture<'a, Result<(), ToolError>> {
        self.change_now(change);
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Whether a workspace, whichever it is, has a server of this name that something is known of.
pub(crate) fn was_met_in_a_workspace(name: &str, data: &Path) -> bool {
    let is_it = |file: &str| {
        let hash = file.strip_prefix(name).and_then(|rest| rest.strip_prefix('.')?.strip_suffix(".json"));
        hash.is_some_and(|hash| hash.len() == DIGITS)
    };
    let files = fs::read_dir(data.join(FOLDER)).into_iter().flatten().flatten();
    files.into_iter().any(|file| file.file_name().to_str().is_some_and(is_it))
}

fn read(file: &Path) -> ServerPins {
    let bytes = match fs::read(file) {
        Ok(bytes) => bytes,
        Err(err) if err.kind() == ErrorKind::NotFound => return ServerPins::default(),
        Err(err) => return lost(file, &err),
    };
    serde_json::from_slice(&bytes).unwrap_or_else(|err| lost(file, &err))
}

fn lost(file: &Path, why: &dyn Display) -> ServerPins {
    let file = file.display();
    ServerPins::lost(format!(
        "what was accepted of it cannot be read from `{file}` ({why}), so that all its tools are held"
    ))
}

fn write(file: &Path, pins: &ServerPins) -> std::io::Result<()> {
    let aside = file.with_extension(Uuid::now_v7().simple().to_string());
    let written = || -> std::io::Result<()> {
        let mut new: File = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&aside)?;
        new.write_all(&serde_json::to_vec_pretty(pins)?)?;
        new.sync_data()?;
        fs::rename(&aside, file)
    };
    written().inspect_err(|_| drop(fs::remove_file(&aside)))
}
