//! The approval card: what a yes covers, computed by haft, nothing hidden.

use haft_runtime::{Change, ChangeKind, ChangeList, Evidence, Question, Redactor};

use crate::show::{
    diff::coloured,
    safe::safe,
    style::{ADDED, DIM, PLACE, REMOVED, STRONG, WARN},
    table::{width, wrapped},
    time::{ago, bytes},
};

/// How many lines of each diff a card shows before `d` is pressed.
const SHORT_DIFF: usize = 20;
/// How many changes a card lists before `d` is pressed.
const SHORT_LIST: usize = 40;

/// How much of the diffs to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    Short,
    Whole,
}

/// The card of one question. What a yes commits is shown as it is; secrets in what can only be described are marked, and
/// the whole card shows them too: nothing that is approved is out of sight.
pub(crate) fn card(question: &Question, depth: Depth, redactor: &Redactor) -> String {
    let mut text = format!(
        "{STRONG}{}{STRONG:#} {DIM}{}{DIM:#}  asked {} by {}\n",
        question.tool,
        question.call,
        ago(question.asked_at),
        safe(&question.asked_by)
    );
    text.push_str(&format!("{DIM}why asked:{DIM:#} {}\n", safe(&question.reason)));
    if let Some(nearly) = &question.nearly {
        text.push_str(&format!("{DIM}{}{DIM:#}\n", wrapped(&safe(nearly), width())));
    }
    match &question.evidence {
        Evidence::Staged { changes, .. } => {
            text.push_str(&changes_text(changes, depth));
            text.push_str(&format!("{DIM}a yes commits exactly this; it can be undone later{DIM:#}\n"));
        }
        Evidence::Plain { preview } => {
            text.push_str(&described(question, preview.as_deref(), depth, redactor));
            text.push_str(&format!("{WARN}it cannot be previewed further, and cannot be undone{WARN:#}\n"));
        }
    }
    text
}

/// The input, and what the tool itself says of it.
fn described(question: &Question, preview: Option<&str>, depth: Depth, redactor: &Redactor) -> String {
    let exact = (question.input.clone(), preview.map(str::to_owned));
    let shown = match depth {
        Depth::Short => (redactor.value(&exact.0), preview.map(|text| redactor.text(text).into_owned())),
        Depth::Whole => exact.clone(),
    };
    let pretty = serde_json::to_string_pretty(&shown.0).unwrap_or_default();
    let mut text = format!("{}\n", safe(&pretty));
    if let Some(preview) = &shown.1 {
        text.push_str(&format!("{}\n", safe(preview)));
    }
    if shown != exact {
        text.push_str(&format!(
            "{WARN}[redacted] stands for what looks like a secret; d at the prompt shows it{WARN:#}\n"
        ));
    }
    text
}

/// A list of changes with their diffs, flagged ones first.
pub(crate) fn changes_text(changes: &ChangeList, depth: Depth) -> String {
    let (list, diff) = match depth {
        Depth::Short => (SHORT_LIST, SHORT_DIFF),
        Depth::Whole => (usize::MAX, usize::MAX),
    };
    let mut sorted: Vec<&Change> = changes.0.iter().collect();
    sorted.sort_by_key(|change| change.flags.is_empty());
    let mut text = if sorted.len() > list { counts(changes) } else { String::new() };
    for change in sorted.iter().take(list) {
        text.push_str(&change_line(change));
        if let Some(shown) = &change.diff {
            text.push_str(&coloured(shown, diff));
        }
    }
    if sorted.len() > list {
        text.push_str(&format!("{DIM}… {} more paths{DIM:#}\n", sorted.len() - list));
    }
    text
}

/// How many there are of each kind, for a list that is not shown whole.
fn counts(changes: &ChangeList) -> String {
    let kinds = [
        ("created", ChangeKind::Created),
        ("changed", ChangeKind::Changed),
        ("deleted", ChangeKind::Deleted),
        ("with another mode", ChangeKind::Mode),
        ("linked", ChangeKind::Link),
        ("renamed", ChangeKind::Renamed),
    ];
    let of = |kind| changes.0.iter().filter(move |change| change.kind == kind);
    let counted = kinds.map(|(word, kind)| (word, of(kind).count(), of(kind).map(|change| change.size).sum()));
    let told: Vec<String> = counted
        .into_iter()
        .filter(|(_, count, _)| *count > 0)
        .map(|(word, count, size)| format!("{count} {word} ({})", bytes(size)))
        .collect();
    format!("{STRONG}{} paths{STRONG:#}: {}\n", changes.0.len(), told.join(", "))
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
    let mut text = format!("{style}{word}{style:#} {}", safe(&change.path).replace('\n', "⟨newline⟩"));
    if change.directory {
        text.push('/');
    }
    if let Some(from) = &change.from {
        text.push_str(&format!(" from {}", safe(from)));
    }
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
    if change.executable {
        facts.push("executable".to_owned());
    }
    if !facts.is_empty() {
        text.push_str(&format!("  {DIM}{}{DIM:#}", facts.join(", ")));
    }
    for flag in &change.flags {
        text.push_str(&format!("  {WARN}! {}{WARN:#}", flag.words()));
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use haft_runtime::{CallId, Effect, Evidence, Question, Redactor};
    use jiff::Timestamp;
    use serde_json::json;

    use super::{Depth, card};

    #[test]
    fn a_secret_that_can_only_be_described_is_marked_and_can_be_seen() {
        let question = Question {
            called_as: None,
            call: CallId::new(),
            tool: "push".into(),
            input: json!({"to": "main", "apiKey": "abc"}),
            effect: Effect::Write,
            reason: "it acts outside".into(),
            nearly: None,
            evidence: Evidence::Plain { preview: Some("push --token abc123def".into()) },
            asked_by: "anna".into(),
            workspace: None,
            asked_at: Timestamp::now(),
            expires_at: Timestamp::now(),
        };
        let short = card(&question, Depth::Short, &Redactor::default());
        assert!(short.contains("\"to\": \"main\"") && short.contains("\"apiKey\": \"[redacted]\""), "{short}");
        assert!(!short.contains("abc123def") && short.contains("d at the prompt shows it"), "{short}");
        let whole = card(&question, Depth::Whole, &Redactor::default());
        assert!(whole.contains("\"abc\"") && whole.contains("abc123def") && !whole.contains("redacted"), "{whole}");
    }
}
