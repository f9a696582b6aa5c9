//! Who carries calls, and whether it still lives: a locked file beside SQLite, a lease in PostgreSQL.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{task::JoinHandle, time::sleep};

use crate::{StoreError, columns::Columns, db::Db, postgres::NodeLease, sql::Row};

/// Before the id in the name of a file that is not locked yet.
const UNNAMED: &str = "new-";
/// The steps that make such a file never take longer.
const MAKING: Duration = Duration::from_secs(3600);

/// This open store as one that carries calls. Others see it alive from the moment that the first row is about to name it.
pub(crate) struct StoreNode {
    id: String,
    proof: Proof,
    state: Mutex<NodeState>,
    taking: tokio::sync::Mutex<()>,
}

/// What shows that a node lives.
enum Proof {
    /// A lock on a file in this folder.
    Lock(PathBuf),
    /// A lease in the database.
    Lease(Arc<Db>, Duration),
}

enum NodeState {
    /// No row names this store yet.
    NotYet,
    /// The others see it alive.
    Locked(File),
    /// The others see it alive, and this renews it.
    Leased(JoinHandle<()>),
    /// It is closed and carries nothing any more.
    Released,
}

/// Whether a node still lives.
pub(crate) enum Life {
    /// It does, or it cannot be told.
    Alive,
    /// It does not. Its lock, where there is one, is held for as long as the file is, so that nobody else decides meanwhile.
    Dead(Option<File>),
}

/// A new name for an open store.
pub(crate) fn new_id() -> String {
    format!("ow_{}", uuid::Uuid::now_v7().simple())
}

impl StoreNode {
    pub(crate) fn new(id: String, data: &Path, db: &Arc<Db>, lease: Duration) -> Self {
        let proof = match &**db {
            Db::Sqlite(_) => Proof::Lock(data.join("owners")),
            Db::Postgres(_) => Proof::Lease(Arc::clone(db), lease),
        };
        Self { id, proof, state: Mutex::new(NodeState::NotYet), taking: tokio::sync::Mutex::default() }
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Makes sure that the others see this store alive.
    pub(crate) async fn hold(&self) -> Result<(), StoreError> {
        if self.is_held()? {
            return Ok(());
        }
        let _only_one = self.taking.lock().await;
        if self.is_held()? {
            return Ok(());
        }
        let held = match &self.proof {
            Proof::Lock(folder) => {
                NodeState::Locked(self.make_file(folder).map_err(|err| StoreError::folder(folder, err))?)
            }
            Proof::Lease(db, lease) => {
                renew(db, &self.id, *lease).await?;
                NodeState::Leased(tokio::spawn(keep_renewing(Arc::clone(db), self.id.clone(), *lease)))
            }
        };
        *self.state() = held;
        Ok(())
    }

    fn is_held(&self) -> Result<bool, StoreError> {
        match *self.state() {
            NodeState::Locked(_) | NodeState::Leased(_) => Ok(true),
            NodeState::NotYet => Ok(false),
            NodeState::Released => Err(StoreError::Closed),
        }
    }

    /// Lets go; calls that still name this store may be taken over.
    pub(crate) async fn release(&self) {
        let held = std::mem::replace(&mut *self.state(), NodeState::Released);
        match (held, &self.proof) {
            (NodeState::Locked(file), Proof::Lock(folder)) => {
                // A file that stays behind unlocked means the same as none.
                fs::remove_file(folder.join(&self.id)).ok();
                drop(file);
            }
            (held, Proof::Lease(db, _)) => {
                if let NodeState::Leased(renewing) = held {
                    renewing.abort();
                }
                // A lease that cannot be given back runs out by itself.
                db.read(&NodeLease::end(&self.id)).await.ok();
            }
            (NodeState::NotYet | NodeState::Released | NodeState::Leased(_), Proof::Lock(_)) => {}
        }
    }

    /// Looks whether another store lives.
    pub(crate) async fn look_at(&self, id: &str) -> Life {
        if id == self.id {
            return Life::Alive;
        }
        if !is_id(id) {
            return Life::Dead(None);
        }
        match &self.proof {
            Proof::Lock(folder) => look_at_file(&folder.join(id)),
            Proof::Lease(db, _) => match db.read(&NodeLease::alive(id)).await {
                Ok(rows) if rows.is_empty() => Life::Dead(None),
                Ok(_) | Err(_) => Life::Alive,
            },
        }
    }

    /// How many others live.
    pub(crate) async fn count_others(&self) -> Result<usize, StoreError> {
        match &self.proof {
            Proof::Lock(folder) => {
                let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
                let others = names.filter(|name| name.to_str().is_some_and(|name| is_id(name) && name != self.id));
                Ok(others.filter(|name| matches!(look_at_file(&folder.join(name)), Life::Alive)).count())
            }
            Proof::Lease(db, _) => Ok(db.read(&NodeLease::others(&self.id)).await?.len()),
        }
    }

    /// Removes what is left of a dead node, whose lock the caller holds.
    pub(crate) fn forget(&self, id: &str, held: Option<File>) {
        if let (Some(lock), Proof::Lock(folder)) = (held, &self.proof) {
            fs::remove_file(folder.join(id)).ok();
            drop(lock);
        }
    }

    /// How many nodes are gone and have left something behind.
    pub(crate) async fn count_dead(&self) -> Result<u64, StoreError> {
        match &self.proof {
            Proof::Lock(folder) => Ok(dead_files(folder).len() as u64),
            Proof::Lease(db, _) => count(&db.read(&NodeLease::count_dead()).await?),
        }
    }

    /// Removes what the dead have left behind, and says of how many.
    pub(crate) async fn forget_the_dead(&self) -> Result<u64, StoreError> {
        match &self.proof {
            Proof::Lock(folder) => {
                let dead = dead_files(folder);
                Ok(dead.iter().filter(|(path, _)| fs::remove_file(path).is_ok()).count() as u64)
            }
            Proof::Lease(db, _) => Ok(db.read(&NodeLease::forget_dead()).await?.len() as u64),
        }
    }

    // Invariant: a file is locked before it has its final name, so nobody ever finds it unlocked while its owner lives.
    fn make_file(&self, folder: &Path) -> io::Result<File> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let unnamed = folder.join(format!("{UNNAMED}{}", self.id));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unnamed)?;
        file.try_lock()?;
        fs::rename(&unnamed, folder.join(&self.id))?;
        Ok(file)
    }

    fn state(&self) -> MutexGuard<'_, NodeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StoreNode {
    fn drop(&mut self) {
        if let NodeState::Leased(renewing) = &*self.state() {
            renewing.abort();
        }
    }
}

async fn renew(db: &Db, id: &str, lease: Duration) -> Result<(), StoreError> {
    db.read(&NodeLease::renew(id, lease)).await.map(drop)
}

/// A lease that cannot be renewed now may be renewed later; until then others may take over what this store carries, and
/// whatever it writes of that is refused.
async fn keep_renewing(db: Arc<Db>, id: String, lease: Duration) {
    loop {
        sleep(lease / 4).await;
        renew(&db, &id, lease).await.ok();
    }
}

fn count(rows: &[Row]) -> Result<u64, StoreError> {
    let Some(row) = rows.first() else { return Ok(0) };
    Ok(Columns { of: "nodes", row }.number("count")?.unsigned_abs())
}

fn look_at_file(path: &Path) -> Life {
    match File::open(path) {
        Ok(file) => match file.try_lock() {
            Ok(()) => Life::Dead(Some(file)),
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => Life::Alive,
        },
        Err(err) if err.kind() == io::ErrorKind::NotFound => Life::Dead(None),
        Err(_) => Life::Alive,
    }
}

/// The files of nodes that are gone, each with its lock held.
fn dead_files(folder: &Path) -> Vec<(PathBuf, File)> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut dead = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        match name.strip_prefix(UNNAMED) {
            // Its maker is between two steps, unless it died there long ago.
            Some(_) if is_fresh(&entry) => {}
            Some(_) => dead.extend(File::open(entry.path()).ok().map(|file| (entry.path(), file))),
            None if is_id(name) => {
                if let Life::Dead(Some(lock)) = look_at_file(&entry.path()) {
                    dead.push((entry.path(), lock));
                }
            }
            None => {}
        }
    }
    dead
}

fn is_fresh(entry: &fs::DirEntry) -> bool {
    let made = entry.metadata().and_then(|meta| meta.modified());
    made.map_or(true, |made| made.elapsed().is_ok_and(|age| age < MAKING))
}

/// An id names a file, so nothing else may pass.
fn is_id(id: &str) -> bool {
    id.strip_prefix("ow_").is_some_and(|rest| rest.len() == 32 && rest.bytes().all(|byte| byte.is_ascii_hexdigit()))
}
