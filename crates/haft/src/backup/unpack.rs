//! Unpacking a backup into a new folder. No link is followed on the way, and nothing is written twice.

use std::{
    collections::{HashMap, HashSet},
    fs::File,
    io::{self, Read},
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use haft_sandbox::{
    EntryMark,
    changes::{self, CarriedEntries, ChangesError},
};
use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, Timespec, Timestamps};

use super::{
    archive_reader::ArchiveVisitor,
    archive_writer::{EntryHead, HeadKind},
    manifest::{CHANGES, DATA, DATABASE, KEY_FILE, KEY_TEXT, SERVERS, WORKSPACES},
};

/// How much of a file is written at once.
const PIECE: usize = 64 << 10;

/// A new folder that a backup is unpacked into.
pub(super) struct Unpacker {
    top: PathBuf,
    handle: OwnedFd,
    /// Folders get their modes when everything is in them.
    modes: Vec<(PathBuf, u32, (i64, u32))>,
    /// What changes look for, known once the first entry behind them comes.
    wanted: Option<HashSet<(u64, u64)>>,
    marks: HashMap<PathBuf, EntryMark>,
    /// The master key, where the backup has it.
    pub(super) key: Option<Vec<u8>>,
    pub(super) key_text: Option<String>,
}

impl Unpacker {
    /// Into a folder that is empty.
    pub(super) fn new(top: &Path) -> Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = rustix::fs::open(top, flags, Mode::empty())?;
        for name in ["archive", "data", "data/changes", "workspaces", "servers"] {
            rustix::fs::mkdirat(&handle, name, Mode::RWXU)?;
        }
        let (modes, marks) = (Vec::new(), HashMap::new());
        Ok(Self { top: top.to_owned(), handle, modes, wanted: None, marks, key: None, key_text: None })
    }

    /// Where an entry of a backup goes beneath the folder.
    fn place(path: &Path) -> PathBuf {
        match path {
            path if path == Path::new(DATABASE) => Path::new("archive").join(DATABASE),
            path if path.starts_with(CHANGES) => Path::new("data").join(path),
            path => path.to_owned(),
        }
    }

    fn write(&mut self, head: &EntryHead, content: &mut dyn Read) -> Result<()> {
        let place = Self::place(&head.path);
        let (Some(above), Some(name)) = (place.parent(), place.file_name()) else { return Ok(()) };
        let above = self.folder(above)?;
        match &head.kind {
            HeadKind::Folder => {
                // Those at the top are there already.
                let is_top = [CHANGES, WORKSPACES, SERVERS, DATA].iter().any(|top| head.path == Path::new(top));
                if !is_top {
                    rustix::fs::mkdirat(&above, Path::new(name), Mode::RWXU)?;
                    self.modes.push((place.clone(), head.mode, head.modified));
                }
            }
            HeadKind::Link(target) => {
                rustix::fs::symlinkat(Path::new(target), &above, Path::new(name))?;
                rustix::fs::utimensat(&above, Path::new(name), &times(head.modified), AtFlags::SYMLINK_NOFOLLOW)?;
            }
            HeadKind::File => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let mut file = File::from(rustix::fs::openat(&above, Path::new(name), flags, Mode::RUSR | Mode::WUSR)?);
                io::copy(&mut content.take(head.size), &mut io::BufWriter::with_capacity(PIECE, &mut file))?;
                rustix::fs::fchmod(&file, plain(head.mode))?;
                rustix::fs::futimens(&file, &times(head.modified))?;
            }
        }
        self.remember(head, place)
    }

    /// A folder beneath the top that no link leads to.
    fn folder(&self, path: &Path) -> io::Result<OwnedFd> {
        if path.as_os_str().is_empty() {
            return self.handle.try_clone();
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        Ok(rustix::fs::openat2(self.handle.as_fd(), path, flags, Mode::empty(), resolve)?)
    }

    /// Notes the mark of an entry that changes may look for. Their own entries come first, so that of all the others only
    /// those are noted.
    fn remember(&mut self, head: &EntryHead, place: PathBuf) -> Result<()> {
        let Some(mark) = &head.mark else { return Ok(()) };
        let mark: EntryMark = mark.parse().context("the backup is damaged: an entry has no mark")?;
        if head.path.starts_with(CHANGES) {
            self.marks.insert(place, mark);
            return Ok(());
        }
        if self.wanted.is_none() {
            let data = self.top.join("data");
            let inodes =
                changes::sets(&data).iter().flat_map(|set| changes::inodes_of(set).unwrap_or_default()).collect();
            self.wanted = Some(inodes);
        }
        if self.wanted.as_ref().is_some_and(|wanted| wanted.contains(&mark.inode())) {
            self.marks.insert(place, mark);
        }
        Ok(())
    }

    /// Gives the folders their modes, and binds the changes to the files that were unpacked. `workspaces` is where those lay
    /// when the backup was made, and where they will lie.
    pub(super) fn finish(mut self, workspaces: (&Path, &Path)) -> Result<UnpackedKey> {
        for (place, mode, modified) in self.modes.drain(..).rev() {
            let path = self.top.join(&place);
            rustix::fs::chmodat(rustix::fs::CWD, &path, plain(mode), AtFlags::empty())?;
            rustix::fs::utimensat(rustix::fs::CWD, &path, &times(modified), AtFlags::SYMLINK_NOFOLLOW)?;
        }
        let mut carried = CarriedEntries::default();
        carried.folders.push((workspaces.0.to_owned(), workspaces.1.to_owned()));
        for (place, before) in &self.marks {
            if let Some(now) = EntryMark::of(&self.top.join(place))? {
                carried.add(*before, now);
            }
        }
        for set in changes::sets(&self.top.join("data")) {
            match changes::rebind(&set, &carried) {
                // What could not be read before cannot be read now.
                Ok(()) | Err(ChangesError::Corrupt { .. } | ChangesError::Gone) => {}
                Err(err) => return Err(err).with_context(|| format!("cannot restore {}", set.display())),
            }
        }
        Ok(UnpackedKey { bytes: self.key, text: self.key_text })
    }
}

/// The master key that a backup held.
pub(super) struct UnpackedKey {
    pub(super) bytes: Option<Vec<u8>>,
    pub(super) text: Option<String>,
}

impl ArchiveVisitor for Unpacker {
    fn entry(&mut self, head: &EntryHead, content: &mut dyn Read) -> Result<()> {
        let mut secret = Vec::new();
        if head.path == Path::new(KEY_FILE) || head.path == Path::new(KEY_TEXT) {
            content.take(4096).read_to_end(&mut secret)?;
            match head.path == Path::new(KEY_FILE) {
                true => self.key = Some(secret),
                false => self.key_text = Some(String::from_utf8(secret).context("the master key in it is damaged")?),
            }
            return Ok(());
        }
        self.write(head, content).with_context(|| format!("cannot restore {}", head.path.display()))
    }
}

/// Permissions without those that make a program run as its owner.
fn plain(mode: u32) -> Mode {
    Mode::from_raw_mode(mode & 0o1777)
}

fn times((seconds, nanoseconds): (i64, u32)) -> Timestamps {
    let time = Timespec { tv_sec: seconds, tv_nsec: nanoseconds.into() };
    Timestamps { last_access: time, last_modification: time }
}
