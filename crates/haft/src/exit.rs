//! Exit codes: what a script learns without reading anything.

use std::process::ExitCode;

use haft_runtime::{End, Outcome};

use crate::show::Out;

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CliExit {
    /// 0: it worked.
    Success,
    /// 1: the tool failed, the arguments were bad, something needs a hand.
    Failure,
    /// 2: the flags could not be read.
    Usage,
    /// 3: a person said no.
    Rejected,
    /// 4: it waits for an answer.
    Pending,
    /// 130: it was stopped.
    Cancelled,
    /// What the command that a call ran ended with, when nothing else went wrong.
    Command(u8),
}

impl CliExit {
    /// The worse of two: stopped, failed, said no to, waiting, done.
    #[must_use]
    pub fn or_worse(self, other: Self) -> Self {
        if other.badness() > self.badness() { other } else { self }
    }

    fn badness(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Command(_) => 1,
            Self::Pending => 2,
            Self::Rejected => 3,
            Self::Failure => 4,
            Self::Usage => 5,
            Self::Cancelled => 6,
        }
    }

    /// Where the call succeeded and all that failed is the command that it ran, the exit code is the command's own, as it
    /// is in a shell. An envelope has it in its value, and there the exit code says how the call ended.
    #[must_use]
    pub(crate) fn or_that_of_its_command(self, outcome: &Outcome, out: Out) -> Self {
        match outcome.exit_code() {
            // A shell would show the lowest eight bits, too.
            Some(code) if self == Self::Success && code != 0 && !out.json => Self::Command((code & 0xff) as u8),
            Some(_) | None => self,
        }
    }
}

impl From<&Outcome> for CliExit {
    fn from(outcome: &Outcome) -> Self {
        match outcome.end {
            End::Success { .. } => Self::Success,
            End::Error { .. } => Self::Failure,
            End::Rejected { .. } => Self::Rejected,
            End::Pending { .. } => Self::Pending,
            End::Cancelled { .. } => Self::Cancelled,
        }
    }
}

impl From<CliExit> for ExitCode {
    fn from(exit: CliExit) -> Self {
        Self::from(match exit {
            CliExit::Success => 0,
            CliExit::Failure => 1,
            CliExit::Usage => 2,
            CliExit::Rejected => 3,
            CliExit::Pending => 4,
            CliExit::Cancelled => 130,
            CliExit::Command(code) => code,
        })
    }
}
