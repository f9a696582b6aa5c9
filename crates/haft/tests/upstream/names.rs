//! What an entry only names: the user's variables and secrets in their places, and never in anybody's words.

use serde_json::{Value, json};

use crate::bench::{Bench, server};

const SECRET: &str = "0pen-5esame-of-the-user";

fn with_variables(mut entry: Value, variables: Value) -> Value {
    entry["env"] = variables;
    entry
}

#[test]
fn a_pasted_entry_gets_the_users_variables() {
    let mut bench = Bench::new();
    bench.0.variables.push(("MINE", "mine".into()));
    let variables = json!({ "X_A": "<${MINE}>", "X_B": "${env:MINE}", "X_C": "${NONE:-of old}", "X_D": "$MINE" });
    bench.list(&json!({ "fake": with_variables(server(&json!({})), variables) }));
    let facts: Value = serde_json::from_str(bench.does("facts", &json!({}))["content"].as_str().unwrap()).unwrap();
    let expected = json!({ "X_A": "<mine>", "X_B": "mine", "X_C": "of old", "X_D": "$MINE" });
    assert_eq!(facts["variables"], expected);
}

#[test]
fn a_variable_that_is_not_set_holds_back_one_server_and_is_named() {
    let bench = Bench::new();
    let other = with_variables(server(&json!({})), json!({ "X_A": "${NONE}" }));
    bench.list(&json!({ "fake": server(&json!({})), "other": other }));
    assert_eq!(bench.does("echo", &json!({ "text": "a" }))["content"], "a");
    let (code, outcome) = bench.0.call("mcp__other__echo", &json!({ "text": "a" }), &[]);
    let said = outcome["error"]["message"].as_str().unwrap();
    let expected = "the MCP server `other` was not started: its variable `X_A`: the variable `NONE` is not set";
    assert!(code == 1 && said.starts_with(expected), "{outcome}");
    let states = bench.0.json(&["mcp-servers"]);
    assert_eq!((&states[0]["state"], &states[1]["state"]), (&json!("ready"), &json!("failed")), "{states}");
    assert!(states[1]["lastError"].as_str().unwrap().contains("`NONE`"), "{states}");
}

#[test]
fn a_workspace_gets_a_variable_only_from_its_user() {
    let mut bench = Bench::new();
    bench.0.variables.push(("MINE", SECRET.into()));
    let entry = with_variables(server(&json!({})), json!({ "X_A": "${MINE}" }));
    bench.0.put(".mcp.json", json!({ "mcpServers": { "fake": entry } }).to_string());
    assert_eq!(bench.0.run(&["trust", "--yes"]).code, Some(0));
    let (_, said) = bench.fails("facts", &json!({}));
    assert!(said.contains("[mcp.servers.fake]\nvariables = [\"MINE\"]") && !said.contains(SECRET), "{said}");
    bench.settings("[mcp.servers.fake]\nvariables = ['MINE']\n");
    assert!(bench.does("facts", &json!({}))["content"].as_str().unwrap().contains(SECRET));
}

#[test]
fn a_server_that_tells_its_own_secret_is_not_quoted() {
    for named in ["secret:MINE", "${MINE}", SECRET] {
        let mut bench = Bench::new();
        bench.0.variables.push(("MINE", SECRET.into()));
        let variables = json!({ "X_A": named });
        let script = "echo \"nobody knows $X_A here\" >&2; exit 1";
        let entry = json!({ "command": "sh", "args": ["-c", script] });
        bench.list(&json!({ "fake": with_variables(entry, variables.clone()) }));
        let (code, said) = bench.fails("echo", &json!({}));
        assert!(code == "UNAVAILABLE" && said.contains("nobody knows [redacted] here"), "{named}: {said}");
        let told = bench.servers(&["--json"]).said() + &bench.0.run(&["log", "--json"]).said();
        assert!(!told.contains(SECRET), "{named}: {told}");

        let entry = server(&json!({ "says": "the token $X_A is too old" }));
        bench.list(&json!({ "fake": with_variables(entry, variables) }));
        let (_, said) = bench.fails("fails", &json!({}));
        assert_eq!(said, "the token [redacted] is too old", "{named}");
    }
}

#[test]
fn what_the_entry_calls_a_secret_is_in_no_answer_and_not_in_the_journal() {
    let mut bench = Bench::new();
    bench.0.variables.push(("MINE", SECRET.into()));
    let entry = server(&json!({ "says": "it is $X_A, and $X_B" }));
    bench.list(&json!({ "fake": with_variables(entry, json!({ "X_A": "secret:MINE", "X_B": "plain words" })) }));
    assert_eq!(bench.does("act", &json!({}))["content"], "it is [redacted], and plain words");
    let secret = format!("a{SECRET}b");
    assert_eq!(bench.does("echo", &json!({ "text": secret }))["structured"]["text"], "a[redacted]b");
    // What the caller says stays as it was said.
    let kept =
        ["haft.db", "haft.db-wal"].map(|file| std::fs::read(bench.0.fixture.data.join(file)).unwrap_or_default());
    let said = format!("it is {SECRET}");
    assert!(!kept.iter().any(|bytes| bytes.windows(said.len()).any(|part| part == said.as_bytes())));
}
