//! Bytes as an open file that nobody can change any more.

use std::fs::File;
use std::io::{self, Seek, Write};

use rustix::fs::{MemfdFlags, SealFlags};

/// A file in memory with exactly these bytes, to be read from the beginning.
pub(crate) fn sealed_file(name: &str, bytes: &[u8]) -> io::Result<File> {
    let file = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    let mut file = File::from(file);
    file.write_all(bytes)?;
    file.rewind()?;
    rustix::fs::fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)?;
    Ok(file)
}
