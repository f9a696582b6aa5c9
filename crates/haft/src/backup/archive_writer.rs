//! Writing a backup: a tar file in gzip that every `tar` can list, with one hash over everything in it.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Read, Write},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use flate2::{Compression, write::GzEncoder};
use haft_sandbox::{TreeContent, TreeEntry};
use sha2::{Digest, Sha256};
use tar::{Builder, EntryType, Header};

use super::manifest::{BackupManifest, CHANGES, MANIFEST, SERVERS, WORKSPACES};

/// The longest path in a backup: no system call takes a longer one.
const LONGEST_PATH: usize = 4000;
/// How much of a file is copied at once.
const PIECE: usize = 64 << 10;

/// What is noted of an entry beside its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EntryHead {
    pub(super) path: PathBuf,
    pub(super) kind: HeadKind,
    pub(super) mode: u32,
    /// In seconds and nanoseconds.
    pub(super) modified: (i64, u32),
    /// What told the entry apart where it lay.
    pub(super) mark: Option<String>,
    pub(super) size: u64,
}

/// What an entry is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HeadKind {
    File,
    Folder,
    Link(OsString),
}

impl EntryHead {
    /// A file of the backup itself.
    pub(super) fn own(path: &str, size: u64) -> Self {
        let path = PathBuf::from(path);
        Self { path, kind: HeadKind::File, mode: 0o600, modified: (0, 0), mark: None, size }
    }

    /// Adds it to the hash of the archive; its content follows.
    pub(super) fn hash(&self, digest: &mut Sha256) {
        let (kind, target): (u8, &OsStr) = match &self.kind {
            HeadKind::File => (0, OsStr::new("")),
            HeadKind::Folder => (1, OsStr::new("")),
            HeadKind::Link(target) => (2, target),
        };
        for part in [self.path.as_os_str(), target, OsStr::new(self.mark.as_deref().unwrap_or_default())] {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part.as_bytes());
        }
        digest.update([kind]);
        digest.update(self.mode.to_be_bytes());
        digest.update(self.modified.0.to_be_bytes());
        digest.update(self.modified.1.to_be_bytes());
        digest.update(self.size.to_be_bytes());
    }
}

/// An archive that is being written.
pub(super) struct ArchiveWriter<W: Write> {
    tar: Builder<GzEncoder<W>>,
    digest: Sha256,
    pub(super) manifest: BackupManifest,
}

impl<W: Write> ArchiveWriter<W> {
    pub(super) fn new(to: W) -> Self {
        let tar = Builder::new(GzEncoder::new(to, Compression::fast()));
        Self { tar, digest: Sha256::new(), manifest: BackupManifest::default() }
    }

    /// A file of the backup itself.
    pub(super) fn add_own(&mut self, path: &str, bytes: &[u8]) -> io::Result<()> {
        self.add(&EntryHead::own(path, bytes.len() as u64), bytes)
    }

    /// A file of the backup itself that lies on the disk.
    pub(super) fn add_file(&mut self, path: &str, from: &Path) -> io::Result<()> {
        let file = File::open(from)?;
        let size = file.metadata()?.len();
        self.add(&EntryHead::own(path, size), file)
    }

    /// An entry of a folder, beneath another name. What cannot be copied is counted, and said by its path.
    pub(super) fn add_entry(
        &mut self,
        beneath: &Path,
        entry: TreeEntry,
    ) -> io::Result<Option<(PathBuf, &'static str)>> {
        let is_top = entry.path.as_os_str().is_empty();
        let path = if is_top { beneath.to_owned() } else { beneath.join(&entry.path) };
        if path.as_os_str().len() > LONGEST_PATH {
            return Ok(self.left_out(path, "a path that is too long"));
        }
        let (kind, content, size) = match entry.content {
            TreeContent::Folder => (HeadKind::Folder, None, 0),
            TreeContent::File(file, size) => (HeadKind::File, Some(file), size),
            TreeContent::Link(target) if may_be_link(&path) => (HeadKind::Link(target), None, 0),
            TreeContent::Link(_) => return Ok(self.left_out(path, "a link")),
            TreeContent::LeftOut(why) => return Ok(self.left_out(path, why)),
        };
        let mark = Some(entry.mark.to_string());
        let head = EntryHead { path, kind, mode: entry.mode, modified: entry.modified, mark, size };
        match content {
            Some(file) => self.add(&head, file),
            None => self.add(&head, io::empty()),
        }?;
        Ok(None)
    }

    fn left_out(&mut self, path: PathBuf, why: &'static str) -> Option<(PathBuf, &'static str)> {
        self.manifest.left_out += 1;
        Some((path, why))
    }

    fn add(&mut self, head: &EntryHead, content: impl Read) -> io::Result<()> {
        head.hash(&mut self.digest);
        self.manifest.entries += 1;
        self.manifest.bytes += head.size;
        self.append(head, content)
    }

    /// Writes an entry. A file that became shorter while it was read is filled up, one that became longer is cut.
    fn append(&mut self, head: &EntryHead, content: impl Read) -> io::Result<()> {
        let mut header = Header::new_ustar();
        header.set_entry_type(match head.kind {
            HeadKind::File => EntryType::Regular,
            HeadKind::Folder => EntryType::Directory,
            HeadKind::Link(_) => EntryType::Symlink,
        });
        header.set_mode(head.mode);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(head.modified.0.max(0).unsigned_abs());
        header.set_size(head.size);
        put_name(&mut header, head.path.as_os_str());
        header.set_cksum();
        let (seconds, nanoseconds) = head.modified;
        let time = format!("{seconds}.{nanoseconds:09}");
        let mut more: Vec<(&str, &[u8])> = vec![("path", head.path.as_os_str().as_bytes()), ("mtime", time.as_bytes())];
        if let HeadKind::Link(target) = &head.kind {
            more.push(("linkpath", target.as_bytes()));
        }
        if let Some(mark) = &head.mark {
            more.push(("comment", mark.as_bytes()));
        }
        self.tar.append_pax_extensions(more)?;
        let filled = Hashed { from: content.chain(io::repeat(0)).take(head.size), digest: &mut self.digest };
        self.tar.append(&header, io::BufReader::with_capacity(PIECE, filled))
    }

    /// An entry without content, whatever it says.
    #[cfg(test)]
    #[allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
    pub(super) fn add_raw(&mut self, head: &EntryHead) {
        self.add(head, io::empty()).unwrap();
    }

    /// Writes the manifest and everything that is still on its way.
    pub(super) fn finish(mut self) -> io::Result<(W, BackupManifest)> {
        self.manifest.sha256 = hex(&self.digest.clone().finalize());
        let bytes = serde_json::to_vec(&self.manifest)?;
        self.append(&EntryHead::own(MANIFEST, bytes.len() as u64), bytes.as_slice())?;
        let to = self.tar.into_inner()?.finish()?;
        Ok((to, self.manifest))
    }
}

/// Whether a link may lie here: in a workspace, or where something of one is kept. Elsewhere haft itself would follow it.
pub(super) fn may_be_link(path: &Path) -> bool {
    let depth = path.components().count();
    (path.starts_with(CHANGES) && depth > 2)
        || ((path.starts_with(WORKSPACES) || path.starts_with(SERVERS)) && depth > 3)
}

/// A ustar header holds 100 bytes of a name; the whole name stands in front of it.
fn put_name(header: &mut Header, path: &OsStr) {
    if let Some(ustar) = header.as_ustar_mut() {
        let length = path.len().min(ustar.name.len());
        ustar.name[..length].copy_from_slice(&path.as_bytes()[..length]);
    }
}

/// Everything that is read goes into the hash.
struct Hashed<'a, R> {
    from: R,
    digest: &'a mut Sha256,
}

impl<R: Read> Read for Hashed<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(into)?;
        self.digest.update(&into[..read]);
        Ok(read)
    }
}

/// Bytes as text.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
