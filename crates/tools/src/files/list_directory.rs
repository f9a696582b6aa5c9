//! `list_directory`

use std::{cmp::Ordering, fmt::Write, num::NonZeroUsize, path::Path, sync::Arc, time::SystemTime};

use haft_runtime::{ErrorCode, ToolCtx, ToolError};
use haft_sandbox::{Entry, EntryKind, Place, Root};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::moment;
use crate::{aside::Stop, refusal::Trying, shape::Reads, workspace::Workspace};

/// How many entries come when the caller says nothing.
const ENTRIES: NonZeroUsize = NonZeroUsize::new(1000).unwrap();
/// After so many entries a walk ends, however much there is left.
const WALKED: usize = 100_000;
/// The same for the length of all names together: those of a deep tree are long.
const NAMES: usize = 16 << 20;
/// How many folders that could not be read are named.
const UNREAD: usize = 100;

pub(crate) struct ListDirectory(pub(crate) Arc<Workspace>);

/// Lists a folder of the workspace: names, kinds, sizes and times, folders first. Start with the folder itself and go
/// down where it matters; use `recursive` only for a small tree, or with `maxDepth`. To see what is in a file use
/// `read_file`. Links are shown with their target and not followed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Input {
    /// Path relative to the workspace folder, or absolute inside it.
    #[serde(default = "here")]
    path: String,
    /// Also list what lies in the folders inside; names are then relative to `path`.
    #[serde(default)]
    recursive: bool,
    /// Also list names that begin with a dot.
    #[serde(default)]
    include_hidden: bool,
    /// How many entries to give at the most.
    #[serde(default = "entries")]
    limit: NonZeroUsize,
    /// How many levels a recursive listing goes down; 1 is the folder's own entries.
    max_depth: Option<NonZeroUsize>,
}

fn here() -> String {
    ".".to_owned()
}

fn entries() -> NonZeroUsize {
    ENTRIES
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Output {
    /// Path relative to the workspace folder.
    path: String,
    /// Folders first, then by name.
    entries: Vec<Listed>,
    /// How many entries there are; where `truncated`, at least so many.
    total: usize,
    /// Whether there are more than `entries` shows.
    truncated: bool,
    /// Folders inside that could not be listed, and why; at most 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unread: Vec<Unread>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Listed {
    /// Relative to the folder that was listed.
    name: String,
    #[serde(rename = "type")]
    kind: Kind,
    /// Bytes; 0 for a folder.
    size: u64,
    /// When the content last changed, RFC 3339 in UTC.
    modified: String,
    /// What a link points to.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Kind {
    File,
    Directory,
    Symlink,
    Other,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Unread {
    name: String,
    why: String,
}

impl Reads for ListDirectory {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "list_directory";
    const CATEGORY: &'static str = "filesystem";

    async fn read(&self, ctx: &ToolCtx, input: Input) -> Result<Output, ToolError> {
        self.0.look(ctx, move |root, stop| list(root, &input, stop)).await
    }
}

fn list(root: &Root, input: &Input, stop: &Stop) -> Result<Output, ToolError> {
    let levels = match (input.recursive, input.max_depth) {
        (true, levels) => levels.map_or(usize::MAX, NonZeroUsize::get),
        (false, None) => 1,
        (false, Some(_)) => {
            return Err(ToolError::new(ErrorCode::InvalidArgs, "`maxDepth` needs `recursive`; set both or none"));
        }
    };
    let top = root.place(&input.path).trying("list")?;
    let mut walk = Walk {
        root,
        top,
        levels,
        include_hidden: input.include_hidden,
        found: Vec::new(),
        names: 0,
        unread: Vec::new(),
    };
    let complete = walk.through(stop)?;
    Ok(walk.into_output(input.limit.get(), complete))
}

/// A walk with its own list of folders to go: no depth of a tree can exhaust the stack, and one folder is open at a time.
struct Walk<'a> {
    root: &'a Root,
    top: Place,
    levels: usize,
    include_hidden: bool,
    found: Vec<Found>,
    /// The length of all names in `found`.
    names: usize,
    unread: Vec<Unread>,
}

/// A folder to go into.
struct Folder {
    place: Place,
    /// What stands before the names of its entries.
    prefix: String,
    level: usize,
}

struct Found {
    name: String,
    kind: Kind,
    size: u64,
    modified: SystemTime,
    target: Option<String>,
}

impl Walk<'_> {
    /// Whether it came to the end.
    fn through(&mut self, stop: &Stop) -> Result<bool, ToolError> {
        let mut to_go = vec![Folder { place: self.top.clone(), prefix: String::new(), level: 1 }];
        while let Some(folder) = to_go.pop() {
            stop.check()?;
            let entries = match self.root.list(&folder.place).trying("list") {
                Ok(entries) => entries,
                Err(refused) if folder.level == 1 => return Err(refused),
                Err(refused) => {
                    self.note_unread(&folder, refused);
                    continue;
                }
            };
            for entry in entries {
                if !self.include_hidden && entry.name.as_encoded_bytes().starts_with(b".") {
                    continue;
                }
                let found = Found::of(&folder.prefix, &entry);
                if found.kind == Kind::Directory && folder.level < self.levels {
                    let (place, prefix) = (folder.place.join(&entry.name), format!("{}/", found.name));
                    to_go.push(Folder { place, prefix, level: folder.level + 1 });
                }
                self.names += found.name.len();
                self.found.push(found);
            }
            if self.found.len() > WALKED || self.names > NAMES {
                return Ok(to_go.is_empty());
            }
        }
        Ok(true)
    }

    fn note_unread(&mut self, folder: &Folder, refused: ToolError) {
        if self.unread.len() < UNREAD {
            let name = folder.prefix.trim_end_matches('/').to_owned();
            self.unread.push(Unread { name, why: refused.message });
        }
    }

    fn into_output(mut self, limit: usize, complete: bool) -> Output {
        self.found.sort_unstable_by(Found::order);
        let total = self.found.len();
        Output {
            path: self.top.to_string(),
            entries: self.found.into_iter().take(limit).map(Found::listed).collect(),
            total,
            truncated: total > limit || !complete,
            unread: self.unread,
        }
    }
}

impl Found {
    fn of(prefix: &str, entry: &Entry) -> Self {
        let kind = match entry.meta.kind {
            EntryKind::File => Kind::File,
            EntryKind::Directory => Kind::Directory,
            EntryKind::Link => Kind::Symlink,
            EntryKind::Fifo | EntryKind::Socket | EntryKind::Device => Kind::Other,
        };
        Self {
            name: format!("{prefix}{}", Place::root().join(&entry.name)),
            kind,
            size: if kind == Kind::Directory { 0 } else { entry.meta.size },
            modified: entry.meta.modified,
            target: entry.target.as_deref().map(shown_target),
        }
    }

    fn order(&self, other: &Self) -> Ordering {
        let is_file = |found: &Self| found.kind != Kind::Directory;
        is_file(self).cmp(&is_file(other)).then_with(|| self.name.cmp(&other.name))
    }

    fn listed(self) -> Listed {
        let Self { name, kind, size, modified, target } = self;
        Listed { name, kind, size, modified: moment::shown(modified), target }
    }
}

/// What a link points to, on one line whatever it is made of.
fn shown_target(target: &Path) -> String {
    let target = target.to_string_lossy();
    target.chars().map(|letter| if letter.is_control() { char::REPLACEMENT_CHARACTER } else { letter }).collect()
}

impl haft_runtime::Output for Output {
    fn text(&self) -> String {
        let mut text = String::new();
        for Listed { name, kind, size, target, .. } in &self.entries {
            // Writing to a string never fails.
            let _ = match (kind, target) {
                (Kind::Directory, _) => writeln!(text, "{name}/"),
                (Kind::Symlink, Some(target)) => writeln!(text, "{name} -> {target}"),
                (Kind::Symlink, None) => writeln!(text, "{name} -> ?"),
                (Kind::File, _) => writeln!(text, "{name} ({size} bytes)"),
                (Kind::Other, _) => writeln!(text, "{name} (not a regular file)"),
            };
        }
        text + &self.summary()
    }
}

impl Output {
    fn summary(&self) -> String {
        let Self { path, entries, total, .. } = self;
        let unread = match self.unread.as_slice() {
            [] => String::new(),
            [_] => "; 1 folder could not be listed".to_owned(),
            unread if unread.len() < UNREAD => format!("; {} folders could not be listed", unread.len()),
            _ => format!("; {UNREAD} folders or more could not be listed"),
        };
        if self.truncated {
            return format!(
                "{} of {total} entries in {path}; raise `limit` or list a folder inside{unread}",
                entries.len()
            );
        }
        match total {
            0 => format!("{path} has no entries to show; `includeHidden` shows names with a dot{unread}"),
            1 => format!("1 entry in {path}{unread}"),
            total => format!("{total} entries in {path}{unread}"),
        }
    }
}
