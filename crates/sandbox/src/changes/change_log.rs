//! The log of one set of changes, as lines of one file: its plan, then what became of it turn by turn.
//!
//! A turn adds a line when it begins and, once everything is swapped, one that says where everything stands: that line
//! decides it. A line that has no end was cut off when its writer died, and decides nothing.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileExt;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::error::{ChangesError, kept_io};
use super::folder::json;
use super::plan::{ChangePlan, CommitDurability, ItemStates};

pub(super) const FILE_NAME: &str = "log.jsonl";
const BEGUN: &[u8] = b"\"begun\"";

/// The open file.
#[derive(Debug)]
pub(super) struct ChangeLog {
    file: File,
    sync: CommitDurability,
    /// How long the plan's own line is.
    plan_ends: u64,
}

/// What the lines after the plan say.
#[derive(Debug, Default)]
pub(super) struct LogState {
    /// Where everything stands since the last turn that was decided; `None` before the first.
    pub(super) state: Option<ItemStates>,
    /// Whether a turn has begun and is not decided.
    pub(super) turning: bool,
}

impl ChangeLog {
    /// Makes the file and writes the plan down. Until that is whole, the folder counts for nothing.
    pub(super) fn create(folder: BorrowedFd<'_>, plan: &ChangePlan) -> Result<ChangeLog, ChangesError> {
        let file = make(folder).map_err(|errno| ChangesError::kept("write the plan", errno))?;
        let line = [json(plan)?, b"\n".to_vec()].concat();
        let log = ChangeLog { file, sync: plan.sync, plan_ends: line.len() as u64 };
        log.append(&line)?;
        Ok(log)
    }

    /// Opens the file and reads the plan; `None` when there is none, or not a whole one.
    pub(super) fn open(folder: BorrowedFd<'_>) -> Result<Option<(ChangeLog, ChangePlan)>, ChangesError> {
        let mut file = match open(folder) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(ChangesError::kept("open the plan", errno)),
        };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|source| ChangesError::Io { what: "read the plan", source })?;
        let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else { return Ok(None) };
        let plan: ChangePlan = serde_json::from_slice(&bytes[..end])
            .map_err(|error| ChangesError::Corrupt { what: format!("{FILE_NAME}: {error}") })?;
        Ok(Some((ChangeLog { file, sync: plan.sync, plan_ends: end as u64 + 1 }, plan)))
    }

    /// What has become of the plan, by whichever process.
    pub(super) fn standing(&self) -> Result<LogState, ChangesError> {
        let mut bytes = Vec::new();
        let mut piece = [0; 4096];
        loop {
            let at = self.plan_ends + bytes.len() as u64;
            match self.file.read_at(&mut piece, at) {
                Ok(0) => return Ok(LogState::told_by(&bytes)),
                Ok(read) => bytes.extend_from_slice(&piece[..read]),
                Err(err) if err.kind() == std::io::ErrorKind::Interrupted => {}
                Err(source) => return Err(ChangesError::Io { what: "read the state", source }),
            }
        }
    }

    /// Says that a turn begins. From here on, and until it is settled, whatever is found swapped is put back.
    pub(super) fn begin(&self) -> Result<(), ChangesError> {
        self.append(&line(BEGUN))
    }

    /// Says where everything stands: the turn that has begun is decided.
    pub(super) fn settle(&self, state: &ItemStates) -> Result<(), ChangesError> {
        self.append(&line(&json(state)?))
    }

    fn append(&self, line: &[u8]) -> Result<(), ChangesError> {
        (&self.file).write_all(line).map_err(|source| kept_io("write the state", source))?;
        match self.sync {
            CommitDurability::Process => Ok(()),
            CommitDurability::Disk => self.file.sync_data().map_err(|source| kept_io("flush the state", source)),
        }
    }
}

impl LogState {
    fn told_by(mut bytes: &[u8]) -> LogState {
        let mut standing = LogState::default();
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            standing.hear(&bytes[..end]);
            bytes = &bytes[end + 1..];
        }
        standing.turning |= !bytes.is_empty();
        standing
    }

    fn hear(&mut self, line: &[u8]) {
        match serde_json::from_slice::<ItemStates>(line) {
            Ok(state) => *self = LogState { state: Some(state), turning: false },
            // It says that a turn has begun, or was cut off when one was to be decided.
            Err(_) => self.turning |= !line.is_empty(),
        }
    }
}

/// Begins on a line of its own, whatever was cut off before it.
fn line(bytes: &[u8]) -> Vec<u8> {
    [b"\n", bytes, b"\n"].concat()
}

/// Makes the file, for us alone.
fn make(folder: BorrowedFd<'_>) -> Result<File, Errno> {
    let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    rustix::fs::openat(folder, FILE_NAME, flags, Mode::RUSR | Mode::WUSR).map(File::from)
}

/// What may only be read can still be shown.
fn open(folder: BorrowedFd<'_>) -> Result<File, Errno> {
    let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = match rustix::fs::openat(folder, FILE_NAME, flags | OFlags::RDWR | OFlags::APPEND, Mode::empty()) {
        Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) => {
            rustix::fs::openat(folder, FILE_NAME, flags | OFlags::RDONLY, Mode::empty())
        }
        opened => opened,
    };
    opened.map(File::from)
}

#[cfg(test)]
mod tests {
    use super::LogState;

    fn told(lines: &str) -> (Option<usize>, bool) {
        let standing = LogState::told_by(lines.as_bytes());
        (standing.state.map(|state| state.items.len()), standing.turning)
    }

    #[test]
    fn only_whole_lines_decide() {
        let state = r#"{"items":[]}"#;
        assert_eq!(told(""), (None, false));
        assert_eq!(told("\n\"begun\"\n"), (None, true));
        assert_eq!(told(&format!("\n\"begun\"\n\n{state}\n")), (Some(0), false));
        assert_eq!(told(&format!("\n\"begun\"\n\n{state}")), (None, true), "it has no end");
        assert_eq!(told("\n\"begun\"\n\n{\"items\":"), (None, true));
        assert_eq!(told(&format!("\n\"begun\"\n\n{{\"items\":\n{state}\n")), (Some(0), false), "put back and settled");
        assert_eq!(told(&format!("\n{state}\n\n\"beg")), (Some(0), true));
        assert_eq!(told(&format!("\n{state}\n\n\"begun\"\n")), (Some(0), true));
    }
}
