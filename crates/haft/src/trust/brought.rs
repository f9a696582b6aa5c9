//! What a workspace brings along: settings, project tools with their scripts, lists of servers. Read once.

use std::{
    collections::BTreeMap,
    fs::File,
    io::Read,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags},
    io::Errno,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::links::follow;
use crate::settings::mcp::{WORKSPACE_LIST, names_only_haft};

/// The settings of a workspace.
pub(crate) const SETTINGS: &str = "haft.toml";
/// Files that count when they lie in the workspace's own folder.
const FILES: &[&str] = &[SETTINGS, WORKSPACE_LIST];
/// The folder in which everything counts.
const FOLDER: &str = ".haft";
/// Why a link is not obeyed.
pub(super) const LINK: &str = "it is a link, and links are not followed";
const LARGEST_FILE: u64 = 1 << 20;
const LARGEST_ALL: u64 = 4 << 20;
/// The largest program that is hashed, and how much of it is read at once.
const LARGEST_HASHED: u64 = 512 << 20;
const PIECE: usize = 1 << 16;
const MOST_ENTRIES: usize = 500;
const DEEPEST: usize = 16;

/// Everything that a workspace brought at one moment, by path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Brought(pub(crate) BTreeMap<String, BroughtContent>);

/// One thing that was brought.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BroughtContent {
    /// A text file, whole.
    Text(String),
    /// Any other file, whole, in base64.
    #[serde(with = "base64_text")]
    Bytes(Vec<u8>),
    /// A link on the way to a file that a server's command names: what is written in it.
    Link(String),
    /// The hash of a file that a server's command names and that is too large to be kept.
    Hash(String),
    /// Something that is never obeyed, and why.
    LeftOut(String),
}

impl BroughtContent {
    fn of(bytes: Vec<u8>) -> Self {
        String::from_utf8(bytes).map_or_else(|err| Self::Bytes(err.into_bytes()), Self::Text)
    }

    /// The bytes, when they were read.
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Text(text) => Some(text.as_bytes()),
            Self::Bytes(bytes) => Some(bytes),
            Self::Link(_) | Self::Hash(_) | Self::LeftOut(_) => None,
        }
    }
}

impl Brought {
    /// Looks at a workspace once. No link is followed, nothing is waited for, and no more is read than the limits allow.
    /// haft's own data, which may lie in the workspace, is not the workspace's.
    pub(crate) fn read(folder: &Path, data: &Path) -> Result<Self> {
        let mut reader = BroughtReader::new(folder)?;
        reader.own_data = data.canonicalize().ok().and_then(|data| data.strip_prefix(folder).ok().map(Path::to_owned));
        for file in FILES {
            reader.take(file);
        }
        // What `haft mcp install` writes for a client is nothing that haft would obey.
        let is_ours = |content: &BroughtContent| content.bytes().is_some_and(names_only_haft);
        if reader.brought.0.get(WORKSPACE_LIST).is_some_and(is_ours) {
            reader.brought.0.remove(WORKSPACE_LIST);
        }
        reader.walk(FOLDER, 0);
        if reader.entries_left == 0 {
            reader.brought.0.retain(|path, _| FILES.contains(&path.as_str()));
            reader.leave_out(FOLDER, format!("it holds more than {MOST_ENTRIES} things, too many to look at"));
        }
        for named in reader.brought.named_by_servers(folder).into_iter().take(MOST_ENTRIES) {
            reader.take_followed(&named, folder);
        }
        for script in reader.brought.scripts(folder).into_iter().take(MOST_ENTRIES) {
            reader.take(&script);
        }
        Ok(reader.brought)
    }

    /// What lies at some paths that the command of a server names, and at everything that they lead to.
    pub(super) fn at(named: &[String], folder: &Path) -> Result<Self> {
        let mut reader = BroughtReader::new(folder)?;
        named.iter().for_each(|named| reader.take_followed(named, folder));
        Ok(reader.brought)
    }

    /// A hash of all of it.
    pub(crate) fn hash(&self) -> Result<String> {
        Ok(hex(&serde_json::to_vec(self)?))
    }
}

/// SHA-256 in hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    digits(&Sha256::digest(bytes))
}

fn digits(hash: &[u8]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

struct BroughtReader {
    root: OwnedFd,
    own_data: Option<PathBuf>,
    brought: Brought,
    bytes_left: u64,
    entries_left: usize,
}

impl BroughtReader {
    fn new(folder: &Path) -> Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(folder, flags, Mode::empty())
            .with_context(|| format!("cannot look into {}", folder.display()))?;
        let (brought, own_data) = (Brought::default(), None);
        Ok(Self { root, own_data, brought, bytes_left: LARGEST_ALL, entries_left: MOST_ENTRIES })
    }

    /// Takes every link on the way to a path, and the file that it leads to if that lies in the workspace.
    fn take_followed(&mut self, named: &str, folder: &Path) {
        let Some(followed) = follow(named, folder, |path| self.link_at(path)) else {
            return self.leave_out(named, "its links lead in a circle");
        };
        for (path, text) in followed.links {
            self.brought.0.insert(path, BroughtContent::Link(text));
        }
        let Some(end) = followed.end else { return };
        self.take(&end);
        let is_large = matches!(self.brought.0.get(&end), Some(BroughtContent::LeftOut(_)));
        if let Some(hash) = Some(&end).filter(|_| is_large).and_then(|end| self.hash(end)) {
            self.brought.0.insert(end, BroughtContent::Hash(hash));
        }
    }

    /// What is written in a link; `None` for anything else. The way to it has no links.
    fn link_at(&self, path: &str) -> Option<String> {
        let link = self.open(path, OFlags::PATH | OFlags::NOFOLLOW).ok()?;
        rustix::fs::readlinkat(link, "", Vec::new()).ok()?.into_string().ok()
    }

    /// The hash of a plain file, however large.
    fn hash(&self, path: &str) -> Option<String> {
        let file = self.open(path, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY).ok()?;
        let stat = rustix::fs::fstat(&file).ok()?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile
            || stat.st_size.cast_unsigned() > LARGEST_HASHED
        {
            return None;
        }
        let (mut file, mut hasher, mut piece) = (File::from(file), Sha256::new(), vec![0; PIECE]);
        loop {
            match file.read(&mut piece).ok()? {
                0 => return Some(digits(&hasher.finalize())),
                read => hasher.update(&piece[..read]),
            }
        }
    }

    fn leave_out(&mut self, path: &str, why: impl Into<String>) {
        self.brought.0.insert(path.to_owned(), BroughtContent::LeftOut(why.into()));
    }

    /// Takes one path, when something is there.
    fn take(&mut self, path: &str) {
        if self.brought.0.contains_key(path) {
            return;
        }
        match self.kind(path) {
            Ok(FileType::RegularFile) => match self.content(path) {
                Ok(content) => {
                    self.brought.0.insert(path.to_owned(), content);
                }
                Err(errno) => self.leave_out(path, format!("it cannot be read: {errno}")),
            },
            // A folder that a manifest or the name of a file happens to name brings nothing.
            Ok(FileType::Directory) | Err(Errno::NOENT | Errno::NOTDIR) => {}
            // A word that is no path, or one outside the workspace, is not the workspace's.
            Err(Errno::XDEV | Errno::NAMETOOLONG | Errno::INVAL) => {}
            Ok(FileType::Symlink) => self.leave_out(path, LINK),
            Ok(_) => self.leave_out(path, "it is no plain file"),
            Err(errno) => self.leave_out(path, format!("it cannot be looked at: {errno}")),
        }
    }

    fn kind(&self, path: &str) -> rustix::io::Result<FileType> {
        let entry = match self.open(path, OFlags::PATH | OFlags::NOFOLLOW) {
            Err(Errno::LOOP) => return Ok(FileType::Symlink),
            opened => opened?,
        };
        let stat = rustix::fs::statat(entry, "", AtFlags::EMPTY_PATH)?;
        Ok(FileType::from_raw_mode(stat.st_mode))
    }

    fn open(&self, path: &str, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        rustix::fs::openat2(self.root.as_fd(), path, flags | OFlags::CLOEXEC, Mode::empty(), beneath)
    }

    fn content(&mut self, path: &str) -> rustix::io::Result<BroughtContent> {
        // Something else may lie there by now; it must not be waited for.
        let file = self.open(path, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY)?;
        if FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) != FileType::RegularFile {
            return Ok(BroughtContent::LeftOut("it is no plain file".to_owned()));
        }
        let limit = LARGEST_FILE.min(self.bytes_left);
        let mut bytes = Vec::new();
        let read = File::from(file).take(limit + 1).read_to_end(&mut bytes);
        read.map_err(|err| Errno::from_io_error(&err).unwrap_or(Errno::IO))?;
        if bytes.len() as u64 > LARGEST_FILE {
            return Ok(BroughtContent::LeftOut(format!("it is larger than {} MiB", LARGEST_FILE >> 20)));
        }
        if bytes.len() as u64 > self.bytes_left {
            return Ok(BroughtContent::LeftOut(format!("all of it together is larger than {} MiB", LARGEST_ALL >> 20)));
        }
        self.bytes_left -= bytes.len() as u64;
        Ok(BroughtContent::of(bytes))
    }

    /// Takes everything beneath a folder, in the order of names.
    fn walk(&mut self, folder: &str, depth: usize) {
        if self.own_data.as_deref() == Some(Path::new(folder)) {
            return;
        }
        match self.kind(folder) {
            Ok(FileType::Directory) if depth < DEEPEST => {}
            Ok(FileType::Directory) => return self.leave_out(folder, "it lies too deep"),
            Ok(_) | Err(_) => return self.take(folder),
        }
        let names = match self.names(folder) {
            Ok(names) => names,
            Err(errno) => return self.leave_out(folder, format!("it cannot be looked into: {errno}")),
        };
        for name in names {
            let Some(left) = self.entries_left.checked_sub(1) else { return };
            self.entries_left = left;
            match name {
                Ok(name) => self.walk(&format!("{folder}/{name}"), depth + 1),
                Err(shown) => self.leave_out(&format!("{folder}/{shown}"), "its name is not UTF-8"),
            }
        }
    }

    /// The names in a folder, sorted; what is not UTF-8 only as it can be shown.
    fn names(&self, folder: &str) -> rustix::io::Result<Vec<Result<String, String>>> {
        let opened = self.open(folder, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW)?;
        let mut names = Vec::new();
        for entry in Dir::new(opened)?.take(MOST_ENTRIES + 3) {
            let entry = entry?;
            let name = entry.file_name();
            if name != c"." && name != c".." {
                names.push(name.to_str().map(str::to_owned).map_err(|_| name.to_string_lossy().into_owned()));
            }
        }
        names.sort();
        Ok(names)
    }
}

mod base64_text {
    //! Bytes as base64 text.

    use base64::{Engine, prelude::BASE64_STANDARD};
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64_STANDARD.encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        BASE64_STANDARD.decode(text).map_err(D::Error::custom)
    }
}
