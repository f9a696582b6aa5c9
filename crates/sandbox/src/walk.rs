//! Walking a tree of any depth with a handful of open folders.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::beneath;
use crate::stamp::{EntryIdentity, EntryKind, look, look_at};

/// How many folders stay open on the way down; the others are opened again by `..` on the way up.
const OPEN_AT_ONCE: usize = 16;

/// One step of a walk: an entry in the open folder `dir`.
pub(crate) struct WalkStep<'a> {
    pub(crate) dir: BorrowedFd<'a>,
    pub(crate) name: &'a OsStr,
    pub(crate) seen: &'a EntryIdentity,
    /// How many folders beneath the start the entry lies; the start itself has 0.
    pub(crate) depth: usize,
}

/// Where a walk is.
pub(crate) enum Visit<'a> {
    /// An entry, before its own entries if it is a folder.
    Entry(WalkStep<'a>),
    /// A folder whose entries have all been visited.
    Leave(WalkStep<'a>),
}

/// The open folders from the start of a walk down to where it is.
#[derive(Default)]
pub(crate) struct Descent {
    levels: Vec<(Option<OwnedFd>, EntryIdentity)>,
    only_names: bool,
}

impl Descent {
    /// One whose folders are not read: entries in them are only named.
    pub(crate) fn for_naming() -> Descent {
        Descent { only_names: true, ..Descent::default() }
    }

    fn flags(&self) -> OFlags {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        if self.only_names { flags | OFlags::PATH } else { flags | OFlags::RDONLY | OFlags::NONBLOCK }
    }

    /// Opens a folder of the open folder `dir` and goes down into it.
    pub(crate) fn enter(&mut self, dir: impl AsFd, name: &OsStr) -> Result<(), Errno> {
        let folder = rustix::fs::openat(dir, Path::new(name), self.flags(), Mode::empty())?;
        self.push(folder)
    }

    /// Goes down into a folder of the deepest one.
    pub(crate) fn enter_below(&mut self, name: &OsStr) -> Result<(), Errno> {
        let folder = rustix::fs::openat(self.deepest()?, Path::new(name), self.flags(), Mode::empty())?;
        self.push(folder)
    }

    fn push(&mut self, folder: OwnedFd) -> Result<(), Errno> {
        let seen = look(&folder)?;
        self.levels.push((Some(folder), seen));
        if let Some(far) = self.levels.len().checked_sub(OPEN_AT_ONCE + 1) {
            self.levels[far].0 = None;
        }
        Ok(())
    }

    /// Goes up one folder; it must still be the one that was left.
    pub(crate) fn leave(&mut self) -> Result<(), Errno> {
        let flags = self.flags();
        let Some((left, _)) = self.levels.pop() else { return Ok(()) };
        let Some((above @ None, seen)) = self.levels.last_mut() else { return Ok(()) };
        let folder = rustix::fs::openat(left.ok_or(Errno::BADF)?, "..", flags, Mode::empty())?;
        // A folder that was moved meanwhile has another parent, perhaps outside.
        if !look(&folder)?.is(seen) {
            return Err(Errno::STALE);
        }
        *above = Some(folder);
        Ok(())
    }

    /// The folder the walk is in.
    pub(crate) fn deepest(&self) -> Result<BorrowedFd<'_>, Errno> {
        let (folder, _) = self.levels.last().ok_or(Errno::BADF)?;
        folder.as_ref().map(AsFd::as_fd).ok_or(Errno::BADF)
    }
}

/// A folder on the way down and what is left to visit in it.
struct WalkLevel {
    name: OsString,
    seen: EntryIdentity,
    left: Vec<OsString>,
}

/// What a walk does about a folder that is gone when it comes to it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum GoneFolder {
    Refuse,
    Skip,
}

/// Visits `name` in `start` and everything beneath, in path order; links are not followed.
pub(crate) fn walk<E: From<Errno>>(
    start: BorrowedFd<'_>,
    name: &OsStr,
    visit: impl FnMut(Visit<'_>) -> Result<(), E>,
) -> Result<(), E> {
    walk_with(start, name, GoneFolder::Refuse, visit)
}

/// The same in a tree that others change: a folder that goes meanwhile has nothing to visit.
pub(crate) fn walk_while_changing<E: From<Errno>>(
    start: BorrowedFd<'_>,
    name: &OsStr,
    visit: impl FnMut(Visit<'_>) -> Result<(), E>,
) -> Result<(), E> {
    walk_with(start, name, GoneFolder::Skip, visit)
}

fn walk_with<E: From<Errno>>(
    start: BorrowedFd<'_>,
    name: &OsStr,
    gone: GoneFolder,
    mut visit: impl FnMut(Visit<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let seen = look_at(start, name)?.ok_or(Errno::NOENT)?;
    visit(Visit::Entry(WalkStep { dir: start, name, seen: &seen, depth: 0 }))?;
    if seen.kind() != EntryKind::Directory {
        return Ok(());
    }
    let mut open = Descent::default();
    open.enter(start, name)?;
    let mut levels = vec![WalkLevel { name: name.to_owned(), seen, left: names_to_visit(open.deepest()?)? }];
    while let Some(level) = levels.last_mut() {
        let Some(name) = level.left.pop() else {
            let Some(done) = levels.pop() else { break };
            open.leave()?;
            let dir = if levels.is_empty() { start } else { open.deepest()? };
            visit(Visit::Leave(WalkStep { dir, name: &done.name, seen: &done.seen, depth: levels.len() }))?;
            continue;
        };
        // What vanished since its name was read is not there any more.
        let Some(seen) = look_at(open.deepest()?, &name)? else { continue };
        visit(Visit::Entry(WalkStep { dir: open.deepest()?, name: &name, seen: &seen, depth: levels.len() }))?;
        if seen.kind() == EntryKind::Directory {
            match open.enter_below(&name) {
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if gone == GoneFolder::Skip => continue,
                entered => entered?,
            }
            levels.push(WalkLevel { name, seen, left: names_to_visit(open.deepest()?)? });
        }
    }
    Ok(())
}

/// An entry as its folder lists it; only folders are looked at.
pub(crate) struct ListedEntry<'a> {
    pub(crate) dir: BorrowedFd<'a>,
    pub(crate) name: &'a OsStr,
    pub(crate) kind: EntryKind,
    /// What it is, for a folder.
    pub(crate) folder: Option<&'a EntryIdentity>,
    pub(crate) depth: usize,
}

/// Goes over everything beneath a folder as [`walk`] does, and looks at nothing but folders.
pub(crate) fn glance<E: From<Errno>>(
    start: BorrowedFd<'_>,
    name: &OsStr,
    mut visit: impl FnMut(ListedEntry<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut open = Descent::default();
    open.enter(start, name)?;
    let mut levels = vec![listed(open.deepest()?)?];
    while let Some(level) = levels.last_mut() {
        let Some((name, kind)) = level.pop() else {
            levels.pop();
            open.leave()?;
            continue;
        };
        let (dir, depth) = (open.deepest()?, levels.len());
        let must_look = kind.is_none_or(|kind| kind == EntryKind::Directory);
        let seen = if must_look { look_at(dir, &name)? } else { None };
        // What vanished since its name was read is not there any more.
        let Some(kind) = seen.map(|seen| seen.kind()).or(kind.filter(|_| !must_look)) else { continue };
        let folder = seen.as_ref().filter(|_| kind == EntryKind::Directory);
        visit(ListedEntry { dir, name: &name, kind, folder, depth })?;
        if kind == EntryKind::Directory {
            open.enter_below(&name)?;
            levels.push(listed(open.deepest()?)?);
        }
    }
    Ok(())
}

/// The entries in reverse order, with their kind where the folder knows it.
fn listed(folder: BorrowedFd<'_>) -> Result<Vec<(OsString, Option<EntryKind>)>, Errno> {
    let mut entries = beneath::entries(folder)?;
    entries.sort_unstable_by(|one, other| other.0.cmp(&one.0));
    Ok(entries)
}

/// The names in reverse order, because they are taken from the end.
fn names_to_visit(folder: BorrowedFd<'_>) -> Result<Vec<OsString>, Errno> {
    let mut names = beneath::names(folder)?;
    names.sort_unstable_by(|one, other| other.cmp(one));
    Ok(names)
}
