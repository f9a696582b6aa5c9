//! Reads a patch as it comes: counts its lines, keeps its beginning, and shows nothing of what holds secrets.

use haft_sandbox::{Root, SensitiveNames};

use super::{
    program::Git,
    repository::Repository,
    run::{GitListener, WantsMore},
};
use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

/// The most bytes of a patch that are kept.
const KEPT: usize = 1 << 20;
/// The most bytes of one line that are kept.
const LONGEST_LINE: usize = 64 << 10;
/// The most files that are told.
const MOST_FILES: usize = 10_000;

/// The arguments that make git say it: a list of the files first, then the patch, with no words but git's own.
pub(super) const PATCH: &[&str] = &[
    "--patch-with-raw",
    "--no-abbrev",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--no-relative",
    "--find-renames",
    "--submodule=short",
    "--ignore-submodules=dirty",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "-O/dev/null",
];

/// A patch that is being read.
#[derive(Clone, Debug, Default)]
pub(super) struct Patch {
    pub(super) files: Vec<FilePatch>,
    pub(super) text: String,
    /// Whether something of it was not kept.
    pub(super) truncated: bool,
    pub(super) additions: u64,
    pub(super) deletions: u64,
    /// How many files have come, also those that are not told.
    pub(super) count: usize,
    /// Where in the text each file begins.
    starts: Vec<usize>,
    line: Vec<u8>,
    state: PatchState,
    secrets: SecretPaths,
}

/// What a patch does to one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FilePatch {
    /// As the repository names it, after the change.
    pub(super) path: Vec<u8>,
    /// The name that it had, where it is renamed.
    pub(super) from: Option<Vec<u8>>,
    pub(super) additions: u64,
    pub(super) deletions: u64,
    pub(super) binary: bool,
    /// Its name, or the one that it had, says that it holds secrets.
    secret: bool,
}

/// Where in a patch the next line stands.
#[derive(Clone, Copy, Debug, Default)]
enum PatchState {
    /// In the list of files.
    #[default]
    List,
    /// In what stands before the lines of a file; the number of the file.
    Head(usize),
    /// In its lines, of which so many old and new ones are still to come.
    Lines { file: usize, old: u64, new: u64 },
}

impl GitListener for Patch {
    fn hear(&mut self, mut bytes: &[u8]) -> WantsMore {
        while let Some(at) = bytes.iter().position(|byte| *byte == b'\n') {
            self.extend_line(&bytes[..at]);
            let line = std::mem::take(&mut self.line);
            self.take(&line);
            bytes = &bytes[at + 1..];
        }
        self.extend_line(bytes);
        WantsMore::Please
    }
}

impl Patch {
    /// One that shows nothing of these paths.
    pub(super) fn without(secrets: SecretPaths) -> Self {
        Self { secrets, ..Self::default() }
    }

    fn extend_line(&mut self, bytes: &[u8]) {
        let room = LONGEST_LINE - self.line.len();
        self.truncated |= bytes.len() > room;
        self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// Invariant: what a line means follows from where it stands and not from its words, which a file may imitate.
    fn take(&mut self, line: &[u8]) {
        match self.state {
            PatchState::List => match line {
                [b':', rest @ ..] => self.list(rest),
                [] => {}
                _ => self.take_head(line, None),
            },
            PatchState::Head(file) => self.take_head(line, Some(file)),
            PatchState::Lines { file, old, new } => self.take_line(line, (file, old, new)),
        }
    }

    /// `100644 100644 1a2b 3c4d M<tab>path`, with two paths for a rename.
    fn list(&mut self, rest: &[u8]) {
        let mut parts = rest.split(|byte| *byte == b'\t');
        let status = parts.next().and_then(|facts| facts.rsplit(|byte| *byte == b' ').next());
        // What is in conflict has a line of its own instead of a patch.
        if status == Some(b"U") {
            return;
        }
        let paths: Vec<Vec<u8>> = parts.map(unquoted).collect();
        self.count += 1;
        if let Some(path) = paths.last().filter(|_| self.count <= MOST_FILES) {
            let secret = paths.iter().any(|path| self.secrets.hold(path));
            let from = paths.first().filter(|_| paths.len() > 1).cloned();
            self.files.push(FilePatch { path: path.clone(), from, secret, ..FilePatch::default() });
        }
    }

    fn take_head(&mut self, line: &[u8], file: Option<usize>) {
        if line.starts_with(b"diff --git ") {
            let next = file.map_or(0, |file| file + 1);
            self.state = PatchState::Head(next);
            self.starts.push(self.text.len());
            self.keep(line);
            if self.is_secret(next) {
                self.keep(b"(not shown: its name says that it holds secrets)");
            }
            return;
        }
        let Some(file) = file else { return self.keep(line) };
        if let Some((old, new)) = counts(line) {
            self.state = PatchState::Lines { file, old, new };
        } else if let Some(told) = self.files.get_mut(file).filter(|_| line.starts_with(b"Binary files ")) {
            told.binary = true;
        }
        if !self.is_secret(file) {
            self.keep(line);
        }
    }

    fn take_line(&mut self, line: &[u8], (file, mut old, mut new): (usize, u64, u64)) {
        match line.first() {
            Some(b'+') => {
                new = new.saturating_sub(1);
                self.additions += 1;
                self.files.get_mut(file).into_iter().for_each(|told| told.additions += 1);
            }
            Some(b'-') => {
                old = old.saturating_sub(1);
                self.deletions += 1;
                self.files.get_mut(file).into_iter().for_each(|told| told.deletions += 1);
            }
            Some(b'\\') => {}
            Some(_) | None => (old, new) = (old.saturating_sub(1), new.saturating_sub(1)),
        }
        self.state = if old == 0 && new == 0 { PatchState::Head(file) } else { PatchState::Lines { file, old, new } };
        if !self.is_secret(file) {
            self.keep(line);
        }
    }

    /// A file that is beyond what is told is not shown either.
    fn is_secret(&self, file: usize) -> bool {
        self.files.get(file).is_none_or(|told| told.secret)
    }

    fn keep(&mut self, line: &[u8]) {
        if self.truncated && self.text.len() >= KEPT || self.text.len() + line.len() >= KEPT {
            self.truncated = true;
            return;
        }
        self.text.push_str(&String::from_utf8_lossy(line));
        self.text.push('\n');
    }

    /// The files whose patch has come, each with its part of the text.
    pub(super) fn sections(&self) -> impl Iterator<Item = (&FilePatch, &str)> {
        let ends = self.starts.iter().skip(1).copied().chain([self.text.len()]);
        let parts = self.starts.iter().zip(ends).map(|(start, end)| &self.text[*start..end]);
        self.files.iter().zip(parts)
    }

    /// Whether some of it is missing.
    pub(super) fn is_cut(&self) -> bool {
        self.truncated || self.count > MOST_FILES
    }
}

/// Which paths of a repository hold secrets by their names, as the workspace judges them: with those that the user
/// hides, and without those that the user shows.
#[derive(Clone, Debug, Default)]
pub(super) struct SecretPaths {
    names: SensitiveNames,
    /// Where the repository has its files.
    folder: PathBuf,
    workspace: PathBuf,
}

impl SecretPaths {
    pub(super) fn of(git: &Git) -> Self {
        Self::in_repository(&git.root, &git.repository)
    }

    pub(super) fn in_repository(root: &Root, repository: &Repository) -> Self {
        let workspace = root.path().to_owned();
        Self { names: root.names().clone(), folder: repository.folder.clone(), workspace }
    }

    /// Whether a path, as the repository names it, holds secrets.
    pub(super) fn hold(&self, path: &[u8]) -> bool {
        let path = Path::new(OsStr::from_bytes(path));
        let full = self.folder.join(path);
        self.names.hold_file(full.strip_prefix(&self.workspace).unwrap_or(path))
    }
}

/// How many old and new lines follow `@@ -1,2 +3,4 @@`.
fn counts(line: &[u8]) -> Option<(u64, u64)> {
    let text = std::str::from_utf8(line.strip_prefix(b"@@ -")?.split(|byte| *byte == b'@').next()?).ok()?;
    let (old, new) = text.trim_end().split_once(" +")?;
    let count = |range: &str| range.split_once(',').map_or(Some(1), |(_, count)| count.parse().ok());
    Some((count(old)?, count(new)?))
}

/// A path that git may have quoted.
pub(super) fn unquoted(path: &[u8]) -> Vec<u8> {
    let Some(quoted) = path.strip_prefix(b"\"").and_then(|path| path.strip_suffix(b"\"")) else {
        return path.to_owned();
    };
    let mut plain = Vec::with_capacity(quoted.len());
    let mut rest = quoted;
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'\\' {
            plain.push(*first);
            continue;
        }
        let (byte, length) = match after {
            [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..] => {
                ((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'), 3)
            }
            [b'a', ..] => (7, 1),
            [b'b', ..] => (8, 1),
            [b't', ..] => (b'\t', 1),
            [b'n', ..] => (b'\n', 1),
            [b'v', ..] => (11, 1),
            [b'f', ..] => (12, 1),
            [b'r', ..] => (b'\r', 1),
            [other, ..] => (*other, 1),
            [] => break,
        };
        plain.push(byte);
        rest = &after[length..];
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &[u8] = b":100644 100644 1a2b 3c4d M\ta.txt\n:100644 100644 1a2b 3c4d R90\told name\t\"new\\nline\"\n\
:100644 100644 1a2b 3c4d M\tsub/.env\n:000000 100644 0 0 U\tboth\n:100644 100644 1a2b 3c4d M\tpicture\n\n\
diff --git a/a.txt b/a.txt\nindex 1a2b..3c4d 100644\n--- a/a.txt\n+++ b/a.txt\n\
@@ -1,3 +1,3 @@ context\n one\n--- a/sub/.env\n+++ b/other\n\n\\ No newline at end of file\n\
diff --git a/old name \"b/new\\nline\"\nsimilarity index 90%\n@@ -1 +1,2 @@\n x\n+diff --git a/y b/y\n\
diff --git a/sub/.env b/sub/.env\nindex 1..2\n--- a/sub/.env\n+++ b/sub/.env\n@@ -1 +1 @@\n-KEY=old\n+KEY=new\n\
* Unmerged path both\n\
diff --git a/picture b/picture\nBinary files a/picture and b/picture differ\n";

    #[test]
    fn lines_are_counted_by_where_they_stand_and_secrets_are_not_shown() {
        for size in [1, 7, 64, SAID.len()] {
            let mut patch = Patch::default();
            SAID.chunks(size).for_each(|piece| assert_eq!(patch.hear(piece), WantsMore::Please));
            let told: Vec<_> =
                patch.files.iter().map(|file| (&file.path[..], file.additions, file.deletions)).collect();
            let expected: [(&[u8], u64, u64); 4] =
                [(b"a.txt", 1, 1), (b"new\nline", 1, 0), (b"sub/.env", 1, 1), (b"picture", 0, 0)];
            assert_eq!(told, expected);
            assert_eq!((patch.additions, patch.deletions, patch.is_cut()), (3, 2, false));
            assert_eq!(patch.files.iter().map(|file| file.binary).collect::<Vec<_>>(), [false, false, false, true]);
            assert!(!patch.text.contains("KEY="), "{}", patch.text);
            assert!(patch.text.contains("+diff --git a/y b/y"), "{}", patch.text);
        }
    }

    #[test]
    fn a_flood_is_counted_and_cut() {
        let mut patch = Patch::default();
        patch.hear(b":100644 100644 1 2 M\tbig\n\ndiff --git a/big b/big\n@@ -0,0 +1,50000 @@\n");
        for _ in 0..50_000 {
            patch.hear(b"+0123456789012345678901234567890123456789\n");
        }
        assert_eq!((patch.additions, patch.is_cut()), (50_000, true));
        assert!(patch.text.len() <= KEPT);
    }

    #[test]
    fn quoted_paths_are_read() {
        assert_eq!(unquoted(b"plain"), b"plain");
        assert_eq!(unquoted(b"\"a\\\"b\\\\c\\t\\303\\251\\n\""), "a\"b\\c\té\n".as_bytes());
    }
}
