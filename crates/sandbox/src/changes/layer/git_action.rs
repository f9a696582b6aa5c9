//! What git has done in its folder, told from the files that it has left there: a commit, a new branch, a switch.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::git::{StagedPath, open};
use super::objects::parents;
use super::split::real_paths;
use crate::changes::draft::Draft;
use crate::stamp::EntryKind;
use crate::workspace_path::{WorkspacePath, show_name};

/// How much of a commit's name is shown.
const SHORT: usize = 7;
/// More than the path of a branch has.
const LONGEST_REF: u64 = 4096;
/// How much is read of the branches that git has packed into one file.
const LONGEST_PACKED: u64 = 16 << 20;

/// What git keeps of a merge until that is committed.
const OF_A_MERGE: [&str; 5] = ["MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "AUTO_MERGE", "ORIG_HEAD"];

/// One thing that git does, which one line tells.
pub(super) struct GitAction {
    pub(super) summary: String,
    /// What goes because it has served its purpose.
    pub(super) spent: Vec<WorkspacePath>,
}

/// Everything that is changed in a git folder, as far as such an action changes it.
#[derive(Default)]
pub(super) struct GitTraces {
    /// Where in the git folder each new object lies.
    pub(super) objects: Vec<(PathBuf, StagedPath)>,
    /// The same for each new or changed branch.
    branches: Vec<(PathBuf, StagedPath)>,
    /// What is checked out from now on, if that is not what it was.
    head: Option<StagedPath>,
    logs: Vec<PathBuf>,
    /// What of a merge goes.
    spent: Vec<WorkspacePath>,
}

impl Draft {
    /// Says what git has done if it was nothing but one action: new objects, one branch or what is checked out, what git
    /// logs and remembers.
    pub(super) fn action_in(&self, git: &Path, places: &[WorkspacePath]) -> Option<GitAction> {
        let traces = self.traces(git, places)?;
        let summary = match (traces.branches.as_slice(), &traces.head) {
            ([(branch, staged)], None) => self
                .commit_on(git, &traces, (branch, staged))
                .or_else(|| self.new_branch(git, &traces, (branch, staged))),
            ([(branch, staged)], Some(head)) if self.leads_to(head, branch) => {
                self.new_branch(git, &traces, (branch, staged)).map(|summary| format!("{summary}, checked out"))
            }
            ([], Some(head)) => {
                self.commit_on_no_branch(git, &traces, head).or_else(|| self.switch(git, &traces, head))
            }
            (_, _) => None,
        };
        Some(GitAction { summary: summary?, spent: traces.spent })
    }

    /// Everything that is changed; `None` when some of it is no part of an action.
    fn traces(&self, git: &Path, places: &[WorkspacePath]) -> Option<GitTraces> {
        let mut traces = GitTraces::default();
        for place in places {
            let item = self.items.get(place)?;
            let path = &self.path_for_git(git, place)?;
            let Some(staged) = item.staged.filter(|_| item.moved.is_none()) else {
                let goes = item.mode.is_none() && item.moved.is_none() && item.tree.is_empty();
                traces.remove(path, goes.then_some(place)?)?;
                continue;
            };
            let before = item.before.map(|before| before.kind());
            traces.add(path, (staged.kind(), before), (place, Path::new("")))?;
            for (inside, entry) in real_paths(&item.brings).iter().zip(&item.brings) {
                traces.add(
                    &self.path_for_git(git, &place.join(inside))?,
                    (entry.stamp.kind(), None),
                    (place, inside),
                )?;
            }
        }
        Some(traces)
    }

    /// A path of a git folder as if it had one worktree; `None` for what belongs to another one.
    fn path_for_git(&self, git: &Path, place: &WorkspacePath) -> Option<PathBuf> {
        let path = place.as_path().strip_prefix(git).ok()?;
        let own = self.root.own_git_folder(git);
        if own == git {
            return Some(path.to_owned());
        }
        let (path, is_own) = match place.as_path().strip_prefix(&own) {
            Ok(path) => (path, true),
            Err(_) => (path, false),
        };
        let is_shared = path.starts_with("objects") || path.starts_with("refs") || path.starts_with("logs/refs");
        let holds_both = path == Path::new("logs");
        (holds_both || is_shared != is_own).then(|| path.to_owned())
    }

    /// What belongs to these files alone.
    fn own(&self, git: &Path, name: &str) -> PathBuf {
        self.root.own_git_folder(git).join(name)
    }

    /// A commit on top of what a branch was: anything else rewrites what others may have.
    fn commit_on(&self, git: &Path, traces: &GitTraces, (branch, staged): (&Path, &StagedPath)) -> Option<String> {
        let name = read_name(self.open_staged(staged)?)?;
        // Another worktree may have checked out any other branch, and would find its files changed.
        let is_shared = self.root.own_git_folder(git) != git;
        if is_shared && self.checked_out(git).is_none_or(|checked_out| checked_out != branch) {
            return None;
        }
        if !traces.logs_only(&[&Path::new("logs").join(branch), Path::new("logs/HEAD")])
            || !self.goes_on(git, traces, (&name, self.tip(git, branch)?.as_deref()))?
        {
            return None;
        }
        Some(format!("commit {} on {}", name.get(..SHORT)?, shown(branch)?))
    }

    /// A commit on top of the one that was checked out without a branch.
    fn commit_on_no_branch(&self, git: &Path, traces: &GitTraces, head: &StagedPath) -> Option<String> {
        let name = read_name(self.open_staged(head)?)?;
        let before = read_name(open(&self.root, &self.own(git, "HEAD"))?)?;
        if !traces.logs_only(&[Path::new("logs/HEAD")]) || !self.goes_on(git, traces, (&name, Some(&before)))? {
            return None;
        }
        Some(format!("commit {} on detached HEAD", name.get(..SHORT)?))
    }

    /// Whether a new commit has another one as its first parent. One that ends a merge has what was merged as the rest.
    fn goes_on(&self, git: &Path, traces: &GitTraces, (name, before): (&str, Option<&str>)) -> Option<bool> {
        let parents = parents(self.open_staged(traces.object(name)?)?)?;
        let merges = match traces.spent.is_empty() {
            true => true,
            false => {
                let merged = WorkspacePath::known(self.own(git, "MERGE_HEAD"));
                let rest = read_lines(open(&self.root, merged.as_path())?)?;
                traces.spent.contains(&merged) && parents.get(1..)? == rest
            }
        };
        Some(merges && parents.first().map(String::as_str) == before)
    }

    /// A branch that was not there, at a commit that is.
    fn new_branch(&self, git: &Path, traces: &GitTraces, (branch, staged): (&Path, &StagedPath)) -> Option<String> {
        let name = read_name(self.open_staged(staged)?)?;
        let log = Path::new("logs").join(branch);
        let logs: &[&Path] = if traces.head.is_some() { &[&log, Path::new("logs/HEAD")] } else { &[&log] };
        let is_new = self.tip(git, branch)?.is_none();
        // A checked out branch without commits would come by files that nobody sees here.
        let is_waited_for = self.checked_out(git).is_some_and(|waiting| waiting == branch);
        // What else was laid down for the next commit is not told by this.
        let made_for_it = traces.objects.is_empty() || traces.object(&name).is_some();
        let plain = is_new && !is_waited_for && made_for_it && traces.spent.is_empty() && traces.logs_only(logs);
        if !plain || self.forgets_what_stays(git) || !self.has_commit(git, traces, &name) {
            return None;
        }
        Some(format!("branch {} at {}", shown(branch)?, name.get(..SHORT)?))
    }

    /// Another branch that is there is checked out.
    fn switch(&self, git: &Path, traces: &GitTraces, head: &StagedPath) -> Option<String> {
        let branch = read_branch(self.open_staged(head)?)?;
        let plain = traces.objects.is_empty() && traces.spent.is_empty();
        let plain = plain && traces.logs_only(&[Path::new("logs/HEAD")]) && !self.forgets_what_stays(git);
        self.tip(git, &branch)?.filter(|_| plain)?;
        Some(format!("switch to branch {}", shown(&branch)?))
    }

    fn leads_to(&self, head: &StagedPath, branch: &Path) -> bool {
        self.open_staged(head).and_then(read_branch).is_some_and(|checked_out| checked_out == branch)
    }

    /// The branch that is checked out in the workspace.
    fn checked_out(&self, git: &Path) -> Option<PathBuf> {
        read_branch(open(&self.root, &self.own(git, "HEAD"))?)
    }

    /// The commit that a branch points to in the workspace; none for a branch without commits.
    fn tip(&self, git: &Path, branch: &Path) -> Option<Option<String>> {
        if let Some(loose) = open(&self.root, &git.join(branch)) {
            return read_name(loose).map(Some);
        }
        let Some(packed) = open(&self.root, &git.join("packed-refs")) else { return Some(None) };
        let mut refs = String::new();
        packed.take(LONGEST_PACKED).read_to_string(&mut refs).ok()?;
        let of_branch = |line: &str| {
            line.split_once(' ').filter(|(_, name)| Path::new(name) == branch).map(|(tip, _)| tip.to_owned())
        };
        Some(refs.lines().find_map(of_branch))
    }
}

impl GitTraces {
    /// Sorts one path of the git folder in; `None` when it is no part of an action.
    fn add(
        &mut self,
        path: &Path,
        (kind, before): (EntryKind, Option<EntryKind>),
        (place, inside): (&WorkspacePath, &Path),
    ) -> Option<()> {
        let parts: Vec<&str> = path.iter().map(OsStr::to_str).collect::<Option<_>>()?;
        let staged = || (place.clone(), inside.to_owned());
        match (kind, before, parts.as_slice()) {
            (EntryKind::Directory, None, ["objects" | "logs", ..] | ["refs", "heads", ..]) => {}
            (EntryKind::File, None, ["objects", fan, rest]) if is_object(fan, rest) => {
                self.objects.push((path.to_owned(), staged()));
            }
            (EntryKind::File, None | Some(EntryKind::File), ["refs", "heads", name @ ..]) if is_branch(name) => {
                self.branches.push((path.to_owned(), staged()));
            }
            (EntryKind::File, Some(EntryKind::File), ["HEAD"]) => self.head = Some(staged()),
            (EntryKind::File, None | Some(EntryKind::File), ["logs", ..]) => self.logs.push(path.to_owned()),
            (EntryKind::File, None | Some(EntryKind::File), ["index" | "COMMIT_EDITMSG" | "ORIG_HEAD"]) => {}
            (_, _, _) => return None,
        }
        Some(())
    }

    /// The same for a path that goes.
    fn remove(&mut self, path: &Path, place: &WorkspacePath) -> Option<()> {
        let of_a_merge = OF_A_MERGE.iter().any(|name| path == Path::new(name));
        if of_a_merge {
            self.spent.push(place.clone());
        }
        (of_a_merge || path.extension() == Some(OsStr::new("lock"))).then_some(())
    }

    /// A new object that lies by itself.
    pub(super) fn object(&self, name: &str) -> Option<&StagedPath> {
        let loose = Path::new("objects").join(name.get(..2)?).join(name.get(2..)?);
        self.objects.iter().find(|(path, _)| *path == loose).map(|(_, staged)| staged)
    }

    /// Whether nothing but these is logged.
    fn logs_only(&self, logs: &[&Path]) -> bool {
        self.logs.iter().all(|log| logs.contains(&log.as_path()))
    }
}

/// The name of the commit that a ref holds.
fn read_name(file: File) -> Option<String> {
    let text = read_text(file)?;
    let name = text.trim_end();
    (matches!(name.len(), 40 | 64) && is_hex(name)).then(|| name.to_owned())
}

/// The branch that a ref leads to, as a path of the git folder.
fn read_branch(file: File) -> Option<PathBuf> {
    let text = read_text(file)?;
    let branch = text.strip_prefix("ref: ")?.trim_end_matches('\n');
    let name: Vec<&str> = branch.strip_prefix("refs/heads/")?.split('/').collect();
    is_branch(&name).then(|| PathBuf::from(branch))
}

fn read_lines(file: File) -> Option<Vec<String>> {
    Some(read_text(file)?.lines().map(str::to_owned).collect())
}

fn read_text(file: File) -> Option<String> {
    let mut text = String::new();
    file.take(LONGEST_REF).read_to_string(&mut text).ok()?;
    Some(text)
}

/// A branch as people call it.
fn shown(branch: &Path) -> Option<String> {
    Some(show_name(branch.strip_prefix("refs/heads").ok()?.as_os_str()))
}

/// Whether git takes these parts for the name of a branch.
fn is_branch(parts: &[&str]) -> bool {
    let is_part = |part: &&str| {
        let plain = !part.is_empty() && !part.starts_with(['.', '-']) && !part.ends_with(".lock");
        plain && !part.contains("..") && !part.contains(char::is_control) && !part.contains(char::is_whitespace)
    };
    !parts.is_empty() && parts.iter().all(is_part)
}

/// Whether these are the last two names of an object, loose or in a pack.
fn is_object(folder: &str, name: &str) -> bool {
    (folder.len() == 2 && is_hex(folder) && is_hex(name)) || (folder == "pack" && name.starts_with("pack-"))
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
