//! The two ways of doing work that blocks: small and near work inline, everything else on a thread for blocking work.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use haft_runtime::{ErrorCode, ToolCtx, ToolError};

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

/// What ends blocking work before it has come to its own end.
pub(crate) enum StopWith<'a> {
    /// The call that it is done for: when that is cancelled, or nobody waits for it any more.
    Call(&'a ToolCtx),
    /// Nothing: a commit must not be left half-way.
    Nothing,
}

/// Does small and near work on this very thread: a few system calls that this machine answers by itself.
pub(crate) fn inline<T>(work: impl FnOnce() -> Result<T, ToolError>) -> Result<T, ToolError> {
    let guarded = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    guarded.unwrap_or_else(|_| Err(broke_off()))
}

/// Does everything else that blocks on a thread of its own and waits for its end. After a cancel that is soon: the work
/// asks its `Stop` between two steps.
pub(crate) async fn blocking<T: Send + 'static>(
    stop_with: StopWith<'_>,
    work: impl FnOnce(&Stop) -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let stop = Stop::default();
    let told = stop.clone();
    let mut task = tokio::task::spawn_blocking(move || work(&told));
    let ended = match stop_with {
        StopWith::Nothing => task.await,
        StopWith::Call(ctx) => {
            let waits = StopOnDrop(stop);
            tokio::select! {
                ended = &mut task => ended,
                () = ctx.cancel.cancelled() => {
                    drop(waits);
                    task.await
                }
            }
        }
    };
    ended.unwrap_or_else(|_| Err(broke_off()))
}

/// The end of work that nobody wants any more.
pub(crate) fn stopped() -> ToolError {
    ToolError::new(ErrorCode::Cancelled, "the call was stopped before it had changed anything")
}

pub(crate) fn broke_off() -> ToolError {
    ToolError::new(ErrorCode::Internal, "the work broke off by a fault in haft; report it with the id of this call")
}
