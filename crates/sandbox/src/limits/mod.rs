//! Programs of the user's own that need no fence: under limits, behind walls where they only look, ended with haft.

mod error;
mod lifeline;
mod program_spec;
mod run;
mod stopper;
mod walls;

pub use error::LimitsError;
pub use program_spec::{ProgramSpec, Walls};
pub use run::{OutputListener, run};
pub use stopper::ProgramStopper;
