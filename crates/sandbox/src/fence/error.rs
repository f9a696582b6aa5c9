//! Why a fenced process could not be had.

use std::io;
use std::path::PathBuf;

/// Why a fenced process could not be started or heard.
#[derive(Debug, thiserror::Error)]
pub enum FenceError {
    /// The fence could not be built as it was asked for.
    #[error("cannot build the fence: {step}: {why}")]
    Unavailable {
        /// What was being done.
        step: String,
        /// What the system said to it.
        why: String,
    },
    /// There is no such program inside the fence.
    #[error("the program `{program}` was not found in the sandbox. Check the name, or give its full path")]
    NotFound {
        /// The first word of the command.
        program: String,
    },
    /// The system does not run the program.
    #[error("the program `{program}` does not start: {why}")]
    NotRun {
        /// The first word of the command.
        program: String,
        /// What the system said to it, and what to do about it.
        why: String,
    },
    /// The program that builds the fence could not be started.
    #[error("cannot start {}, which builds the fence", program.display())]
    Helper {
        /// The program that was started.
        program: PathBuf,
        /// What the system said to it.
        #[source]
        source: io::Error,
    },
    /// The job could not be handed to the process that builds the fence.
    #[error("cannot hand the command to the process that builds the fence")]
    Order(#[source] io::Error),
    /// The process that builds the fence ended without saying how the command ended.
    #[error("the process that keeps the fence was killed; nothing of the command runs any more")]
    Lost,
    /// The output could not be read.
    #[error("cannot read the output of the command")]
    Output(#[source] io::Error),
}
