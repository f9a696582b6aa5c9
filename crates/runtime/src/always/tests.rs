//! What is offered for which call, and when nothing is.

use jiff::Timestamp;
use serde_json::json;

use super::{Breadth, folder, offers};
use crate::{
    CallId, Change, ChangeKind, ChangeList, ChangeState, Effect, Evidence, Flag, Question, ToolOutput, Turn,
    WrittenBounds,
};

fn change(path: &str) -> Change {
    Change {
        replaces: None,
        path: path.into(),
        kind: ChangeKind::Created,
        from: None,
        diff: Some("+x\n".into()),
        binary: false,
        directory: false,
        executable: false,
        size: 10,
        added: 1,
        removed: 0,
        flags: vec![],
        state: ChangeState::Staged,
    }
}

fn staged(changes: Vec<Change>) -> Evidence {
    let turn = Turn::commit(CallId::new());
    Evidence::Staged { output: ToolOutput::default(), changes: ChangeList(changes), turn, isolation: None }
}

fn question(evidence: Evidence) -> Question {
    Question {
        called_as: None,
        call: CallId::new(),
        tool: "write_file".into(),
        input: json!({"path": "src/a"}),
        effect: Effect::Write,
        reason: "it writes".into(),
        nearly: None,
        evidence,
        asked_by: "ann".into(),
        workspace: None,
        asked_at: Timestamp::UNIX_EPOCH,
        expires_at: Timestamp::UNIX_EPOCH,
    }
}

fn offered(changes: Vec<Change>) -> Vec<(Breadth, WrittenBounds)> {
    let offers = offers(&question(staged(changes))).unwrap();
    offers.into_iter().map(|offer| (offer.breadth, offer.bounds.into())).collect()
}

fn withheld(changes: Vec<Change>) -> String {
    offers(&question(staged(changes))).unwrap_err().to_string()
}

#[test]
fn exactly_three_are_offered_for_what_was_staged() {
    let none = WrittenBounds::default();
    let call = WrittenBounds {
        input: Some(json!({"path": "src/a"})),
        paths: Some(vec!["src/a".into()]),
        kinds: Some(vec![ChangeKind::Created]),
        ..none.clone()
    };
    let folder = WrittenBounds { paths: Some(vec!["src/**".into()]), ..none.clone() };
    let bounds =
        WrittenBounds { kinds: Some(vec![ChangeKind::Created]), max_files: Some(1), max_bytes: Some(10), ..none };
    let expected = [(Breadth::Call, call), (Breadth::Folder, folder), (Breadth::Bounds, bounds)];
    assert_eq!(offered(vec![change("src/a")]), expected);
    let executable = Change { executable: true, ..change("src/a") };
    assert!(offered(vec![executable]).iter().all(|(_, bounds)| bounds.executables));
}

#[test]
fn only_the_very_call_is_offered_for_what_could_not_be_staged() {
    let offers = offers(&question(Evidence::Plain { preview: Some("POST".into()) })).unwrap();
    assert_eq!(offers.len(), 1);
    assert_eq!(offers[0].breadth, Breadth::Call);
    let exactly = WrittenBounds { input: Some(json!({"path": "src/a"})), ..WrittenBounds::default() };
    assert_eq!(*offers[0].bounds.written(), exactly);
}

#[test]
fn nothing_is_offered_for_what_must_be_looked_at_each_time() {
    let flagged = Change { flags: vec![Flag::RunsByItself], ..change(".envrc") };
    assert!(withheld(vec![change("a"), flagged]).contains("`.envrc` is run or obeyed by other programs"));
    let unseen = Change { diff: None, binary: true, ..change("a.png") };
    assert_eq!(withheld(vec![unseen.clone()]), "the content of `a.png` cannot be shown whole");
    assert_eq!(offered(vec![Change { kind: ChangeKind::Deleted, ..unseen.clone() }]).len(), 3);
    assert_eq!(offered(vec![Change { size: 0, ..unseen }]).len(), 3);
    let many = (0..1001).map(|number| change(&format!("src/{number}"))).collect();
    assert!(withheld(many).contains("too many"));
}

#[test]
fn the_folder_is_the_deepest_that_holds_everything() {
    let table: &[(&[&str], &[&str])] = &[
        (&["a"], &["**"]),
        (&["src/a"], &["src/**"]),
        (&["src/a", "src/b"], &["src/**"]),
        (&["src/a/x", "src/b"], &["src/**"]),
        (&["src/a", "doc/b"], &["**"]),
        (&["src/ab", "src/a/x"], &["src/**"]),
        (&["d", "d/a"], &["d", "d/**"]),
        (&["w*", "w*/a"], &["w\\*", "w\\*/**"]),
    ];
    for (paths, expected) in table {
        let changes = ChangeList(paths.iter().map(|path| change(path)).collect());
        assert_eq!(folder(&changes), *expected, "{paths:?}");
    }
    let moved = Change { from: Some("doc/b".into()), ..change("src/a") };
    assert_eq!(folder(&ChangeList(vec![moved])), ["**"]);
}
