//! Documents follow their files, whoever changes them, and answers wait for that.

use std::{
    fs,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::bench::Bench;

fn text_of<'a>(state: &'a Value, name: &str) -> Option<&'a str> {
    let documents = state["documents"].as_object().unwrap();
    documents.iter().find(|(address, _)| address.ends_with(name)).and_then(|(_, document)| document["text"].as_str())
}

fn has(state: &Value, name: &str, kind: u32) -> bool {
    events(state).contains(&json!([name, kind]))
}

fn events(state: &Value) -> &[Value] {
    state["events"].as_array().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_change_is_seen_by_the_next_question() {
    let bench = Bench::fake(json!({}));
    for name in ["a.fake", "b.fake", "sub/c.fake", "plain.txt", "ignored/d.fake"] {
        bench.fixture.put(name, "one");
    }
    bench.fixture.put(".gitignore", "ignored/");
    let state = bench.state("a.fake").await;
    assert_eq!((text_of(&state, "/a.fake"), text_of(&state, "/plain.txt")), (Some("one"), None));
    // The same size each time, and as quickly as it goes.
    for text in ["two", "3rd", "4th", "5th"] {
        bench.fixture.put("a.fake", text);
        let state = bench.state("a.fake").await;
        assert_eq!(text_of(&state, "/a.fake"), Some(text));
    }
    bench.fixture.put("b.fake", "changed");
    bench.fixture.put("sub/new.fake", "made");
    fs::remove_file(bench.fixture.path("sub/c.fake")).unwrap();
    bench.fixture.put("Cargo.toml", "[package]");
    bench.fixture.put("plain.txt", "two");
    bench.fixture.put("ignored/d.fake", "two");
    let state = bench.state("a.fake").await;
    assert!(has(&state, "b.fake", 2) && has(&state, "new.fake", 1) && has(&state, "c.fake", 3), "{state:#}");
    assert!(has(&state, "Cargo.toml", 1) && !has(&state, "plain.txt", 2) && !has(&state, "d.fake", 2), "{state:#}");
    assert_eq!((text_of(&state, "/b.fake"), text_of(&state, "/new.fake")), (Some("changed"), Some("made")));
    fs::remove_file(bench.fixture.path("b.fake")).unwrap();
    let state = bench.state("a.fake").await;
    assert!(has(&state, "b.fake", 3) && text_of(&state, "/b.fake").is_none(), "{state:#}");
}

/// Asks until what was written before is so old that its stamps are believed.
async fn settled(bench: &Bench) -> Value {
    let began = Instant::now();
    loop {
        let state = bench.state("a.fake").await;
        if began.elapsed() > Duration::from_millis(100) {
            return state;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_long_been_the_same_is_seen_to_change() {
    let bench = Bench::fake(json!({}));
    let path = |name: &str| bench.fixture.path(name);
    for name in ["a.fake", "b.fake", "sub/c.fake", "empty/plain.txt", "ignored/d.fake", "excluded/e.fake"] {
        bench.fixture.put(name, "one");
    }
    bench.fixture.put(".gitignore", "ignored/");
    bench.fixture.put(".git/info/exclude", "excluded/");
    let steps: [(&dyn Fn(), &str, u32); 7] = [
        (&|| bench.fixture.put("sub/c.fake", "two"), "c.fake", 2),
        (&|| bench.fixture.put("empty/f.fake", "new"), "f.fake", 1),
        (&|| fs::rename(path("empty/f.fake"), path("sub/g.fake")).unwrap(), "g.fake", 1),
        (&|| fs::create_dir_all(path("deep/er")).unwrap(), "", 0),
        (&|| bench.fixture.put("deep/er/h.fake", "new"), "h.fake", 1),
        (&|| bench.fixture.put(".gitignore", "others/"), "d.fake", 1),
        (&|| bench.fixture.put(".git/info/exclude", "others/"), "e.fake", 1),
    ];
    for (step, name, kind) in steps {
        let before = events(&settled(&bench).await).len();
        assert_eq!(events(&bench.state("a.fake").await).len(), before, "nothing has become of anything");
        step();
        let state = bench.state("a.fake").await;
        assert!(name.is_empty() || events(&state)[before..].contains(&json!([name, kind])), "{name} {kind}: {state:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn diagnostics_are_those_of_the_file_as_it_is() {
    for options in [json!({}), json!({ "pull": true })] {
        let bench = Bench::fake(options.clone());
        bench.fixture.put("a.fake", "bad");
        bench.fixture.put("b.fake", "");
        for (text, count) in [("bad", 1), ("fine", 0), ("bad bad", 2), ("bad", 1)] {
            bench.fixture.put("a.fake", text);
            bench.fixture.put("b.fake", text);
            let found = bench.ask("diagnostics", json!({ "path": "a.fake" })).await;
            assert_eq!(
                (&found["counts"]["warning"], &found["ready"]),
                (&json!(count), &json!(true)),
                "{options} {text}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_documents_are_not_all_kept_open() {
    let bench = Bench::fake(json!({}));
    for number in 0..70 {
        bench.fixture.put(&format!("{number}.fake"), "x");
    }
    for number in 0..70 {
        bench.ask("symbols", json!({ "path": format!("{number}.fake") })).await;
    }
    let state = bench.state("69.fake").await;
    assert_eq!(state["documents"].as_object().unwrap().len(), 64);
    assert!(text_of(&state, "/0.fake").is_none() && text_of(&state, "/69.fake").is_some());
}
