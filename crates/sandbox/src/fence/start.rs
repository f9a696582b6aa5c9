//! Starting fenced processes.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::error::FenceError;
use super::file_time::FileTime;
use super::job::{FenceJob, Rung};
use super::keeper::Keeper;
use super::loopback::LoopbackNetwork;
use super::process::Process;
use super::wire::{self, FenceRequest, HelperOrder, Input, LoopbackReach};

/// The hidden first argument by which a program becomes the process that builds the fence.
pub const HELPER: &str = "__fence";

/// Starts fenced processes.
#[derive(Clone, Debug)]
pub struct Fence {
    program: Arc<Path>,
    next: Arc<Mutex<NextBuilder>>,
    /// By workspace, the network in which its commands reach one another. There is none until somebody is to be reached.
    loopbacks: Arc<Mutex<HashMap<PathBuf, Arc<LoopbackNetwork>>>>,
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
        Fence {
            program: program.into().into(),
            next: Arc::new(Mutex::new(NextBuilder::First)),
            loopbacks: Arc::default(),
        }
    }

    /// The program that builds the fence.
    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    /// Starts a job that later ones of its workspace reach over the loopback interface, unless it reaches the network,
    /// which is another one. Otherwise it is as [`Fence::start`].
    pub fn start_reachable(&self, job: &FenceJob) -> Result<Process, FenceError> {
        if has_loopback(job) {
            let mut loopbacks = self.loopbacks.lock().unwrap_or_else(PoisonError::into_inner);
            if !loopbacks.contains_key(&job.workspace) {
                let made = LoopbackNetwork::make(&self.program, &job.workspace)?;
                loopbacks.insert(job.workspace.clone(), Arc::new(made));
            }
        }
        self.start(job)
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
        let loopbacks = self.loopbacks.lock().unwrap_or_else(PoisonError::into_inner);
        let loopback = loopbacks.get(&job.workspace).filter(|_| has_loopback(job)).cloned();
        drop(loopbacks);
        let process = Order { job, asked, input: Input::Given, loopback }.give_to(keeper)?;
        if !is_first {
            self.prepare_next();
        }
        Ok(process)
    }

    /// Starts a job that is talked with: what is written into the socket is its standard input, what is read from it is
    /// its standard output. [`Process::wait`] hears only its standard error, and must be waiting. It reaches no other job.
    pub fn converse(&self, job: &FenceJob) -> Result<(Process, UnixStream), FenceError> {
        let asked = FileTime::latest();
        let (ours, theirs) = UnixStream::pair().map_err(FenceError::Order)?;
        let keeper = Keeper::start(&self.program, Stdio::from(OwnedFd::from(theirs)))?;
        Ok((Order { job, asked, input: Input::Conversation, loopback: None }.give_to(keeper)?, ours))
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

/// Whether a job has a loopback interface that is not the machine's.
fn has_loopback(job: &FenceJob) -> bool {
    job.rung == Rung::Namespaces && !job.network
}

/// A job, and all that its keeper has to know beside it.
struct Order<'a> {
    job: &'a FenceJob,
    asked: FileTime,
    input: Input,
    /// The network that it shares with others.
    loopback: Option<Arc<LoopbackNetwork>>,
}

impl Order<'_> {
    /// Gives a keeper its order.
    fn give_to(self, keeper: Keeper) -> Result<Process, FenceError> {
        let Order { job, asked, input, loopback } = self;
        let reach = if loopback.is_some() { LoopbackReach::Workspace } else { LoopbackReach::Itself };
        let job_alone = FenceJob { stdin: Vec::new(), ..job.clone() };
        let request = FenceRequest { job: job_alone, asked, input, loopback: reach };
        let socket = &**keeper.lifeline();
        wire::send(socket, &HelperOrder::Run(Box::new(request)))
            .and_then(|()| loopback.map_or(Ok(()), |network| network.send(socket)))
            .and_then(|()| wire::send_bytes(socket, &job.stdin))
            .and_then(|()| wire::send_masks(socket, &job.masks))
            .map_err(FenceError::Order)?;
        Ok(Process::new(keeper, job.command.first().cloned().unwrap_or_default(), asked))
    }
}
