//! What is offered for which call, and when nothing is.

use jiff::Timestamp;
use serde_json::json;

use super::{Breadth, folder, offers};
use crate::{
    About, CallId, CallerId, CallerRef, Change, ChangeKind, ChangeList, Described, Effect, Evidence, Flag, Question,
    Rememberable, ToolOutput, Turn, WrittenBounds, bounds::ChangeSubset,
};

fn change(path: &str) -> Change {
    Change { diff: Some("+x\n".into()), size: 10, added: 1, ..Change::staged(path, ChangeKind::Created) }
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
        number: 1,
        about: About::Approval(evidence),
        asked_by: CallerRef { id: CallerId::owner(), name: "ann".into() },
        workspace: None,
        asked_at: Timestamp::UNIX_EPOCH,
        expires_at: Timestamp::UNIX_EPOCH,
        escalated_at: None,
    }
}

fn offered(changes: Vec<Change>) -> Vec<(Breadth, WrittenBounds)> {
    let offers = offers(&question(staged(changes)), ChangeSubset::All).unwrap();
    offers.into_iter().map(|offer| (offer.breadth, offer.bounds.into())).collect()
}

fn withheld(changes: Vec<Change>) -> String {
    offers(&question(staged(changes)), ChangeSubset::All).unwrap_err().to_string()
}

fn written_in(glob: &str) -> WrittenBounds {
    let kinds = Some(vec![ChangeKind::Created, ChangeKind::Changed]);
    WrittenBounds { paths: Some(vec![glob.to_owned()]), kinds, ..WrittenBounds::default() }
}

#[test]
fn a_folder_covers_all_writing_and_nothing_else_that_was_not_seen() {
    use ChangeKind::{Changed, Created, Deleted};
    let of = |kind| Change { kind, ..change("src/b") };
    let kinds = |changes| offered(changes)[1].1.kinds.clone().unwrap();
    assert_eq!(kinds(vec![of(Created)]), [Created, Changed]);
    assert_eq!(kinds(vec![of(Changed)]), [Changed, Created]);
    assert_eq!(kinds(vec![of(Deleted)]), [Deleted]);
    assert_eq!(kinds(vec![of(Created), of(Deleted)]), [Created, Deleted, Changed]);
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
    let created = WrittenBounds { kinds: Some(vec![ChangeKind::Created]), ..none };
    let bounds = WrittenBounds { max_files: Some(1), max_bytes: Some(10), ..created };
    let expected = [(Breadth::Call, call), (Breadth::Folder, written_in("src/**")), (Breadth::Bounds, bounds)];
    assert_eq!(offered(vec![change("src/a")]), expected);
    let executable = Change { executable: true, ..change("src/a") };
    assert!(offered(vec![executable]).iter().all(|(_, bounds)| bounds.executables));
}

#[test]
fn only_the_very_call_is_offered_for_what_could_not_be_staged() {
    let offers = offers(&question(Evidence::Plain(Described::showing("POST"))), ChangeSubset::All).unwrap();
    assert_eq!(offers.len(), 1);
    assert_eq!(offers[0].breadth, Breadth::Call);
    let exactly = WrittenBounds { input: Some(json!({"path": "src/a"})), ..WrittenBounds::default() };
    assert_eq!(*offers[0].bounds.written(), exactly);
}

#[test]
fn nothing_is_offered_where_the_tool_says_so() {
    let lasting = Rememberable::No { why: "`bash` runs whatever it is given".into() };
    let described = Described { lasting, ..Described::showing("bash x.sh") };
    let why = offers(&question(Evidence::Plain(described)), ChangeSubset::All).unwrap_err().to_string();
    assert_eq!(why, "`bash` runs whatever it is given");
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
fn a_commit_is_told_in_one_line_and_others_may_follow() {
    let object = |name: &str, unit| {
        let path = format!(".git/objects/{name}");
        Change { diff: None, binary: true, unit, ..change(&path) }
    };
    let branch = Change { summary: Some("commit 1a2b3c on main".into()), unit: 4, ..change(".git/refs/heads/main") };
    let offers = offered(vec![object("1a/2b", 4), branch.clone()]);
    assert_eq!(offers[1].1, written_in(".git/**"));
    // Only what belongs to it.
    assert!(withheld(vec![object("1a/2b", 4), branch.clone(), object("x", 5)]).contains("objects/x"));
    let hook = Change { flags: vec![Flag::GitHook], unit: 4, ..change(".git/hooks/pre-push") };
    assert!(withheld(vec![branch, hook]).contains("is a git hook"));
}

#[test]
fn a_build_beside_it_makes_no_offer_broader() {
    let output = Change { derived: true, diff: None, binary: true, executable: true, ..change("build/app") };
    let question = question(staged(vec![output, change("src/gen/a")]));
    assert!(offers(&question, ChangeSubset::All).unwrap_err().to_string().contains("build/app"));
    let offers = offers(&question, ChangeSubset::Source).unwrap();
    assert_eq!(*offers[1].bounds.written(), written_in("src/gen/**"));
    assert_eq!(offers[2].bounds.written().max_files, Some(1));
}

#[test]
fn the_folder_is_the_deepest_that_holds_everything() {
    let table: &[(&[&str], &[&str])] = &[
        (&["a"], &["*"]),
        (&["a", "b"], &["*"]),
        (&["src/a"], &["src/**"]),
        (&["src/a", "src/b"], &["src/**"]),
        (&["src/a/x", "src/b"], &["src/**"]),
        (&["src/a", "doc/b"], &["**"]),
        (&["a", "doc/b"], &["**"]),
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
