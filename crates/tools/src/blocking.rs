//! The two ways of doing work that blocks: small and near work inline, everything else on a thread for blocking work.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use haft_runtime::{ErrorCode, ToolCtx, ToolError};

/// Tells blocking work that nobody wants its result any more.
#[derive(Clone, Debug, Default)]
pub(crate) struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
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
struct StopWorkOnDrop(StopFlag);

impl Drop for StopWorkOnDrop {
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
/// asks its `StopFlag` between two steps.
pub(crate) async fn blocking<T: Send + 'static>(
    stop_with: StopWith<'_>,
    work: impl FnOnce(&StopFlag) -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let stop = StopFlag::default();
    let told = stop.clone();
    let mut task = tokio::task::spawn_blocking(move || work(&told));
    let ended = match stop_with {
        StopWith::Nothing => task.await,
        StopWith::Call(ctx) => {
            let waits = StopWorkOnDrop(stop);
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use haft_runtime::{CallId, Caller, ErrorCode, Scope, Source, ToolCtx};

    use super::{StopFlag, StopWith, blocking, inline};

    fn ctx() -> ToolCtx {
        let caller = Caller::owner("test", Scope::local("test"), Source::Cli);
        ToolCtx::detached(CallId::new(), caller)
    }

    /// Work that says when it has begun, and goes on until it is stopped or told to end.
    fn work(begun: &Sender<()>, end: &Receiver<()>, stop: &StopFlag) -> &'static str {
        begun.send(()).unwrap();
        loop {
            if stop.is_wanted() {
                return "stopped";
            }
            if end.try_recv().is_ok() {
                return "done";
            }
            std::thread::yield_now();
        }
    }

    #[tokio::test]
    async fn a_cancelled_call_stops_its_work() {
        let ctx = ctx();
        let ((begun, has_begun), (_end, ends)) = (channel(), channel());
        let working = blocking(StopWith::Call(&ctx), move |stop| Ok(work(&begun, &ends, stop)));
        let cancelling = async {
            tokio::task::spawn_blocking(move || has_begun.recv()).await.unwrap().unwrap();
            ctx.cancel.cancel();
        };
        assert_eq!(tokio::join!(working, cancelling).0.unwrap(), "stopped");
    }

    #[tokio::test]
    async fn work_that_nothing_stops_comes_to_its_end_alone() {
        let ((begun, has_begun), (end, ends), (say, said)) = (channel(), channel(), channel());
        let working = tokio::spawn(blocking(StopWith::Nothing, move |stop| {
            say.send(work(&begun, &ends, stop)).unwrap();
            Ok(())
        }));
        tokio::task::spawn_blocking(move || has_begun.recv()).await.unwrap().unwrap();
        working.abort();
        assert!(working.await.unwrap_err().is_cancelled());
        end.send(()).unwrap();
        assert_eq!(tokio::task::spawn_blocking(move || said.recv()).await.unwrap().unwrap(), "done");
    }

    #[tokio::test]
    async fn a_fault_is_an_error_and_no_crash() {
        let told = inline(|| -> Result<(), _> { panic!("a fault") }).unwrap_err();
        let aside = blocking(StopWith::Nothing, |_| -> Result<(), _> { panic!("a fault") }).await.unwrap_err();
        assert_eq!((told.code, aside.code), (ErrorCode::Internal, ErrorCode::Internal));
    }
}
