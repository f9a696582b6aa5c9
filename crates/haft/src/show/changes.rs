//! Changes as people read them: what to look at twice first, what belongs together on one line.

use haft_runtime::{Change, ChangeKind, ChangeList, ChangeState};

use crate::show::{
    diff::{coloured, patch},
    folding::{Folded, fold},
    plain::{folded, plain_command},
    style::{ADDED, DIM, PLACE, REMOVED, STRONG, WARN},
    table::width,
    time::{bytes, count},
};

/// How many lines of each diff are shown, and of all together, before somebody asks for the whole.
const SHORT_DIFF: usize = 20;
const SHORT_DIFFS: usize = 120;
/// How many lines of the patch of a commit are shown before that.
const SHORT_PATCH: usize = 200;
/// How many changes are listed before that, and how many where only their names are.
const SHORT_LIST: usize = 40;
const NAMES: usize = 20;
/// Where the second line of a long path begins.
const INDENT: usize = 10;

/// How much to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DetailLevel {
    /// A line for each change, as far as they fit a screen.
    Names,
    /// The same with the beginnings of diffs.
    Short,
    /// Everything, and nothing folded.
    Whole,
}

/// A list of changes, flagged ones first, with their diffs, and with a mark for what became of each where not all wait.
pub(crate) fn changes_text(changes: &ChangeList, depth: DetailLevel) -> String {
    let not_all_wait = changes.0.iter().any(|change| change.state != ChangeState::Staged);
    listed(changes, depth, if not_all_wait { StateMarks::OfState } else { StateMarks::None })
}

/// The same for a card: nothing of it is done yet, whatever became of it before.
pub(crate) fn asked_changes_text(changes: &ChangeList, depth: DetailLevel) -> String {
    listed(changes, depth, StateMarks::None)
}

/// A change that was taken back, as what that did: what had been created is deleted.
pub(crate) fn taken_back(change: &Change) -> Change {
    let kind = match change.kind {
        ChangeKind::Created => ChangeKind::Deleted,
        ChangeKind::Deleted => ChangeKind::Created,
        kind @ (ChangeKind::Changed | ChangeKind::Mode | ChangeKind::Link | ChangeKind::Renamed) => kind,
    };
    let (path, from) = match (&change.from, change.kind) {
        (Some(from), ChangeKind::Renamed) => (from.clone(), Some(change.path.clone())),
        (from, _) => (change.path.clone(), from.clone()),
    };
    let (added, removed) = (change.removed, change.added);
    // Only of what was made or removed as a whole it is known whether it could be run before.
    let executable = change.executable && matches!(kind, ChangeKind::Created | ChangeKind::Deleted);
    Change { path, from, kind, added, removed, executable, replaces: None, diff: None, flags: vec![], ..change.clone() }
}

/// What stands before each change.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StateMarks {
    OfState,
    None,
}

fn listed(changes: &ChangeList, depth: DetailLevel, marks: StateMarks) -> String {
    let (rows, mut room, each) = match depth {
        DetailLevel::Names => (fold(changes), 0, 0),
        DetailLevel::Short => (fold(changes), SHORT_DIFFS, SHORT_DIFF),
        DetailLevel::Whole => (changes.0.iter().map(Folded::One).collect(), usize::MAX, usize::MAX),
    };
    let list = match depth {
        DetailLevel::Names => NAMES,
        DetailLevel::Short => SHORT_LIST,
        DetailLevel::Whole => usize::MAX,
    };
    let mut rows = rows;
    rows.sort_by_key(|row| row.first().flags.is_empty());
    let mut text = counts(changes);
    for row in rows.iter().take(list) {
        let commit = commit_text(row, depth);
        // Where all paths are listed, the commit comes before the first of them.
        if depth == DetailLevel::Whole {
            text.push_str(&commit);
        }
        if marks == StateMarks::OfState {
            text.push_str(&mark(row.first().state));
        }
        text.push_str(&row_line(row));
        if depth != DetailLevel::Whole {
            text.push_str(&commit);
        }
        if let (Folded::One(change @ Change { diff: Some(diff), .. }), 1..) = (row, room)
            && change.kind != ChangeKind::Link
        {
            let shown = coloured(diff, each.min(room));
            room = room.saturating_sub(shown.lines().count());
            text.push_str(&shown);
        }
    }
    let more: usize = rows.iter().skip(list).map(Folded::paths).sum();
    if more > 0 {
        text.push_str(&format!("{DIM}… {}{DIM:#}\n", count(more, "more path")));
    }
    text
}

/// What the commit changes that a line stands for.
fn commit_text(row: &Folded<'_>, depth: DetailLevel) -> String {
    let (Some(summary), Some(text)) = (&row.first().summary, &row.first().patch) else { return String::new() };
    match depth {
        DetailLevel::Names => String::new(),
        DetailLevel::Short => patch(text, SHORT_PATCH),
        DetailLevel::Whole => format!("{PLACE}{}{PLACE:#}\n{}", name(summary), patch(text, usize::MAX)),
    }
}

/// Where a change stands, for lists in which not all wait.
fn mark(state: ChangeState) -> String {
    let (mark, style) = match state {
        ChangeState::Committed => ("✓", ADDED),
        ChangeState::Undone => ("↶", ADDED),
        ChangeState::Staged => ("·", WARN),
        ChangeState::Discarded => ("x", DIM),
    };
    format!("{style}{mark}{style:#} ")
}

fn row_line(row: &Folded<'_>) -> String {
    match row {
        Folded::One(change) => change_line(change),
        Folded::Gone { folder, inside, size } => {
            let line = change_line(folder);
            format!(
                "{}  {DIM}{} inside, {}{DIM:#}\n",
                line.trim_end_matches('\n'),
                count(*inside, "path"),
                bytes(*size)
            )
        }
        Folded::Together { first, .. } => {
            format!("{PLACE}{}{PLACE:#}\n", name(first.summary.as_deref().unwrap_or_default()))
        }
        Folded::Derived { paths, size, folders, .. } => {
            format!("{DIM}{paths} derived: {} ({}){DIM:#}\n", name(folders), bytes(*size))
        }
    }
}

/// How many there are of each kind, on a line of its own; nothing where one line tells it anyway.
fn counts(changes: &ChangeList) -> String {
    match paths(changes).len() {
        0 | 1 => String::new(),
        total => format!("{STRONG}{}{STRONG:#}: {}\n", count(total, "path"), kinds(changes)),
    }
}

/// What changes in a few words: each commit, then how many paths and of which kinds.
pub(crate) fn counted(changes: &ChangeList) -> String {
    let told = changes.told();
    let summaries = told.iter().filter_map(|change| change.summary.clone());
    let total = paths(changes).len();
    let paths = (total > 0).then(|| format!("{}: {}", count(total, "path"), kinds(changes)));
    summaries.chain(paths).collect::<Vec<_>>().join("; ")
}

/// What no summary stands for.
pub(crate) fn paths(changes: &ChangeList) -> Vec<&Change> {
    changes.told().into_iter().filter(|change| change.summary.is_none()).collect()
}

/// How many there are of each kind.
fn kinds(changes: &ChangeList) -> String {
    let kinds = [
        ("created", ChangeKind::Created),
        ("changed", ChangeKind::Changed),
        ("deleted", ChangeKind::Deleted),
        ("mode changed", ChangeKind::Mode),
        ("linked", ChangeKind::Link),
        ("renamed", ChangeKind::Renamed),
    ];
    let all = paths(changes);
    let of = |kind| all.iter().filter(move |change| change.kind == kind);
    let counted = kinds.map(|(word, kind)| (word, of(kind).count(), of(kind).map(|change| change.size).sum()));
    let told: Vec<String> = counted
        .into_iter()
        .filter(|(_, count, _)| *count > 0)
        .map(|(word, count, size)| format!("{count} {word} ({})", bytes(size)))
        .collect();
    told.join(", ")
}

/// One change on one line.
pub(crate) fn change_line(change: &Change) -> String {
    let (word, style) = match change.kind {
        ChangeKind::Created => ("create", ADDED),
        ChangeKind::Changed => ("change", PLACE),
        ChangeKind::Deleted => ("delete", REMOVED),
        ChangeKind::Mode => ("mode", PLACE),
        ChangeKind::Link => ("link", PLACE),
        ChangeKind::Renamed => ("rename", PLACE),
    };
    let mut text = format!("{style}{word}{style:#} {}", name(&change.path));
    if change.directory {
        text.push('/');
    }
    if let Some(from) = &change.from {
        text.push_str(&format!(" from {}", name(from)));
    }
    if let Some((before, after)) = change.diff.as_deref().filter(|_| change.kind == ChangeKind::Link).map(targets) {
        let before = before.map_or_else(String::new, |before| format!(" (before: {})", name(before)));
        text.push_str(&format!(" → {}{before}", name(after.unwrap_or_default())));
    }
    let facts = facts(change);
    if !facts.is_empty() {
        text.push_str(&format!("  {DIM}{}{DIM:#}", facts.join(", ")));
    }
    for flag in &change.flags {
        text.push_str(&format!("  {WARN}! {}{WARN:#}", flag.words()));
    }
    text.push('\n');
    text
}

/// Where a link led before and where it leads now, from its diff.
fn targets(diff: &str) -> (Option<&str>, Option<&str>) {
    // Two lines of names and one of numbers come first.
    let side = |sign: char| diff.lines().skip(3).find_map(|line| line.strip_prefix(sign));
    (side('-'), side('+'))
}

/// A path as it can be trusted; a long one goes on beneath, indented.
fn name(path: &str) -> String {
    let text = plain_command(path).text.replace('\n', "⟨newline⟩");
    folded(&text, width().saturating_sub(INDENT)).join(&format!("\n{:INDENT$}", ""))
}

fn facts(change: &Change) -> Vec<String> {
    let mut facts = vec![];
    if !change.directory {
        facts.push(bytes(change.size));
    }
    if let Some(size) = change.replaces {
        facts.push(format!("replaces {}", bytes(size)));
    }
    if change.added + change.removed > 0 {
        facts.push(format!("+{} -{}", change.added, change.removed));
    }
    if change.binary {
        facts.push("binary".to_owned());
    }
    match (change.executable, change.kind) {
        (true, _) => facts.push("executable".to_owned()),
        (false, ChangeKind::Mode) if !change.directory && change.state != ChangeState::Undone => {
            facts.push("not executable".to_owned())
        }
        (false, _) => {}
    }
    facts
}
