//! One run of git for a call: heard as it speaks, ended when its call is.

use haft_runtime::{ErrorCode, ToolCtx, ToolError};
use haft_sandbox::{
    fence::{CommandExit, CommandStream},
    limits::{self, LimitsError, OutputListener, ProgramSpec, ProgramStopper},
};
use tokio::sync::oneshot;

use crate::blocking::{broke_off, stopped};

/// How much is kept of what git complains about.
const COMPLAINTS: usize = 16 << 10;

/// What listens to git.
pub(super) trait GitListener: Send + 'static {
    /// Takes the next piece of the output, and says whether more is wanted.
    fn hear(&mut self, bytes: &[u8]) -> WantsMore;
}

/// Whether more output is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WantsMore {
    Please,
    Enough,
}

/// Everything that is said, up to a limit.
#[derive(Clone, Debug, Default)]
pub(super) struct LimitedOutput {
    pub(super) bytes: Vec<u8>,
    pub(super) truncated: bool,
}

/// The most that is kept of one output.
pub(super) const LONGEST: usize = 64 << 20;

impl GitListener for LimitedOutput {
    fn hear(&mut self, bytes: &[u8]) -> WantsMore {
        let room = LONGEST - self.bytes.len();
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.truncated |= bytes.len() > room;
        if self.truncated { WantsMore::Enough } else { WantsMore::Please }
    }
}

/// How a run ended and what was heard.
#[derive(Debug)]
pub(super) struct GitResult<E> {
    pub(super) heard: E,
    pub(super) complaints: String,
    /// 0 also where it was ended because nobody wanted more.
    pub(super) code: i32,
}

/// Hears one run.
struct GitRunListener<E> {
    listener: E,
    more: WantsMore,
    complaints: Vec<u8>,
    stopper: ProgramStopper,
}

impl<E: GitListener> OutputListener for GitRunListener<E> {
    fn hear(&mut self, stream: CommandStream, bytes: &[u8]) {
        match (stream, self.more) {
            (CommandStream::Stderr, _) => {
                let room = COMPLAINTS.saturating_sub(self.complaints.len());
                self.complaints.extend(bytes.iter().take(room));
            }
            (CommandStream::Stdout, WantsMore::Please) => {
                self.more = self.listener.hear(bytes);
                if self.more == WantsMore::Enough {
                    self.stopper.stop();
                }
            }
            (CommandStream::Stdout, WantsMore::Enough) => {}
        }
    }
}

/// Runs git and waits for its end, also after a cancel: it ends at once.
pub(super) async fn run<E: GitListener>(
    ctx: &ToolCtx,
    order: ProgramSpec,
    listener: E,
) -> Result<GitResult<E>, ToolError> {
    let stopper = ProgramStopper::new().map_err(|err| unavailable(&err))?;
    let _ends_with_us = StopGitOnDrop(stopper.clone());
    let listening =
        GitRunListener { listener, more: WantsMore::Please, complaints: Vec::new(), stopper: stopper.clone() };
    let (tell, mut told) = oneshot::channel();
    // Whoever wanted to know may have gone.
    let tell = move |listening, exit| drop(tell.send((listening, exit)));
    limits::run(order, stopper.clone(), listening, tell).map_err(|err| unavailable(&err))?;
    let ended = tokio::select! {
        ended = &mut told => ended,
        () = ctx.cancel.cancelled() => {
            stopper.stop();
            told.await
        }
    };
    let (listening, exit) = ended.map_err(|_| broke_off())?;
    listening.ended(exit.map_err(|err| unavailable(&err))?)
}

impl<E> GitRunListener<E> {
    fn ended(self, exit: CommandExit) -> Result<GitResult<E>, ToolError> {
        let code = match exit {
            CommandExit::Code(code) => code,
            CommandExit::Stopped if self.more == WantsMore::Enough => 0,
            CommandExit::Stopped => return Err(stopped()),
            CommandExit::Signal(signal) => {
                let message =
                    format!("git was ended by signal {signal}; it may have needed more time or memory than it may");
                return Err(ToolError::new(ErrorCode::ExecutionError, message));
            }
        };
        let complaints = String::from_utf8_lossy(&self.complaints).into_owned();
        Ok(GitResult { heard: self.listener, complaints, code })
    }
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
struct StopGitOnDrop(ProgramStopper);

impl Drop for StopGitOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}
