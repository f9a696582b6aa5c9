//! Links that a command has left: where each leads, and whether that is still the build output that it lies in.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use super::split::real_paths;
use super::take::{OriginLookup, PathOrigin};
use crate::beneath::{self, Links};
use crate::changes::draft::Draft;
use crate::changes::error::ChangesError;
use crate::changes::flags::ChangeFlag;
use crate::changes::folder::ChangesFolder;
use crate::changes::plan::{Item, Sketch};
use crate::changes::show::{DiffSide, RenderedDiff, compare};
use crate::folder::read_link;
use crate::stamp::EntryKind;
use crate::workspace_path::WorkspacePath;

/// A link that a command has left.
struct LayerLink {
    /// The item that it is, or lies beneath.
    item: WorkspacePath,
    /// Which of the entries beneath that item it is.
    entry: Option<usize>,
    place: WorkspacePath,
    target: PathBuf,
}

impl Draft {
    /// Shows where links lead. One that lies in build output is part of it only if it can lead to nothing else: a link
    /// to a source file, or by way of another link, is people's to look at.
    pub(super) fn judge_links(&mut self, sort: OriginLookup<'_>) -> Result<(), ChangesError> {
        let left = self.links_left()?;
        let targets: HashMap<WorkspacePath, PathBuf> =
            left.iter().map(|link| (link.place.clone(), link.target.clone())).collect();
        for LayerLink { item, entry, place, target } in left {
            let is_derived = self.items.get(&item).is_some_and(|item| item.derived);
            let is_interpreter = self.leads_to_an_interpreter(&place, &targets);
            if is_derived && !is_interpreter && self.stays_in_build_output(&place, &target, &targets, sort) {
                continue;
            }
            let sketch = self.sketch_link(&place, &target);
            let Some(item) = self.items.get_mut(&item) else { continue };
            match entry.and_then(|entry| item.brings.get_mut(entry)) {
                Some(beneath) => {
                    let mut flags = beneath.sketch.take().unwrap_or_default().flags;
                    flags.retain(|flag| !is_interpreter || *flag != ChangeFlag::LinkOutside);
                    beneath.sketch = Some(Sketch { flags, strays: is_derived && !is_interpreter, ..sketch });
                }
                None => {
                    item.derived &= is_interpreter;
                    item.sketch.flags.retain(|flag| !is_interpreter || *flag != ChangeFlag::LinkOutside);
                    item.sketch.diff = sketch.diff;
                }
            }
        }
        Ok(())
    }

    fn links_left(&self) -> Result<Vec<LayerLink>, ChangesError> {
        let kept = |errno| ChangesError::kept("look at a link", errno);
        let slots = self.folder()?.handle();
        let mut left = Vec::new();
        for (place, item) in &self.items {
            let slot = ChangesFolder::slot_name(item.slot);
            if item.staged.is_some_and(|staged| staged.kind() == EntryKind::Link) {
                let target = read_link(slots, &slot).unwrap_or_default();
                left.push(LayerLink { item: place.clone(), entry: None, place: place.clone(), target });
            }
            if !brings_links(item) {
                continue;
            }
            for (entry, path) in real_paths(&item.brings).into_iter().enumerate() {
                if item.brings[entry].stamp.kind() != EntryKind::Link {
                    continue;
                }
                let from = PathBuf::from(&slot).join(&path);
                let (Some(parent), Some(name)) = (from.parent(), from.file_name()) else { continue };
                let parent = beneath::open_folder(slots, parent, Links::Refuse).map_err(kept)?;
                let target = read_link(parent, name).unwrap_or_default();
                left.push(LayerLink { item: place.clone(), entry: Some(entry), place: place.join(&path), target });
            }
        }
        Ok(left)
    }

    /// Whether a link leads to something in the folder of build output that it lies in, with no other link on the way.
    fn stays_in_build_output(
        &self,
        place: &WorkspacePath,
        target: &Path,
        links: &HashMap<WorkspacePath, PathBuf>,
        sort: OriginLookup<'_>,
    ) -> bool {
        let is_derived = |place: &WorkspacePath, kind| sort(place, kind) == PathOrigin::Derived;
        let Some(leads_to) = leads_to(place, target) else { return false };
        let above = std::iter::successors(place.parent(), WorkspacePath::parent).filter(|folder| !folder.is_root());
        let Some(top) = above.filter(|folder| is_derived(folder, EntryKind::Directory)).last() else { return false };
        let is_no_link = |step: &WorkspacePath| {
            let there = self.root.meta(step).map(|meta| meta.map(|meta| meta.kind));
            !links.contains_key(step) && matches!(there, Ok(kind) if kind != Some(EntryKind::Link))
        };
        let mut way =
            std::iter::successors(Some(leads_to.clone()), WorkspacePath::parent).take_while(|step| *step != top);
        leads_to != top
            && leads_to.as_path().starts_with(top.as_path())
            && is_derived(&leads_to, EntryKind::File)
            && is_derived(&leads_to, EntryKind::Directory)
            && way.all(|step| is_no_link(&step))
    }

    /// Where it leads, and where the link led that it takes the place of.
    fn sketch_link(&mut self, place: &WorkspacePath, target: &Path) -> Sketch {
        let parent = place.parent().unwrap_or_else(WorkspacePath::root);
        let before = self.root.enter(parent).and_then(|folder| folder.entry(place.name().unwrap_or_default()));
        let before = before.ok().flatten().and_then(|entry| entry.target);
        let side = before.as_ref().map_or(DiffSide::Nothing, |before| DiffSide::Content(before.as_os_str().as_bytes()));
        let shown = compare(&place.to_string(), side, DiffSide::Content(target.as_os_str().as_bytes()));
        self.keep_diff(RenderedDiff { diff: shown.diff, ..RenderedDiff::default() })
    }
}

fn brings_links(item: &Item) -> bool {
    item.brings.iter().any(|entry| entry.stamp.kind() == EntryKind::Link)
}

/// The place that the words of a target lead to; `None` where they leave the workspace, or go up after they went down.
fn leads_to(link: &WorkspacePath, target: &Path) -> Option<WorkspacePath> {
    let mut reached = link.parent()?;
    let mut went_down = false;
    for part in target.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if went_down => return None,
            Component::ParentDir => reached = reached.parent()?,
            Component::Normal(name) => {
                went_down = true;
                reached = reached.join(name);
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(reached)
}
