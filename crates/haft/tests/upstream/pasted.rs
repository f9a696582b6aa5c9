//! Lists as people paste them: what can be understood is used, and the rest costs nothing else.

use serde_json::{Value, json};

use crate::{
    bench::Bench,
    client::{Client, Era, MUTE, said, succeeded},
    support::text,
};

/// One good server among many that are not.
const PASTED: &str = r#"// from elsewhere
{
  "mcpServers": {
    "fake": {"command": "python3", "args": ["fake.py"], "env": {"X_PORT": 5, "X_ON": true, "X_NO": null}}, /* mine */
    "My Fake": {"command": "python3", "args": ["fake.py"], "cwd": null},
    "my/fake": {"command": "false"},
    "My__Fake": {"command": "false"},
    "My--Fake": {"serverUrl": "nowhere"},
    "empty": {},
    "nested": {"command": "x", "env": {"A": {}}},
  },
}
"#;

fn states(bench: &Bench) -> Value {
    bench.0.json(&["mcp-servers"])
}

fn state(all: &Value, name: &str) -> Value {
    let found = all.as_array().unwrap().iter().find(|one| one["name"] == name);
    found.unwrap_or_else(|| panic!("{name}: {all:#}")).clone()
}

#[test]
fn one_entry_that_cannot_be_understood_costs_only_itself() {
    let bench = Bench::new();
    bench.0.put_home(".config/haft/mcp.json", PASTED);
    let facts: Value = serde_json::from_str(bench.does("facts", &json!({}))["content"].as_str().unwrap()).unwrap();
    assert_eq!(facts["variables"], json!({ "X_PORT": "5", "X_ON": "true" }));
    let (code, outcome) = bench.0.call("mcp__My-Fake__echo", &json!({ "text": "a" }), crate::support::ALL);
    assert_eq!((code, &outcome["result"]["content"]), (0, &json!("a")), "{outcome}");
    let all = states(&bench);
    for (name, words) in [
        ("My--Fake", "the entry `My--Fake` in your mcp.json cannot be used"),
        ("empty", "the entry `empty` in your mcp.json cannot be used: it has neither `command` nor `url`; correct it"),
        ("nested", "`env`: `A` must be text, a number, true or false"),
    ] {
        let one = state(&all, name);
        assert!(one["state"] == "failed" && text(&one["lastError"]).contains(words), "{one:#}");
    }
    assert_eq!((&state(&all, "fake")["state"], &state(&all, "My-Fake")["state"]), (&json!("ready"), &json!("ready")));
    let (code, outcome) = bench.0.call("mcp__empty__x", &json!({}), &[]);
    assert!(code == 1 && text(&outcome["error"]["message"]).contains("neither `command` nor `url`"), "{outcome}");
    let ran = bench.0.run(&["tools"]);
    assert!(ran.code == Some(0) && ran.stderr.contains("the entry `nested`"), "{ran:?}");
    let mut client = Client::silent(bench.0.haft(&["mcp", "--auto-approve", "all"]), Era::Initialize, MUTE);
    client.greet();
    succeeded(&client.call("mcp__fake__echo", &json!({ "text": "a" })));
    assert!(client.leave().success());
}

#[test]
fn an_allow_list_of_another_program_is_obeyed() {
    let bench = Bench::new();
    let entry = json!({ "command": "python3", "args": ["fake.py"], "allowedTools": ["echo"], "timeout": 20_000 });
    bench.list(&json!({ "fake": entry }));
    bench.does("echo", &json!({ "text": "a" }));
    assert_eq!(bench.fails("act", &json!({})).0, "TOOL_NOT_FOUND");
    assert_eq!(state(&states(&bench), "fake")["tools"], json!(["mcp__fake__echo"]));
}

#[test]
fn two_names_that_become_one_are_one_server_and_a_refusal() {
    let bench = Bench::new();
    let list = json!({ "a b": { "command": "x" }, "a/b": { "command": "y" } });
    bench.list(&list);
    let all = states(&bench);
    assert_eq!(state(&all, "a-b")["command"], "x");
    let refused = state(&all, "a/b");
    assert!(
        refused["state"] == "failed" && text(&refused["lastError"]).contains("would be named `a-b`"),
        "{refused:#}"
    );
}

#[test]
fn a_file_that_is_no_list_is_told_of_and_everything_else_works() {
    let bench = Bench::new();
    bench.0.put_home(".config/haft/mcp.json", "{\n  \"mcpServers\": {\n    oops\n");
    bench.0.put("a.txt", "hello\n");
    let words = "your mcp.json is ignored: it is not JSON: key must be a string at line 3 column 5; correct it there";
    let ran = bench.0.run(&["call", "read_file", r#"{"path": "a.txt"}"#]);
    assert!(ran.code == Some(0) && ran.stdout.contains("hello") && ran.stderr.contains(words), "{ran:?}");
    let all = states(&bench);
    assert_eq!(state(&all, "mcp.json")["state"], "failed");
    let found = bench.0.run(&["doctor", "--json"]);
    let bad =
        found.json().as_array().unwrap().iter().any(|one| one["good"] == false && text(&one["found"]).contains(words));
    assert!(found.code == Some(1) && bad, "{found:?}");
    let ran = bench.0.run(&["tools"]);
    assert_eq!((ran.code, ran.stderr.matches(words).count()), (Some(0), 1), "{ran:?}");
    let mut client = Client::silent(bench.0.haft(&["mcp"]), Era::Initialize, MUTE);
    client.greet();
    let result = client.call("read_file", &json!({ "path": "a.txt" }));
    assert!(said(&result).contains("hello"), "{result}");
    assert!(client.leave().success());
    bench.0.put_home(".config/haft/haft.toml", "[mcp.servers.x]\nnothing = 1\n");
    assert_eq!(bench.0.run(&["tools"]).code, Some(1), "the user's own settings stay strict");
}

#[test]
fn a_pattern_that_no_tool_fits_is_told() {
    let bench = Bench::with(&json!({}));
    let ran = bench.0.run(&["mcp", "--tools", "reed_file,git_*,mcp__fake__*"]);
    assert!(ran.code == Some(0), "{ran:?}");
    assert!(ran.stderr.contains("no tool fits `--tools reed_file`; did you mean `read_file`?"), "{ran:?}");
    assert_eq!(ran.stderr.matches("no tool fits").count(), 1, "{ran:?}");
}
