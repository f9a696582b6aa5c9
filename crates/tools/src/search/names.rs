//! Names in one piece of memory.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

use haft_sandbox::EntryKind;

/// Names in one piece of memory.
#[derive(Default)]
pub(super) struct NameList {
    bytes: Vec<u8>,
    ends: Vec<(usize, Option<EntryKind>)>,
}

impl NameList {
    pub(super) fn add(&mut self, name: &OsStr, kind: Option<EntryKind>) {
        self.bytes.extend_from_slice(name.as_bytes());
        self.ends.push((self.bytes.len(), kind));
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn has(&self, wanted: &OsStr) -> bool {
        self.iter().any(|(name, _)| name == wanted)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&OsStr, Option<EntryKind>)> {
        let mut begin = 0;
        self.ends.iter().map(move |(end, kind)| {
            let name = OsStr::from_bytes(&self.bytes[begin..*end]);
            begin = *end;
            (name, *kind)
        })
    }
}
