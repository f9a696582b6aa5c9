//! What a command has done in a git folder is one unit, and a commit or a branch is one line.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::git_action::GitAction;
use crate::beneath::{self, Links};
use crate::changes::draft::Draft;
use crate::changes::flags::ChangeFlag;
use crate::changes::folder::ChangesFolder;
use crate::changes::plan::{Item, NestedEntry};
use crate::git_index::tracked;
use crate::root::Root;
use crate::sensitive::fold;
use crate::stamp::EntryKind;
use crate::workspace_path::WorkspacePath;

/// How the files of a repository are opened.
const FLAGS: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// Where something staged lies: the item, and the path beneath it.
pub(super) type StagedPath = (WorkspacePath, PathBuf);

/// Whether a folder of this name is git's.
pub(super) fn is_git(name: &OsStr) -> bool {
    name.as_bytes().first() == Some(&b'.') && fold(name) == ".git"
}

impl Draft {
    /// Binds what lies in the same git folder, and says which of it is a commit.
    pub(super) fn judge_git(&mut self) {
        let mut folders: BTreeMap<PathBuf, Vec<WorkspacePath>> = BTreeMap::new();
        for place in self.items.keys() {
            if let Some(git) = git_folder(place) {
                folders.entry(git).or_default().push(place.clone());
            }
        }
        for (git, places) in folders {
            if places.iter().all(|place| self.is_note(&git, place)) {
                places.iter().for_each(|place| self.call_derived(place));
                continue;
            }
            if let Some(action) = self.action_in(&git, &places) {
                self.tell(&places, action);
            }
            self.bind(&places);
        }
    }

    /// Whether git only notes something for itself: a look at the status refreshes what it remembers of the files, and a
    /// fetch that reaches nobody empties its list of what was fetched.
    fn is_note(&self, git: &Path, place: &WorkspacePath) -> bool {
        let is_called = |name: &str| place.as_path() == self.root.own_git_folder(git).join(name);
        is_called("index") && !self.forgets_files(place) || is_called("FETCH_HEAD") && self.is_emptied(place)
    }

    fn is_emptied(&self, place: &WorkspacePath) -> bool {
        let staged = self.open_staged(&(place.clone(), PathBuf::new()));
        staged.and_then(|file| file.metadata().ok()).is_some_and(|meta| meta.is_file() && meta.len() == 0)
    }

    /// Whether git would no longer know a file that it knows: what is not tracked may be taken for build output.
    fn forgets_files(&self, index: &WorkspacePath) -> bool {
        let Some(before) = open(&self.root, index.as_path()).and_then(tracked) else { return false };
        let after = self.open_staged(&(index.clone(), PathBuf::new())).and_then(tracked);
        after.is_none_or(|after| !before.is_subset(&after))
    }

    fn call_derived(&mut self, note: &WorkspacePath) {
        let Some(item) = self.items.get_mut(note) else { return };
        if item.staged.is_some_and(|staged| staged.kind() == EntryKind::File) {
            item.derived = true;
            unflag(item);
        }
    }

    /// Lets one line stand for everything in a git folder.
    fn tell(&mut self, places: &[WorkspacePath], action: GitAction) {
        let mut summary = Some(action.summary);
        for place in places {
            if let Some(item) = self.items.get_mut(place) {
                unflag(item);
                item.sketch.summary = summary.take();
                item.sketch.spent = action.spent.contains(place);
            }
        }
    }

    /// Whether git would no longer know a file that stays where it is.
    pub(super) fn forgets_what_stays(&self, git: &Path) -> bool {
        let index = self.root.own_git_folder(git).join("index");
        let place = WorkspacePath::known(index.clone());
        if !self.items.contains_key(&place) {
            return false;
        }
        let Some(before) = open(&self.root, &index).and_then(tracked) else { return false };
        let Some(after) = self.open_staged(&(place, PathBuf::new())).and_then(tracked) else { return true };
        let files = git.parent().unwrap_or(Path::new(""));
        before.difference(&after).any(|path| self.stays(&files.join(OsStr::from_bytes(path))))
    }

    fn stays(&self, path: &Path) -> bool {
        let goes = |path: &Path| {
            let item = self.items.get(&WorkspacePath::known(path.to_owned()));
            item.is_some_and(|item| item.mode.is_none() && item.moved.is_none() && item.staged.is_none())
        };
        let is_there = !matches!(self.root.meta(&WorkspacePath::known(path.to_owned())), Ok(None));
        is_there && !path.ancestors().any(goes)
    }

    pub(super) fn open_staged(&self, (place, inside): &StagedPath) -> Option<File> {
        let mut path = PathBuf::from(ChangesFolder::slot_name(self.items.get(place)?.slot));
        path.extend(inside);
        beneath::open(self.folder().ok()?.handle(), &path, FLAGS, Links::Refuse).ok().map(File::from)
    }
}

/// Opens a file of the workspace, without following links.
pub(super) fn open(root: &Root, path: &Path) -> Option<File> {
    root.open_beneath(path, FLAGS, Links::Refuse).ok().map(File::from)
}

/// The outermost git folder that a place is or lies in.
fn git_folder(place: &WorkspacePath) -> Option<PathBuf> {
    let at = place.as_path().iter().position(is_git)?;
    Some(place.as_path().iter().take(at + 1).collect())
}

fn unflag(item: &mut Item) {
    item.sketch.flags.retain(|flag| *flag != ChangeFlag::InsideGit);
    for NestedEntry { sketch, .. } in &mut item.brings {
        if let Some(sketch) = sketch {
            sketch.flags.retain(|flag| *flag != ChangeFlag::InsideGit);
        }
    }
}
