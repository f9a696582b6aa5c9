//! What is to be run under limits.

use std::{ffi::OsString, path::PathBuf};

/// One program to run, without a shell. It has nothing on its standard input.
#[derive(Clone, Debug)]
pub struct ProgramSpec {
    /// The program, by its absolute path.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// All variables that it gets; nothing is inherited.
    pub environment: Vec<(String, OsString)>,
    /// Where it starts.
    pub folder: PathBuf,
    /// What is around it.
    pub walls: Walls,
    /// Seconds of processor time, for each process.
    pub cpu_seconds: u64,
}

/// What is around a program that runs under limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Walls {
    /// It reads what is named here and the system's own programs, changes nothing, reaches nobody and starts no other
    /// program, whatever it is told by what it reads.
    Alone {
        /// Files and folders that it may read, where they exist.
        readable: Vec<PathBuf>,
    },
    /// It may do whatever its user may.
    Open,
}
