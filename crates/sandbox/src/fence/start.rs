//! Starting fenced processes.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::error::FenceError;
use super::file_time::FileTime;
use super::job::FenceJob;
use super::keeper::Keeper;
use super::process::Process;
use super::wire::{self, FenceRequest, Input};

/// The hidden first argument by which a program becomes the process that builds the fence.
pub const HELPER: &str = "__fence";

/// Starts fenced processes.
#[derive(Clone, Debug)]
pub struct Fence {
    program: Arc<Path>,
    next: Arc<Mutex<NextBuilder>>,
}

/// Who builds the next fence. Loading a large program takes as long as building a fence, so whoever has run a second
/// command has a keeper wait for the third. It ends with the last copy of the fence, or with the process.
#[derive(Debug)]
enum NextBuilder {
    /// There may be no next one.
    First,
    /// It is started when it is asked for.
    Started,
    /// It waits for its order.
    Waiting(Keeper),
}

impl Fence {
    /// A fence that `program` builds: one that calls [`become_helper_if_asked`](super::become_helper_if_asked) first.
    pub fn new(program: impl Into<PathBuf>) -> Fence {
        Fence { program: program.into().into(), next: Arc::new(Mutex::new(NextBuilder::First)) }
    }

    /// The program that builds the fence.
    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    /// Starts a job. What goes wrong inside is heard from [`Process::wait`].
    pub fn start(&self, job: &FenceJob) -> Result<Process, FenceError> {
        let asked = FileTime::latest();
        let before = std::mem::replace(&mut *self.next(), NextBuilder::Started);
        let is_first = matches!(before, NextBuilder::First);
        let waiting = match before {
            NextBuilder::Waiting(keeper) => keeper.if_it_lives(),
            NextBuilder::First | NextBuilder::Started => None,
        };
        let keeper = match waiting {
            Some(keeper) => keeper,
            None => Keeper::start(&self.program, Stdio::piped())?,
        };
        let process = give(keeper, job, (asked, Input::Given))?;
        if !is_first {
            self.prepare_next();
        }
        Ok(process)
    }

    /// Starts a job that is talked with: what is written into the socket is its standard input, what is read from it is
    /// its standard output. [`Process::wait`] hears only its standard error, and must be waiting.
    pub fn converse(&self, job: &FenceJob) -> Result<(Process, UnixStream), FenceError> {
        let asked = FileTime::latest();
        let (ours, theirs) = UnixStream::pair().map_err(FenceError::Order)?;
        let keeper = Keeper::start(&self.program, Stdio::from(OwnedFd::from(theirs)))?;
        Ok((give(keeper, job, (asked, Input::Conversation))?, ours))
    }

    /// Has a keeper wait, while the one that has its order builds. Where none can be started, the next start says why.
    fn prepare_next(&self) {
        if matches!(*self.next(), NextBuilder::Waiting(_)) {
            return;
        }
        let Ok(keeper) = Keeper::start(&self.program, Stdio::piped()) else { return };
        // Somebody else may have been as quick; whichever is dropped ends, while nobody is kept from starting.
        let other = std::mem::replace(&mut *self.next(), NextBuilder::Waiting(keeper));
        drop(other);
    }

    fn next(&self) -> MutexGuard<'_, NextBuilder> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives a keeper its order.
fn give(keeper: Keeper, job: &FenceJob, (asked, input): (FileTime, Input)) -> Result<Process, FenceError> {
    let order = FenceRequest { job: FenceJob { stdin: Vec::new(), ..job.clone() }, asked, input };
    wire::send(&**keeper.lifeline(), &order)
        .and_then(|()| wire::send_bytes(&**keeper.lifeline(), &job.stdin))
        .and_then(|()| wire::send_masks(&**keeper.lifeline(), &job.masks))
        .map_err(FenceError::Order)?;
    Ok(Process::new(keeper, job.command.first().cloned().unwrap_or_default(), asked))
}
