//! What `git status` says, read from the form that it has for programs.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt, path::Path};

/// The state of the files of a repository.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct RepositoryStatus {
    /// The branch; `None` when no branch is checked out.
    pub(super) branch: Option<String>,
    /// The commit; `None` before the first one.
    pub(super) commit: Option<String>,
    pub(super) upstream: Option<String>,
    pub(super) ahead: u64,
    pub(super) behind: u64,
    pub(super) entries: Vec<ChangedPath>,
}

/// One path that is not as it was committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ChangedPath {
    pub(super) path: Vec<u8>,
    pub(super) index: char,
    pub(super) worktree: char,
    pub(super) from: Option<Vec<u8>>,
}

/// The arguments that make git say it.
pub(super) const STATUS: &[&str] =
    &["status", "--porcelain=v2", "-z", "--branch", "--find-renames", "--ignore-submodules=dirty", "--ahead-behind"];

impl RepositoryStatus {
    /// Reads the whole of what git says.
    pub(super) fn read(said: &[u8]) -> RepositoryStatus {
        let mut changed = RepositoryStatus::default();
        let mut records = said.split(|byte| *byte == 0);
        while let Some(record) = records.next() {
            match record {
                [b'#', b' ', header @ ..] => changed.take_header(&String::from_utf8_lossy(header)),
                [b'?', b' ', path @ ..] => changed.entries.push(ChangedPath::new(b"??", path, None)),
                [b'1', b' ', rest @ ..] => changed.take(rest, 7, None),
                [b'2', b' ', rest @ ..] => changed.take(rest, 8, records.next()),
                [b'u', b' ', rest @ ..] => changed.take(rest, 9, None),
                _ => {}
            }
        }
        changed
    }

    fn take_header(&mut self, header: &str) {
        let Some((name, value)) = header.split_once(' ') else { return };
        match name {
            "branch.oid" => self.commit = Some(value.to_owned()).filter(|value| value != "(initial)"),
            "branch.head" => self.branch = Some(value.to_owned()).filter(|value| value != "(detached)"),
            "branch.upstream" => self.upstream = Some(value.to_owned()),
            "branch.ab" => {
                let mut counts = value.split(' ').map(|count| count[1..].parse().unwrap_or(0));
                self.ahead = counts.next().unwrap_or(0);
                self.behind = counts.next().unwrap_or(0);
            }
            _ => {}
        }
    }

    /// Takes an entry whose path stands after so many fields; the first of them are its two letters.
    fn take(&mut self, rest: &[u8], fields: usize, from: Option<&[u8]>) {
        let path = rest.splitn(fields + 1, |byte| *byte == b' ').nth(fields);
        if let (Some(path), [index, worktree, ..]) = (path, rest) {
            self.entries.push(ChangedPath::new(&[*index, *worktree], path, from));
        }
    }
}

impl RepositoryStatus {
    /// Whether something at a path or beneath it has changed.
    pub(super) fn has(&self, path: &Path) -> bool {
        let is_there = |changed: &Vec<u8>| Path::new(OsStr::from_bytes(changed)).starts_with(path);
        self.entries.iter().any(|entry| is_there(&entry.path) || entry.from.as_ref().is_some_and(is_there))
    }
}

impl ChangedPath {
    fn new(letters: &[u8; 2], path: &[u8], from: Option<&[u8]>) -> ChangedPath {
        let [index, worktree] = letters.map(char::from);
        ChangedPath { path: path.to_owned(), index, worktree, from: from.map(<[u8]>::to_owned) }
    }

    /// Whether the next commit would hold something of it.
    pub(super) fn is_staged(&self) -> bool {
        !matches!(self.index, '.' | '?')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_entry_is_read() {
        let said = b"# branch.oid 1a2b\0# branch.head main\0# branch.upstream origin/main\0# branch.ab +2 -1\0\
            1 .M N... 100644 100644 100644 aa bb with space\0\
            2 R. N... 100644 100644 100644 aa bb R100 new\nline\0old name\0\
            u UU N... 100644 100644 100644 100644 aa bb cc both\xff\0\
            ? lost/\0";
        let changed = RepositoryStatus::read(said);
        assert_eq!((changed.branch.as_deref(), changed.upstream.as_deref()), (Some("main"), Some("origin/main")));
        assert_eq!((changed.ahead, changed.behind), (2, 1));
        let entry = |path: &[u8], index, worktree, from: Option<&[u8]>| ChangedPath {
            path: path.to_owned(),
            index,
            worktree,
            from: from.map(<[u8]>::to_owned),
        };
        let expected = [
            entry(b"with space", '.', 'M', None),
            entry(b"new\nline", 'R', '.', Some(b"old name")),
            entry(b"both\xff", 'U', 'U', None),
            entry(b"lost/", '?', '?', None),
        ];
        assert_eq!(changed.entries, expected);
    }

    #[test]
    fn neither_a_branch_nor_a_commit_need_be_there() {
        let changed =
            RepositoryStatus::read(b"# branch.oid (initial)\0# branch.head (detached)\0# branch.ab\0broken\0");
        assert_eq!(changed, RepositoryStatus::default());
    }
}
