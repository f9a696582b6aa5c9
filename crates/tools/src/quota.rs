//! How much a workspace may hold, where haft keeps its folder for somebody else.

use std::{
    path::PathBuf,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use haft_runtime::{ErrorCode, ToolError};
use haft_sandbox::fence::bytes_in;

/// How long a folder is believed to hold what it held, with what came since. Before anything is refused, it is measured.
const BELIEVED: Duration = Duration::from_secs(600);

/// The most that a folder may hold.
#[derive(Debug)]
pub(crate) struct FolderQuota {
    folder: PathBuf,
    most: u64,
    known: Mutex<Option<MeasuredFolder>>,
}

#[derive(Clone, Copy, Debug)]
struct MeasuredFolder {
    at: Instant,
    bytes: u64,
}

impl FolderQuota {
    pub(crate) fn new(folder: PathBuf, most: u64) -> Self {
        Self { folder, most, known: Mutex::default() }
    }

    /// Counts what is about to be added, or refuses it. It may look at the whole folder, which blocks.
    pub(crate) fn make_room(&self, added: u64) -> Result<(), ToolError> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let believed = known.filter(|measured| measured.at.elapsed() < BELIEVED);
        let fits = |measured: &MeasuredFolder| measured.bytes.saturating_add(added) <= self.most;
        let measured = match believed.filter(fits) {
            Some(measured) => measured,
            None => {
                MeasuredFolder { at: Instant::now(), bytes: bytes_in(&self.folder).map_err(|err| unmeasured(&err))? }
            }
        };
        if !fits(&measured) {
            let (most, holds) = (self.most, measured.bytes);
            let message = format!(
                "this workspace may hold {most} bytes; it holds {holds}, and this adds {added}; delete something first"
            );
            return Err(ToolError { recoverable: false, ..ToolError::new(ErrorCode::ResourceLimit, message) });
        }
        *known = Some(MeasuredFolder { bytes: measured.bytes + added, ..measured });
        Ok(())
    }
}

fn unmeasured(err: &std::io::Error) -> ToolError {
    ToolError::new(ErrorCode::Unavailable, format!("it cannot be measured how much the workspace holds: {err}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused_after_a_look_at_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let quota = FolderQuota::new(folder.path().to_owned(), 100_000);
        quota.make_room(60_000).unwrap();
        // It was never written, so that there is still room.
        quota.make_room(60_000).unwrap();
        std::fs::write(folder.path().join("a"), "x".repeat(60_000)).unwrap();
        let refused = quota.make_room(60_000).unwrap_err();
        assert_eq!(refused.code, ErrorCode::ResourceLimit);
        assert!(refused.message.contains("may hold 100000 bytes"), "{}", refused.message);
        std::fs::remove_file(folder.path().join("a")).unwrap();
        quota.make_room(60_000).unwrap();
    }
}
