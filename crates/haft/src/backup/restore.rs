//! Restoring a backup: everything is checked first, prepared aside, and put in place by renames.

use std::{
    fs::{self, File, TryLockError},
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};
use haft_platform::MasterKey;
use haft_runtime::ToolError;
use haft_store::{CopyOver, Durability, LoneUse, Options, Store};
use sha2::{Digest, Sha256};

use super::{
    archive_reader::{self, CheckedBackup, OnlyChecked},
    folders,
    manifest::{BackupHead, BackupManifest},
    switch,
    unpack::{UnpackedKey, Unpacker},
};
use crate::{
    commands::{mistake, serve::ServerState},
    house,
    master_key::{self, GivenKey, SECRET_KEY},
    settings::Settings,
    show::{Out, time::bytes},
};

/// What is wanted of a restore.
pub(crate) struct RestoreWish {
    pub(crate) file: PathBuf,
    /// Whether what is there goes.
    pub(crate) replace: bool,
    /// Whether the backup is only checked.
    pub(crate) check: bool,
}

/// What was restored, or only checked.
pub(crate) struct RestoredBackup {
    pub(crate) manifest: BackupManifest,
    pub(crate) taken_at: jiff::Timestamp,
    pub(crate) haft: String,
    /// The rows of each table in the backup, and in the database now.
    pub(crate) tables: Vec<(String, i64, i64)>,
}

/// Checks a backup and, unless only that is wanted, puts it in the place of what is there.
pub(crate) async fn restore(settings: &Settings, wish: &RestoreWish, out: Out) -> Result<RestoredBackup> {
    let mut file = File::open(&wish.file).with_context(|| format!("cannot read {}", wish.file.display()))?;
    out.passing("checking the backup");
    let checked = archive_reader::read(&mut file, None, &mut OnlyChecked)?;
    refuse_newer(&checked.head)?;
    if !wish.check {
        refuse_other_key(settings, &checked)?;
    }
    let _alone = if wish.check { None } else { Some(refuse_in_use(settings, wish.replace).await?) };
    let staging = Staging::make(&settings.data)?;
    refuse_no_space(&staging.path, &checked.manifest)?;
    out.passing("unpacking");
    let mut unpacker = Unpacker::new(&staging.path)?;
    archive_reader::read(&mut file, Some(&checked.manifest), &mut unpacker)?;
    let lay = PathBuf::from(&checked.head.workspaces);
    let key = unpacker.finish((&lay, &folders::workspaces(&settings.data)))?;
    let archived = Store::open(&staging.path.join("archive"), Options::from(Durability::Normal)).await;
    let archived = archived.map_err(ToolError::from).context("the database in the backup cannot be used")?;
    let tables = match wish.check {
        true => count(&archived, &checked.manifest).await?,
        false => {
            place_key(settings, &staging.path, key)?;
            let tables = load(settings, (&archived, &checked), &staging.path, out).await?;
            archived.close().await.map_err(ToolError::from)?;
            fs::remove_dir_all(staging.path.join("archive"))?;
            switch::decide(&settings.data)?;
            tables
        }
    };
    out.passing("");
    let CheckedBackup { head, manifest, .. } = checked;
    Ok(RestoredBackup { manifest, taken_at: head.taken_at, haft: head.haft, tables })
}

fn refuse_newer(head: &BackupHead) -> Result<()> {
    let known = Store::newest_schema(&house::whole());
    if head.schema <= known {
        return Ok(());
    }
    let BackupHead { haft, schema, .. } = head;
    Err(mistake(format!(
        "this backup was made by haft {haft} and has version {schema} of the tables; this haft knows version {known}: \
         install haft {haft} or later, and restore again"
    )))
}

/// Without its key a database is of little use, so that it is asked for before anything is touched.
fn refuse_other_key(settings: &Settings, checked: &CheckedBackup) -> Result<()> {
    let Some(wanted) = checked.head.key else { return Ok(()) };
    let file = master_key::file(settings);
    let (named, given) = match GivenKey::of(settings)? {
        Some(given @ GivenKey::Variable(_)) => (format!("the variable {SECRET_KEY}"), given),
        Some(_) | None if settings.store_url.is_some() => {
            let held = if checked.has_key { "; the backup holds it: tar xzOf FILE secret-key.txt" } else { "" };
            return Err(mistake(format!(
                "set {SECRET_KEY} to the master key of this backup (fingerprint {wanted:012x}){held}; nothing was touched"
            )));
        }
        // A key that comes with the backup takes the place of the file.
        Some(_) | None if checked.has_key => return Ok(()),
        Some(given) => (format!("the file {}", file.display()), given),
        None => {
            return Err(mistake(format!(
                "the master key of this backup is missing (fingerprint {wanted:012x}): set {SECRET_KEY} to it, or put the \
                 file secret.key of the old data folder at {}; nothing was touched",
                file.display()
            )));
        }
    };
    let number = given.number()?;
    if number == wanted {
        return Ok(());
    }
    Err(mistake(format!(
        "{named} is another master key (fingerprint {number:012x}) than that of this backup ({wanted:012x}); nothing was touched"
    )))
}

/// The right to be alone with what is replaced.
async fn refuse_in_use(settings: &Settings, replace: bool) -> Result<LoneUse> {
    let data = &settings.data;
    let in_use =
        || mistake(format!("haft uses {}: end it first (haft serve --stop, and every other haft)", data.display()));
    ensure!(ServerState::of(data) == ServerState::Absent, in_use());
    let alone = LoneUse::take(&house::whole(), data).map_err(ToolError::from)?.ok_or_else(in_use)?;
    if let Some(above) = data.parent().filter(|_| data.exists())
        && above.metadata()?.dev() != data.metadata()?.dev()
    {
        let message = "the data folder is a file system of its own, so that it cannot be replaced in one step: set \
                       HAFT_DATA_DIR to a folder within it, and restore into that";
        return Err(mistake(message));
    }
    let holds_files = [folders::workspaces(data), folders::servers(data), data.join("changes")]
        .iter()
        .any(|folder| fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()));
    let holds_rows = match &settings.store_url {
        None => data.join("haft.db").exists(),
        Some(_) => {
            let store = Store::open(data, settings.store()).await.map_err(ToolError::from)?;
            let others = store.others(&house::whole()).await.map_err(ToolError::from)?;
            if others > 0 {
                return Err(mistake(format!(
                    "haft uses this database ({others} running): end it first; one that was killed counts for 20 seconds more"
                )));
            }
            let filled = store.first_filled(&house::whole()).await.map_err(ToolError::from)?;
            store.leave().await.map_err(ToolError::from)?;
            filled.is_some()
        }
    };
    if (holds_files || holds_rows) && !replace {
        let place =
            settings.store_url.as_ref().map_or_else(|| data.display().to_string(), |_| "this database".to_owned());
        return Err(mistake(format!("{place} has data already; add --replace to have the backup in its place")));
    }
    Ok(alone)
}

fn refuse_no_space(staging: &Path, manifest: &BackupManifest) -> Result<()> {
    let disk = rustix::fs::statvfs(staging)?;
    let (free, needed) = (disk.f_bavail.saturating_mul(disk.f_frsize), manifest.bytes);
    ensure!(
        free > needed,
        "there is not enough space beside the data folder: the backup unpacks to {}, and {} are free",
        bytes(needed),
        bytes(free)
    );
    Ok(())
}

/// Counts the rows of the backup's database against its manifest.
async fn count(archived: &Store, manifest: &BackupManifest) -> Result<Vec<(String, i64, i64)>> {
    let snapshot = archived.snapshot(&house::whole()).await.map_err(ToolError::from)?;
    let counted = snapshot.counts(&house::whole()).await.map_err(ToolError::from)?;
    let told = |table: &str| manifest.tables.get(table).copied().unwrap_or_default();
    let tables: Vec<_> = counted.into_iter().map(|(table, rows)| (table.to_owned(), told(table), rows)).collect();
    refuse_short(&tables)?;
    Ok(tables)
}

fn refuse_short(tables: &[(String, i64, i64)]) -> Result<()> {
    for (table, wanted, found) in tables {
        ensure!(wanted == found, "the backup is damaged: `{table}` has {found} rows, and its manifest says {wanted}");
    }
    Ok(())
}

/// Brings the rows to where they are used: into a new file, or into the server in one transaction.
async fn load(
    settings: &Settings,
    (archived, checked): (&Store, &CheckedBackup),
    staging: &Path,
    out: Out,
) -> Result<Vec<(String, i64, i64)>> {
    let house = house::whole();
    count(archived, &checked.manifest).await?;
    if let Some(key) = checked.head.key {
        archived.note_master_key(&house, key).await.map_err(ToolError::from)?;
    }
    archived.rename_node(&house, &checked.head.node, &settings.serve.node).await.map_err(ToolError::from)?;
    let data = staging.join("data");
    let to =
        Store::open(&data, Options { sync: Durability::Normal, ..settings.store() }).await.map_err(ToolError::from)?;
    let snapshot = archived.snapshot(&house).await.map_err(ToolError::from)?;
    let progress = |table: &'static str, rows: i64| _ = out.passing(&format!("{table}: {rows} rows"));
    let copied = snapshot.copy_to(&house, (&to, CopyOver::Everything), progress).await;
    let copied = copied.map_err(ToolError::from).context("the database cannot be written; nothing was replaced")?;
    if settings.store_url.is_some() {
        keep_file_database(&settings.data, &data)?;
    }
    to.close().await.map_err(ToolError::from)?;
    if let Some(short) = copied.iter().find(|table| table.from != table.to) {
        bail!("`{}` has {} of {} rows; nothing was replaced", short.table, short.to, short.from);
    }
    let told = |table: &str| checked.manifest.tables.get(table).copied().unwrap_or_default();
    Ok(copied.iter().map(|table| (table.table.to_owned(), told(table.table), table.to)).collect())
}

/// A database in the data folder that is not the one in use stays there.
fn keep_file_database(old: &Path, new: &Path) -> Result<()> {
    for name in ["haft.db", "haft.db-wal"] {
        if old.join(name).exists() {
            fs::hard_link(old.join(name), new.join(name))?;
        }
    }
    Ok(())
}

/// The master key that the backup brought, or that was there, in the new data folder.
fn place_key(settings: &Settings, staging: &Path, brought: UnpackedKey) -> Result<()> {
    let new = staging.join("data").join("secret.key");
    let from_text = brought.text.map(|text| Sha256::digest(text.as_bytes()).to_vec());
    let kept = match brought.bytes.or(from_text) {
        Some(bytes) => Some(bytes),
        None => fs::read(master_key::file(settings)).ok(),
    };
    let Some(bytes) = kept else { return Ok(()) };
    let known: [u8; 32] = bytes.as_slice().try_into().context("the master key in the backup is damaged")?;
    tracing::debug!(fingerprint = MasterKey::new(&known).number(), "the master key is kept");
    let aside = crate::commands::mcp::write_aside(&new, &bytes)?;
    Ok(fs::rename(aside, new)?)
}

/// A folder of its own beside the data, which goes unless it is put in its place.
struct Staging {
    path: PathBuf,
    _lock: File,
}

impl Staging {
    fn make(data: &Path) -> Result<Self> {
        let path = switch::staging(data);
        let failed = || format!("cannot make {}", path.display());
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&path).with_context(failed)?;
        let lock = File::open(&path).with_context(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => bail!("another restore is under way at {}", path.display()),
            Err(TryLockError::Error(err)) => return Err(err).with_context(failed),
        }
        // What a killed one has left.
        for entry in fs::read_dir(&path)?.flatten() {
            fs::remove_dir_all(entry.path()).with_context(failed)?;
        }
        Ok(Self { path, _lock: lock })
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // It is gone already where it was put in its place.
        fs::remove_dir_all(&self.path).ok();
    }
}
