//! A file of the user's, outside any workspace.

use std::{
    fs::{self, OpenOptions},
    io::{ErrorKind, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::Path,
};

use anyhow::{Context, Result, bail};

/// No settings are longer.
const LONGEST: u64 = 64 << 20;

/// The text of a file; `None` when there is none.
pub(crate) fn read(path: &Path) -> Result<Option<String>> {
    let tried = || format!("cannot read {}", path.display());
    let meta = match fs::metadata(path) {
        Ok(meta) => meta,
        Err(err) if err.kind() == ErrorKind::NotFound => return Ok(None),
        Err(err) => return Err(err).with_context(tried),
    };
    if !meta.is_file() || meta.len() > LONGEST {
        bail!("{} is no plain file, or far too long", path.display());
    }
    fs::read_to_string(path).map(Some).with_context(tried)
}

/// Puts a text into the place of what is there, whole or not at all. A link is followed, a mode is kept.
pub(crate) fn replace(path: &Path, text: &str) -> Result<()> {
    let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let tried = || format!("cannot write {}", place.display());
    let folder = place.parent().with_context(tried)?;
    fs::create_dir_all(folder).with_context(tried)?;
    let name = place.file_name().with_context(tried)?.to_string_lossy().into_owned();
    let aside = folder.join(format!(".{name}.{}", uuid::Uuid::now_v7().simple()));
    let written = write(&aside, &place, text);
    if written.is_err() {
        let _ = fs::remove_file(&aside);
    }
    written.with_context(tried)
}

fn write(aside: &Path, place: &Path, text: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(aside)?;
    file.write_all(text.as_bytes())?;
    if let Ok(meta) = fs::metadata(place) {
        file.set_permissions(fs::Permissions::from_mode(meta.permissions().mode() & 0o777))?;
    }
    file.sync_all()?;
    fs::rename(aside, place)
}
