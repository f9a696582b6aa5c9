//! Taking a backup while haft runs: commits wait for a moment, everything else goes on.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, BufWriter, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use haft_runtime::ToolError;
use haft_sandbox::{
    changes::{self, HeldWorkspaces},
    read_tree,
};
use haft_store::{CopyOver, DatabaseSnapshot, Durability, Options, Store};
use jiff::Timestamp;

use super::{
    archive_writer::ArchiveWriter,
    folders::{self, beside},
    manifest::{BackupHead, BackupManifest, CHANGES, DATABASE, FORMAT, HEAD, KEY_FILE, KEY_TEXT},
};
use crate::{
    commands::mistake,
    house,
    master_key::GivenKey,
    settings::Settings,
    show::{Out, time::bytes},
};

/// How long commits are held up at most. They wait longer before they give up.
const HELD: Duration = Duration::from_secs(20);
/// How often it is said how far it is.
const TOLD: Duration = Duration::from_millis(100);

/// Where a backup goes.
#[derive(Clone, Debug)]
pub(crate) enum BackupTarget {
    /// A file, over an existing one only where that is wanted.
    File { path: PathBuf, replace: bool },
    /// Standard output.
    Output,
}

/// What is wanted of a backup.
pub(crate) struct BackupWish {
    pub(crate) to: BackupTarget,
    pub(crate) with_key: bool,
}

/// Takes a backup of the database in use and of the folders of this node.
pub(crate) async fn take(settings: &Settings, wish: &BackupWish, out: Out) -> Result<BackupManifest> {
    if settings.store_url.is_none() && !settings.data.join("haft.db").exists() {
        return Err(mistake(format!("there is nothing to back up in {}", settings.data.display())));
    }
    let store = Store::open(&settings.data, settings.store()).await.map_err(ToolError::from)?;
    let taken = match &wish.to {
        BackupTarget::File { path, replace } => {
            let part = PartFile::begin(path, *replace)?;
            let written = write(settings, &store, (part.writer()?, wish.with_key, &part.beside()), out).await;
            written.and_then(|manifest| part.finish().map(|()| manifest))
        }
        BackupTarget::Output => {
            let beside = beside(&settings.data, ".backup");
            write(settings, &store, (io::stdout(), wish.with_key, &beside), out).await
        }
    };
    store.leave().await.map_err(ToolError::from)?;
    taken
}

async fn write<W: Write>(
    settings: &Settings,
    store: &Store,
    (to, with_key, beside): (W, bool, &Path),
    out: Out,
) -> Result<BackupManifest> {
    let given = GivenKey::of(settings)?;
    let house = house::whole();
    let noted = store.master_key_number(&house).await.map_err(ToolError::from)?;
    let key = match (noted, &given) {
        (Some(noted), _) => Some(noted),
        (None, Some(given)) => Some(given.number()?),
        (None, None) => None,
    };
    let mut archive = ArchiveWriter::new(BufWriter::new(to));
    archive.add_own(HEAD, &serde_json::to_vec(&head(settings, store, key).await?)?)?;
    if let (true, Some(given)) = (with_key, &given) {
        if key != Some(given.number()?) {
            return Err(mistake(
                "the master key at hand is not that of the database, so that it is not put into the backup",
            ));
        }
        match given {
            GivenKey::Variable(text) => archive.add_own(KEY_TEXT, text.as_bytes())?,
            GivenKey::File(bytes) => archive.add_own(KEY_FILE, bytes)?,
        }
    }
    let snapshot = copy_folders(settings, store, &mut archive, out).await?;
    let copied = copy_database(&snapshot, (&mut archive, beside), out).await;
    // What lies aside is of no use to anybody.
    fs::remove_dir_all(beside).ok();
    archive.manifest.tables = copied?;
    let (to, manifest) = archive.finish()?;
    to.into_inner().map_err(|err| err.into_error())?.flush()?;
    out.passing("");
    Ok(manifest)
}

async fn head(settings: &Settings, store: &Store, key: Option<i64>) -> Result<BackupHead> {
    Ok(BackupHead {
        format: FORMAT,
        haft: env!("CARGO_PKG_VERSION").to_owned(),
        schema: store.health().await.map_err(ToolError::from)?.schema_version,
        taken_at: Timestamp::now(),
        node: settings.serve.node.clone(),
        workspaces: folders::workspaces(&settings.data).display().to_string(),
        key,
    })
}

/// Copies every folder. The database is looked at while nobody commits, so that it says of each change what lies there.
async fn copy_folders<W: Write>(
    settings: &Settings,
    store: &Store,
    archive: &mut ArchiveWriter<W>,
    out: Out,
) -> Result<DatabaseSnapshot> {
    let data = &settings.data;
    let held =
        HeldWorkspaces::take(data, &folders::kept_workspaces(data)).context("commits are under way; try again")?;
    let (mut held, begun) = (Some(held), Instant::now());
    let snapshot = store.snapshot(&house::whole()).await.map_err(ToolError::from)?;
    let (mut told, mut left_out) = (begun, Vec::new());
    for (name, folder) in folders::copied(data)? {
        let is_set = name.starts_with(CHANGES);
        archive.manifest.changes += usize::from(is_set);
        let copied = read_tree(&folder, |entry| {
            if is_set && !changes::is_kept(&entry.path) {
                return Ok(());
            }
            left_out.extend(archive.add_entry(&name, entry)?);
            if told.elapsed() > TOLD {
                told = Instant::now();
                out.passing(&format!("{} files, {}", archive.manifest.entries, bytes(archive.manifest.bytes)));
            }
            if held.is_some() && begun.elapsed() > HELD {
                held = None;
                Out::warning(
                    "this takes long: commits go on now, and what is committed meanwhile may be in the backup twice or not at all; undoing it may then be a conflict",
                );
            }
            Ok(())
        });
        match copied {
            // What went before it was looked at is not there.
            Err(err) if err.kind() == io::ErrorKind::NotFound && !folder.exists() => {}
            copied => copied.with_context(|| format!("cannot copy {}", folder.display()))?,
        }
    }
    for (path, why) in left_out.iter().take(5) {
        Out::warning(&format!("{} is left out: it is {why}", path.display()));
    }
    Ok(snapshot)
}

/// Copies the rows into a file of their own, whatever database they are from, and that into the archive.
async fn copy_database<W: Write>(
    snapshot: &DatabaseSnapshot,
    (archive, aside): (&mut ArchiveWriter<W>, &Path),
    out: Out,
) -> Result<std::collections::BTreeMap<String, i64>> {
    fs::remove_dir_all(aside).ok();
    let made = fs::DirBuilder::new().mode(0o700).create(aside);
    made.with_context(|| format!("cannot make {}", aside.display()))?;
    let copy = Store::open(aside, Options::from(Durability::Normal)).await.map_err(ToolError::from)?;
    let progress = |table: &'static str, rows: i64| _ = out.passing(&format!("{table}: {rows} rows"));
    let copied = snapshot.copy_to(&house::whole(), (&copy, CopyOver::Nothing), progress).await;
    let copied = copied.context("cannot copy the database; check that there is space beside the backup")?;
    copy.close().await.map_err(ToolError::from)?;
    if let Some(short) = copied.iter().find(|table| table.from != table.to) {
        anyhow::bail!("the copy of `{}` is not complete: {} of {} rows", short.table, short.to, short.from);
    }
    archive.add_file(DATABASE, &aside.join(DATABASE))?;
    Ok(copied.into_iter().map(|table| (table.table.to_owned(), table.to)).collect())
}

/// A file that has its name only when it is whole.
struct PartFile {
    path: PathBuf,
    part: PathBuf,
    file: File,
    is_whole: std::cell::Cell<bool>,
}

impl PartFile {
    fn begin(path: &Path, replace: bool) -> Result<Self> {
        let path = std::path::absolute(path)?;
        if path.is_dir() {
            return Err(mistake(format!("{} is a folder; name a file", path.display())));
        }
        if !replace && path.symlink_metadata().is_ok() {
            return Err(mistake(format!("{} is there already; add --replace to write over it", path.display())));
        }
        let part = beside(&path, ".part");
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        let file = options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32).open(&part);
        let file = file.with_context(|| format!("cannot write {}", part.display()))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(mistake(format!("another backup writes {}", part.display()))),
            Err(TryLockError::Error(err)) => return Err(err.into()),
        }
        file.set_len(0)?;
        Ok(Self { path, part, file, is_whole: std::cell::Cell::new(false) })
    }

    fn writer(&self) -> Result<File> {
        Ok(self.file.try_clone()?)
    }

    /// Where the database is copied to on its way.
    fn beside(&self) -> PathBuf {
        beside(&self.part, ".db")
    }

    fn finish(&self) -> Result<()> {
        let failed = || format!("cannot write {}", self.path.display());
        self.file.sync_all().with_context(failed)?;
        fs::rename(&self.part, &self.path).with_context(failed)?;
        self.is_whole.set(true);
        if let Some(folder) = self.path.parent() {
            File::open(folder).and_then(|folder| folder.sync_all()).with_context(failed)?;
        }
        Ok(())
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        if !self.is_whole.get() {
            fs::remove_file(&self.part).ok();
            fs::remove_dir_all(self.beside()).ok();
        }
    }
}
