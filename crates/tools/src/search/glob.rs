//! `glob`

use std::{ffi::OsStr, num::NonZeroUsize, os::unix::ffi::OsStrExt, sync::Arc, time::SystemTime};

use haft_runtime::{ToolCtx, ToolError, ToolFacts};
use haft_sandbox::{Root, show_name};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{
    best::Best,
    order::{SortKey, SortOrder},
    pace::{ALTOGETHER, Pace},
    pattern::GlobPattern,
    told,
    walk::{SkippedFolders, Visitor, Walk, WalkEntry},
};
use crate::{refusal::Trying, shape::Reads, workspaces::Workspaces};

/// How many paths come when the caller says nothing.
const FILES: NonZeroUsize = NonZeroUsize::new(1000).unwrap();
/// How many bytes of paths are kept, whatever the caller says.
const HEAVIEST: usize = 8 << 20;

pub(crate) struct Glob(pub(crate) Arc<dyn Workspaces>);

/// Find files by name, such as `*.rs` or `src/**/*.{ts,tsx}`. To find files by content use `grep`, to see one folder
/// `list_directory`. Skips hidden and git-ignored files.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = json!({ "pattern": "src/**/*.rs" }))]
pub(crate) struct Input {
    /// Without `/` it matches names at any depth; `**` matches folders; a leading `!` negates.
    pattern: String,
    /// Folder to search.
    #[serde(default = "here")]
    path: String,
    /// Also names that begin with a dot.
    #[serde(default)]
    include_hidden: bool,
    /// Leave out what `.gitignore` names.
    #[serde(default = "yes")]
    respect_ignore: bool,
    /// Paths at most.
    #[serde(default = "files")]
    limit: NonZeroUsize,
    /// `modified` gives the last changed first.
    #[serde(default)]
    sort: SortOrder,
}

fn here() -> String {
    ".".to_owned()
}

fn yes() -> bool {
    true
}

fn files() -> NonZeroUsize {
    FILES
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Output {
    /// The folder that was searched, relative to the workspace folder.
    path: String,
    /// Paths relative to the workspace folder.
    files: Vec<String>,
    /// How many files there are; where time ran out, at least so many.
    count: u64,
    /// Whether there are more than `files` shows.
    truncated: bool,
    #[serde(skip)]
    ran_out: bool,
    #[serde(skip)]
    passed_by: SkippedFolders,
    #[serde(skip)]
    pattern: String,
}

impl Reads for Glob {
    type Input = Input;
    type Output = Output;

    const FACTS: ToolFacts =
        ToolFacts { aliases: &["search_files"], timeout: ALTOGETHER, ..ToolFacts::reading("glob", "search") };

    async fn read(&self, ctx: &ToolCtx, input: Input) -> Result<Output, ToolError> {
        let pattern = GlobPattern::new("pattern", &input.pattern)?;
        let telling = ctx.clone();
        self.0
            .of(ctx.scope())?
            .files
            .look(ctx, move |root, stop| find(root, &input, &pattern, &Pace::new(telling, stop.clone())))
            .await
    }
}

fn find(root: &Root, input: &Input, pattern: &GlobPattern, pace: &Pace) -> Result<Output, ToolError> {
    let place = root.place(&input.path).trying("search")?;
    let start = root.open_folder(&place).trying("search")?;
    let walk = Walk {
        root,
        pace,
        pattern: Some(pattern),
        include_hidden: input.include_hidden,
        respect_ignore: input.respect_ignore,
    };
    let visitor = || GlobResults { sort: input.sort, best: Best::new(input.limit.get(), HEAVIEST), count: 0 };
    let (found, passed_by) = walk.through(start, visitor);
    let ran_out = pace.ran_out()?;
    let mut all = visitor();
    for one in found {
        all.count += one.count;
        all.best.absorb(one.best);
    }
    let files: Vec<String> = all.best.into_sorted().iter().map(|(key, ())| show_name(&key.path)).collect();
    Ok(Output {
        path: place.to_string(),
        count: all.count,
        truncated: ran_out || all.count > files.len() as u64,
        files,
        ran_out,
        passed_by,
        pattern: input.pattern.clone(),
    })
}

/// The paths that one thread has found.
struct GlobResults {
    sort: SortOrder,
    best: Best<SortKey, ()>,
    count: u64,
}

impl Visitor for GlobResults {
    const AT_ONCE: usize = usize::MAX;

    fn visit(&mut self, spot: &WalkEntry<'_>) {
        self.count += 1;
        let path = spot.path.as_os_str();
        let modified = match self.sort {
            SortOrder::Path if !self.best.wants(|key| path < &*key.path) => return,
            SortOrder::Path => SystemTime::UNIX_EPOCH,
            SortOrder::Modified => modified(spot),
        };
        self.best.offer(SortKey::new(self.sort, path, modified), weight(path), ());
    }
}

fn modified(spot: &WalkEntry<'_>) -> SystemTime {
    let entry = spot.folder.entry(spot.name).ok().flatten();
    entry.map_or(SystemTime::UNIX_EPOCH, |entry| entry.meta.modified)
}

fn weight(path: &OsStr) -> usize {
    path.as_bytes().len() + size_of::<SortKey>()
}

impl haft_runtime::Output for Output {
    fn text(&self) -> String {
        let mut lines = self.files.clone();
        if self.files.is_empty() {
            lines.push(format!("no files match {:?} in {}", self.pattern, self.path));
        } else if self.truncated && !self.ran_out {
            let shown = self.files.len();
            lines.push(format!("({shown} of {} files; raise `limit` or narrow the pattern)", self.count));
        }
        if self.ran_out {
            lines.push(format!(
                "(time ran out after {} files were found; search a smaller folder with `path`)",
                self.count
            ));
        }
        lines.extend(told::notes(self.passed_by));
        lines.join("\n")
    }

    fn metadata(&self) -> Map<String, Value> {
        told::metadata(self.ran_out, self.passed_by)
    }
}
