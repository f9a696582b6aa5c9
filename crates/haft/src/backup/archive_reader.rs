//! Reading a backup, as if somebody had made it to do harm: every name, kind and length is checked before it is used.

use std::{
    ffi::OsString,
    fs::File,
    io::{self, BufRead, BufReader, Read, Seek},
    os::unix::ffi::OsStringExt,
    path::{Component, Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};
use flate2::bufread::GzDecoder;
use sha2::{Digest, Sha256};
use tar::{Archive, EntryType, PaxExtensions};

use super::{
    archive_writer::{EntryHead, HeadKind, hex, may_be_link},
    manifest::{
        BackupHead, BackupManifest, CHANGES, DATA, DATABASE, FORMAT, HEAD, KEY_FILE, KEY_TEXT, MANIFEST, SERVERS,
        WORKSPACES,
    },
};

/// The longest extended header, and the longest file of the backup's own.
const LONGEST_HEADER: u64 = 64 << 10;
const LONGEST_OWN: u64 = 4 << 20;
const DAMAGED: &str = "the backup is damaged or not complete";

/// What a backup said of itself, once all of it was read and found to be so.
pub(super) struct CheckedBackup {
    pub(super) head: BackupHead,
    pub(super) manifest: BackupManifest,
    pub(super) has_key: bool,
}

/// Somebody who takes what is in a backup.
pub(super) trait ArchiveVisitor {
    /// Takes one entry. What is not read of its content is passed over.
    fn entry(&mut self, head: &EntryHead, content: &mut dyn Read) -> Result<()>;
}

/// Reads all of a backup, tells the visitor of each entry, and checks the whole against its manifest. `most` bounds what is
/// handed out, where that is known.
pub(super) fn read(
    file: &mut File,
    most: Option<&BackupManifest>,
    visitor: &mut dyn ArchiveVisitor,
) -> Result<CheckedBackup> {
    file.rewind()?;
    let mut packed = BufReader::new(file);
    let mut archive = Archive::new(GzDecoder::new(&mut packed));
    let mut reading =
        Reading { digest: Sha256::new(), found: BackupManifest::default(), most, head: None, has_key: false };
    let mut manifest: Option<BackupManifest> = None;
    let mut entries = archive.entries().context(DAMAGED)?.raw(true);
    while let Some(head) = next_head(&mut entries)? {
        let (head, mut entry) = head;
        ensure!(manifest.is_none(), "{DAMAGED}: something stands behind its end");
        if head.path == Path::new(MANIFEST) {
            manifest = Some(own(&mut entry, head.size)?);
        } else {
            reading.take(&head, &mut entry, visitor)?;
        }
    }
    let (head, has_key, mut found) = (reading.head, reading.has_key, reading.found);
    let (Some(head), Some(manifest)) = (head, manifest) else { bail!("{DAMAGED}: its end is missing") };
    // The rest of the gzip stream has its checksum.
    io::copy(&mut archive.into_inner(), &mut io::sink()).context(DAMAGED)?;
    ensure!(packed.fill_buf()?.is_empty(), "{DAMAGED}: something stands behind its end");
    found.sha256 = hex(&reading.digest.finalize());
    ensure!(found.sha256 == manifest.sha256, "{DAMAGED}: its content is not what its manifest says");
    let sizes = |manifest: &BackupManifest| (manifest.entries, manifest.bytes);
    ensure!(sizes(&found) == sizes(&manifest), "{DAMAGED}: it does not hold as much as its manifest says");
    Ok(CheckedBackup { head, manifest, has_key })
}

/// How far the reading is.
struct Reading<'a> {
    digest: Sha256,
    found: BackupManifest,
    most: Option<&'a BackupManifest>,
    head: Option<BackupHead>,
    has_key: bool,
}

impl Reading<'_> {
    fn take(&mut self, head: &EntryHead, entry: &mut dyn Read, visitor: &mut dyn ArchiveVisitor) -> Result<()> {
        head.hash(&mut self.digest);
        self.found.entries += 1;
        self.found.bytes = self.found.bytes.saturating_add(head.size);
        if let Some(most) = self.most {
            let fits = self.found.entries <= most.entries && self.found.bytes <= most.bytes;
            ensure!(fits, "{DAMAGED}: it holds more than its manifest says");
        }
        let mut hashed = HashedContent { from: entry, digest: &mut self.digest, left: head.size };
        if self.head.is_none() {
            ensure!(head.path == Path::new(HEAD), "this file is not a backup of haft's");
            let found: BackupHead = own(&mut hashed, head.size).context("this file is not a backup of haft's")?;
            let newer = "this backup was made by a newer haft: install that one, or a newer one, and try again";
            ensure!(found.format <= FORMAT, newer);
            self.head = Some(found);
        } else {
            ensure!(head.path != Path::new(HEAD), "{DAMAGED}: it begins twice");
            self.has_key |= head.path == Path::new(KEY_FILE) || head.path == Path::new(KEY_TEXT);
            visitor.entry(head, &mut hashed)?;
        }
        io::copy(&mut hashed, &mut io::sink()).context(DAMAGED)?;
        ensure!(hashed.left == 0, "{DAMAGED}: it was cut off");
        Ok(())
    }
}

/// Everything that is read goes into the hash.
struct HashedContent<'a> {
    from: &'a mut dyn Read,
    digest: &'a mut Sha256,
    left: u64,
}

impl Read for HashedContent<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(into)?;
        self.digest.update(&into[..read]);
        self.left = self.left.saturating_sub(read as u64);
        Ok(read)
    }
}

/// A small file of the backup's own, as JSON.
fn own<T: serde::de::DeserializeOwned>(from: &mut dyn Read, size: u64) -> Result<T> {
    ensure!(size <= LONGEST_OWN, DAMAGED);
    let mut bytes = Vec::new();
    from.take(LONGEST_OWN).read_to_end(&mut bytes).context(DAMAGED)?;
    serde_json::from_slice(&bytes).context(DAMAGED)
}

type PackedFile<'a, 'b> = GzDecoder<&'b mut BufReader<&'a mut File>>;

/// The next entry with what stands before it.
fn next_head<'e, 'a, 'b>(
    entries: &mut tar::Entries<'e, PackedFile<'a, 'b>>,
) -> Result<Option<(EntryHead, tar::Entry<'e, PackedFile<'a, 'b>>)>> {
    let Some(extended) = entries.next() else { return Ok(None) };
    let mut extended = extended.context(DAMAGED)?;
    ensure!(extended.header().entry_type() == EntryType::XHeader, "{DAMAGED}: an entry has no description");
    ensure!(extended.header().size().context(DAMAGED)? <= LONGEST_HEADER, "{DAMAGED}: a description is too long");
    let mut described = Vec::new();
    extended.read_to_end(&mut described).context(DAMAGED)?;
    let entry = entries.next().with_context(|| format!("{DAMAGED}: it was cut off"))?.context(DAMAGED)?;
    Ok(Some((entry_head(&described, entry.header())?, entry)))
}

fn entry_head(described: &[u8], header: &tar::Header) -> Result<EntryHead> {
    let (mut path, mut link, mut mark, mut modified) = (None, None, None, (0, 0));
    for extension in PaxExtensions::new(described) {
        let extension = extension.context(DAMAGED)?;
        let value = extension.value_bytes();
        match extension.key().unwrap_or_default() {
            "path" => path = Some(OsString::from_vec(value.to_vec())),
            "linkpath" => link = Some(OsString::from_vec(value.to_vec())),
            "comment" => mark = Some(String::from_utf8(value.to_vec()).context(DAMAGED)?),
            "mtime" => modified = time(value).context(DAMAGED)?,
            other => bail!("{DAMAGED}: it describes an entry by `{}`", other.escape_debug()),
        }
    }
    let kind = match (header.entry_type(), link) {
        (EntryType::Regular, None) => HeadKind::File,
        (EntryType::Directory, None) => HeadKind::Folder,
        (EntryType::Symlink, Some(target)) => HeadKind::Link(target),
        (other, _) => bail!("the backup holds an entry of kind {other:?}; nothing of it is used"),
    };
    let path = known_path(path.with_context(|| format!("{DAMAGED}: an entry has no name"))?.into(), &kind)?;
    let (mode, size) = (header.mode().context(DAMAGED)?, header.size().context(DAMAGED)?);
    ensure!(mode <= 0o7777 && (kind == HeadKind::File || size == 0), "{DAMAGED}: an entry is not what it says");
    Ok(EntryHead { path, kind, mode, modified, mark, size })
}

/// A path that leads beneath one of the folders that a backup has, or is one of its own files.
fn known_path(path: PathBuf, kind: &HeadKind) -> Result<PathBuf> {
    let outside =
        || format!("the backup holds the path `{}`; nothing of it is used", path.display().to_string().escape_debug());
    let plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    // `a/./b` and `a//b` have plain components, too.
    ensure!(plain && path == path.components().collect::<PathBuf>() && !path.as_os_str().is_empty(), outside());
    ensure!(path.as_os_str().len() == path.components().collect::<PathBuf>().as_os_str().len(), outside());
    let first = path.components().next().map(|part| part.as_os_str().to_owned()).unwrap_or_default();
    let is_own = *kind == HeadKind::File && path.components().count() == 1;
    let first = first.to_str().unwrap_or_default();
    let is_folder = *kind == HeadKind::Folder;
    let is_in_place = is_folder || path.components().count() > 1;
    let is_link = matches!(kind, HeadKind::Link(_));
    ensure!(!is_link || may_be_link(&path), outside());
    match first {
        HEAD | MANIFEST | DATABASE | KEY_FILE | KEY_TEXT if is_own => Ok(path),
        CHANGES | WORKSPACES | SERVERS | DATA if is_in_place => Ok(path),
        _ => bail!(outside()),
    }
}

/// Seconds and nanoseconds, with a point between.
fn time(text: &[u8]) -> Option<(i64, u32)> {
    let (seconds, nanoseconds) = std::str::from_utf8(text).ok()?.split_once('.')?;
    Some((seconds.parse().ok()?, nanoseconds.parse().ok().filter(|part| *part < 1_000_000_000)?))
}

/// Nobody takes anything: the backup is only checked.
pub(super) struct OnlyChecked;

impl ArchiveVisitor for OnlyChecked {
    fn entry(&mut self, _head: &EntryHead, _content: &mut dyn Read) -> Result<()> {
        Ok(())
    }
}
