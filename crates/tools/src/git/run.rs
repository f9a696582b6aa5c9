//! One run of git for a call: heard as it speaks, ended when its call is.

use haft_runtime::{ErrorCode, ToolCtx, ToolError};
use haft_sandbox::{
    fence::{Exit, Stream},
    limits::{self, LimitsError, Order, Stopper},
};

use crate::aside::{broke_off, stopped};

/// How much is kept of what git complains about.
const COMPLAINTS: usize = 16 << 10;

/// What listens to git.
pub(super) trait Ear: Send + 'static {
    /// Takes the next piece of the output, and says whether more is wanted.
    fn hear(&mut self, bytes: &[u8]) -> More;
}

/// Whether more output is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum More {
    Please,
    Enough,
}

/// Everything that is said, up to a limit.
#[derive(Debug, Default)]
pub(super) struct Whole {
    pub(super) bytes: Vec<u8>,
    pub(super) truncated: bool,
}

/// The most that is kept of one output.
pub(super) const LONGEST: usize = 64 << 20;

impl Ear for Whole {
    fn hear(&mut self, bytes: &[u8]) -> More {
        let room = LONGEST - self.bytes.len();
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.truncated |= bytes.len() > room;
        if self.truncated { More::Enough } else { More::Please }
    }
}

/// How a run ended and what was heard.
#[derive(Debug)]
pub(super) struct Ended<E> {
    pub(super) heard: E,
    pub(super) complaints: String,
    /// 0 also where it was ended because nobody wanted more.
    pub(super) code: i32,
}

/// Runs git and waits for its end, also after a cancel: it ends at once.
pub(super) async fn run<E: Ear>(ctx: &ToolCtx, order: Order, ear: E) -> Result<Ended<E>, ToolError> {
    let stopper = Stopper::new().map_err(|err| unavailable(&err))?;
    let _ends_with_us = StopOnDrop(stopper.clone());
    let held = stopper.clone();
    let mut task = tokio::task::spawn_blocking(move || listen(&order, &held, ear));
    let ended = tokio::select! {
        ended = &mut task => ended,
        () = ctx.cancel.cancelled() => {
            stopper.stop();
            task.await
        }
    };
    ended.unwrap_or_else(|_| Err(broke_off()))
}

fn listen<E: Ear>(order: &Order, stopper: &Stopper, mut ear: E) -> Result<Ended<E>, ToolError> {
    let mut complaints = Vec::new();
    let mut more = More::Please;
    let exit = limits::run(order, stopper, &mut |stream, bytes| match stream {
        Stream::Stderr => complaints.extend(bytes.iter().take(COMPLAINTS.saturating_sub(complaints.len()))),
        Stream::Stdout if more == More::Please => {
            more = ear.hear(bytes);
            if more == More::Enough {
                stopper.stop();
            }
        }
        Stream::Stdout => {}
    })
    .map_err(|err| unavailable(&err))?;
    let code = match exit {
        Exit::Code(code) => code,
        Exit::Stopped if more == More::Enough => 0,
        Exit::Stopped => return Err(stopped()),
        Exit::Signal(signal) => {
            let message =
                format!("git was ended by signal {signal}; it may have needed more time or memory than it may");
            return Err(ToolError::new(ErrorCode::ExecutionError, message));
        }
    };
    Ok(Ended { heard: ear, complaints: String::from_utf8_lossy(&complaints).into_owned(), code })
}

fn unavailable(err: &LimitsError) -> ToolError {
    let code = match err {
        LimitsError::Walls { .. } => ErrorCode::SandboxUnavailable,
        LimitsError::Start { .. } | LimitsError::Lost(_) => ErrorCode::ExecutionError,
    };
    let cause = std::error::Error::source(err).map_or_else(String::new, |cause| format!(" ({cause})"));
    ToolError::new(code, format!("cannot run git: {err}{cause}"))
}

/// A call that nobody waits for any more keeps nothing running.
struct StopOnDrop(Stopper);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}
