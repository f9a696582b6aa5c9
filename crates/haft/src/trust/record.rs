//! The record of what was trusted: the bytes themselves, in a file of the data folder that only its owner may touch.

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io::{ErrorKind, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use jiff::Timestamp;
use rustix::{fs::OFlags, io::Errno};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::brought::{Brought, hex};

/// The first words of a record; the hash of everything after the line follows them.
const HEAD: &str = "haft trust 1 ";
/// A record of the most that can be brought is smaller, escapes included.
const LARGEST: u64 = 64 << 20;

/// What was trusted, and when.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TrustRecord {
    workspace: String,
    pub(crate) trusted_at: Timestamp,
    pub(crate) brought: Brought,
}

/// Reads the record of a workspace; `None` when there is none. A record that is not as haft left it is an error.
pub(crate) fn read(data: &Path, workspace: &Path) -> Result<Option<TrustRecord>> {
    // What is wrong with the data folder itself is for the store to say.
    if !data.is_dir() {
        return Ok(None);
    }
    let Some(file) = open(&place(data, workspace))? else { return Ok(None) };
    let mut text = String::new();
    file.take(LARGEST).read_to_string(&mut text).context("it cannot be read")?;
    let (head, body) = text.split_once('\n').unwrap_or_default();
    if head.strip_prefix(HEAD) != Some(&hex(body.as_bytes())) {
        bail!("it was changed or cut off");
    }
    let record: TrustRecord = serde_json::from_str(body).context("another version of haft wrote it")?;
    if record.workspace != workspace.to_string_lossy() {
        bail!("it belongs to {}", record.workspace);
    }
    Ok(Some(record))
}

/// What tells one record of a workspace from the next; each is a new file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RecordStamp(Option<(u64, u64, i64, i64)>);

/// A quick look at whether the record in this place is still the same.
pub(crate) fn stamp(place: &Path) -> RecordStamp {
    let meta = place.symlink_metadata().ok();
    RecordStamp(meta.map(|meta| (meta.ino(), meta.size(), meta.ctime(), meta.ctime_nsec())))
}

/// Records what was trusted, whole or not at all.
pub(crate) fn write(data: &Path, workspace: &Path, brought: Brought) -> Result<TrustRecord> {
    let workspace_name = workspace.to_string_lossy().into_owned();
    let record = TrustRecord { workspace: workspace_name, trusted_at: Timestamp::now(), brought };
    let body = serde_json::to_string(&record)?;
    let path = place(data, workspace);
    let folder = folder(data);
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder)
        .context("cannot make the folder for trust records")?;
    check(&folder)?;
    let aside = folder.join(format!(".{}", Uuid::now_v7()));
    let written = || -> std::io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&aside)?;
        writeln!(file, "{HEAD}{}", hex(body.as_bytes()))?;
        file.write_all(body.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&aside, &path)?;
        File::open(&folder)?.sync_all()
    };
    if let Err(err) = written() {
        let _ = std::fs::remove_file(&aside);
        return Err(err).context("cannot write the trust record");
    }
    Ok(record)
}

/// Removes the record, whatever it is, and says whether there was one.
pub(crate) fn forget(data: &Path, workspace: &Path) -> Result<bool> {
    match std::fs::remove_file(place(data, workspace)) {
        Ok(()) => Ok(true),
        Err(err) if err.kind() == ErrorKind::NotFound => Ok(false),
        Err(err) => Err(err).context("cannot remove the trust record"),
    }
}

fn folder(data: &Path) -> PathBuf {
    data.join("trust")
}

/// Where the record of a workspace lies. The name is a hash, so that no path is too long or too odd for it.
pub(crate) fn place(data: &Path, workspace: &Path) -> PathBuf {
    let name = hex(workspace.as_os_str().as_encoded_bytes());
    folder(data).join(&name[..32])
}

/// Opens a record that only its owner could have written.
fn open(path: &Path) -> Result<Option<File>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let opened = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path);
    let file = match opened {
        Ok(file) => file,
        Err(err) if err.kind() == ErrorKind::NotFound => return Ok(None),
        Err(err) if Errno::from_io_error(&err) == Some(Errno::LOOP) => bail!("it is a link"),
        Err(err) => return Err(err).context("it cannot be opened"),
    };
    path.parent().map_or(Ok(()), check)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        bail!("it is no plain file");
    }
    if meta.uid() != rustix::process::geteuid().as_raw() {
        bail!("it belongs to another user");
    }
    if meta.mode() & 0o077 != 0 {
        bail!("others may read or write it (mode {:o})", meta.mode() & 0o777);
    }
    Ok(Some(file))
}

/// A folder that others can write to, or that is a link, holds nothing that can be believed.
fn check(folder: &Path) -> Result<()> {
    let meta = folder.symlink_metadata().context("cannot look at the folder for trust records")?;
    let mine = meta.uid() == rustix::process::geteuid().as_raw();
    if !meta.is_dir() || !mine || meta.mode() & 0o022 != 0 {
        bail!("its folder {} is a link, or others may write to it", folder.display());
    }
    Ok(())
}
