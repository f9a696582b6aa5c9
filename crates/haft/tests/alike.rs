//! Questions that are alike, listed and answered together.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use serde_json::json;
use support::{Fixture, events, id, text};

/// Three writes to one folder, and one to a file that other programs obey.
fn asked(fixture: &Fixture) -> (Vec<String>, String) {
    fixture.put("src/old", "old\n");
    let write = |path: &str| fixture.pending("write_file", &json!({"path": path, "content": "text\n"}));
    let alike = ["src/a", "src/b", "src/c"].map(write).to_vec();
    (alike, write(".envrc"))
}

#[test]
fn one_yes_answers_all_that_are_alike_and_no_other() {
    let fixture = Fixture::new();
    let (alike, outlier) = asked(&fixture);
    let listed = fixture.run(&["approvals"]).stdout;
    assert!(listed.contains("3 alike") && listed.contains(&format!("haft approve {} --alike", alike[0])), "{listed}");
    assert_eq!(listed.matches(" alike").count(), 1, "{listed}");
    let open = fixture.json(&["approvals"]);
    assert_eq!((&open[0]["alike"], &open[3]["alike"]), (&json!([alike[1], alike[2]]), &json!([])));

    let answered = fixture.json(&["approve", &alike[1], "--alike"]);
    let ended: Vec<(String, String)> =
        answered.as_array().unwrap().iter().map(|outcome| (id(outcome), text(&outcome["status"]))).collect();
    let expected = [&alike[1], &alike[0], &alike[2]].map(|call| (call.clone(), "success".to_owned()));
    assert_eq!(ended, expected);
    assert!(["src/a", "src/b", "src/c"].iter().all(|path| fixture.text(path).as_deref() == Some("text\n")));
    for call in &alike {
        let story = fixture.story(call);
        assert!(events(&story).contains(&"tool.approved".to_owned()), "each has its own answer: {story}");
    }
    assert_eq!(fixture.json(&["approvals"]).as_array().map(Vec::len), Some(1));
    assert_eq!(fixture.text(".envrc"), None);

    let alone = fixture.json(&["approve", &outlier, "--alike"]);
    assert_eq!(alone.as_array().map(Vec::len), Some(1), "it is like no other");
    let late = fixture.run(&["approve", &alike[0], "--alike"]);
    assert!(late.code == Some(1) && late.stderr.contains("already answered: yes"), "{late:?}");
}

#[test]
fn alike_is_a_plain_yes_and_nothing_else() {
    let fixture = Fixture::new();
    let (alike, _) = asked(&fixture);
    for flags in [&["--always", "folder"][..], &["--input", "{}"]] {
        let ran = fixture.run(&[&["approve", &alike[0], "--alike"], flags].concat());
        assert_eq!(ran.code, Some(2), "{ran:?}");
    }
    assert_eq!(fixture.json(&["approvals"]).as_array().map(Vec::len), Some(4));
}

#[test]
fn whoever_watches_answers_all_that_are_alike_with_one_key() {
    let fixture = Fixture::new();
    let (_, outlier) = asked(&fixture);
    let ran = fixture.run_with_input(&["approvals", "--watch"], b"s\n".to_vec());
    assert!(ran.stderr.contains("[s]ame says yes to all 3"), "{ran:?}");
    let open = fixture.json(&["approvals"]);
    let open: Vec<&str> = open.as_array().unwrap().iter().filter_map(|question| question["callId"].as_str()).collect();
    assert_eq!(open, [outlier]);
    assert_eq!(fixture.text("src/c").as_deref(), Some("text\n"));
}
