//! Exit codes: what a script learns without reading anything.

use std::process::ExitCode;

use haft_runtime::{End, Outcome};

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
            Self::Pending => 1,
            Self::Rejected => 2,
            Self::Failure => 3,
            Self::Usage => 4,
            Self::Cancelled => 5,
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
        })
    }
}
