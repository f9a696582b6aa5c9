//! One process at a time merges into the private folders of a workspace.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// A merge takes milliseconds; whoever holds the lock for longer is stuck.
const LONGEST: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(2);

/// Takes the lock in a folder. It is let go when the file is closed, by whatever end of the process.
pub(super) fn take(folder: &Path) -> io::Result<File> {
    let file = File::options().create(true).append(true).open(folder.join("lock"))?;
    let begun = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(std::fs::TryLockError::Error(error)) => return Err(error),
            Err(std::fs::TryLockError::WouldBlock) if begun.elapsed() > LONGEST => {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "another process holds the private folders"));
            }
            Err(std::fs::TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
        }
    }
}
