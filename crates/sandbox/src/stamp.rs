//! What is known about an entry without reading it.

use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, CWD, FileType, Statx, StatxFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// What an entry of a folder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A folder.
    Directory,
    /// A symbolic link.
    Link,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A block or character device.
    Device,
}

impl EntryKind {
    pub(crate) fn from_mode(mode: u32) -> EntryKind {
        match FileType::from_raw_mode(mode) {
            FileType::RegularFile => EntryKind::File,
            FileType::Directory => EntryKind::Directory,
            FileType::Symlink => EntryKind::Link,
            FileType::Fifo => EntryKind::Fifo,
            FileType::Socket => EntryKind::Socket,
            FileType::CharacterDevice | FileType::BlockDevice | FileType::Unknown => EntryKind::Device,
        }
    }

    /// The kind with its article, for messages.
    pub(crate) fn described(self) -> &'static str {
        match self {
            EntryKind::File => "a file",
            EntryKind::Directory => "a directory",
            EntryKind::Link => "a link",
            EntryKind::Fifo => "a FIFO",
            EntryKind::Socket => "a socket",
            EntryKind::Device => "a device",
        }
    }
}

/// Tells whether an entry is still the one that was seen, unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "PackedStamp", into = "PackedStamp")]
pub struct FileStamp {
    /// The device.
    pub dev: u64,
    /// The inode.
    pub ino: u64,
    /// The size in bytes.
    pub size: u64,
    /// When the content changed, in seconds and nanoseconds.
    pub mtime: (i64, u32),
    /// When anything about it changed, in seconds and nanoseconds.
    pub ctime: (i64, u32),
    /// The kind and permission bits.
    pub mode: u32,
}

/// The short form in which stamps are stored: plans hold one for every deleted file.
type PackedStamp = (u64, u64, u64, i64, u32, i64, u32, u32);

impl From<PackedStamp> for FileStamp {
    fn from((dev, ino, size, mtime_s, mtime_n, ctime_s, ctime_n, mode): PackedStamp) -> FileStamp {
        FileStamp { dev, ino, size, mtime: (mtime_s, mtime_n), ctime: (ctime_s, ctime_n), mode }
    }
}

impl From<FileStamp> for PackedStamp {
    fn from(stamp: FileStamp) -> PackedStamp {
        let FileStamp { dev, ino, size, mtime, ctime, mode } = stamp;
        (dev, ino, size, mtime.0, mtime.1, ctime.0, ctime.1, mode)
    }
}

impl FileStamp {
    /// What kind of entry it is.
    pub fn kind(&self) -> EntryKind {
        EntryKind::from_mode(self.mode)
    }

    /// Whether both are the same content with the same mode, wherever it lies.
    pub(crate) fn same_content(&self, other: &FileStamp) -> bool {
        if self.mode != other.mode {
            return false;
        }
        match self.kind() {
            // A folder's size and time follow from its entries, which are compared one by one.
            EntryKind::Directory => true,
            EntryKind::Link => self.size == other.size,
            EntryKind::File | EntryKind::Fifo | EntryKind::Socket | EntryKind::Device => {
                self.size == other.size && self.mtime == other.mtime
            }
        }
    }

    /// Whether nothing but a rename has happened to the entry.
    pub(crate) fn same_apart_from_renames(&self, other: &FileStamp) -> bool {
        self.dev == other.dev && self.ino == other.ino && self.same_content(other)
    }

    /// Whether nothing at all has happened to the entry.
    pub(crate) fn untouched(&self, other: &FileStamp) -> bool {
        self.same_apart_from_renames(other) && (self.kind() == EntryKind::Directory || self.ctime == other.ctime)
    }
}

/// What an entry is and when it changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// What it is.
    pub kind: EntryKind,
    /// Its size in bytes.
    pub size: u64,
    /// Its permission bits (`0o7777`).
    pub mode: u32,
    /// When its content changed.
    pub modified: SystemTime,
    /// How many names it has.
    pub links: u64,
    /// Tells whether it is still the same later.
    pub stamp: FileStamp,
}

/// A stamp with what else tells two entries apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EntryIdentity {
    #[serde(rename = "s")]
    pub(crate) stamp: FileStamp,
    /// When the inode was made: an inode number is used again after its file is gone.
    #[serde(rename = "b")]
    pub(crate) born: (i64, u32),
    #[serde(skip)]
    pub(crate) links: u32,
    #[serde(skip)]
    pub(crate) mount: Option<u64>,
    #[serde(skip)]
    pub(crate) owner: (u32, u32),
}

impl EntryIdentity {
    /// Whether both are the same inode.
    pub(crate) fn is(&self, other: &EntryIdentity) -> bool {
        (self.stamp.dev, self.stamp.ino, self.born) == (other.stamp.dev, other.stamp.ino, other.born)
    }

    /// Whether both are the same inode and nothing but a rename has happened to it.
    pub(crate) fn is_unchanged(&self, other: &EntryIdentity) -> bool {
        self.is(other) && self.stamp.same_apart_from_renames(&other.stamp)
    }

    pub(crate) fn kind(&self) -> EntryKind {
        self.stamp.kind()
    }

    /// Whether both lie on the same mount, so that a rename between them can work.
    pub(crate) fn shares_mount(&self, other: &EntryIdentity) -> bool {
        self.stamp.dev == other.stamp.dev && self.mount == other.mount
    }

    pub(crate) fn meta(&self) -> Meta {
        let stamp = self.stamp;
        Meta {
            kind: stamp.kind(),
            size: stamp.size,
            mode: stamp.mode & 0o7777,
            modified: time(stamp.mtime),
            links: u64::from(self.links),
            stamp,
        }
    }
}

/// Looks at an entry of an open folder without following a link.
pub(crate) fn look_at(dir: impl AsFd, name: impl AsRef<Path>) -> Result<Option<EntryIdentity>, Errno> {
    match rustix::fs::statx(dir, name.as_ref(), AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT, wanted()) {
        Ok(found) => Ok(Some(seen(&found))),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Looks at what a path leads to.
pub(crate) fn look_behind(path: &Path) -> Result<EntryIdentity, Errno> {
    rustix::fs::statx(CWD, path, AtFlags::empty(), wanted()).map(|found| seen(&found))
}

/// Looks at an open file or folder.
pub(crate) fn look(fd: impl AsFd) -> Result<EntryIdentity, Errno> {
    rustix::fs::statx(fd, "", AtFlags::EMPTY_PATH, wanted()).map(|found| seen(&found))
}

fn wanted() -> StatxFlags {
    StatxFlags::BASIC_STATS | StatxFlags::BTIME | StatxFlags::MNT_ID
}

fn seen(found: &Statx) -> EntryIdentity {
    let has = |flag: StatxFlags| found.stx_mask & flag.bits() != 0;
    EntryIdentity {
        stamp: FileStamp {
            dev: rustix::fs::makedev(found.stx_dev_major, found.stx_dev_minor),
            ino: found.stx_ino,
            size: found.stx_size,
            mtime: (found.stx_mtime.tv_sec, found.stx_mtime.tv_nsec),
            ctime: (found.stx_ctime.tv_sec, found.stx_ctime.tv_nsec),
            mode: u32::from(found.stx_mode),
        },
        born: if has(StatxFlags::BTIME) { (found.stx_btime.tv_sec, found.stx_btime.tv_nsec) } else { (0, 0) },
        links: found.stx_nlink,
        mount: has(StatxFlags::MNT_ID).then_some(found.stx_mnt_id),
        owner: (found.stx_uid, found.stx_gid),
    }
}

fn time((seconds, nanoseconds): (i64, u32)) -> SystemTime {
    let fraction = Duration::from_nanos(u64::from(nanoseconds));
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let at =
        if seconds < 0 { SystemTime::UNIX_EPOCH.checked_sub(whole) } else { SystemTime::UNIX_EPOCH.checked_add(whole) };
    at.and_then(|at| at.checked_add(fraction)).unwrap_or(SystemTime::UNIX_EPOCH)
}
