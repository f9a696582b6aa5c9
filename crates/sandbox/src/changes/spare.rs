//! Folders that lie ready for sets of changes: making one takes longer than giving it another name.
//!
//! A spare is `<data>/changes/spare-…` with an empty `course.jsonl` and an empty first slot, both open. It becomes a set
//! by one rename, and from then on nothing tells the two apart. A thread makes several at a time while nobody waits.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, CWD, Mode, RenameFlags};
use rustix::io::Errno;

use super::course::{self, COURSE};
use super::error::ChangesError;
use super::folder::{FIRST_SLOT, Folder};
use super::stage;
use super::swap::is_no_swap;
use crate::stamp::look;

/// Before the name of a spare. One whose process was killed is found by it.
pub const SPARE: &str = "spare-";
/// So many lie ready at most.
const MOST: usize = 8;
/// When no more than these are left, more are made. Waking the thread costs something, so it is worth several of them.
const FEW: usize = 3;
/// How long an end waits for the thread; a filesystem that does not answer keeps nobody.
const PATIENCE: Duration = Duration::from_millis(500);

/// The spares of one folder of changes. None is made before a second one is needed.
#[derive(Debug)]
pub struct Spares {
    shelf: Arc<Shelf>,
    maker: Mutex<Maker>,
}

impl Spares {
    /// For sets of changes in `folder`, which is `<data>/changes`.
    pub fn new(folder: impl Into<PathBuf>) -> Spares {
        let shelf = Shelf { folder: folder.into(), stock: Mutex::default() };
        Spares { shelf: Arc::new(shelf), maker: Mutex::new(Maker::Unneeded) }
    }

    /// A spare that is now the folder `dir`; `None` when one has to be made.
    pub(super) fn take(&self, dir: &Path) -> Option<Spare> {
        if dir.parent() != Some(&self.shelf.folder) {
            return None;
        }
        let taken = self.shelf.take(dir);
        if lock(&self.shelf.stock).is_short() {
            self.wake();
        }
        taken
    }

    /// Removes what was not needed and makes no more.
    pub fn end(&self) {
        lock(&self.shelf.stock).is_closed = true;
        let maker = std::mem::replace(&mut *lock(&self.maker), Maker::Ended);
        if let Maker::Working(thread, ended) = maker {
            thread.unpark();
            let _ended_or_stuck = ended.recv_timeout(PATIENCE);
        }
    }

    fn wake(&self) {
        let mut maker = lock(&self.maker);
        match &*maker {
            Maker::Unneeded => *maker = Maker::NeededOnce,
            Maker::NeededOnce => *maker = Maker::start(&self.shelf),
            Maker::Working(thread, _) => thread.unpark(),
            Maker::Ended => {}
        }
    }
}

impl Drop for Spares {
    fn drop(&mut self) {
        self.end();
    }
}

/// Who makes the spares.
#[derive(Debug)]
enum Maker {
    /// Nobody: none has been needed.
    Unneeded,
    /// Nobody: a process that ends after its first call has no use for more.
    NeededOnce,
    /// A thread, and what hears of its end.
    Working(Thread, Receiver<()>),
    /// Nobody any more, or no thread could be started.
    Ended,
}

impl Maker {
    fn start(shelf: &Arc<Shelf>) -> Maker {
        let (tell, ended) = channel();
        let shelf = Arc::clone(shelf);
        let thread = thread::Builder::new().name("haft-spares".to_owned()).spawn(move || shelf.keep_filled(&tell));
        thread.map_or(Maker::Ended, |thread| Maker::Working(thread.thread().clone(), ended))
    }
}

/// Where the spares wait.
#[derive(Debug)]
struct Shelf {
    folder: PathBuf,
    /// Invariant: nobody looks at a file while this is locked.
    stock: Mutex<Stock>,
}

#[derive(Debug, Default)]
struct Stock {
    ready: Vec<Spare>,
    is_closed: bool,
}

impl Stock {
    /// Whether there is something to do for the thread.
    fn is_short(&self) -> bool {
        self.is_closed || self.ready.len() <= FEW
    }
}

/// What the thread has to do.
enum Next {
    Make,
    Rest,
    Remove(Vec<Spare>),
}

impl Shelf {
    /// The life of the thread. Dropping `_tell` says that it is over.
    fn keep_filled(&self, _tell: &Sender<()>) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        for number in 0_u64.. {
            match self.next() {
                Next::Make => {
                    let name = format!("{SPARE}{:x}-{since:x}-{number}", std::process::id());
                    match Spare::make(&self.folder.join(name)) {
                        Ok(spare) => lock(&self.stock).ready.push(spare),
                        // Whoever needs a folder makes it and says why that fails; here it is tried again when woken.
                        Err(_) => thread::park(),
                    }
                }
                Next::Rest => thread::park(),
                Next::Remove(left) => return left.iter().for_each(Spare::remove),
            }
        }
    }

    fn pop(&self) -> Option<Spare> {
        let mut stock = lock(&self.stock);
        if stock.is_closed { None } else { stock.ready.pop() }
    }

    fn take(&self, dir: &Path) -> Option<Spare> {
        for _ in 0..MOST {
            match self.pop()?.become_set(dir) {
                Ok(set) => return Some(set),
                // Somebody has removed it; the next one may be there.
                Err(Errno::NOENT) => {}
                Err(errno) => {
                    // Where names cannot be given like this, the others are of no use either.
                    lock(&self.stock).is_closed |= is_no_swap(errno);
                    return None;
                }
            }
        }
        None
    }

    fn next(&self) -> Next {
        let mut stock = lock(&self.stock);
        match stock.ready.len() {
            _ if stock.is_closed => Next::Remove(std::mem::take(&mut stock.ready)),
            ready if ready < MOST => Next::Make,
            _ => Next::Rest,
        }
    }
}

/// A folder that lies ready.
#[derive(Debug)]
pub(super) struct Spare {
    pub(super) folder: Folder,
    pub(super) course: File,
    pub(super) slot: OwnedFd,
}

impl Spare {
    fn make(path: &Path) -> Result<Spare, ChangesError> {
        let failed = |errno| ChangesError::kept("make the folder", errno);
        rustix::fs::mkdirat(CWD, path, Mode::RWXU).map_err(failed)?;
        let folder = Folder::open(path).inspect_err(|_| remove_folder(path))?;
        let made = course::make(folder.handle()).and_then(|course| Ok((course, stage::make(&folder)?)));
        let (course, slot) = made.inspect_err(|_| remove(&folder)).map_err(failed)?;
        Ok(Spare { folder, course, slot })
    }

    /// Gives it the name of a set, or removes it.
    fn become_set(self, dir: &Path) -> Result<Spare, Errno> {
        let named = if self.is_whole() {
            rustix::fs::renameat_with(CWD, self.folder.path(), CWD, dir, RenameFlags::NOREPLACE)
        } else {
            Err(Errno::NOENT)
        };
        named.inspect_err(|_| self.remove())?;
        Ok(Spare { folder: self.folder.renamed(dir), ..self })
    }

    /// Whether nobody has taken anything out of it.
    fn is_whole(&self) -> bool {
        look(&self.course).is_ok_and(|seen| seen.links == 1) && look(&self.slot).is_ok_and(|seen| seen.links == 1)
    }

    fn remove(&self) {
        remove(&self.folder);
    }
}

/// Removes a spare that nobody else knows of. What is left of it is found by its name later.
fn remove(folder: &Folder) {
    for name in [COURSE.as_ref(), Folder::slot_name(FIRST_SLOT).as_os_str()] {
        let _kept_for_cleaning = rustix::fs::unlinkat(folder.handle(), Path::new(name), AtFlags::empty());
    }
    remove_folder(folder.path());
}

fn remove_folder(path: &Path) {
    let _kept_for_cleaning = rustix::fs::unlinkat(CWD, path, AtFlags::REMOVEDIR);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_need_makes_nothing() {
        let home = tempfile::tempdir().unwrap();
        let spares = Spares::new(home.path());
        assert!(spares.take(&home.path().join("first")).is_none());
        assert!(matches!(*lock(&spares.maker), Maker::NeededOnce));
        assert!(spares.take(&home.path().join("second")).is_none());
        assert!(matches!(*lock(&spares.maker), Maker::Working(..)));
    }

    #[test]
    fn where_none_can_be_made_the_thread_rests_and_ends() {
        let home = tempfile::tempdir().unwrap();
        let spares = Spares::new(home.path().join("missing"));
        for number in 0..20 {
            assert!(spares.take(&home.path().join(format!("missing/{number}"))).is_none());
        }
        let Maker::Working(thread, ended) = std::mem::replace(&mut *lock(&spares.maker), Maker::Ended) else {
            panic!("no thread was started")
        };
        spares.end();
        thread.unpark();
        let heard = ended.recv_timeout(Duration::from_secs(60));
        assert_eq!(heard, Err(std::sync::mpsc::RecvTimeoutError::Disconnected));
        assert!(!home.path().join("missing").exists());
    }
}
