//! Grants, rules and the policy commands through the program itself.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::fs;

use serde_json::{Value, json};
use support::{Fixture, Gate, Ran, id, text, user};

fn write(path: &str) -> Value {
    json!({"path": path, "content": "text\n"})
}

/// A call that waits, answered with these words after its id.
fn approve(fixture: &Fixture, path: &str, words: &[&str]) -> Ran {
    let call = fixture.pending("write_file", &write(path));
    fixture.run(&[&["approve", &call], words].concat())
}

fn grants(fixture: &Fixture) -> Vec<Value> {
    fixture.json(&["grants", "--all"]).as_array().unwrap().clone()
}

fn settings(fixture: &Fixture, text: &str) {
    let folder = fixture.home.join(".config/haft");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("haft.toml"), text).unwrap();
}

#[test]
fn a_remembered_yes_covers_its_folder_as_often_as_it_says() {
    let fixture = Fixture::new();
    fixture.put("src/here", "");
    let ran = approve(&fixture, "src/g1", &["--always", "folder", "--uses", "1", "--for", "8h"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let given = grants(&fixture).remove(0);
    let bounds = json!({"paths": ["src/**"], "kinds": ["created", "changed"]});
    assert_eq!((&given["bounds"], &given["usesLeft"]), (&bounds, &json!(1)), "{given}");
    assert_eq!((&given["caller"], &given["standing"]), (&json!({"kind": "owner", "id": "local"}), &json!("usable")));
    assert!(given["until"].is_string() && text(&given["id"]).starts_with("g_"), "{given}");
    assert!(ran.stderr.contains(&text(&given["id"])), "{ran:?}");

    let (code, outcome) = fixture.call("write_file", &write("src/g2"), &[]);
    assert_eq!((code, &outcome["approved_by"], &outcome["grant"]), (0, &json!("config"), &given["id"]), "{outcome}");
    fixture.pending("write_file", &write("src/g3"));
    fixture.pending("write_file", &write("elsewhere"));
    let spent = grants(&fixture).remove(0);
    assert_eq!((&spent["standing"], &spent["used"]), (&json!("spent"), &json!(1)), "{spent}");
    assert!(spent["lastUsed"].is_string());
    assert_eq!(fixture.json(&["grants"]), json!([]));
}

#[test]
fn sixteen_processes_spend_a_remembered_yes_exactly_as_often_as_it_says() {
    let fixture = Fixture::new();
    fixture.put("src/here", "");
    approve(&fixture, "src/first", &["--always", "folder", "--uses", "5"]);
    let mut gate = Gate::new();
    for turn in 0..16 {
        gate.add(&fixture, &["call", "write_file", &write(&format!("src/{turn}")).to_string(), "--json"]);
    }
    let ran = gate.open();
    let covered = ran.iter().filter(|one| one.code == Some(0)).count();
    let written = (0..16).filter(|turn| fixture.path(&format!("src/{turn}")).exists()).count();
    assert_eq!((covered, written), (5, 5), "{ran:?}");
    assert!(ran.iter().all(|one| matches!(one.code, Some(0 | 4))), "{ran:?}");
    let spent = grants(&fixture).remove(0);
    assert_eq!((&spent["used"], &spent["usesLeft"]), (&json!(5), &json!(0)));
}

#[test]
fn always_is_refused_where_it_cannot_be_meant() {
    let fixture = Fixture::new();
    let flagged = approve(&fixture, ".envrc", &["--always", "folder"]);
    assert_eq!(flagged.code, Some(1));
    assert!(
        flagged.stderr.contains("cannot be remembered") && flagged.stderr.contains("leave out `--always`"),
        "{flagged:?}"
    );
    assert_eq!(fixture.text(".envrc"), None, "the question stays open");
    let call = fixture.pending("write_file", &write("a"));
    for words in [
        &["--always", "everything"][..],
        &["--uses", "1"],
        &["--for", "8h"],
        &["--always", "call", "--uses", "0"],
        &["--always", "call", "--uses", "99999999999"],
        &["--always", "call", "--for", "0s"],
        &["--always", "call", "--for", "soon"],
        &["--always", "call", "--input", "{}"],
    ] {
        let ran = fixture.run(&[&["approve", &call], words].concat());
        assert_eq!(ran.code, Some(2), "{words:?}: {ran:?}");
    }
    assert!(grants(&fixture).is_empty());
    let plain = fixture.run(&["approve", &call, "--always", "call", "--for", "999999999d", "--json"]);
    assert_eq!((plain.code, &plain.json()["status"]), (Some(0), &json!("success")), "{plain:?}");
    let late = fixture.run(&["approve", &call, "--always", "call"]);
    assert!(late.code == Some(1) && late.stderr.contains("already answered: yes, always: g_"), "{late:?}");
    assert_eq!(grants(&fixture).len(), 1);
}

#[test]
fn what_could_not_be_staged_can_only_be_remembered_as_itself() {
    let fixture = Fixture::new();
    let staged = fixture.pending("write_file", &write("a"));
    fixture.put("a", "in the way\n");
    assert_eq!(fixture.run(&["approve", &staged]).code, Some(1), "a conflict leaves it staged");
    let drop = fixture.pending("discard_call", &json!({"callId": staged}));
    let folder = fixture.run(&["approve", &drop, "--always", "folder"]);
    assert!(folder.code == Some(1) && folder.stderr.contains("only `--always call`"), "{folder:?}");
    assert_eq!(fixture.run(&["approve", &drop, "--always", "call"]).code, Some(0));
    assert_eq!(grants(&fixture)[0]["bounds"], json!({"input": {"callId": staged}}));
}

#[test]
fn grants_are_added_shown_and_revoked() {
    let fixture = Fixture::new();
    let empty = fixture.run(&["grants"]);
    assert!(empty.stdout.contains("no grants here") && empty.stdout.contains("haft approve"), "{empty:?}");
    let words = ["grants", "add", "--tool", "write_file", "--paths", "out/**", "--paths", "*.log"];
    let limits = ["--kinds", "created,changed", "--max-files", "2", "--max-bytes", "1000", "--executables"];
    let added = fixture.json(&[&words[..], &limits, &["--for", "8h", "--uses", "3", "--caller", &user()]].concat());
    let bounds = json!({"paths": ["out/**", "*.log"], "kinds": ["created", "changed"], "max_files": 2,
        "max_bytes": 1000, "executables": true});
    let owner = json!({"kind": "owner", "id": "local"});
    assert_eq!((&added["bounds"], &added["caller"], &added["usesLeft"]), (&bounds, &owner, &json!(3)));
    assert_eq!(added["coverage"], json!({"covered": 0, "of": 0}));
    let grant = text(&added["id"]);
    let (code, outcome) = fixture.call("write_file", &write("a.log"), &[]);
    assert_eq!((code, &outcome["grant"]), (0, &json!(grant)), "{outcome}");
    let shown = fixture.json(&["grants", "show", &grant]);
    assert_eq!((&shown["used"], &shown["coverage"]), (&json!(1), &json!({"covered": 1, "of": 1})));
    let people = fixture.run(&["grants"]).stdout;
    assert!(people.lines().all(|line| line.chars().count() <= 80), "{people}");
    assert!(people.contains("2 uses left, ends in 8h") && people.contains("used once"), "{people}");

    assert_eq!(fixture.json(&["grants", "revoke", &grant])["standing"], "revoked");
    fixture.pending("write_file", &write("b.log"));
    let again = fixture.run(&["grants", "revoke", &grant]);
    assert!(again.code == Some(1) && again.stderr.contains("is revoked already"), "{again:?}");
    assert!(fixture.run(&["grants"]).stdout.contains("1 grant is revoked, expired or used up"));
}

#[test]
fn a_grant_that_can_cover_nothing_is_not_taken() {
    let fixture = Fixture::new();
    let table: [(&[&str], i32, &str); 15] = [
        (&["--paths", "**/../x"], 1, "can match nothing"),
        (&["--paths", "/etc/**"], 1, "can match nothing"),
        (&["--paths", ""], 1, "can match nothing"),
        (&["--paths", "["], 1, "is no glob"),
        (&["--max-files", "0"], 1, "at least 1"),
        (&["--max-files", "99999999999999999999999"], 2, "too large"),
        (&["--max-files=-1"], 2, "invalid digit"),
        (&["--max-bytes", "18446744073709551616"], 2, "too large"),
        (&["--kinds", "made"], 2, "unknown variant"),
        (&["--uses", "0"], 2, "0 is not in"),
        (&["--caller", "claude"], 1, "names no caller"),
        (&["--for", "-3h"], 2, "unexpected argument"),
        (&["--for=0h"], 2, "covers nothing"),
        (&["--for", "9e999h"], 2, "length of time"),
        (&["--tool", "delete_file"], 2, "cannot be used multiple times"),
    ];
    for (words, code, said) in table {
        let ran = fixture.run(&[&["grants", "add", "--tool", "write_file"], words].concat());
        assert_eq!(ran.code, Some(code), "{words:?}: {ran:?}");
        assert!(ran.stderr.contains(said), "{words:?}: {ran:?}");
    }
    let unknown = fixture.run(&["grants", "add", "--tool", "write_fil"]);
    assert!(unknown.code == Some(1) && unknown.stderr.contains("did you mean `write_file`"), "{unknown:?}");
    for (words, said) in [
        (["grants", "show", "g_1"], "no grant begins with g_1"),
        (["grants", "show", "g_x"], "is not the id of a grant"),
        (["grants", "revoke", "g_00000000000000000000000000000000"], "there is no grant"),
        (["grants", "show", "tc_00000000000000000000000000000000"], "is not the id of a grant"),
    ] {
        let ran = fixture.run(&words);
        assert!(ran.code == Some(1) && ran.stderr.contains(said), "{words:?}: {ran:?}");
    }
    assert!(grants(&fixture).is_empty());
    let huge = ["--max-bytes", "18446744073709551615", "--uses", "4294967295", "--for", "99999999d"];
    let taken = fixture.run(&[&["grants", "add", "--tool", "write_file"], &huge[..]].concat());
    assert_eq!(taken.code, Some(0), "{taken:?}");
    assert_eq!(fixture.call("write_file", &write("a"), &[]).0, 0);
}

#[test]
fn rules_of_the_settings_decide_and_faults_in_them_are_told_at_the_start() {
    let fixture = Fixture::new();
    settings(&fixture, "[[rule]]\ntool = \"write_file\"\ndecision = \"allow\"\nbounds = { paths = [\"out/*\"] }\n");
    fixture.put("out/here", "");
    let (code, outcome) = fixture.call("write_file", &write("out/a"), &[]);
    assert_eq!((code, &outcome["approved_by"]), (0, &json!("config")), "{outcome}");
    let call = fixture.pending("write_file", &write("b"));
    let open = fixture.json(&["approvals"]);
    let nearly = text(&open[0]["nearly"]);
    assert_eq!(nearly, "rule 1 of your settings does not cover it: `b` lies outside its paths");
    assert!(fixture.run(&["approvals"]).stdout.contains("does not cover it"));
    fixture.run(&["reject", &call]);
    for (text, said) in [
        ("[[rule]]\ndecision = \"allow\"\nbounds = { paths = [\"a[\"] }", "rule 1 of your settings"),
        ("[[rule]]\ndecision = \"allow\"\nbound = {}", "did you mean `bounds`"),
        ("[[rules]]\ndecision = \"allow\"", "did you mean `rule`"),
        ("[approvals]\nprofile = \"loose\"", "strict or dynamic"),
    ] {
        settings(&fixture, text);
        let ran = fixture.run(&["call", "write_file", &write("out/b").to_string()]);
        assert!(ran.code == Some(1) && ran.stderr.contains(said), "{text}: {ran:?}");
    }
    assert_eq!(fixture.text("out/b"), None);
}

#[test]
fn a_policy_is_tried_on_what_was_recorded() {
    let fixture = Fixture::new();
    fixture.put("a.txt", "a\n");
    fixture.call("read_file", &json!({"path": "a.txt"}), &[]);
    fixture.call("read_file", &json!({"path": "gone"}), &[]);
    fixture.call("write_file", &write("b"), support::ALL);
    let asked = fixture.pending("write_file", &write("c"));
    let before = fixture.picture();
    let nothing = fixture.json(&["policy", "test"]);
    assert_eq!(nothing["differing"], json!([]), "the rules are as they were: {nothing}");
    assert_eq!(nothing["same"], 4, "a read that failed was decided too: {nothing}");
    let file = fixture.home.join("try.toml");
    fs::write(
        &file,
        "[approvals]\nprofile = \"dynamic\"\n[[rule]]\ndecision = \"deny\"\nbounds = { paths = [\"b\"] }\n",
    )
    .unwrap();
    let tried = fixture.json(&["policy", "test", "--rules", file.to_str().unwrap()]);
    let differing: Vec<_> =
        tried["differing"].as_array().unwrap().iter().map(|one| (&one["was"], &one["now"])).collect();
    assert_eq!(differing, [(&json!("ask"), &json!("yes")), (&json!("yes"), &json!("no"))], "{tried}");
    assert_eq!(tried["differing"][0]["callId"], json!(asked));
    assert_eq!(fixture.json(&["policy", "test", "--last", "1", "--rules", file.to_str().unwrap()])["same"], 0);
    let people = fixture.run(&["policy", "test", "--rules", file.to_str().unwrap()]).stdout;
    assert!(people.contains("ask → yes") && people.contains("nothing ran"), "{people}");
    assert_eq!(fixture.picture(), before);
    assert_eq!(fixture.story(&asked)["status"], "pending");
    let missing = fixture.run(&["policy", "test", "--rules", "nowhere.toml"]);
    assert!(missing.code == Some(1) && missing.stderr.contains("cannot read"), "{missing:?}");
}

#[test]
fn a_call_is_explained_step_by_step() {
    let fixture = Fixture::new();
    settings(&fixture, "[[rule]]\ndecision = \"deny\"\nreason = \"keep out\"\nbounds = { paths = [\"secret/**\"] }\n");
    fixture.put("secret/here", "");
    let steps = |call: &str| -> Vec<(String, bool)> {
        let told = fixture.json(&["policy", "explain", call]);
        let steps = told["steps"].as_array().unwrap();
        steps.iter().map(|step| (text(&step["lookedAt"]), step["decided"] == true)).collect()
    };
    let asked = fixture.pending("write_file", &write("a"));
    let looked = steps(&asked);
    assert_eq!(looked.last().unwrap(), &("nothing allows it, so it asks".to_owned(), true));
    assert_eq!(looked[0], ("rule 1 of your settings (deny)".to_owned(), false));
    assert_eq!(looked.iter().filter(|(_, decided)| *decided).count(), 1);
    let (_, refused) = fixture.call("write_file", &write("secret/a"), &[]);
    assert_eq!(refused["error"]["code"], "FORBIDDEN", "{refused}");
    assert_eq!(steps(&id(&refused)), [("rule 1 of your settings (deny)".to_owned(), true)]);
    let (_, read) = fixture.call("read_file", &json!({"path": "secret/here"}), &[]);
    assert_eq!(steps(&id(&read)).last().unwrap().0, "it only reads");

    fixture.run(&["approve", &asked, "--always", "call"]);
    let told = fixture.json(&["policy", "explain", &asked]);
    assert_eq!((&told["was"], &told["now"]), (&json!("ask"), &json!("yes")), "{told}");
    let people = fixture.run(&["policy", "explain", &asked]).stdout;
    assert!(people.contains("→ grant g_") && people.contains("Then it asked;"), "{people}");
    let (_, bad) = fixture.call("read_file", &json!({"pth": 1}), &[]);
    let ran = fixture.run(&["policy", "explain", &id(&bad)]);
    assert!(ran.code == Some(1) && ran.stderr.contains("ended before anything was decided"), "{ran:?}");
}

#[test]
fn the_rules_in_force_are_listed() {
    let fixture = Fixture::new();
    let shipped = fixture.run(&["policy"]).stdout;
    assert!(shipped.contains("the built-in rule `derived`") && shipped.contains("only build output"), "{shipped}");
    settings(&fixture, "[approvals]\nderived = false\n");
    assert!(fixture.run(&["policy"]).stdout.contains("no rules"));
    let rule = "[[rule]]\ntool = \"edit\"\ndecision = \"ask\"\n[[rule]]\ntool = \"write_fil\"\ndecision = \"deny\"\n";
    settings(&fixture, &format!("[approvals]\nprofile = \"dynamic\"\n{rule}"));
    let listed = fixture.json(&["policy"]);
    let names: Vec<_> = listed.as_array().unwrap().iter().map(|rule| text(&rule["name"])).collect();
    let shipped = ["the built-in rule `derived`", "the built-in rule `dynamic`"];
    assert_eq!(names, ["rule 1 of your settings", "rule 2 of your settings", shipped[0], shipped[1]]);
    assert_eq!(listed[0]["tool"], "edit_file", "an alias is understood");
    let people = fixture.run(&["policy"]).stdout;
    assert!(people.contains("there is no tool `write_fil` here; did you mean `write_file`"), "{people}");
}
