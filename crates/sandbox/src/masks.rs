//! What commands are shown in the place of what holds secrets: what the commit that is checked out has there, or nothing.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::OFlags;

use crate::beneath::{self, Links};
use crate::cleared::read_whole;
use crate::fence::{Mask, MaskContent};
use crate::folder::read_link;
use crate::git_head::{HeadEntry, HeadReader};
use crate::root::Root;
use crate::stamp::{EntryIdentity, EntryKind, look_at};
use crate::workspace_path::WorkspacePath;

/// So many entries of folders that hold secrets are looked at; a folder with more is hidden as a whole.
const MOST_ENTRIES: usize = 10_000;
/// The most bytes that are shown in the place of secrets, all together.
const MOST_BYTES: usize = 64 << 20;
/// A folder that lies deeper is hidden as a whole.
const DEEPEST: usize = 100;

impl Root {
    /// What a command is shown at these places, which hold secrets, and at those that they lead to. What a mask does not
    /// name is seen as it lies there.
    pub fn masks(&self, places: &[WorkspacePath]) -> Vec<Mask> {
        let mut judge = MaskJudge {
            root: self,
            head: HeadReader::new(self),
            masks: BTreeMap::new(),
            entries_left: MOST_ENTRIES,
            bytes_left: MOST_BYTES,
        };
        places.iter().for_each(|place| judge.judge(place));
        judge.masks.into_iter().map(|(place, content)| Mask { place, content }).collect()
    }
}

struct MaskJudge<'a> {
    root: &'a Root,
    head: HeadReader<'a>,
    masks: BTreeMap<WorkspacePath, MaskContent>,
    entries_left: usize,
    bytes_left: usize,
}

impl MaskJudge<'_> {
    fn judge(&mut self, place: &WorkspacePath) {
        let (Some(parent), Some(name)) = (place.parent(), place.name()) else { return };
        // What is not there, or not by this way, no command sees either.
        let Ok(folder) = beneath::open_folder(self.root.handle(), parent.for_kernel(), Links::Refuse) else { return };
        let Ok(Some(seen)) = look_at(&folder, name) else { return };
        let content = match seen.kind() {
            EntryKind::Directory => return self.judge_folder(place),
            EntryKind::File => self.file(&folder, place, &seen),
            EntryKind::Link => {
                self.follow(place);
                let target = read_link(&folder, name);
                let head = self.head.entry(place);
                let is_same =
                    |target: &std::path::Path| head == Some(HeadEntry::Link(target.as_os_str().as_bytes().to_owned()));
                if target.as_deref().is_some_and(is_same) {
                    return;
                }
                MaskContent::Nothing
            }
            EntryKind::Fifo | EntryKind::Socket | EntryKind::Device => MaskContent::Nothing,
        };
        self.masks.insert(place.clone(), content);
    }

    /// What a link leads to is as secret as the link, wherever in the workspace it lies.
    fn follow(&mut self, link: &WorkspacePath) {
        let Ok((_, target)) = self.root.open_resolved(link, OFlags::PATH) else { return };
        // A folder around the link holds everything else, too.
        if !link.as_path().starts_with(target.as_path()) && !self.masks.contains_key(&target) {
            self.judge(&target);
        }
    }

    fn file(&mut self, folder: &OwnedFd, place: &WorkspacePath, seen: &EntryIdentity) -> MaskContent {
        let Some(HeadEntry::File(head)) = self.head.entry(place) else { return MaskContent::Nothing };
        let Some(left) = self.bytes_left.checked_sub(head.bytes.len()) else { return MaskContent::Nothing };
        self.bytes_left = left;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let name = place.name().unwrap_or_default().as_ref();
        let file = beneath::open(folder, name, flags, Links::Refuse).ok();
        let is_same = file.and_then(|file| read_whole(&file)).is_some_and(|bytes| bytes == head.bytes);
        // Git goes by times: with that of the file, it would take the other content for what lies there.
        let modified = if is_same { seen.stamp.mtime } else { (1, 0) };
        MaskContent::Head { bytes: head.bytes, mode: seen.stamp.mode & 0o777, modified, is_same }
    }

    /// A folder of which the commit has nothing goes as a whole; otherwise each entry is judged by itself.
    fn judge_folder(&mut self, place: &WorkspacePath) {
        let names = self.root.names();
        let is_deep = place.as_path().components().count() > DEEPEST;
        let is_known = self.head.entry(place) == Some(HeadEntry::Folder) || names.show_beneath(place);
        let entries = (is_known && !is_deep).then(|| self.entries(place)).flatten();
        let Some(entries) = entries.filter(|entries| entries.len() <= self.entries_left) else {
            self.masks.insert(place.clone(), MaskContent::Nothing);
            return;
        };
        self.entries_left -= entries.len();
        for entry in entries {
            if !names.show(entry.as_path()) {
                self.judge(&entry);
            }
        }
    }

    fn entries(&self, place: &WorkspacePath) -> Option<Vec<WorkspacePath>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let open = beneath::open(self.root.handle(), place.for_kernel(), flags, Links::Refuse).ok()?;
        Some(beneath::names(open).ok()?.into_iter().map(|name| place.join(name)).collect())
    }
}
