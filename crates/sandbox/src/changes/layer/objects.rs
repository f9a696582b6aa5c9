//! Whether a repository has a commit: by itself, in a pack, or among what was just made.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use flate2::read::ZlibDecoder;

use super::git::open;
use super::git_action::GitTraces;
use crate::changes::draft::Draft;
use crate::workspace_path::WorkspacePath;

/// The parents of a commit stand in so many bytes, with its kind and its tree before them.
const COMMIT_HEAD: u64 = 4096;
/// More packs than are looked into.
const MOST_PACKS: usize = 4096;
/// What the index of a pack begins with.
const PACK_INDEX: [u8; 8] = *b"\xfftOc\0\0\0\x02";
/// Where the names in it begin: after a count for each first byte.
const NAMES: usize = 8 + 256 * 4;

impl Draft {
    /// Whether a commit is in the workspace's repository or among what was just made for it.
    pub(super) fn has_commit(&self, git: &Path, traces: &GitTraces, name: &str) -> bool {
        if let Some(made) = traces.object(name) {
            return self.open_staged(made).and_then(parents).is_some();
        }
        let (Some(fan), Some(rest)) = (name.get(..2), name.get(2..)) else { return false };
        match open(&self.root, &git.join("objects").join(fan).join(rest)) {
            Some(loose) => parents(loose).is_some(),
            None => self.packs(git).iter().any(|index| lists(index, name) == Some(true)),
        }
    }

    /// The indexes of the packs of the workspace's repository.
    fn packs(&self, git: &Path) -> Vec<File> {
        let folder = git.join("objects/pack");
        let Ok(open_folder) = self.root.enter(WorkspacePath::known(folder.clone())) else { return Vec::new() };
        let mut names: Vec<PathBuf> = Vec::new();
        let mut keep = |name: &OsStr| {
            if Path::new(name).extension() == Some(OsStr::new("idx")) && names.len() < MOST_PACKS {
                names.push(folder.join(name));
            }
        };
        while matches!(open_folder.read_on(|name, _| keep(name)), Ok(true)) {}
        names.iter().filter_map(|index| open(&self.root, index)).collect()
    }
}

/// The parents of a commit; `None` when the object is no commit.
pub(super) fn parents(object: File) -> Option<Vec<String>> {
    let mut head = Vec::new();
    ZlibDecoder::new(object).take(COMMIT_HEAD).read_to_end(&mut head).ok()?;
    let text = String::from_utf8_lossy(&head);
    let (kind, lines) = text.split_once('\0')?;
    let parents = lines.lines().skip(1).map_while(|line| line.strip_prefix("parent ")).map(str::to_owned);
    kind.starts_with("commit ").then(|| parents.collect())
}

/// Whether the index of a pack has an object; `None` when it cannot be told.
fn lists(index: &File, name: &str) -> Option<bool> {
    let name: Vec<u8> = (0..name.len() / 2)
        .map(|at| name.get(at * 2..at * 2 + 2).and_then(|byte| u8::from_str_radix(byte, 16).ok()))
        .collect::<Option<_>>()?;
    let mut head = [0; NAMES];
    index.read_exact_at(&mut head, 0).ok()?;
    let count = |first: usize| head.get(8 + first * 4..12 + first * 4)?.try_into().ok().map(u32::from_be_bytes);
    let first = usize::from(*name.first()?);
    let mut from = first.checked_sub(1).map_or(Some(0), count)?;
    let mut to = count(first)?;
    let mut found = vec![0; name.len()];
    if head[..8] != PACK_INDEX {
        return None;
    }
    while from < to {
        let middle = from + (to - from) / 2;
        index.read_exact_at(&mut found, NAMES as u64 + u64::from(middle) * name.len() as u64).ok()?;
        match found.cmp(&name) {
            std::cmp::Ordering::Less => from = middle + 1,
            std::cmp::Ordering::Equal => return Some(true),
            std::cmp::Ordering::Greater => to = middle,
        }
    }
    Some(false)
}
