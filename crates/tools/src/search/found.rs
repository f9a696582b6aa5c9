//! What `grep` gives back.

use std::fmt::Write;

use haft_sandbox::show_name;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{
    grep::OutputMode,
    lines::MatchingLine,
    order::SortKey,
    searching::{Hit, SearchPlan, Tally},
    told,
    walk::SkippedFolders,
};

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    /// The file or folder that was searched, relative to the workspace folder.
    path: String,
    /// The lines that match, by path and line; empty in the other output modes.
    matches: Vec<GrepMatch>,
    /// The files that have a match, in the output modes `files` and `count`.
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<Vec<MatchingFile>>,
    /// How many lines match; in the output mode `files`, how many files have one.
    count: u64,
    /// How many files have a match.
    files_matched: u64,
    /// How many files were searched to their end, or to their first match in the output mode `files`.
    files_searched: u64,
    /// Whether there is more than is shown here, or time ran out.
    truncated: bool,
    /// What was not searched, if anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<SkippedCounts>,
    #[serde(skip)]
    mode: OutputMode,
    #[serde(skip)]
    has_context: bool,
    #[serde(skip)]
    pattern: String,
    #[serde(skip)]
    ran_out: bool,
    #[serde(skip)]
    passed_by: SkippedFolders,
}

#[derive(Debug, Serialize, JsonSchema)]
struct GrepMatch {
    /// Path relative to the workspace folder.
    path: String,
    /// Counted from 1.
    line: u64,
    /// The line, at most 500 characters of it; `…` stands for what is cut off.
    text: String,
    /// Where the match begins in the line, in bytes from 1; only where `text` leaves out the beginning of the line.
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<u64>,
    /// The lines before, as far as they were asked for and not shown with an earlier match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    before: Vec<String>,
    /// The lines after.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    after: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct MatchingFile {
    /// Path relative to the workspace folder.
    path: String,
    /// How many lines match, in the output mode `count`.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
}

/// Files that were not searched, and folders that were not gone into.
#[derive(Debug, Serialize, JsonSchema)]
struct SkippedCounts {
    /// Files with NUL bytes.
    binary: u64,
    /// Names that usually hold secrets.
    sensitive: u64,
    /// What the system did not let us read, and files with a line (with `multiline`, files) of more than 16 MiB.
    unreadable: u64,
}

impl Output {
    pub(super) fn new(
        path: String,
        plan: &SearchPlan,
        (tally, hits): (Tally, Vec<(SortKey, Hit)>),
        passed_by: SkippedFolders,
        ran_out: bool,
    ) -> Self {
        let skipped = SkippedCounts {
            binary: tally.binary,
            sensitive: tally.sensitive + passed_by.sensitive,
            unreadable: tally.unreadable + passed_by.unreadable,
        };
        let shown = hits.len() as u64;
        let count = match plan.mode {
            OutputMode::Lines | OutputMode::Count => tally.lines,
            OutputMode::Files => tally.files_matched,
        };
        let most = if plan.mode == OutputMode::Lines { tally.lines } else { tally.files_matched };
        let mut output = Self {
            path,
            matches: Vec::new(),
            files: (plan.mode != OutputMode::Lines).then(Vec::new),
            count,
            files_matched: tally.files_matched,
            files_searched: tally.files_searched,
            truncated: ran_out || most > shown,
            passed_by: SkippedFolders { sensitive: skipped.sensitive, unreadable: skipped.unreadable },
            skipped: Some(skipped).filter(|skipped| skipped.binary + skipped.sensitive + skipped.unreadable > 0),
            mode: plan.mode,
            has_context: plan.context > 0,
            pattern: plan.pattern.clone(),
            ran_out,
        };
        hits.into_iter().for_each(|(key, hit)| output.add(&key, hit));
        output
    }

    fn add(&mut self, key: &SortKey, hit: Hit) {
        let path = show_name(&key.path);
        match hit {
            Hit::Line(MatchingLine { number, column, text, before, after }) => {
                self.matches.push(GrepMatch { path, line: number, text, column, before, after });
            }
            Hit::File(count) => {
                let count = (self.mode == OutputMode::Count).then_some(count);
                self.files.get_or_insert_default().push(MatchingFile { path, count });
            }
        }
    }

    /// `path:12:the line`, and `path-11-a line before` with `--` where lines are left out, as grep has always done.
    fn lines(&self) -> String {
        let mut text = String::new();
        let mut last: Option<(&str, u64)> = None;
        for GrepMatch { path, line, text: own, before, after, .. } in &self.matches {
            let first = line.saturating_sub(before.len() as u64);
            if self.has_context && last.is_some_and(|last| last != (path, first.saturating_sub(1))) {
                text.push_str("--\n");
            }
            // Writing to a string never fails.
            for (number, around) in (first..).zip(before) {
                let _ = writeln!(text, "{path}-{number}-{around}");
            }
            let _ = writeln!(text, "{path}:{line}:{own}");
            for (number, around) in (line + 1..).zip(after) {
                let _ = writeln!(text, "{path}-{number}-{around}");
            }
            last = Some((path, line + after.len() as u64));
        }
        text
    }

    fn paths(&self) -> String {
        let mut text = String::new();
        for MatchingFile { path, count } in self.files.iter().flatten() {
            let _ = match count {
                Some(count) => writeln!(text, "{path}:{count}"),
                None => writeln!(text, "{path}"),
            };
        }
        text
    }

    /// What the lines alone do not tell.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let Self { pattern, path, count, files_matched, files_searched, .. } = self;
        if *files_matched == 0 {
            let files = if *files_searched == 1 { "file" } else { "files" };
            notes.push(format!("no match for {pattern:?} in {path} ({files_searched} {files} searched)"));
        } else if self.truncated && !self.ran_out {
            notes.push(match self.mode {
                OutputMode::Lines => format!(
                    "({} of {count} lines in {files_matched} files; raise `maxResults`, or narrow with `glob` or `path`)",
                    self.matches.len()
                ),
                OutputMode::Files | OutputMode::Count => format!(
                    "({} of {files_matched} files; raise `maxResults`, or narrow with `glob` or `path`)",
                    self.files.as_ref().map_or(0, Vec::len)
                ),
            });
        }
        if self.ran_out {
            notes.push(format!(
                "(time ran out after {files_searched} files: there may be more; narrow with `glob` or `path`)"
            ));
        }
        notes.extend(told::notes(self.passed_by));
        notes
    }
}

impl haft_runtime::Output for Output {
    fn text(&self) -> String {
        let found = match self.mode {
            OutputMode::Lines => self.lines(),
            OutputMode::Files | OutputMode::Count => self.paths(),
        };
        let notes = self.notes();
        if notes.is_empty() { found.trim_end_matches('\n').to_owned() } else { found + &notes.join("\n") }
    }

    fn metadata(&self) -> Map<String, Value> {
        told::metadata(self.ran_out, self.passed_by)
    }
}
