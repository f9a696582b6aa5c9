//! Sets of changes as an earlier version kept them: the plan, its state and the mark of a begun turn in files of their
//! own. They are brought over when they are first opened.

use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::course::COURSE;
use super::error::{ChangesError, kept_io};

const PLAN: &str = "plan.json";
const STATE: &str = "state.json";
const BEGUN: &str = "state.json.tmp";

/// Writes the file that there should be from those that there are; `false` when there is nothing to bring over.
pub(super) fn bring_over(folder: BorrowedFd<'_>) -> Result<bool, ChangesError> {
    let failed = |errno| ChangesError::kept("bring the plan over", errno);
    let Some(mut lines) = read(folder, PLAN)? else { return Ok(false) };
    lines.push(b'\n');
    if let Some(state) = read(folder, STATE)? {
        lines.extend([state, b"\n".to_vec()].concat());
    }
    if read(folder, BEGUN)?.is_some() {
        lines.extend(b"\"begun\"\n");
    }
    let own = format!("{COURSE}.{}", std::process::id());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, &own, flags, Mode::RUSR | Mode::WUSR).map_err(failed)?;
    let mut file = std::fs::File::from(file);
    std::io::Write::write_all(&mut file, &lines)
        .and_then(|()| file.sync_all())
        .map_err(|source| kept_io("bring the plan over", source))?;
    // Whoever is later finds it brought over, and perhaps turned since.
    match rustix::fs::renameat_with(folder, &own, folder, COURSE, RenameFlags::NOREPLACE) {
        Ok(()) => {}
        Err(Errno::EXIST) => rustix::fs::unlinkat(folder, &own, AtFlags::empty()).map_err(failed)?,
        Err(errno) => return Err(failed(errno)),
    }
    // Invariant: the old files go only when the new one would survive whatever they do.
    rustix::fs::fsync(folder).map_err(failed)?;
    for name in [PLAN, STATE, BEGUN] {
        // Nobody reads them any more.
        rustix::fs::unlinkat(folder, name, AtFlags::empty()).ok();
    }
    Ok(true)
}

fn read(folder: BorrowedFd<'_>, name: &str) -> Result<Option<Vec<u8>>, ChangesError> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = match rustix::fs::openat(folder, name, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(ChangesError::kept("bring the plan over", errno)),
    };
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut std::fs::File::from(file), &mut bytes)
        .map_err(|source| ChangesError::Io { what: "bring the plan over", source })?;
    Ok(Some(bytes))
}
