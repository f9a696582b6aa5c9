//! `grep`

use std::{num::NonZeroUsize, sync::Arc};

use haft_runtime::{ErrorCode, ToolCtx, ToolError, ToolFacts};
use haft_sandbox::{PathError, Root};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{
    found::Output,
    matcher::MatchOptions,
    order::SortOrder,
    pace::{ALTOGETHER, Pace},
    pattern::GlobPattern,
    searching::{FileSearcher, SearchPlan},
    walk::{SkippedFolders, Walk},
};
use crate::{refusal::Trying, shape::Reads, workspaces::Workspaces};

/// How many results come when the caller says nothing, and how many at the most.
const RESULTS: NonZeroUsize = NonZeroUsize::new(100).unwrap();
const MOST_RESULTS: usize = 10_000;
/// How many lines around a match are shown at the most.
const MOST_CONTEXT: usize = 100;

pub(crate) struct Grep(pub(crate) Arc<dyn Workspaces>);

/// Search file contents for a regular expression; gives path, line number and line. To find files by name use `glob`,
/// to see more of a file `read_file`. Skips hidden, git-ignored and binary files, and files with secrets.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = json!({ "pattern": "fn \\w+_with_timeout", "glob": "*.rs" }))]
pub(crate) struct Input {
    /// Regular expression in ripgrep's syntax.
    pattern: String,
    /// File or folder to search.
    #[serde(default = "here")]
    path: String,
    /// Only files that match, such as `*.rs`; a leading `!` negates.
    glob: Option<String>,
    /// Ignore case.
    #[serde(default)]
    case_insensitive: bool,
    /// Lines (or files) at most.
    #[serde(default = "results")]
    #[schemars(range(max = 10000))]
    max_results: NonZeroUsize,
    /// Lines to show around each match.
    #[serde(default)]
    #[schemars(range(max = 100))]
    context: usize,
    /// Take `pattern` as plain text.
    #[serde(default)]
    literal: bool,
    /// Let a match span lines.
    #[serde(default)]
    multiline: bool,
    /// Also names that begin with a dot.
    #[serde(default)]
    include_hidden: bool,
    /// Leave out what `.gitignore` names.
    #[serde(default = "yes")]
    respect_ignore: bool,
    /// `files` gives paths only, `count` matches per file.
    #[serde(default)]
    output_mode: OutputMode,
    /// `modified` searches the last changed first.
    #[serde(default)]
    sort: SortOrder,
}

fn here() -> String {
    ".".to_owned()
}

fn yes() -> bool {
    true
}

fn results() -> NonZeroUsize {
    RESULTS
}

/// What is given of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum OutputMode {
    #[default]
    Lines,
    Files,
    Count,
}

impl Reads for Grep {
    type Input = Input;
    type Output = Output;

    const FACTS: ToolFacts = ToolFacts { timeout: ALTOGETHER, ..ToolFacts::reading("grep", "search") };

    async fn read(&self, ctx: &ToolCtx, input: Input) -> Result<Output, ToolError> {
        if input.max_results.get() > MOST_RESULTS || input.context > MOST_CONTEXT {
            let message = format!("`maxResults` goes up to {MOST_RESULTS} and `context` up to {MOST_CONTEXT}");
            return Err(ToolError::new(ErrorCode::InvalidArgs, message));
        }
        let telling = ctx.clone();
        self.0
            .of(ctx.scope())?
            .files
            .look(ctx, move |root, stop| search(root, &input, &Pace::new(telling, stop.clone())))
            .await
    }
}

fn search(root: &Root, input: &Input, pace: &Pace) -> Result<Output, ToolError> {
    let plan = input.plan()?;
    let pattern = input.glob.as_deref().map(|glob| GlobPattern::new("glob", glob)).transpose()?;
    let place = root.place(&input.path).trying("search")?;
    let (found, passed_by) = match root.open_folder(&place) {
        Ok(start) => {
            let walk = Walk {
                root,
                pace,
                pattern: pattern.as_ref(),
                include_hidden: input.include_hidden,
                respect_ignore: input.respect_ignore,
            };
            walk.through(start, || FileSearcher::new(&plan, pace))
        }
        Err(PathError::NotDirectory { .. }) => {
            // A file that is named is searched, whatever its name and the ignore files say.
            let open = root.open_file(&place).trying("search")?;
            let mut searching = FileSearcher::new(&plan, pace);
            searching.search(place.as_path(), &open.file, &open.meta);
            (vec![searching], SkippedFolders::default())
        }
        Err(refused) => return Err(refused).trying("search"),
    };
    let ran_out = pace.ran_out()?;
    Ok(Output::new(place.to_string(), &plan, FileSearcher::together(&plan, pace, found), passed_by, ran_out))
}

impl Input {
    fn plan(&self) -> Result<SearchPlan, ToolError> {
        let wanted = MatchOptions {
            pattern: &self.pattern,
            case_insensitive: self.case_insensitive,
            literal: self.literal,
            multiline: self.multiline,
        };
        Ok(SearchPlan {
            matcher: wanted.compile()?,
            pattern: self.pattern.clone(),
            multiline: self.multiline,
            context: self.context,
            most: self.max_results.get(),
            mode: self.output_mode,
            sort: self.sort,
        })
    }
}
