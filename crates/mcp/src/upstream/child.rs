//! The process of a server: its last words, how it ended, and that it ends.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use haft_sandbox::fence::{Bound, CommandExit, FenceStopper, Process, ProcessEnd};
use tokio::{sync::watch, time::timeout};

/// How much is kept of what a server says beside messages, and how many lines of it are told.
const KEPT: usize = 16 << 10;
const LINES: usize = 8;
/// How long a server has to end by itself, and how long its end is waited for.
const FAREWELL: Duration = Duration::from_millis(500);
const END: Duration = Duration::from_secs(2);

/// The end of what a server says beside messages.
#[derive(Clone, Debug, Default)]
pub(super) struct StderrTail(Arc<Mutex<VecDeque<u8>>>);

impl StderrTail {
    pub(super) fn push(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(&bytes[bytes.len().saturating_sub(KEPT)..]);
        let over = kept.len().saturating_sub(KEPT);
        kept.drain(..over);
    }

    /// Its last lines.
    pub(super) fn lines(&self) -> String {
        let bytes: Vec<u8> = self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
        lines[lines.len().saturating_sub(LINES)..].join("\n")
    }
}

/// A process that runs. Dropping it ends everything that it has started.
#[derive(Debug)]
pub(super) struct Child {
    stopper: FenceStopper,
    ended: watch::Receiver<Option<String>>,
    tail: StderrTail,
}

impl Child {
    /// Watches a process on a thread of its own until it ends, which is not later than this value does.
    pub(super) fn watch(process: Process, tail: &StderrTail) -> Self {
        let (tell, ended) = watch::channel(None);
        let (stopper, words) = (process.stopper(), tail.clone());
        drop(tokio::task::spawn_blocking(move || {
            let how = match process.wait(&mut |_, bytes| words.push(bytes)) {
                Ok(ProcessEnd { bound: Some(bound), .. }) => format!("it took more than it may ({})", limit(bound)),
                Ok(ProcessEnd { exit: CommandExit::Code(code), .. }) => format!("it ended with exit code {code}"),
                Ok(ProcessEnd { exit: CommandExit::Signal(signal), .. }) => format!("it was ended by signal {signal}"),
                Ok(ProcessEnd { exit: CommandExit::Stopped, .. }) => "it was ended".to_owned(),
                Err(err) => err.to_string(),
            };
            // Nobody may be left who wants to know.
            let _ = tell.send(Some(how));
        }));
        Self { stopper, ended, tail: tail.clone() }
    }

    pub(super) fn is_alive(&self) -> bool {
        self.ended.borrow().is_none()
    }

    /// How it ended, with its last words; `None` when it has not, within a moment.
    pub(super) async fn end(&self) -> Option<String> {
        let mut ended = self.ended.clone();
        let how = timeout(FAREWELL, ended.wait_for(Option::is_some)).await.ok()?.ok()?;
        how.clone()
    }

    /// Its last words, as a sentence can go on with them.
    pub(super) fn said(&self) -> String {
        match self.tail.lines() {
            lines if lines.is_empty() => String::new(),
            lines => format!("; it said:\n{lines}"),
        }
    }

    /// Gives it a moment to end by itself, then ends everything, and waits for that.
    pub(super) async fn dismiss(&self) {
        let mut ended = self.ended.clone();
        if timeout(FAREWELL, ended.wait_for(Option::is_some)).await.is_err() {
            self.stopper.stop();
        }
        let _ = timeout(END, ended.wait_for(Option::is_some)).await;
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.stopper.stop();
    }
}

/// What may be raised in the settings.
fn limit(bound: Bound) -> &'static str {
    match bound {
        Bound::Memory => "memory; `memory` of its entry says how much",
        Bound::Cpu => "processor time; `cpu` of its entry says how much",
        Bound::Processes => "processes; `sandbox.processes` says how many",
        Bound::Disk => "room on the disk; `sandbox.disk` says how much",
    }
}
