//! Blocking work off the async threads, stopped when its call is.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use haft_runtime::{ErrorCode, ToolCtx, ToolError};
use tokio::runtime::RuntimeFlavor;

/// Tells blocking work that nobody wants its result any more.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Refuses to go on once the call was stopped. Long loops ask between two steps.
    pub(crate) fn check(&self) -> Result<(), ToolError> {
        if self.is_wanted() {
            return Err(stopped());
        }
        Ok(())
    }

    /// Whether the call was stopped.
    pub(crate) fn is_wanted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The flag itself, for the sandbox.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

/// Stops the work when the call is cancelled, and when nobody waits for it any more.
struct StopOnDrop(Stop);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

/// Does blocking work for a call and waits for its end, also after a cancel: the work notices it soon.
pub(crate) async fn aside<T: Send + 'static>(
    ctx: &ToolCtx,
    work: impl FnOnce(&Stop) -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let stop = Stop::default();
    let waits = StopOnDrop(stop.clone());
    let mut task = tokio::task::spawn_blocking(move || work(&stop));
    let ended = tokio::select! {
        ended = &mut task => ended,
        () = ctx.cancel.cancelled() => {
            drop(waits);
            task.await
        }
    };
    ended.unwrap_or_else(|_| Err(broke_off()))
}

/// Does blocking work that is never stopped half-way, even when nobody waits for it any more.
/// It stays on its thread where the runtime has others: waking one costs more than most turns do.
pub(crate) async fn to_the_end<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    if !has_other_threads() {
        return tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(broke_off()));
    }
    tokio::task::block_in_place(|| at_once(work))
}

/// Does a few system calls on the thread that asks: leaving it, even in place, makes another one wake up to go on with
/// everything else, and costs more than they do.
pub(crate) fn at_once<T>(work: impl FnOnce() -> Result<T, ToolError>) -> Result<T, ToolError> {
    let guarded = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    guarded.unwrap_or_else(|_| Err(broke_off()))
}

/// Does what may wait for a network or for another program: meanwhile another thread goes on with everything else.
pub(crate) fn in_place<T>(work: impl FnOnce() -> T) -> T {
    if has_other_threads() { tokio::task::block_in_place(work) } else { work() }
}

fn has_other_threads() -> bool {
    tokio::runtime::Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread
}

/// The end of work that nobody wants any more.
pub(crate) fn stopped() -> ToolError {
    ToolError::new(ErrorCode::Cancelled, "the call was stopped before it had changed anything")
}

pub(crate) fn broke_off() -> ToolError {
    ToolError::new(ErrorCode::Internal, "the work broke off by a fault in haft; report it with the id of this call")
}
