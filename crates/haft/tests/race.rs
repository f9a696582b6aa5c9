//! Many processes at once: one answer counts, a grant is spent as often as it says, and no edit is lost.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that cannot go on fails")]

mod support;

use haft_runtime::{Bounds, Grant, Questions, Scope, WrittenBounds};
use haft_store::{Durability, Store};
use serde_json::json;
use support::{ALL, Fixture, Gate, events, text};

#[test]
fn of_sixteen_answers_one_counts() {
    let fixture = Fixture::new();
    for round in 0..3 {
        let path = format!("answered{round}.txt");
        let call = fixture.pending("write_file", &json!({"path": path, "content": "yes\n"}));
        let mut gate = Gate::new();
        for turn in 0..16 {
            let word = if turn % 2 == 0 { "approve" } else { "reject" };
            gate.add(&fixture, &[word, &call, "--json"]);
        }
        let ran = gate.open();
        let counted: Vec<usize> = (0..16).filter(|&turn| ran[turn].code == Some(0)).collect();
        assert_eq!(counted.len(), 1, "{ran:?}");
        let approved = counted[0].is_multiple_of(2);
        let status = if approved { "success" } else { "rejected" };
        assert_eq!(ran[counted[0]].json()["status"], status, "{:?}", ran[counted[0]]);
        for (turn, other) in ran.iter().enumerate().filter(|(turn, _)| *turn != counted[0]) {
            assert_eq!(other.code, Some(1), "{turn}: {other:?}");
            let told = text(&other.json()["error"]["message"]);
            let decided = if approved { "already answered: yes" } else { "already answered: no" };
            assert!(told.contains(decided) && told.contains(&support::user()), "{turn}: {told}");
        }
        let expected = approved.then_some("yes\n");
        assert_eq!(fixture.text(&path).as_deref(), expected);
        let story = fixture.story(&call);
        assert_eq!(story["status"], status, "{story}");
        let committed = events(&story).iter().filter(|event| *event == "changes.committed").count();
        assert_eq!(committed, usize::from(approved), "{story}");
    }
    assert_eq!(fixture.json(&["approvals"]), json!([]));
}

/// The same when the process that asked is still there and carries the call on itself.
#[test]
fn of_sixteen_answers_to_a_live_owner_one_counts() {
    let fixture = Fixture::new();
    let input = r#"{"path":"answered.txt","content":"yes\n"}"#;
    let owner = support::Running::start(fixture.haft(&["call", "write_file", input, "--json", "--wait", "100"]));
    let call = fixture.asked(&[]);
    let mut gate = Gate::new();
    for turn in 0..16 {
        gate.add(&fixture, &[if turn % 2 == 0 { "reject" } else { "approve" }, &call, "--json"]);
    }
    let ran = gate.open();
    let counted: Vec<usize> = (0..16).filter(|&turn| ran[turn].code == Some(0)).collect();
    assert_eq!(counted.len(), 1, "{ran:?}");
    let (code, status) = if counted[0].is_multiple_of(2) { (3, "rejected") } else { (0, "success") };
    let owner = owner.finish();
    assert_eq!((owner.code, owner.json()["status"].as_str()), (Some(code), Some(status)), "{owner:?}");
    assert_eq!(fixture.path("answered.txt").exists(), status == "success");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_uses_of_a_grant_are_spent_once_each() {
    for uses in [1, 3] {
        let fixture = Fixture::new();
        fixture.put("granted/here", "");
        let grant = remember(&fixture, uses).await;
        let mut gate = Gate::new();
        for turn in 0..16 {
            let input = json!({"path": format!("granted/{turn}.txt"), "content": format!("{turn}\n")}).to_string();
            gate.add(&fixture, &["call", "write_file", &input, "--json"]);
        }
        let ran = gate.open();
        let mut granted = 0;
        for (turn, one) in ran.iter().enumerate() {
            let outcome = one.json();
            let written = fixture.text(&format!("granted/{turn}.txt"));
            if one.code == Some(0) {
                granted += 1;
                assert_eq!(
                    (&outcome["approved_by"], &outcome["grant"]),
                    (&json!("config"), &json!(grant)),
                    "{outcome}"
                );
                assert_eq!(written, Some(format!("{turn}\n")));
            } else {
                assert_eq!((one.code, &outcome["status"]), (Some(4), &json!("pending")), "{outcome}");
                assert_eq!(written, None);
            }
        }
        assert_eq!(granted, uses, "{ran:?}");
        let open = fixture.json(&["approvals"]);
        assert_eq!(open.as_array().unwrap().len(), 16 - uses as usize);
    }
}

/// Remembers a yes for the folder `granted`, as often as that.
async fn remember(fixture: &Fixture, uses: u32) -> String {
    let store = Store::open(&fixture.data, Durability::Normal).await.unwrap();
    let bounds = WrittenBounds { paths: Some(vec!["granted/**".to_owned()]), ..WrittenBounds::default() };
    let grant = Grant { uses_left: Some(uses), ..Grant::new("write_file", Bounds::try_from(bounds).unwrap()) };
    let scope = Scope::local(fixture.workspace.to_string_lossy());
    Questions::remember(&store, &scope, &grant).await.unwrap();
    store.close().await.unwrap();
    grant.id.to_string()
}

#[test]
fn sixteen_writers_of_different_files_all_succeed() {
    let fixture = Fixture::new();
    fixture.put("deep/here", "");
    let mut gate = Gate::new();
    for turn in 0..16 {
        let input = json!({"path": format!("deep/{turn}.txt"), "content": format!("{turn}\n")}).to_string();
        gate.add(&fixture, &[&["call", "write_file", &input, "--json"], ALL].concat());
    }
    for (turn, one) in gate.open().iter().enumerate() {
        assert_eq!(one.code, Some(0), "{one:?}");
        assert_eq!(fixture.text(&format!("deep/{turn}.txt")), Some(format!("{turn}\n")));
    }
    assert_eq!(fixture.json(&["log", "--limit", "100"]).as_array().unwrap().len(), 16);
}

/// Whoever comes second to make the same new folders sees that something is there that was not.
#[test]
fn makers_of_the_same_folders_succeed_or_conflict() {
    for _ in 0..3 {
        let fixture = Fixture::new();
        let mut gate = Gate::new();
        for turn in 0..16 {
            let path = format!("deep/er/{turn}.txt");
            let input = json!({"path": path, "content": format!("{turn}\n"), "createDirs": true}).to_string();
            gate.add(&fixture, &[&["call", "write_file", &input, "--json"], ALL].concat());
        }
        let ran = gate.open();
        for (turn, one) in ran.iter().enumerate() {
            let (outcome, written) = (one.json(), fixture.text(&format!("deep/er/{turn}.txt")));
            if one.code == Some(0) {
                assert_eq!(written, Some(format!("{turn}\n")));
            } else {
                assert_eq!((&outcome["error"]["code"], written), (&json!("CONFLICT"), None), "{outcome}");
            }
        }
        assert!(ran.iter().any(|one| one.code == Some(0)), "{ran:?}");
    }
}

#[test]
fn edits_of_one_file_conflict_or_are_all_there() {
    let fixture = Fixture::new();
    for round in 0..4 {
        let line = |turn: usize| format!("line {turn} is old");
        let before: Vec<String> = (0..8).map(line).collect();
        fixture.put("shared.txt", before.join("\n") + "\n");
        let mut gate = Gate::new();
        for turn in 0..8 {
            let input = json!({"path": "shared.txt", "old": line(turn), "new": format!("line {turn} is new")});
            gate.add(&fixture, &[&["call", "edit_file", &input.to_string(), "--json"], ALL].concat());
        }
        let ran = gate.open();
        let mut expected = Vec::new();
        for (turn, one) in ran.iter().enumerate() {
            let outcome = one.json();
            if one.code == Some(0) {
                expected.push(format!("line {turn} is new"));
            } else {
                assert_eq!((one.code, &outcome["error"]["code"]), (Some(1), &json!("CONFLICT")), "{outcome}");
                expected.push(line(turn));
            }
        }
        assert!(ran.iter().any(|one| one.code == Some(0)), "{ran:?}");
        assert_eq!(fixture.text("shared.txt"), Some(expected.join("\n") + "\n"), "round {round}");
    }
}

#[test]
fn sixteen_first_starts_make_one_store() {
    let fixture = Fixture::new();
    fixture.put("a.txt", "a\n");
    let mut gate = Gate::new();
    for _ in 0..16 {
        gate.add(&fixture, &["call", "read_file", "--path", "a.txt", "--json"]);
    }
    for one in gate.open() {
        assert_eq!(one.code, Some(0), "{one:?}");
    }
    assert_eq!(fixture.json(&["log"]).as_array().unwrap().len(), 16);
}
