//! Merging the layer of a call into the one beneath it, by overlayfs's rules and by renames alone.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, XattrFlags};
use rustix::io::Errno;

use crate::beneath;
use crate::stamp::{EntryIdentity, EntryKind};
use crate::transfer::EntryRef;
use crate::walk::Descent;

/// A merge on its way. Whatever has been merged is gone from the upper layer, so that it can begin again at any point.
pub(super) struct Merge<'a> {
    /// Takes what is replaced.
    old: BorrowedFd<'a>,
    /// What lies beneath the lower layer.
    ground: Option<&'a Path>,
    replaced: u64,
}

/// A folder of both layers, and what is left to merge of the upper one.
struct MergeLevel {
    name: OsString,
    left: Vec<OsString>,
    /// The mode that the folder has in the upper layer and will have.
    mode: u32,
    mark: OverlayMark,
    ground: Ground,
}

/// What lies beneath a folder of the lower layer and is seen through it. Overlayfs takes a sign of deletion for one only
/// where something does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ground {
    Nothing,
    /// A folder that is open beside it.
    Folder,
    /// A folder of the user's that keeps us out: what it holds cannot be told.
    Closed,
}

/// The open folders of a merge, from where it began to where it is.
#[derive(Default)]
struct MergeFolders {
    upper: Descent,
    lower: Descent,
    /// Where nothing lies beneath, it stays behind.
    ground: Descent,
}

impl MergeFolders {
    /// What is to be done in the folders where it is.
    fn level(&self, name: &OsStr, mode: u32, mark: OverlayMark, ground: Ground) -> Result<MergeLevel, Errno> {
        let left = beneath::names(self.upper.deepest()?)?;
        Ok(MergeLevel { name: name.to_owned(), left, mode, mark, ground })
    }

    /// Goes down, and says what lies beneath there.
    fn enter(&mut self, name: &OsStr, above: Ground) -> Result<Ground, Errno> {
        let hides = mark_of(spot(&self.lower, name)?)? == OverlayMark::Opaque;
        self.upper.enter_below(name)?;
        self.lower.enter_below(name)?;
        if hides || above != Ground::Folder {
            return Ok(Ground::Nothing);
        }
        Ok(match self.ground.enter_below(name) {
            Ok(()) => Ground::Folder,
            Err(Errno::ACCESS) => Ground::Closed,
            Err(_) => Ground::Nothing,
        })
    }

    /// Whether a deletion in the folder where it is must be remembered.
    fn shows_through(&self, name: &OsStr, ground: Ground) -> Result<bool, Errno> {
        match ground {
            Ground::Nothing => Ok(false),
            Ground::Folder => Ok(spot(&self.ground, name)?.look()?.is_some()),
            Ground::Closed => Ok(true),
        }
    }

    fn leave(&mut self, level: &MergeLevel) -> Result<(), Errno> {
        self.upper.leave()?;
        self.lower.leave()?;
        if level.ground == Ground::Folder { self.ground.leave() } else { Ok(()) }
    }
}

/// What overlayfs has marked a folder of the upper layer with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OverlayMark {
    Nothing,
    /// It replaces what lies beneath.
    Opaque,
    /// Some of its empty files stand for deletions.
    MarkedDeletions,
}

/// What an entry of the upper layer means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Folder,
    Deletion,
    /// A file that overlayfs takes for a deletion only where it is.
    MarkedDeletion,
    Entry,
}

impl<'a> Merge<'a> {
    /// A merge over the folder `ground`, if there is one. It only decides which deletions have to be remembered.
    pub(super) fn new(old: BorrowedFd<'a>, ground: Option<&'a Path>) -> Merge<'a> {
        Merge { old, ground, replaced: 0 }
    }

    /// Merges the folder `upper`, which is not seen by anybody else, into `lower`, which may be missing.
    pub(super) fn run(mut self, upper: EntryRef<'_>, lower: EntryRef<'_>) -> Result<(), Errno> {
        let Some(seen) = upper.look()? else { return Ok(()) };
        let Some(beneath) = lower.look()? else { return move_entry(upper, lower, &seen) };
        make_enterable(upper, &seen)?;
        make_enterable(lower, &beneath)?;
        let mut open = MergeFolders::default();
        let is_there = self.ground.is_some_and(|ground| open.ground.enter(CWD, ground.as_os_str()).is_ok());
        let ground = if is_there { Ground::Folder } else { Ground::Nothing };
        open.upper.enter(upper.dir, upper.name)?;
        open.lower.enter(lower.dir, lower.name)?;
        let mut levels = vec![open.level(lower.name, seen.stamp.mode, mark_of(upper)?, ground)?];
        while let Some(level) = levels.last_mut() {
            if let Some(name) = level.left.pop() {
                if let Some((mode, mark)) = self.place(&open, &name, level)? {
                    let ground = open.enter(&name, level.ground)?;
                    levels.push(open.level(&name, mode, mark, ground)?);
                }
                continue;
            }
            let Some(done) = levels.pop() else { break };
            open.leave(&done)?;
            let above = if levels.is_empty() { lower.dir } else { open.lower.deepest()? };
            set_mode(EntryRef { dir: above, name: &done.name }, done.mode)?;
        }
        Ok(())
    }

    /// Puts one entry in its place. A folder that is there on both sides is to be merged: its mode and mark are told.
    fn place(
        &mut self,
        open: &MergeFolders,
        name: &OsStr,
        level: &MergeLevel,
    ) -> Result<Option<(u32, OverlayMark)>, Errno> {
        let (upper, lower) = (spot(&open.upper, name)?, spot(&open.lower, name)?);
        let Some(seen) = upper.look()? else { return Ok(None) };
        let meaning = meaning(upper, &seen, level.mark)?;
        let there = lower.look()?;
        if let (Meaning::Folder, Some(there)) = (meaning, there.filter(|there| there.kind() == EntryKind::Directory)) {
            make_enterable(upper, &seen)?;
            let mark = mark_of(upper)?;
            if mark != OverlayMark::Opaque {
                make_enterable(lower, &there)?;
                return Ok(Some((seen.stamp.mode, mark)));
            }
        }
        let deletes = matches!(meaning, Meaning::Deletion | Meaning::MarkedDeletion);
        if let Some(there) = there {
            // A folder over a file or a deletion hides what lies beneath that.
            if meaning == Meaning::Folder && there.kind() != EntryKind::Directory {
                make_opaque(upper, &seen)?;
            }
            // A rename replaces a file by a file, and nothing else.
            if deletes || meaning == Meaning::Folder || there.kind() == EntryKind::Directory {
                self.replace(lower, &there)?;
            }
        }
        if !deletes {
            move_entry(upper, lower, &seen)?;
            return Ok(None);
        }
        if open.shows_through(name, level.ground)? {
            put_whiteout(lower)?;
        }
        rustix::fs::unlinkat(upper.dir, Path::new(upper.name), AtFlags::empty())?;
        Ok(None)
    }

    /// Moves an entry of the lower layer out of the way.
    fn replace(&mut self, lower: EntryRef<'_>, there: &EntryIdentity) -> Result<(), Errno> {
        if there.kind() == EntryKind::Directory {
            make_enterable(lower, there)?;
        }
        loop {
            // An earlier merge that was killed may have left some.
            let name = self.replaced.to_string();
            self.replaced += 1;
            match rename(lower, EntryRef { dir: self.old, name: OsStr::new(&name) }, RenameFlags::NOREPLACE) {
                Err(Errno::EXIST) => {}
                done => return done,
            }
        }
    }
}

fn spot<'a>(descent: &'a Descent, name: &'a OsStr) -> Result<EntryRef<'a>, Errno> {
    Ok(EntryRef { dir: descent.deepest()?, name })
}

fn meaning(upper: EntryRef<'_>, seen: &EntryIdentity, above: OverlayMark) -> Result<Meaning, Errno> {
    match seen.kind() {
        EntryKind::Directory => Ok(Meaning::Folder),
        EntryKind::Device if is_whiteout(upper)? => Ok(Meaning::Deletion),
        EntryKind::File if above == OverlayMark::MarkedDeletions && seen.stamp.size == 0 => {
            let marked = attribute(upper, c"user.overlay.whiteout")?.is_some();
            Ok(if marked { Meaning::MarkedDeletion } else { Meaning::Entry })
        }
        EntryKind::File | EntryKind::Link | EntryKind::Fifo | EntryKind::Socket | EntryKind::Device => {
            Ok(Meaning::Entry)
        }
    }
}

/// Whether a device is overlayfs's own sign of a deletion: a character device with number 0.
fn is_whiteout(spot: EntryRef<'_>) -> Result<bool, Errno> {
    let stat = rustix::fs::statat(spot.dir, Path::new(spot.name), AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice && stat.st_rdev == 0)
}

fn put_whiteout(spot: EntryRef<'_>) -> Result<(), Errno> {
    rustix::fs::mknodat(spot.dir, Path::new(spot.name), FileType::CharacterDevice, Mode::empty(), 0)
}

fn mark_of(folder: EntryRef<'_>) -> Result<OverlayMark, Errno> {
    Ok(match attribute(folder, c"user.overlay.opaque")? {
        Some(b'y') => OverlayMark::Opaque,
        Some(b'x') => OverlayMark::MarkedDeletions,
        Some(_) | None => OverlayMark::Nothing,
    })
}

fn make_opaque(folder: EntryRef<'_>, seen: &EntryIdentity) -> Result<(), Errno> {
    make_enterable(folder, seen)?;
    rustix::fs::lsetxattr(path_of(folder), c"user.overlay.opaque", b"y", XattrFlags::empty())
}

/// The first byte of an extended attribute, 0 for an empty one; links are not followed.
fn attribute(spot: EntryRef<'_>, name: &std::ffi::CStr) -> Result<Option<u8>, Errno> {
    let mut value = [0_u8; 8];
    match rustix::fs::lgetxattr(path_of(spot), name, &mut value[..]) {
        Ok(length) => Ok(Some(value[..length].first().copied().unwrap_or(0))),
        Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(None),
        // Longer than anything that overlayfs writes.
        Err(Errno::RANGE) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// A path for the system calls that take no open folder.
fn path_of(spot: EntryRef<'_>) -> PathBuf {
    Path::new("/proc/self/fd").join(spot.dir.as_raw_fd().to_string()).join(spot.name)
}

/// Moves an entry into the lower layer, over a file that may be there.
fn move_entry(upper: EntryRef<'_>, lower: EntryRef<'_>, seen: &EntryIdentity) -> Result<(), Errno> {
    if seen.kind() != EntryKind::Directory {
        return rename(upper, lower, RenameFlags::empty());
    }
    // A folder has its parent written in it, so that moving one takes the right to write.
    make_enterable(upper, seen)?;
    rename(upper, lower, RenameFlags::empty())?;
    set_mode(lower, seen.stamp.mode)
}

fn rename(from: EntryRef<'_>, to: EntryRef<'_>, flags: RenameFlags) -> Result<(), Errno> {
    rustix::fs::renameat_with(from.dir, Path::new(from.name), to.dir, Path::new(to.name), flags)
}

/// Lets us read, write and enter a folder.
fn make_enterable(folder: EntryRef<'_>, seen: &EntryIdentity) -> Result<(), Errno> {
    if seen.stamp.mode & 0o700 == 0o700 {
        return Ok(());
    }
    set_mode(folder, seen.stamp.mode | 0o700)
}

fn set_mode(folder: EntryRef<'_>, mode: u32) -> Result<(), Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = rustix::fs::openat(folder.dir, Path::new(folder.name), flags, Mode::empty())?;
    let now = crate::stamp::look(open.as_fd())?.stamp.mode;
    if now & 0o7777 == mode & 0o7777 { Ok(()) } else { beneath::chmod(&open, Mode::from_raw_mode(mode & 0o7777)) }
}
