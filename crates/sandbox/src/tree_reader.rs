//! Reading everything beneath a folder for a backup, while others may change it. No link is followed.

use std::{
    ffi::{OsStr, OsString},
    fmt,
    fs::File,
    io,
    os::{fd::AsFd, unix::ffi::OsStringExt},
    path::{Path, PathBuf},
    str::FromStr,
};

use rustix::{
    fs::{CWD, Mode, OFlags},
    io::Errno,
};

use crate::{
    stamp::{EntryIdentity, EntryKind, look, look_at},
    walk::{Visit, WalkStep, walk_while_changing},
};

/// What tells an entry from every other one, as text that a backup keeps beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryMark(pub(crate) EntryIdentity);

impl EntryMark {
    /// That of an entry that is there now; `None` where there is none.
    pub fn of(path: &Path) -> io::Result<Option<Self>> {
        Ok(look_at(CWD, path)?.map(Self))
    }

    /// The device and the inode.
    pub fn inode(&self) -> (u64, u64) {
        (self.0.stamp.dev, self.0.stamp.ino)
    }
}

impl fmt::Display for EntryMark {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&serde_json::to_string(&self.0).map_err(|_| fmt::Error)?)
    }
}

impl FromStr for EntryMark {
    type Err = serde_json::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        serde_json::from_str(text).map(Self)
    }
}

/// An entry of a tree that is read.
pub struct TreeEntry {
    /// Where it lies beneath the start; empty for the start itself.
    pub path: PathBuf,
    /// Its permission bits.
    pub mode: u32,
    /// When its content changed, in seconds and nanoseconds.
    pub modified: (i64, u32),
    /// What tells it apart.
    pub mark: EntryMark,
    /// What is in it.
    pub content: TreeContent,
}

/// What an entry holds.
pub enum TreeContent {
    /// A folder; its entries follow.
    Folder,
    /// A file that is open, and its size.
    File(File, u64),
    /// A link, and where it leads.
    Link(OsString),
    /// Something that is not copied, and why.
    LeftOut(&'static str),
}

/// Reads a folder and everything beneath, in path order. What goes meanwhile is not there.
pub fn read_tree(top: &Path, mut visit: impl FnMut(TreeEntry) -> io::Result<()>) -> io::Result<()> {
    let (Some(above), Some(name)) = (top.parent(), top.file_name()) else {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    };
    let above = File::open(above)?;
    let mut path = PathBuf::new();
    walk_while_changing(above.as_fd(), name, |visited| match visited {
        Visit::Entry(step) => {
            if step.depth > 0 {
                path.push(step.name);
            }
            let is_folder = step.seen.kind() == EntryKind::Directory;
            if let Some(content) = content(&step)? {
                let (stamp, mark) = (step.seen.stamp, EntryMark(*step.seen));
                let mode = stamp.mode & 0o7777;
                visit(TreeEntry { path: path.clone(), mode, modified: stamp.mtime, mark, content })?;
            }
            if !is_folder && step.depth > 0 {
                path.pop();
            }
            Ok(())
        }
        Visit::Leave(_) => {
            path.pop();
            Ok(())
        }
    })
}

/// `None` where it has gone, or is another one by now.
fn content(step: &WalkStep<'_>) -> io::Result<Option<TreeContent>> {
    Ok(match step.seen.kind() {
        EntryKind::Directory => Some(TreeContent::Folder),
        EntryKind::Link => match rustix::fs::readlinkat(step.dir, Path::new(step.name), Vec::new()) {
            Ok(target) => Some(TreeContent::Link(OsString::from_vec(target.into_bytes()))),
            Err(Errno::NOENT | Errno::INVAL) => None,
            Err(errno) => return Err(errno.into()),
        },
        EntryKind::File => open(step.dir, step.name, step.seen)?,
        EntryKind::Fifo => Some(TreeContent::LeftOut("a named pipe")),
        EntryKind::Socket => Some(TreeContent::LeftOut("a socket")),
        EntryKind::Device => Some(TreeContent::LeftOut("a device")),
    })
}

fn open(dir: impl AsFd, name: &OsStr, seen: &EntryIdentity) -> io::Result<Option<TreeContent>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match rustix::fs::openat(dir, Path::new(name), flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT | Errno::LOOP) => return Ok(None),
        Err(Errno::ACCESS) => return Ok(Some(TreeContent::LeftOut("a file that may not be read"))),
        Err(errno) => return Err(errno.into()),
    };
    let now = look(&file)?;
    Ok(now.is(seen).then(|| TreeContent::File(file.into(), now.stamp.size)))
}
