//! What a backup says of itself: at its beginning who made it, at its end what it holds.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The version of the file itself.
pub(super) const FORMAT: u32 = 1;

/// The names of the entries that every backup has, and of the key that only some have.
pub(super) const HEAD: &str = "backup.json";
pub(super) const MANIFEST: &str = "manifest.json";
pub(super) const DATABASE: &str = "haft.db";
pub(super) const KEY_FILE: &str = "secret.key";
pub(super) const KEY_TEXT: &str = "secret-key.txt";

/// The folders in a backup.
pub(super) const CHANGES: &str = "changes";
pub(super) const WORKSPACES: &str = "workspaces";
pub(super) const SERVERS: &str = "servers";
pub(super) const DATA: &str = "data";

/// The first entry: what has to be known before anything else is read.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BackupHead {
    /// The version of the file.
    pub(super) format: u32,
    /// The program that made it.
    pub(super) haft: String,
    /// The version of the tables.
    pub(super) schema: i64,
    pub(super) taken_at: Timestamp,
    /// The node whose folders it holds.
    pub(super) node: String,
    /// Where the workspaces lay that haft keeps.
    pub(super) workspaces: String,
    /// The number of the master key, where there is one.
    pub(super) key: Option<i64>,
}

/// The last entry: what everything before it comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BackupManifest {
    /// The rows of each table.
    pub(crate) tables: BTreeMap<String, i64>,
    /// The sets of changes that can be committed or undone.
    pub(crate) changes: usize,
    /// Files, folders and links, with the database.
    pub(crate) entries: usize,
    /// The bytes in them.
    pub(crate) bytes: u64,
    /// What was not copied: pipes, sockets, devices, files that may not be read.
    pub(crate) left_out: u64,
    /// The hash of all entries before this one.
    pub(crate) sha256: String,
}

impl BackupManifest {
    /// How many rows there are.
    pub(crate) fn rows(&self) -> i64 {
        self.tables.values().sum()
    }
}
