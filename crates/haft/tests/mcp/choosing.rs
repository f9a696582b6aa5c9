//! What a server is started with: which tools it offers, and what may happen without asking.

use serde_json::{Value, json};

use crate::{
    client::{ASKS, Client, Era, MUTE, call_id, failed, recorded, succeeded},
    support::{Fixture, text},
};

fn names(client: &mut Client) -> Vec<String> {
    let listed = client.ask("tools/list", json!({}));
    listed["result"]["tools"].as_array().unwrap().iter().map(|tool| text(&tool["name"])).collect()
}

/// What is said of a tool that there is not.
fn unknown(client: &mut Client, tool: &str) -> String {
    let answer = client.ask("tools/call", json!({"name": tool, "arguments": {}}));
    assert_eq!(answer["error"]["code"], json!(-32602), "{tool}: {answer:#}");
    text(&answer["error"]["message"])
}

#[test]
fn only_the_tools_that_are_named_are_offered() {
    let fixture = Fixture::new();
    fixture.put("a.txt", "a\n");
    // Outside a repository no tool for git is listed.
    fixture.put(".git/HEAD", "ref: refs/heads/main\n");
    for era in Era::BOTH {
        let mut client = Client::with(&fixture, era, MUTE, &["--tools", "read_file,git_*", "--tools", "glob"]);
        let git = ["git_branch", "git_commit", "git_diff", "git_log", "git_push", "git_status"];
        // What follows calls is always there.
        let others = ["glob", "read_file", "result_query", "wait_call"];
        assert_eq!(names(&mut client), [&git[..], &others[..]].concat());
        let read = client.call("read_file", &json!({"path": "a.txt"}));
        succeeded(&read);
        recorded(&fixture, &read);
        succeeded(&client.call("wait_call", &json!({"callId": call_id(&read)})));
        // An old name leads to no tool that is not offered.
        for (name, tool) in [("write_file", "write_file"), ("shell_exec", "shell_exec"), ("shell", "shell_exec")] {
            let said = unknown(&mut client, name);
            assert!(said.starts_with(&format!("the tool `{tool}` is not offered here")), "{said}");
        }
        let said = unknown(&mut client, "reed_file");
        assert!(said.starts_with("there is no tool `reed_file`; did you mean `read_file`?"), "{said}");
        assert!(said.contains("`tools/list`") && !said.contains("haft tools"), "{said}");
    }
}

#[test]
fn a_pattern_that_cannot_be_read_is_refused_at_once() {
    let fixture = Fixture::new();
    for pattern in ["git_[", "{a", "a**\\"] {
        let ran = fixture.run(&["mcp", "--tools", pattern]);
        assert!(ran.code != Some(0) && ran.stderr.contains(pattern), "{ran:?}");
        assert_eq!(ran.stdout, "");
    }
    let ran = fixture.run(&["mcp", "--auto-approve", "sometimes"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let ran = fixture.run(&["mcp", "--workspace", "/no/such/folder"]);
    assert!(ran.code != Some(0) && ran.stderr.contains("/no/such/folder"), "{ran:?}");
}

#[test]
fn the_mode_decides_what_is_asked() {
    let fixture = Fixture::new();
    let writing = json!({"path": "a.txt", "content": "a\n"});
    for era in Era::BOTH {
        let mut all = Client::with(&fixture, era, MUTE, &["--auto-approve", "all"]);
        succeeded(&all.call("write_file", &writing));
        let mut none = Client::with(&fixture, era, MUTE, &["--auto-approve", "none"]);
        let reading = none.begin("read_file", &json!({"path": "a.txt"}));
        let call = fixture.asked(&[]);
        assert_eq!(fixture.run(&["reject", &call]).code, Some(0));
        let result = none.result_of(&reading);
        failed(&result, "rejected", "REJECTED");
        assert!(!result.to_string().contains("→a"), "{result:#}");
    }
}

#[test]
fn old_names_work_and_are_not_listed() {
    let fixture = Fixture::new();
    let mut client = Client::new(&fixture, Era::Stateless, MUTE);
    assert!(!names(&mut client).contains(&"shell".to_owned()));
    let result = client.call("shell", &json!({"command": "echo hello"}));
    succeeded(&result);
    assert_eq!(result["structuredContent"]["stdout"], json!("hello\n"), "{result:#}");
    // An old name of a tool that is offered is offered too.
    let mut client = Client::with(&fixture, Era::Stateless, MUTE, &["--tools", "shell_exec"]);
    succeeded(&client.call("shell", &json!({"command": "true"})));
}

#[test]
fn a_client_hears_that_the_tools_have_changed() {
    for era in Era::BOTH {
        let fixture = Fixture::new();
        let mut client = Client::new(&fixture, era, MUTE);
        assert!(!names(&mut client).contains(&"greet".to_owned()));
        if era == Era::Stateless {
            client.request("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
            // It hears once in any case: the tools may have changed before it listened.
            client.notified("notifications/tools/list_changed");
        }
        let greet = "name = \"greet\"\ndescription = \"Greets.\"\ncommand = [\"true\"]\n";
        fixture.put(".haft/tools/greet.toml", greet);
        assert_eq!(fixture.run(&["trust", "--yes"]).code, Some(0));
        client.notified("notifications/tools/list_changed");
        assert!(names(&mut client).contains(&"greet".to_owned()));
    }
}

#[test]
fn tools_for_git_come_and_go_with_the_repository() {
    for era in Era::BOTH {
        let fixture = Fixture::new();
        let mut client = Client::with(&fixture, era, MUTE, &["--auto-approve", "all"]);
        let shows_git = |client: &mut Client| names(client).contains(&"git_status".to_owned());
        assert!(!shows_git(&mut client));
        if era == Era::Stateless {
            client.request("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
            client.notified("notifications/tools/list_changed");
        }
        succeeded(&client.call("shell_exec", &json!({"command": "git init -q"})));
        assert!(shows_git(&mut client), "a list is always true");
        client.notified("notifications/tools/list_changed");
        succeeded(&client.call("git_status", &json!({})));
        std::fs::remove_dir_all(fixture.path(".git")).unwrap();
        client.notified("notifications/tools/list_changed");
        assert!(!shows_git(&mut client));
    }
}

#[test]
fn what_a_project_brings_is_offered_once_it_is_trusted() {
    let fixture = Fixture::new();
    fixture.put(
        ".haft/tools/greet.toml",
        "name = \"greet\"\ndescription = \"Greets.\"\ncommand = [\"sh\", \"-c\", \"echo hello > greeting\"]\n",
    );
    let mut before = Client::new(&fixture, Era::Initialize, ASKS);
    assert!(!names(&mut before).contains(&"greet".to_owned()));
    let untrusted = before.ask("tools/call", json!({"name": "greet", "arguments": {}}));
    assert!(untrusted.to_string().contains("haft trust"), "{untrusted:#}");
    assert_eq!(fixture.run(&["trust", "--yes"]).code, Some(0));
    let mut after = Client::new(&fixture, Era::Initialize, ASKS);
    assert!(names(&mut after).contains(&"greet".to_owned()));
    let call = after.begin("greet", &json!({}));
    let (form, shown) = after.form();
    assert!(text(&shown["message"]).contains("greeting"), "{shown:#}");
    let given: Value = json!({"action": "accept", "content": {"approve": true}});
    after.send(&json!({"jsonrpc": "2.0", "id": form, "result": given}));
    succeeded(&after.result_of(&call));
    assert_eq!(fixture.text("greeting").as_deref(), Some("hello\n"));
}
