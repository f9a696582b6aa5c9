//! What questions have in common that one answer fits as well as another.

use std::collections::BTreeSet;

use crate::{Change, ChangeKind, Evidence, Flag, Isolation, Question, WorkspaceId, bounds::touched};

/// The effect of a staged call in broad strokes: where it changes things, in which way, and how well it was fenced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    tool: String,
    workspace: Option<WorkspaceId>,
    groups: BTreeSet<ChangeGroup>,
    isolation: Option<Isolation>,
}

/// One sort of change in one place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ChangeGroup {
    /// The top folder; the whole path of what lies in none, or must be looked at twice.
    place: String,
    kind: ChangeKind,
    flags: Vec<Flag>,
    derived: bool,
}

impl Question {
    /// `None` where the effect cannot be seen before: such a call is like no other.
    pub fn signature(&self) -> Option<Signature> {
        let Some(Evidence::Staged { changes, isolation, .. }) = self.evidence() else { return None };
        let groups = changes.0.iter().flat_map(groups).collect();
        Some(Signature { tool: self.tool.clone(), workspace: self.workspace.clone(), groups, isolation: *isolation })
    }
}

fn groups(change: &Change) -> impl Iterator<Item = ChangeGroup> {
    touched(change).map(|path| {
        let place = match path.split_once('/') {
            Some((top, _)) if change.flags.is_empty() => top,
            Some(_) | None => path,
        };
        let (kind, derived) = (change.kind, change.derived);
        ChangeGroup { place: place.to_owned(), kind, flags: change.flags.clone(), derived }
    })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::Signature;
    use crate::{
        About, CallId, Change, ChangeKind, ChangeList, Described, Effect, Evidence, Flag, Isolation, Question,
        ToolOutput, Turn,
    };

    fn question(changes: Vec<Change>) -> Question {
        let (call, isolation) = (CallId::new(), Some(Isolation::Namespaces));
        let (output, turn) = (ToolOutput::default(), Turn::commit(call.clone()));
        Question {
            call,
            tool: "shell_exec".into(),
            input: json!({}),
            called_as: None,
            effect: Effect::Write,
            reason: "it writes".into(),
            nearly: None,
            number: 1,
            about: About::Approval(Evidence::Staged { output, changes: ChangeList(changes), turn, isolation }),
            asked_by: crate::CallerRef { id: crate::CallerId::owner(), name: "ann".into() },
            workspace: Some(crate::WorkspaceId::new("/w")),
            asked_at: Timestamp::UNIX_EPOCH,
            expires_at: Timestamp::UNIX_EPOCH,
            escalated_at: None,
        }
    }

    /// Adding a package: its folder, and the two files that name it.
    fn install(package: &str) -> Vec<Change> {
        vec![
            Change::staged(format!("node_modules/{package}/index.js"), ChangeKind::Created),
            Change::staged("package.json", ChangeKind::Changed),
            Change::staged("package-lock.json", ChangeKind::Changed),
        ]
    }

    fn signature(changes: Vec<Change>) -> Signature {
        question(changes).signature().unwrap()
    }

    #[test]
    fn two_of_a_kind_are_alike() {
        assert_eq!(signature(install("left-pad")), signature(install("right-pad")));
        let twice = [install("left-pad"), install("right-pad")].concat();
        assert_eq!(signature(twice), signature(install("left-pad")), "how many there are does not matter");
    }

    #[test]
    fn whatever_does_something_else_is_an_outlier() {
        let usual = signature(install("left-pad"));
        let hook =
            Change { flags: vec![Flag::GitHook], ..Change::staged(".git/hooks/post-merge", ChangeKind::Created) };
        let moved = Change { from: Some("src/a".into()), ..Change::staged("node_modules/a", ChangeKind::Renamed) };
        let derived = Change { derived: true, ..Change::staged("node_modules/a", ChangeKind::Created) };
        for other in [
            hook,
            moved,
            derived,
            Change::staged("node_modules/a", ChangeKind::Deleted),
            Change::staged("src/a", ChangeKind::Created),
            Change::staged("Makefile", ChangeKind::Changed),
        ] {
            assert_ne!(signature([install("left-pad"), vec![other.clone()]].concat()), usual, "{other:?}");
        }
        let same = question(install("left-pad"));
        let elsewhere = Question { workspace: Some(crate::WorkspaceId::new("/v")), ..same.clone() };
        let by_another_tool = Question { tool: "run_code".into(), ..same.clone() };
        let mut lower = same.clone();
        if let About::Approval(Evidence::Staged { isolation, .. }) = &mut lower.about {
            *isolation = Some(Isolation::Landlock);
        }
        for other in [elsewhere, by_another_tool, lower] {
            assert_ne!(other.signature(), same.signature());
        }
    }

    #[test]
    fn what_must_be_looked_at_twice_is_alike_by_its_very_path_only() {
        let flagged =
            |path: &str| vec![Change { flags: vec![Flag::RunsByItself], ..Change::staged(path, ChangeKind::Changed) }];
        assert_eq!(signature(flagged(".vscode/tasks.json")), signature(flagged(".vscode/tasks.json")));
        assert_ne!(signature(flagged(".vscode/tasks.json")), signature(flagged(".vscode/launch.json")));
    }

    #[test]
    fn what_can_only_be_described_is_like_nothing() {
        let about = About::Approval(Evidence::Plain(Described::default()));
        let plain = Question { about, ..question(vec![]) };
        assert!(plain.signature().is_none());
    }
}
