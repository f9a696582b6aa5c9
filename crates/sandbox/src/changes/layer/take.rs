//! A layer for a command, and what becomes of it once the command has ended.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;

use super::permissions::LayerPermissions;
use super::scan::{LayerGround, scan_layer};
use crate::changes::draft::Draft;
use crate::changes::error::ChangesError;
use crate::changes::plan::CommitDurability;
use crate::git_folder::DOOR;
use crate::stamp::{EntryKind, look};
use crate::transfer::{self, EntryRef};
use crate::workspace_path::WorkspacePath;

pub(super) const LAYER: &str = "layer";
/// The same for a git folder that lies outside.
const GIT_LAYER: &str = "git-layer";
pub(super) const UPPER: &str = "upper";
const WORK: &str = "work";

/// What the caller knows of a path that the sandbox does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathOrigin {
    /// People care about it.
    Source,
    /// Build output or a cache: ignored as the ignore files were before, and not tracked.
    Derived,
}

/// Tells the sort of a path.
pub(super) type OriginLookup<'a> = &'a dyn Fn(&WorkspacePath, EntryKind) -> PathOrigin;

/// A folder outside the workspace that a command works on over a layer of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutsideLayer {
    /// The folder, at its real path.
    pub at: PathBuf,
    /// A folder with the empty folders `upper` and `work`.
    pub layer: PathBuf,
}

/// What else is to be said about what a command has left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LayerNotes {
    /// What no commit can bring into the workspace, and why.
    pub left_out: Vec<(String, &'static str)>,
    /// What a commit does beside what the changes show.
    pub notes: Vec<(String, &'static str)>,
}

impl Draft {
    /// Makes the folders `upper` and `work` for a command that will run over the workspace, and gives the path of the
    /// folder that holds both. `upper` has the mode and, if we are root, the owner of the workspace folder.
    pub fn layer(&self) -> Result<PathBuf, ChangesError> {
        self.layer_over(LAYER, self.root.handle())
    }

    /// The same over the git folder, where that lies outside and is part of the workspace's changes.
    pub fn git_layer(&self) -> Result<Option<OutsideLayer>, ChangesError> {
        let Some(git) = self.root.git_folder() else { return Ok(None) };
        let layer = self.layer_over(GIT_LAYER, git.handle())?;
        Ok(Some(OutsideLayer { at: git.path().to_owned(), layer }))
    }

    fn layer_over(&self, name: &str, beneath: BorrowedFd<'_>) -> Result<PathBuf, ChangesError> {
        let folder = self.folder()?;
        let layer = Path::new(name);
        let make = || -> Result<(), Errno> {
            for path in [layer.to_owned(), layer.join(WORK), layer.join(UPPER)] {
                rustix::fs::mkdirat(folder.handle(), &path, Mode::RWXU)?;
            }
            let beneath = look(beneath)?;
            let upper = layer.join(UPPER);
            if rustix::process::geteuid().is_root() {
                let (user, group) = (Uid::from_raw(beneath.owner.0), Gid::from_raw(beneath.owner.1));
                rustix::fs::chownat(folder.handle(), &upper, Some(user), Some(group), AtFlags::empty())?;
            }
            let mode = Mode::from_raw_mode(beneath.stamp.mode & 0o7777);
            rustix::fs::chmodat(folder.handle(), &upper, mode, AtFlags::empty())
        };
        make().map_err(|errno| ChangesError::kept("make a layer", errno))?;
        Ok(folder.path().join(layer))
    }

    /// Plans everything that a command has left in its layers, and removes what then remains of them. Every process of
    /// the command must have ended, and nothing else have been planned yet.
    ///
    /// `began` is a moment of the filesystem's clock just before the command started: what somebody else has changed
    /// in the workspace since then and the command has changed too can never be committed.
    pub fn take_layer(&mut self, began: (i64, u32), sort: OriginLookup<'_>) -> Result<LayerNotes, ChangesError> {
        let kept = |errno| ChangesError::kept("take over a layer", errno);
        let folder = self.folder()?;
        let slots = rustix::io::dup(folder.handle()).map_err(kept)?;
        let sync = folder.sync;
        let root = Arc::clone(&self.root);
        let workspace = LayerGround { place: WorkspacePath::root(), handle: root.handle(), seen: root.seen() };
        let mut taken = self.take_one((LAYER, workspace), (began, sort))?;
        if let Some(git) = root.git_folder() {
            let place = WorkspacePath::root().join(DOOR);
            let ground = LayerGround { place, handle: git.handle(), seen: git.seen() };
            let LayerNotes { left_out, notes } = self.take_one((GIT_LAYER, ground), (began, sort))?;
            taken.left_out.extend(left_out);
            taken.notes.extend(notes);
        }
        self.find_moved_folders(sort)?;
        self.split_folders(sort)?;
        self.find_moved_files(sort)?;
        self.judge_links(sort)?;
        self.judge_git();
        self.unflag_within_build_output(sort);
        for layer in [LAYER, GIT_LAYER] {
            transfer::remove(EntryRef { dir: slots.as_fd(), name: layer.as_ref() }).map_err(kept)?;
        }
        if sync == CommitDurability::Disk {
            rustix::fs::syncfs(&slots).map_err(kept)?;
        }
        Ok(taken)
    }

    /// Plans what was left in one layer, if it was made.
    fn take_one(
        &mut self,
        (layer, ground): (&str, LayerGround<'_>),
        (began, sort): ((i64, u32), OriginLookup<'_>),
    ) -> Result<LayerNotes, ChangesError> {
        let kept = |errno| ChangesError::kept("take over a layer", errno);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let layer = match rustix::fs::openat(self.folder()?.handle(), layer, flags, Mode::empty()) {
            Err(Errno::NOENT) if !ground.place.is_root() => return Ok(LayerNotes::default()),
            opened => opened.map_err(kept)?,
        };
        let upper = UPPER.as_ref();
        let ready = LayerPermissions::open_up(layer.as_fd(), upper, ground.seen).map_err(kept)?;
        scan_layer(self, (began, sort), (layer.as_fd(), upper, ready), ground)
    }
}
