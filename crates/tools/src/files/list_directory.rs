//! `list_directory`

use std::{ffi::OsStr, fmt::Write, num::NonZeroUsize, path::Path, sync::Arc};

use haft_runtime::{ErrorCode, ToolCtx, ToolError, ToolFacts};
use haft_sandbox::{EntryKind, Folder, FolderEntry, PathError, Root, WorkspacePath, show_name};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::amount::Amount;
use super::moment;
use crate::{
    blocking::{StopFlag, stopped},
    refusal::Trying,
    search::{Best, IgnoreRules, has, is_hidden},
    shape::Reads,
    workspaces::Workspaces,
};

/// How many entries come when the caller says nothing.
const ENTRIES: NonZeroUsize = NonZeroUsize::new(1000).unwrap();
/// After so many entries a recursive listing goes into no further folder.
const WALKED: usize = 100_000;
/// When so many folders wait, those above them are closed.
const OPEN_AT_ONCE: usize = 100;
/// How many bytes of entries are kept, whatever the caller says: the names of a deep tree are long.
const HEAVIEST: usize = 16 << 20;
/// What an entry takes beside its name.
const WEIGHT: usize = 128;
/// How often names are read on the thread of the call; each read brings about a thousand.
const FEW_READS: usize = 3;
/// About how long a line of the text is.
const USUAL_LINE: usize = 40;
/// How many folders that could not be read are named.
const UNREAD: usize = 100;

pub(crate) struct ListDirectory(pub(crate) Arc<dyn Workspaces>);

/// List a folder, folders first. Use `recursive` for small trees or with `maxDepth`. To find files by name use `glob`,
/// by content `grep`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Input {
    /// Path in the workspace.
    #[serde(default = "here")]
    path: String,
    /// Also list the folders inside.
    #[serde(default)]
    recursive: bool,
    /// Also names that begin with a dot.
    #[serde(default)]
    include_hidden: bool,
    /// Entries at most.
    #[serde(default = "entries")]
    limit: NonZeroUsize,
    /// Also give sizes and times.
    #[serde(default)]
    details: bool,
    /// Levels that `recursive` goes down.
    max_depth: Option<NonZeroUsize>,
    /// Leave out what `.gitignore` names.
    #[serde(default)]
    respect_ignore: bool,
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
    entries: Vec<DirectoryEntry>,
    /// How many entries there are; where `truncated`, at least so many.
    total: usize,
    /// Whether there are more than `entries` shows.
    truncated: bool,
    /// Folders inside that could not be listed, and why; at most 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unread: Vec<UnreadFolder>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct DirectoryEntry {
    /// Relative to the folder that was listed.
    name: String,
    #[serde(rename = "type")]
    kind: DirectoryEntryKind,
    /// Bytes of a file, with `details`.
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    /// When the content last changed, RFC 3339 in UTC, with `details`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    modified: Option<Timestamp>,
    /// What a link points to.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum DirectoryEntryKind {
    File,
    Directory,
    Symlink,
    Other,
}

impl DirectoryEntryKind {
    fn of(kind: EntryKind) -> Self {
        match kind {
            EntryKind::File => Self::File,
            EntryKind::Directory => Self::Directory,
            EntryKind::Link => Self::Symlink,
            EntryKind::Fifo | EntryKind::Socket | EntryKind::Device => Self::Other,
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
struct UnreadFolder {
    name: String,
    why: String,
}

impl Reads for ListDirectory {
    type Input = Input;
    type Output = Output;

    const FACTS: ToolFacts = ToolFacts::reading("list_directory", "filesystem");

    async fn read(&self, ctx: &ToolCtx, input: Input) -> Result<Output, ToolError> {
        let (workspace, input) = (self.0.of(ctx.scope())?, Arc::new(input));
        // A few names are read before another thread would have woken up.
        let few = Arc::clone(&input);
        let listed =
            workspace.files.stat_inline(ctx, move |root| list(root, &few, FEW_READS, &StopFlag::default())).await?;
        if let Some(output) = listed {
            return Ok(output);
        }
        let all = workspace.files.look(ctx, move |root, stop| list(root, &input, usize::MAX, stop)).await?;
        all.ok_or_else(stopped)
    }
}

/// The listing; `None` when it takes more reads than these.
fn list(root: &Root, input: &Input, reads: usize, stop: &StopFlag) -> Result<Option<Output>, ToolError> {
    let levels = match (input.recursive, input.max_depth) {
        (true, levels) => levels.map_or(usize::MAX, NonZeroUsize::get),
        (false, None) => 1,
        (false, Some(_)) => {
            return Err(ToolError::new(ErrorCode::InvalidArgs, "`maxDepth` needs `recursive`; set both or none"));
        }
    };
    let top = root.place(&input.path).trying("list")?;
    let listing = DirectoryListing {
        root,
        levels,
        reads_left: reads,
        given_up: false,
        include_hidden: input.include_hidden,
        respect_ignore: input.respect_ignore,
        details: input.details,
        kept: Best::new(input.limit.get(), HEAVIEST),
        total: 0,
        to_go: Vec::new(),
        unread: Vec::new(),
    };
    listing.of(&top, stop)
}

/// A listing with its own list of folders to go: no depth of a tree can exhaust the stack, and one folder is open at a
/// time.
struct DirectoryListing<'a> {
    root: &'a Root,
    levels: usize,
    /// How often names may still be read.
    reads_left: usize,
    /// Whether that was not enough.
    given_up: bool,
    include_hidden: bool,
    respect_ignore: bool,
    details: bool,
    /// Whether it is a folder (those come first), and its name.
    kept: Best<(bool, String), DirectoryItem>,
    total: usize,
    to_go: Vec<PendingFolder>,
    unread: Vec<UnreadFolder>,
}

/// A folder to go into.
struct PendingFolder {
    /// The folder above, as long as few wait: that is the shortest way down, above all in a deep tree.
    above: Option<Arc<Folder>>,
    place: WorkspacePath,
    /// What stands before the names of its entries.
    prefix: String,
    level: usize,
    rules: Option<Arc<IgnoreRules>>,
}

struct DirectoryItem {
    kind: DirectoryEntryKind,
    size: Option<u64>,
    modified: Option<Timestamp>,
    target: Option<String>,
}

impl DirectoryListing<'_> {
    fn of(mut self, top: &WorkspacePath, stop: &StopFlag) -> Result<Option<Output>, ToolError> {
        let folder = self.root.open_folder(top).trying("list")?;
        let rules = if self.respect_ignore { IgnoreRules::above(self.root, folder.place()) } else { None };
        let here = PendingFolder { above: None, place: folder.place().clone(), prefix: String::new(), level: 1, rules };
        self.take_in(&Arc::new(folder), &here, stop).trying("list")?;
        let mut complete = true;
        while !self.given_up
            && let Some(next) = self.to_go.pop()
        {
            stop.check()?;
            if self.total > WALKED {
                complete = false;
                break;
            }
            match self.enter(&next).and_then(|folder| self.take_in(&Arc::new(folder), &next, stop)) {
                Ok(()) | Err(PathError::NotFound { .. }) => {}
                Err(refused) => self.note_unread(&next, refused),
            }
        }
        stop.check()?;
        Ok((!self.given_up).then(|| self.into_output(top, complete)))
    }

    fn enter(&self, next: &PendingFolder) -> Result<Folder, PathError> {
        match (&next.above, next.place.name()) {
            (Some(above), Some(name)) => above.enter(self.root, name),
            (None, _) | (_, None) => self.root.enter(next.place.clone()),
        }
    }

    /// Takes in the entries of one folder. What a folder of any size has is counted; only what is shown is looked at.
    fn take_in(&mut self, folder: &Arc<Folder>, here: &PendingFolder, stop: &StopFlag) -> Result<(), PathError> {
        let mut rules = None;
        if self.respect_ignore {
            rules = IgnoreRules::within(here.rules.as_ref(), self.root, folder.place(), |name| has(folder, name));
        }
        let goes_down = here.level < self.levels;
        while self.reads_left > 0 {
            self.reads_left -= 1;
            let more = folder.read_on(|name, kind| self.add(folder, here, rules.as_ref(), (name, kind)))?;
            if !more || stop.is_wanted() || (goes_down && self.total > WALKED) {
                return Ok(());
            }
        }
        self.given_up = true;
        Ok(())
    }

    fn add(
        &mut self,
        folder: &Arc<Folder>,
        here: &PendingFolder,
        rules: Option<&Arc<IgnoreRules>>,
        entry: (&OsStr, Option<EntryKind>),
    ) {
        let (name, kind) = entry;
        let looked_up = || folder.entry(name).ok().flatten().map(|entry| entry.meta.kind);
        // An entry that vanished since its name was read is not an entry any more.
        let Some(kind) = kind.or_else(looked_up) else { return };
        let is_folder = kind == EntryKind::Directory;
        let ruled =
            rules.and_then(|rules| IgnoreRules::leave_out(Some(rules), folder.place().join(name).as_path(), is_folder));
        if ruled.unwrap_or(!self.include_hidden && is_hidden(name)) {
            return;
        }
        let shown = match here.prefix.as_str() {
            "" => show_name(name),
            prefix => [prefix, &show_name(name)].concat(),
        };
        if is_folder && here.level < self.levels {
            let (place, prefix) = (folder.place().join(name), format!("{shown}/"));
            let above = (self.to_go.len() < OPEN_AT_ONCE).then(|| Arc::clone(folder));
            self.to_go.push(PendingFolder { above, place, prefix, level: here.level + 1, rules: rules.cloned() });
        }
        let key = (!is_folder, shown);
        if !self.kept.wants(|other| key < *other) {
            self.total += 1;
        } else if let Some(item) = self.item(folder, name, kind) {
            self.total += 1;
            self.kept.offer(key, WEIGHT + here.prefix.len() + name.len(), item);
        }
    }

    /// What is told of an entry. The name alone tells what most are; the rest is looked up where it is wanted.
    fn item(&self, folder: &Folder, name: &OsStr, kind: EntryKind) -> Option<DirectoryItem> {
        if !self.details && kind != EntryKind::Link {
            let kind = DirectoryEntryKind::of(kind);
            return Some(DirectoryItem { kind, size: None, modified: None, target: None });
        }
        let entry = folder.entry(name).ok().flatten()?;
        Some(DirectoryItem::of(&entry, self.details))
    }

    fn note_unread(&mut self, folder: &PendingFolder, refused: PathError) {
        if self.unread.len() < UNREAD {
            let name = folder.prefix.trim_end_matches('/').to_owned();
            let why = Err::<(), _>(refused).trying("list").map_or_else(|refused| refused.message, |()| String::new());
            self.unread.push(UnreadFolder { name, why });
        }
    }

    fn into_output(self, top: &WorkspacePath, complete: bool) -> Output {
        let kept = self.kept.into_sorted().into_iter();
        let entries: Vec<DirectoryEntry> = kept.map(|((_, name), found)| found.listed(name)).collect();
        Output {
            path: top.to_string(),
            total: self.total,
            truncated: self.total > entries.len() || !complete,
            entries,
            unread: self.unread,
        }
    }
}

impl DirectoryItem {
    fn of(entry: &FolderEntry, details: bool) -> Self {
        let kind = DirectoryEntryKind::of(entry.meta.kind);
        Self {
            kind,
            size: (details && kind == DirectoryEntryKind::File).then_some(entry.meta.size),
            modified: details.then(|| moment::of(entry.meta.modified)),
            target: entry.target.as_deref().map(shown_target),
        }
    }

    fn listed(self, name: String) -> DirectoryEntry {
        let Self { kind, size, modified, target } = self;
        DirectoryEntry { name, kind, size, modified, target }
    }
}

/// What a link points to, on one line whatever it is made of.
fn shown_target(target: &Path) -> String {
    let target = target.to_string_lossy();
    target.chars().map(|letter| if letter.is_control() { char::REPLACEMENT_CHARACTER } else { letter }).collect()
}

impl haft_runtime::Output for Output {
    fn text(&self) -> String {
        let mut text = String::with_capacity(self.entries.len() * USUAL_LINE);
        let mut details = String::new();
        for DirectoryEntry { name, kind, size, modified, target } in &self.entries {
            details.clear();
            // Nothing fails to be written into memory.
            let _written = match (size, modified) {
                (Some(size), Some(modified)) => write!(details, " ({}, {modified:.0})", Amount(*size, "byte")),
                (None, Some(modified)) => write!(details, " ({modified:.0})"),
                (_, None) => Ok(()),
            };
            // Pieces are joined several times as quickly as they are formatted, and there may be very many.
            let pieces: &[&str] = match (kind, target) {
                (DirectoryEntryKind::Directory, _) => &[name, "/", &details, "\n"],
                (DirectoryEntryKind::Symlink, Some(target)) => &[name, " -> ", target, &details, "\n"],
                (DirectoryEntryKind::Symlink, None) => &[name, " -> ?", &details, "\n"],
                (DirectoryEntryKind::File, _) => &[name, &details, "\n"],
                (DirectoryEntryKind::Other, _) => &[name, " (not a regular file)", &details, "\n"],
            };
            text.extend(pieces.iter().copied());
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
