//! The folders that a backup is made of, and those that a restore writes to.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use haft_sandbox::changes;

use super::manifest::{CHANGES, DATA, SERVERS, WORKSPACES};

/// What of a data folder is in no backup: what is copied by itself, what belongs to running processes, and caches.
const LEFT_OUT: [&str; 14] = [
    "haft.db",
    "haft.db-wal",
    "haft.db-shm",
    "changes",
    "owners",
    "locks",
    "private",
    "fence.json",
    "swept",
    "server.json",
    "server.lock",
    "server.log",
    "secret.key",
    "secret.key.new",
];

/// A folder beside the data folder, by what is added to its name.
pub(super) fn beside(data: &Path, added: &str) -> PathBuf {
    let mut name = OsString::from(data.as_os_str());
    name.push(added);
    name.into()
}

/// Where the workspaces lie that haft keeps.
pub(super) fn workspaces(data: &Path) -> PathBuf {
    beside(data, "-workspaces")
}

/// Where MCP servers work that have no folder of the host.
pub(super) fn servers(data: &Path) -> PathBuf {
    beside(data, "-servers")
}

/// Every folder and file that is copied, with the name that it has in a backup, in this order: what is staged before what it
/// belongs to.
pub(super) fn copied(data: &Path) -> io::Result<Vec<(PathBuf, PathBuf)>> {
    let mut copied: Vec<(PathBuf, PathBuf)> = Vec::new();
    for set in changes::sets(data) {
        let name = set.file_name().unwrap_or_default();
        copied.push((Path::new(CHANGES).join(name), set.clone()));
    }
    for (name, folder) in [(WORKSPACES, workspaces(data)), (SERVERS, servers(data))] {
        if folder.is_dir() {
            copied.push((PathBuf::from(name), folder));
        }
    }
    let mut names: Vec<OsString> = fs::read_dir(data)?.flatten().map(|entry| entry.file_name()).collect();
    names.retain(|name| !LEFT_OUT.iter().any(|left| name == left));
    names.sort();
    copied.extend(names.into_iter().map(|name| (Path::new(DATA).join(&name), data.join(&name))));
    Ok(copied)
}

/// The workspaces that haft keeps: a folder for each tenant, a folder in it for each workspace.
pub(super) fn kept_workspaces(data: &Path) -> Vec<PathBuf> {
    let folders = |of: &Path| {
        let entries = fs::read_dir(of).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect::<Vec<_>>()
    };
    folders(&workspaces(data)).iter().flat_map(|tenant| folders(tenant)).collect()
}
