//! Why a program could not be run under limits.

use std::{io, path::PathBuf};

/// Why a program could not be run under limits.
#[derive(Debug, thiserror::Error)]
pub enum LimitsError {
    /// The walls around it cannot be built here.
    #[error("this system lets haft not {step} ({why})")]
    Walls {
        /// What was tried.
        step: &'static str,
        /// The system's answer.
        why: String,
    },
    /// It cannot be started.
    #[error("{} cannot be started", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// It cannot be heard or ended.
    #[error("the program was lost")]
    Lost(#[source] io::Error),
}
