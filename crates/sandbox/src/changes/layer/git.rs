//! What a command has done in a git folder is one unit, and a commit is one line.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use flate2::read::ZlibDecoder;
use rustix::fs::OFlags;

use super::split::real_paths;
use crate::beneath::{self, Links};
use crate::changes::draft::Draft;
use crate::changes::flags::Flag;
use crate::changes::folder::Folder;
use crate::changes::plan::{Beneath, Item};
use crate::git_index::tracked;
use crate::place::{Place, show_name};
use crate::sensitive::fold;
use crate::stamp::EntryKind;

/// How much of a commit's name is shown.
const SHORT: usize = 7;
/// More than a ref holds.
const LONGEST_REF: u64 = 128;
/// How much is read of the branches that git has packed into one file.
const LONGEST_PACKED: u64 = 16 << 20;
/// Where the first parent of a commit stands, with its kind and its tree before it.
const COMMIT_HEAD: u64 = 512;

/// Whether a folder of this name is git's.
pub(super) fn is_git(name: &OsStr) -> bool {
    name.as_bytes().first() == Some(&b'.') && fold(name) == ".git"
}

/// Everything that a commit consists of, as far as it was found.
#[derive(Default)]
struct Commit {
    /// Where in the git folder each new object lies.
    objects: Vec<(PathBuf, Staged)>,
    /// The same for each changed branch.
    branches: Vec<(PathBuf, Staged)>,
    logs: Vec<PathBuf>,
}

/// Where something staged lies: the item, and the path beneath it.
type Staged = (Place, PathBuf);

impl Draft {
    /// Binds what lies in the same git folder, and says which of it is a commit.
    pub(super) fn judge_git(&mut self) {
        let mut folders: BTreeMap<PathBuf, Vec<Place>> = BTreeMap::new();
        for place in self.items.keys() {
            if let Some(git) = git_folder(place) {
                folders.entry(git).or_default().push(place.clone());
            }
        }
        for (git, places) in folders {
            match places.as_slice() {
                // A look at the status refreshes what git remembers of the files.
                [only] if only.as_path() == git.join("index") && !self.forgets_files(only) => self.call_derived(only),
                _ => {
                    if let Some(summary) = self.commit_in(&git, &places) {
                        self.call_a_commit(&places, summary);
                    }
                    self.bind(&places);
                }
            }
        }
    }

    /// Whether git would no longer know a file that it knows: what is not tracked may be taken for build output.
    fn forgets_files(&self, index: &Place) -> bool {
        let Some(before) = open(self.root.handle(), index.as_path()).and_then(tracked) else { return false };
        let after = self.open_staged(&(index.clone(), PathBuf::new())).and_then(tracked);
        after.is_none_or(|after| !before.is_subset(&after))
    }

    fn call_derived(&mut self, index: &Place) {
        let Some(item) = self.items.get_mut(index) else { return };
        if item.staged.is_some_and(|staged| staged.kind() == EntryKind::File) {
            item.derived = true;
            unflag(item);
        }
    }

    fn call_a_commit(&mut self, places: &[Place], summary: String) {
        let mut summary = Some(summary);
        for place in places {
            if let Some(item) = self.items.get_mut(place) {
                unflag(item);
                item.sketch.summary = summary.take();
            }
        }
    }

    /// Says which commit it is if nothing was done but that: new objects, one branch, what git logs and remembers.
    fn commit_in(&self, git: &Path, places: &[Place]) -> Option<String> {
        let mut commit = Commit::default();
        for place in places {
            let item = self.items.get(place)?;
            let path = place.as_path().strip_prefix(git).ok()?;
            let Some(staged) = item.staged.filter(|_| item.moved.is_none()) else {
                let goes = item.mode.is_none() && item.moved.is_none() && item.tree.is_empty();
                if goes && path.extension() == Some(OsStr::new("lock")) {
                    continue;
                }
                return None;
            };
            let before = item.before.map(|before| before.kind());
            commit.add(path, (staged.kind(), before), (place, Path::new("")))?;
            for (inside, entry) in real_paths(&item.brings).iter().zip(&item.brings) {
                commit.add(&path.join(inside), (entry.stamp.kind(), None), (place, inside))?;
            }
        }
        let [(branch, staged)] = commit.branches.as_slice() else { return None };
        let name = read_name(self.open_staged(staged)?)?;
        let object = commit.object_of(branch, &name)?;
        // Anything but a commit on top of what the branch was rewrites what others may have.
        if read_parent(self.open_staged(object)?)? != self.tip(git, branch)? {
            return None;
        }
        let branch = branch.strip_prefix("refs/heads").ok()?;
        Some(format!("commit {} on {}", name.get(..SHORT)?, show_name(branch.as_os_str())))
    }

    fn open_staged(&self, (place, inside): &Staged) -> Option<File> {
        let mut path = PathBuf::from(Folder::slot_name(self.items.get(place)?.slot));
        path.extend(inside);
        open(self.folder().ok()?.handle(), &path)
    }

    /// The commit that a branch points to in the workspace; none for a branch without commits.
    fn tip(&self, git: &Path, branch: &Path) -> Option<Option<String>> {
        if let Some(loose) = open(self.root.handle(), &git.join(branch)) {
            return read_name(loose).map(Some);
        }
        let Some(packed) = open(self.root.handle(), &git.join("packed-refs")) else { return Some(None) };
        let mut refs = String::new();
        packed.take(LONGEST_PACKED).read_to_string(&mut refs).ok()?;
        let of_branch = |line: &str| {
            line.split_once(' ').filter(|(_, name)| Path::new(name) == branch).map(|(tip, _)| tip.to_owned())
        };
        Some(refs.lines().find_map(of_branch))
    }
}

fn open(folder: impl AsFd, path: &Path) -> Option<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    beneath::open(folder, path, flags, Links::Refuse).ok().map(File::from)
}

/// The name of the commit that a ref holds.
fn read_name(file: File) -> Option<String> {
    let mut name = String::new();
    file.take(LONGEST_REF).read_to_string(&mut name).ok()?;
    let name = name.trim_end();
    (matches!(name.len(), 40 | 64) && is_hex(name)).then(|| name.to_owned())
}

/// The first parent of a commit, if it has one; `None` when the object is no commit.
fn read_parent(object: File) -> Option<Option<String>> {
    let mut head = Vec::new();
    ZlibDecoder::new(object).take(COMMIT_HEAD).read_to_end(&mut head).ok()?;
    let text = String::from_utf8_lossy(&head);
    let (kind, lines) = text.split_once('\0')?;
    let parent = lines.lines().nth(1).and_then(|line| line.strip_prefix("parent "));
    kind.starts_with("commit ").then(|| parent.map(str::to_owned))
}

impl Commit {
    /// Sorts one path of the git folder in; `None` when it is no part of a commit.
    fn add(
        &mut self,
        path: &Path,
        (kind, before): (EntryKind, Option<EntryKind>),
        (place, inside): (&Place, &Path),
    ) -> Option<()> {
        let parts: Vec<&str> = path.iter().map(OsStr::to_str).collect::<Option<_>>()?;
        match (kind, before, parts.as_slice()) {
            (EntryKind::Directory, None, ["objects" | "logs", ..] | ["refs", "heads", ..]) => {}
            (EntryKind::File, None, ["objects", fan, rest]) if is_object(fan, rest) => {
                self.objects.push((path.to_owned(), (place.clone(), inside.to_owned())));
            }
            (EntryKind::File, None | Some(EntryKind::File), ["refs", "heads", _, ..]) => {
                self.branches.push((path.to_owned(), (place.clone(), inside.to_owned())));
            }
            (EntryKind::File, None | Some(EntryKind::File), ["logs", ..]) => self.logs.push(path.to_owned()),
            (EntryKind::File, None | Some(EntryKind::File), ["index" | "COMMIT_EDITMSG" | "ORIG_HEAD"]) => {}
            (_, _, _) => return None,
        }
        Some(())
    }

    /// The object of the commit, if that is new and only its own branch was logged.
    fn object_of(&self, branch: &Path, name: &str) -> Option<&Staged> {
        let log = Path::new("logs").join(branch);
        let others = self.logs.iter().any(|path| *path != log && path != Path::new("logs/HEAD"));
        let loose = Path::new("objects").join(&name[..2]).join(&name[2..]);
        let found = self.objects.iter().find(|(path, _)| *path == loose);
        found.filter(|_| !others).map(|(_, staged)| staged)
    }
}

/// Whether these are the last two names of an object, loose or in a pack.
fn is_object(folder: &str, name: &str) -> bool {
    (folder.len() == 2 && is_hex(folder) && is_hex(name)) || (folder == "pack" && name.starts_with("pack-"))
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The outermost git folder that a place is or lies in.
fn git_folder(place: &Place) -> Option<PathBuf> {
    let at = place.as_path().iter().position(is_git)?;
    Some(place.as_path().iter().take(at + 1).collect())
}

fn unflag(item: &mut Item) {
    item.sketch.flags.retain(|flag| *flag != Flag::InsideGit);
    for Beneath { sketch, .. } in &mut item.brings {
        if let Some(sketch) = sketch {
            sketch.flags.retain(|flag| *flag != Flag::InsideGit);
        }
    }
}
