//! What steers haft or git and has come into being while a command wrote into the workspace itself.

use std::io::Read;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::beneath::Links;
use crate::changes::draft::Draft;
use crate::changes::error::ChangesError;
use crate::changes::flags::{ChangeFlag, Subject, flags};
use crate::copy;
use crate::fence::STEERING;
use crate::root::Root;
use crate::stamp::EntryKind;
use crate::transfer::{self, EntryRef};
use crate::workspace_path::WorkspacePath;

/// The hooks of the repository; each of them steers, and not the folder.
const HOOKS: &str = ".git/hooks";
/// More than any settings have; what is longer is not read, and judged as the worst.
const LONGEST: u64 = 1 << 20;

/// What steers haft and git in a workspace and was not there, or only as a link, before a command began to write into
/// it. The fence holds whatever is there; what is not, it cannot hold.
#[derive(Clone, Debug)]
pub struct Steering(Vec<WorkspacePath>);

impl Steering {
    /// Looks at what is there.
    pub fn look(root: &Root) -> Steering {
        let places = STEERING.iter().map(|path| WorkspacePath::root().join(path));
        let is_held =
            |place: &WorkspacePath| matches!(root.meta(place), Ok(Some(meta)) if meta.kind != EntryKind::Link);
        Steering(places.filter(|place| !is_held(place)).collect())
    }

    /// What has come into being since then and may not without a question.
    pub fn come(&self, root: &Root) -> Vec<WorkspacePath> {
        let now = self.0.iter().flat_map(|place| match place.as_path() == Path::new(HOOKS) {
            true => within(root, place),
            false => vec![place.clone()],
        });
        now.filter(|place| forces_a_question(root, place)).collect()
    }
}

impl Draft {
    /// Takes something that a command has made in the workspace itself out of it and lays it into the layer, from where
    /// it can come back only as a change that is asked for. The layer must have been made.
    pub fn withdraw(&self, place: &WorkspacePath) -> Result<(), ChangesError> {
        let withdraw = || -> Result<(), Errno> {
            let into = self.parent_in_layer(place)?;
            let parent = place.parent().ok_or(Errno::ISDIR)?;
            let from = self.root.open_beneath(parent.for_kernel(), OFlags::RDONLY, Links::Refuse)?;
            let name = place.name().ok_or(Errno::ISDIR)?;
            let (from, to) = (EntryRef { dir: from.as_fd(), name }, EntryRef { dir: into.as_fd(), name });
            match rustix::fs::renameat(from.dir, Path::new(name), to.dir, Path::new(name)) {
                Err(Errno::XDEV) => copy::copy(from, to).and_then(|()| transfer::remove(from)),
                renamed => renamed,
            }
        };
        withdraw().map_err(|errno| ChangesError::kept("take something out of the workspace", errno))
    }
}

fn within(root: &Root, folder: &WorkspacePath) -> Vec<WorkspacePath> {
    let mut found = Vec::new();
    let Ok(open) = root.enter(folder.clone()) else { return vec![folder.clone()] };
    while matches!(open.read_on(|name, _| found.push(folder.join(name))), Ok(true)) {}
    found
}

fn forces_a_question(root: &Root, place: &WorkspacePath) -> bool {
    let Ok(Some(meta)) = root.meta(place) else { return false };
    let mut content = Vec::new();
    let read = root.open_file(place).ok().filter(|_| meta.kind == EntryKind::File && meta.size <= LONGEST);
    let after =
        read.and_then(|open| open.file.take(LONGEST).read_to_end(&mut content).ok()).map(|_| content.as_slice());
    let (path, kind, mode) = (place.as_path(), Some(meta.kind), meta.mode);
    let subject = Subject { path, kind, mode, before: None, after, leads_outside: false };
    flags(&subject).iter().any(ChangeFlag::forces_a_question)
}
