//! Swapping what lies aside with what lies at a path, and putting it back without losing anybody's edit.

use std::path::Path;

use rustix::fs::{Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::closed::rename_opened;
use crate::beneath;
use crate::stamp::{EntryIdentity, EntryKind, look};
use crate::transfer::EntryRef;

/// How often something newer is put back at a path that somebody keeps writing.
const TRIES: usize = 100;

/// The two ends of a swap.
#[derive(Clone, Copy)]
pub(super) struct Pair<'a> {
    pub(super) aside: EntryRef<'a>,
    pub(super) path: EntryRef<'a>,
}

/// How putting back ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PutBackResult {
    /// Nothing had been swapped.
    AtRest,
    /// It was swapped and is back.
    Done,
    /// Somebody else has changed the path; their work was left there.
    Conflict,
}

/// Swaps once, by one rename.
pub(super) fn swap(pair: Pair<'_>, aside: Option<&EntryIdentity>, path: Option<&EntryIdentity>) -> Result<(), Errno> {
    match (aside, path) {
        (Some(_), None) => rename(pair.aside, pair.path, RenameFlags::NOREPLACE),
        (Some(_), Some(_)) => rename(pair.aside, pair.path, RenameFlags::EXCHANGE),
        (None, Some(_)) => rename(pair.path, pair.aside, RenameFlags::NOREPLACE),
        (None, None) => Ok(()),
    }
}

/// Whether that is the answer of a filesystem which knows no rename but the plain one: that replaces whatever it finds.
pub(super) fn is_no_swap(errno: Errno) -> bool {
    matches!(errno, Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP)
}

/// Says whether a folder holds what it should and nothing else.
pub(super) type IntactCheck<'a> = &'a dyn Fn(EntryRef<'_>) -> Result<bool, Errno>;

/// Undoes a swap if it has happened. `aside` and `path` say what lay there before it.
pub(super) fn put_back(
    pair: Pair<'_>,
    aside: Option<&EntryIdentity>,
    path: Option<&EntryIdentity>,
    intact: IntactCheck<'_>,
) -> Result<PutBackResult, Errno> {
    let done = match (aside, path) {
        (Some(ours), None) => take_out(pair, ours, intact),
        (Some(ours), Some(_)) => exchange_back(pair, ours),
        (None, Some(_)) => put_in(pair),
        (None, None) => Ok(PutBackResult::AtRest),
    };
    // Where nothing can be swapped, nothing was.
    done.or_else(|errno| if is_no_swap(errno) { Ok(PutBackResult::AtRest) } else { Err(errno) })
}

/// What was put where nothing was is taken out again, if it is still what was put there.
fn take_out(pair: Pair<'_>, ours: &EntryIdentity, intact: IntactCheck<'_>) -> Result<PutBackResult, Errno> {
    if let Some(found) = pair.aside.look()? {
        if found.is(ours) && is_ours_alone(pair.aside, &found, intact)? {
            return Ok(PutBackResult::AtRest);
        }
        // An earlier attempt was stopped while it held somebody's work: give it back.
        return give_back(pair);
    }
    if !pair.path.look()?.is_some_and(|found| found.is_unchanged(ours)) {
        return Ok(PutBackResult::Conflict);
    }
    rename(pair.path, pair.aside, RenameFlags::NOREPLACE)?;
    match pair.aside.look()? {
        Some(taken) if taken.is_unchanged(ours) && is_ours_alone(pair.aside, &taken, intact)? => {
            Ok(PutBackResult::Done)
        }
        Some(_) | None => give_back(pair),
    }
}

fn give_back(pair: Pair<'_>) -> Result<PutBackResult, Errno> {
    match rename(pair.aside, pair.path, RenameFlags::NOREPLACE) {
        Ok(()) | Err(Errno::EXIST | Errno::NOENT) => Ok(PutBackResult::Conflict),
        Err(errno) => Err(errno),
    }
}

/// Entries that somebody else has put into a folder go where they were put.
fn is_ours_alone(spot: EntryRef<'_>, seen: &EntryIdentity, intact: IntactCheck<'_>) -> Result<bool, Errno> {
    Ok(seen.kind() != EntryKind::Directory || intact(spot)?)
}

/// Whether a folder has no entries.
pub(super) fn is_empty(spot: EntryRef<'_>) -> Result<bool, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = rustix::fs::openat(spot.dir, Path::new(spot.name), flags, Mode::empty())?;
    Ok(beneath::names(&folder)?.is_empty())
}

fn exchange_back(pair: Pair<'_>, ours: &EntryIdentity) -> Result<PutBackResult, Errno> {
    let Some(mut held) = pair.aside.look()? else { return Ok(PutBackResult::Conflict) };
    if held.is(ours) {
        return Ok(PutBackResult::AtRest);
    }
    if !pair.path.look()?.is_some_and(|found| found.is_unchanged(ours)) {
        return Ok(PutBackResult::Conflict);
    }
    let mut expected = *ours;
    for attempt in 0..TRIES {
        match rename(pair.aside, pair.path, RenameFlags::EXCHANGE) {
            Ok(()) => {}
            // Somebody has removed the path: that is the newest word about it.
            Err(Errno::NOENT) => return Ok(PutBackResult::Conflict),
            Err(errno) => return Err(errno),
        }
        let Some(taken) = pair.aside.look()? else { return Ok(PutBackResult::Conflict) };
        if taken.is_unchanged(&expected) {
            return Ok(if attempt == 0 { PutBackResult::Done } else { PutBackResult::Conflict });
        }
        // Something newer lay at the path. It goes back there, and what was just put there comes out again.
        expected = std::mem::replace(&mut held, taken);
    }
    Ok(PutBackResult::Conflict)
}

/// What was taken away is put back, unless something new is there.
fn put_in(pair: Pair<'_>) -> Result<PutBackResult, Errno> {
    if pair.aside.look()?.is_none() {
        return Ok(PutBackResult::AtRest);
    }
    match rename(pair.aside, pair.path, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(PutBackResult::Done),
        Err(Errno::EXIST | Errno::NOENT) => Ok(PutBackResult::Conflict),
        Err(errno) => Err(errno),
    }
}

/// Changes the permission bits of a path that is still the entry that was seen.
pub(super) fn change_mode(spot: EntryRef<'_>, expected: &EntryIdentity, mode: u32) -> Result<bool, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let entry = rustix::fs::openat(spot.dir, Path::new(spot.name), flags, Mode::empty())?;
    let seen = look(&entry)?;
    if !seen.is_unchanged(expected) {
        return Ok(false);
    }
    beneath::chmod(&entry, Mode::from_raw_mode(mode & 0o7777))?;
    Ok(true)
}

/// One rename between two spots.
pub(super) fn rename(from: EntryRef<'_>, to: EntryRef<'_>, flags: RenameFlags) -> Result<(), Errno> {
    match rustix::fs::renameat_with(from.dir, Path::new(from.name), to.dir, Path::new(to.name), flags) {
        Err(Errno::ACCESS) => rename_opened(from, to, flags),
        done => done,
    }
}
