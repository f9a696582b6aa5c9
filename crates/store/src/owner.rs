//! Who carries calls: each open store holds a locked file, and whoever can take that lock knows that the store is gone.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use crate::StoreError;

/// Before the id in the name of a file that is not locked yet.
const UNNAMED: &str = "new-";
/// The steps that make such a file never take longer.
const MAKING: Duration = Duration::from_secs(3600);

/// This store as the owner of calls. The file is made when the first row is about to name it.
pub(crate) struct Owner {
    id: String,
    folder: PathBuf,
    lock: Mutex<Lock>,
}

enum Lock {
    /// No row names this store yet.
    NotYet,
    /// The others see this store alive.
    Held(File),
    /// This store is closed and owns nothing any more.
    Released,
}

/// Whether an owner still lives.
pub(crate) enum Life {
    /// It does, or it cannot be told.
    Alive,
    /// It does not. Its lock is held for as long as the file is, so that nobody else decides meanwhile.
    Dead(Option<File>),
}

impl Owner {
    pub(crate) fn new(data: &Path) -> Self {
        let id = format!("ow_{}", uuid::Uuid::now_v7().simple());
        Self { id, folder: data.join("owners"), lock: Mutex::new(Lock::NotYet) }
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Makes sure that the others see this store alive.
    pub(crate) fn hold(&self) -> Result<(), StoreError> {
        let mut lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        match *lock {
            Lock::Held(_) => {}
            Lock::Released => return Err(StoreError::Closed),
            Lock::NotYet => {
                let file = self.make_file().map_err(|err| StoreError::folder(&self.folder, err))?;
                *lock = Lock::Held(file);
            }
        }
        Ok(())
    }

    /// Lets go; calls that still name this store may be taken over.
    pub(crate) fn release(&self) {
        let mut lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *lock, Lock::Released) {
            Lock::NotYet | Lock::Released => {}
            Lock::Held(file) => {
                // A file that stays behind unlocked means the same as none.
                fs::remove_file(self.folder.join(&self.id)).ok();
                drop(file);
            }
        }
    }

    /// Looks whether another store lives.
    pub(crate) fn look_at(&self, id: &str) -> Life {
        if id == self.id {
            return Life::Alive;
        }
        if !is_owner_id(id) {
            return Life::Dead(None);
        }
        match File::open(self.folder.join(id)) {
            Ok(file) => match file.try_lock() {
                Ok(()) => Life::Dead(Some(file)),
                Err(TryLockError::WouldBlock | TryLockError::Error(_)) => Life::Alive,
            },
            Err(err) if err.kind() == io::ErrorKind::NotFound => Life::Dead(None),
            Err(_) => Life::Alive,
        }
    }

    /// Removes the file of a dead owner, whose lock the caller holds.
    pub(crate) fn forget(&self, id: &str, held: Option<File>) {
        if let Some(lock) = held {
            fs::remove_file(self.folder.join(id)).ok();
            drop(lock);
        }
    }

    /// The files of owners that are gone, each with its lock held.
    pub(crate) fn dead(&self) -> Vec<(PathBuf, File)> {
        let Ok(entries) = fs::read_dir(&self.folder) else { return Vec::new() };
        let mut dead = Vec::new();
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            match name.strip_prefix(UNNAMED) {
                // Its maker is between two steps, unless it died there long ago.
                Some(_) if is_fresh(&entry) => {}
                Some(_) => dead.extend(File::open(entry.path()).ok().map(|file| (entry.path(), file))),
                None => {
                    if let Life::Dead(Some(lock)) = self.look_at(name) {
                        dead.push((entry.path(), lock));
                    }
                }
            }
        }
        dead
    }

    /// Removes the files of owners that are gone. No file means the same as an unlocked one.
    pub(crate) fn forget_the_dead(&self) -> u64 {
        let dead = self.dead();
        dead.iter().filter(|(path, _)| fs::remove_file(path).is_ok()).count() as u64
    }

    // Invariant: a file is locked before it has its final name, so nobody ever finds it unlocked while its owner lives.
    fn make_file(&self) -> io::Result<File> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let unnamed = self.folder.join(format!("{UNNAMED}{}", self.id));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unnamed)?;
        file.try_lock()?;
        fs::rename(&unnamed, self.folder.join(&self.id))?;
        Ok(file)
    }
}

fn is_fresh(entry: &fs::DirEntry) -> bool {
    let made = entry.metadata().and_then(|meta| meta.modified());
    made.map_or(true, |made| made.elapsed().is_ok_and(|age| age < MAKING))
}

/// An id names a file, so nothing else may pass.
fn is_owner_id(id: &str) -> bool {
    id.strip_prefix("ow_").is_some_and(|rest| rest.len() == 32 && rest.bytes().all(|byte| byte.is_ascii_hexdigit()))
}
