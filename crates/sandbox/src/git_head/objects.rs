//! The objects of a repository: one by one as files, or many in a pack.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use flate2::read::ZlibDecoder;
use rustix::fs::OFlags;

use super::pack::Packs;
use crate::beneath::{self, Links};
use crate::stamp::{EntryKind, look};

/// The largest object that is read.
pub(super) const LARGEST: u64 = 16 << 20;
/// What stands before the content of an object, at most: its kind and its length.
const HEADER: u64 = 64;

/// The name of an object: the hash of its content, in one of git's two lengths.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ObjectName(Vec<u8>);

impl ObjectName {
    pub(super) fn from_hex(text: &str) -> Option<ObjectName> {
        let digits = text.bytes().all(|byte| byte.is_ascii_hexdigit()) && matches!(text.len(), 40 | 64);
        let byte = |at: usize| u8::from_str_radix(text.get(at * 2..at * 2 + 2)?, 16).ok();
        let bytes = if digits { (0..text.len() / 2).map(byte).collect::<Option<_>>()? } else { return None };
        Some(ObjectName(bytes))
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<ObjectName> {
        matches!(bytes.len(), 20 | 32).then(|| ObjectName(bytes.to_owned()))
    }

    /// How many bytes it has.
    pub(super) fn length(&self) -> usize {
        self.0.len()
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// What an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ObjectKind {
    Commit,
    Tree,
    Blob,
}

impl ObjectKind {
    fn word(self) -> &'static [u8] {
        match self {
            ObjectKind::Commit => b"commit",
            ObjectKind::Tree => b"tree",
            ObjectKind::Blob => b"blob",
        }
    }

    /// By its number in a pack.
    pub(super) fn from_number(number: u8) -> Option<ObjectKind> {
        match number {
            1 => Some(ObjectKind::Commit),
            2 => Some(ObjectKind::Tree),
            3 => Some(ObjectKind::Blob),
            _ => None,
        }
    }
}

/// The folder with a repository's objects. What it borrows from elsewhere does not count.
pub(super) struct Objects {
    folder: OwnedFd,
    packs: Packs,
}

impl Objects {
    /// The objects in the folder where a repository keeps them.
    pub(super) fn new(folder: OwnedFd) -> Objects {
        let packs = Packs::open(&folder);
        Objects { folder, packs }
    }

    /// The content of an object of this kind.
    pub(super) fn read(&self, name: &ObjectName, kind: ObjectKind) -> Option<Vec<u8>> {
        let found = self.loose(name).or_else(|| self.packs.read(name, 0))?;
        (found.0 == kind).then_some(found.1)
    }

    fn loose(&self, name: &ObjectName) -> Option<(ObjectKind, Vec<u8>)> {
        let hex = name.hex();
        let file = open_plain(&self.folder, &Path::new(hex.get(..2)?).join(hex.get(2..)?))?;
        let mut bytes = Vec::new();
        ZlibDecoder::new(file).take(LARGEST + HEADER + 1).read_to_end(&mut bytes).ok()?;
        let end = bytes.iter().position(|byte| *byte == 0)?;
        let (word, length) = std::str::from_utf8(bytes.get(..end)?).ok()?.split_once(' ')?;
        let length: usize = length.parse().ok()?;
        let kinds = [ObjectKind::Commit, ObjectKind::Tree, ObjectKind::Blob];
        let kind = kinds.into_iter().find(|kind| kind.word() == word.as_bytes())?;
        let content = bytes.split_off(end + 1);
        (content.len() == length && length as u64 <= LARGEST).then_some((kind, content))
    }
}

/// Opens a plain file beneath a folder; a link on the way is none.
pub(super) fn open_plain(folder: impl AsFd, path: &Path) -> Option<File> {
    // Without O_NONBLOCK, opening a FIFO would wait for a writer that never comes.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = beneath::open(folder, path, flags, Links::Refuse).ok()?;
    (look(&file).ok()?.kind() == EntryKind::File).then(|| File::from(file))
}

/// The content of a short plain file beneath a folder.
pub(crate) fn read_plain(folder: impl AsFd, path: &Path, longest: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    open_plain(folder, path)?.take(longest + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= longest).then_some(bytes)
}
