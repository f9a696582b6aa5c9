//! Folders of dependencies and of build output, in which names count for little and interpreters are linked to.

use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use super::split::real_paths;
use super::take::{OriginLookup, PathOrigin};
use crate::changes::draft::Draft;
use crate::changes::flags::ChangeFlag;
use crate::changes::plan::Sketch;
use crate::fence::SYSTEM;
use crate::sensitive::fold;
use crate::stamp::{EntryKind, FileStamp};
use crate::workspace_path::WorkspacePath;

/// Folders that tools fill with other people's files, whatever the ignore files say.
const DEPENDENCIES: &[&str] = &["node_modules", ".venv", "venv", "site-packages", ".tox", ".nox", "__pypackages__"];
/// Folders of build output, where git ignores them: people use such names for their own things, too.
const BUILD_OUTPUT: &[&str] = &["target", "build", "dist", "vendor", ".gradle", ".next"];
/// What programs are called that a virtual environment links to.
const INTERPRETERS: &[&str] = &["python", "pypy"];

impl Draft {
    /// What a command has put into such a folder is flagged for what it does and not for its name: packages bring along
    /// all sorts of files that nobody obeys there. Elsewhere an ignore file beneath build output decides about nothing
    /// but build output, as test runners write them into their caches.
    pub(super) fn unflag_within_build_output(&mut self, sort: OriginLookup<'_>) {
        let is_derived = |folder: &WorkspacePath| sort(folder, EntryKind::Directory) == PathOrigin::Derived;
        let root = &self.root;
        let was_there = |place: &WorkspacePath| !matches!(root.meta(place), Ok(None));
        let is_dependency = |place: &WorkspacePath| {
            let mut above = std::iter::successors(place.parent(), WorkspacePath::parent);
            above.any(|folder| {
                let name = folder.name().map(|name| fold(name).into_owned()).unwrap_or_default();
                let is = |names: &[&str]| names.contains(&name.as_str());
                is(DEPENDENCIES) || is(BUILD_OUTPUT) && is_derived(&folder)
            })
        };
        let unflag = |sketch: &mut Sketch, place: &WorkspacePath, stamp: Option<&FileStamp>| {
            if !is_dependency(place) || stamp.is_none_or(|stamp| is_run(place, stamp) && was_there(place)) {
                return;
            }
            sketch.flags.retain(|flag| {
                !matches!(flag, ChangeFlag::SensitiveName | ChangeFlag::RunsByItself | ChangeFlag::IgnoreRules)
            });
        };
        for (place, item) in &mut self.items {
            if item.derived && place.parent().is_some_and(|folder| is_derived(&folder)) {
                forget_ignore_rules(&mut item.sketch);
            }
            unflag(&mut item.sketch, place, item.staged.as_ref().map(|staged| &staged.stamp));
            if item.brings.iter().all(|entry| entry.sketch.is_none()) {
                continue;
            }
            for (path, entry) in real_paths(&item.brings).into_iter().zip(&mut item.brings) {
                let Some(sketch) = &mut entry.sketch else { continue };
                if item.derived {
                    forget_ignore_rules(sketch);
                }
                unflag(sketch, &place.join(path), Some(&entry.stamp));
            }
        }
    }

    /// Whether a new link in a folder of dependencies leads to an interpreter of the system's or the user's, perhaps by
    /// way of one beside it. `links` are all that the command has left.
    pub(super) fn leads_to_an_interpreter(
        &self,
        place: &WorkspacePath,
        links: &HashMap<WorkspacePath, PathBuf>,
    ) -> bool {
        let (Some(folder), Some(target)) = (place.parent(), links.get(place)) else { return false };
        let in_dependencies = place.as_path().iter().any(|part| DEPENDENCIES.contains(&&*fold(part)));
        let is_new = matches!(self.root.meta(place), Ok(None));
        if !in_dependencies
            || !is_new
            || folder.name().is_none_or(|name| name != "bin")
            || !is_interpreter(place.as_path())
        {
            return false;
        }
        // One that lies beside it is judged by itself, and not by a third one.
        let beside =
            target.components().count() == 1 && matches!(target.components().next(), Some(Component::Normal(_)));
        let end = if beside { links.get(&folder.join(target)) } else { Some(target) };
        end.is_some_and(|end| self.is_program(end))
    }

    /// Whether a path is that of an interpreter which no command can write.
    fn is_program(&self, path: &Path) -> bool {
        let is_plain = path.is_absolute() && path.components().all(|part| part != Component::ParentDir);
        let Ok(real) = path.canonicalize() else { return false };
        let is_known = |path: &Path| {
            let known = SYSTEM.iter().map(Path::new).chain(self.programs.iter().map(PathBuf::as_path));
            known.into_iter().any(|folder| path.starts_with(folder)) && !path.starts_with(self.root.path())
        };
        let runs = real.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0);
        is_plain && runs && is_interpreter(path) && is_known(path) && is_known(&real)
    }
}

fn is_interpreter(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    INTERPRETERS.iter().any(|interpreter| {
        name.strip_prefix(interpreter)
            .is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
    })
}

/// Whether something is run without being named: by a shell, by an interpreter that starts, or as a program.
fn is_run(place: &WorkspacePath, stamp: &FileStamp) -> bool {
    let name = place.name().map(|name| fold(name).into_owned()).unwrap_or_default();
    let is_program = stamp.kind() == EntryKind::File && stamp.mode & 0o111 != 0;
    name.starts_with("activate") || name.ends_with(".pth") || is_program
}

fn forget_ignore_rules(sketch: &mut Sketch) {
    sketch.flags.retain(|flag| *flag != ChangeFlag::IgnoreRules);
}
