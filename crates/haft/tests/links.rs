//! Links that commands make: which are build output like any other, and what people see of the rest.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod fenced;
mod support;

use fenced::Person;
use serde_json::json;
use support::text;

/// A repository that ignores what is installed.
fn project() -> Person {
    let person = Person::us();
    person.put(".gitignore", "node_modules/\nvendor/\n*.lnk\n");
    person.put("src/a.js", "a\n");
    person.put("vendor/kept.js", "tracked all the same\n");
    let set_up = "git init -q && git add -A && git add -f vendor/kept.js";
    let made = person.program("bash").args(["-c", set_up]).status().unwrap();
    assert!(made.success());
    let install = "mkdir -p node_modules/.bin node_modules/ts/bin && echo x > node_modules/ts/bin/tsc && \
        ln -s ../ts/bin/tsc node_modules/.bin/tsc && ln -s ts node_modules/alias";
    let (code, outcome) = person.shell(install, &[]);
    assert_eq!((code, &outcome["approved_by"]), (0, &json!("config")), "{outcome:#}");
    assert_eq!(
        std::fs::read_link(person.fixture.path("node_modules/.bin/tsc")).unwrap().to_str(),
        Some("../ts/bin/tsc")
    );
    person
}

#[test]
fn a_link_within_what_was_installed_comes_in_with_it() {
    let person = project();
    let many = "for i in $(seq 100); do mkdir -p node_modules/big/p$i; echo $i > node_modules/big/p$i/run; done; \
        mkdir node_modules/big/bin; for i in $(seq 100); do ln -s ../p$i/run node_modules/big/bin/$i; done";
    let (code, outcome) = person.shell(many, &[]);
    assert_eq!((code, &outcome["approved_by"]), (0, &json!("config")), "{outcome:#}");
    // The target need not be there.
    let (code, outcome) =
        person.shell("ln -s ../later node_modules/.bin/later; ln -sfn ts/bin node_modules/alias", &[]);
    assert_eq!((code, &outcome["approved_by"]), (0, &json!("config")), "{outcome:#}");
}

#[test]
fn a_link_that_may_lead_to_anything_else_is_asked_for() {
    let person = project();
    for hostile in [
        "ln -s ../../src/a.js node_modules/.bin/a",
        "ln -s ../src node_modules/src",
        "ln -s /etc/passwd node_modules/passwd",
        "ln -s ../../outside node_modules/outside",
        "ln -s $PWD/node_modules/ts node_modules/absolute",
        "ln -s ts/../../src node_modules/back",
        "ln -s kept.js vendor/tracked",
        "ln -s ../vendor/kept.js node_modules/tracked",
        "ln -s . node_modules/itself",
        "ln -s alias/bin node_modules/by-another",
        "ln -s src/a.js top.lnk",
        "ln -s node_modules/ts top.lnk",
        // A link takes the place of what others lead to.
        "rm -r node_modules/ts && ln -s ../src node_modules/ts",
        // Made in the same moment, each leads to the next.
        "ln -s two node_modules/one && ln -s ../src node_modules/two",
        "ln -s two node_modules/one && ln -s three node_modules/two && echo x > node_modules/three",
        // Deep in something that is new as a whole.
        "mkdir -p node_modules/new/d && for i in $(seq 100); do echo > node_modules/new/d/$i; done && \
         ln -s ../../../src/a.js node_modules/new/d/out",
        "mkdir -p node_modules/new/d && for i in $(seq 100); do echo > node_modules/new/d/$i; done && \
         ln -s ../../ts node_modules/new/d/first && ln -s first/bin node_modules/new/d/second",
    ] {
        let call = person.stages(hostile, &[]);
        assert_eq!(person.run(&["reject", &call]).code, Some(0));
    }
    // What leads to the build output from one place does not from another.
    let (code, outcome) = person.shell(
        "mkdir -p node_modules/deep/er && echo x > node_modules/deep/er/file && ln -s ../../ts node_modules/deep/er/link",
        &[],
    );
    assert_eq!((code, &outcome["approved_by"]), (0, &json!("config")), "{outcome:#}");
    let call = person.stages("mv node_modules/deep/er node_modules/moved", &[]);
    assert_eq!(person.run(&["reject", &call]).code, Some(0));
    // One that a person said yes to opens no way for others.
    let call = person.stages("ln -s ../src node_modules/src", &[]);
    assert_eq!(person.run(&["approve", &call]).code, Some(0));
    person.stages("ln -s src/a.js node_modules/through", &[]);
    person.stages("ln -s ../src/a.js node_modules/.bin/through", &[]);
}

#[test]
fn the_card_says_where_links_lead_and_led() {
    let person = project();
    let call = person.stages("ln -s src/a.js here; ln -s ../src node_modules/src", &[]);
    let card = person.run(&["changes", &call]).said();
    assert!(card.contains("link here → src/a.js") && card.contains("link node_modules/src → ../src"), "{card}");
    assert_eq!(person.run(&["approve", &call]).code, Some(0));
    let call = person.stages("ln -sfn .gitignore here", &[]);
    let card = person.run(&["changes", &call]).said();
    assert!(card.contains("link here → .gitignore (before: src/a.js)"), "{card}");
    let shown = person.json(&["changes", &call]);
    let diff = text(&shown["changes"][0]["diff"]);
    assert!(diff.contains("\n-src/a.js\n") && diff.contains("\n+.gitignore\n"), "{shown:#}");
    assert_eq!(person.run(&["approve", &call]).code, Some(0));
    assert_eq!(person.run(&["undo", &call, "--yes"]).code, Some(0));
    assert_eq!(std::fs::read_link(person.fixture.path("here")).unwrap().to_str(), Some("src/a.js"));
}

#[test]
fn a_link_to_nothing_is_said_to_be_one() {
    let person = Person::us();
    std::os::unix::fs::symlink("nowhere", person.fixture.path("dl")).unwrap();
    for (tool, input) in [("read_file", json!({"path": "dl"})), ("list_directory", json!({"path": "dl"}))] {
        let (_, outcome) = person.call(tool, &input, &[]);
        let message = text(&outcome["error"]["message"]);
        assert!(message.contains("a link to something that does not exist"), "{tool}: {message}");
        assert!(!message.contains("did you mean"), "{tool}: {message}");
    }
}
