//! Where servers are written down, and who obeys that.

use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::{Value, json};

use crate::{
    bench::{Bench, server},
    fenced::Person,
    support::{Terminal, text},
};

#[test]
fn a_server_is_added_to_a_list_that_stays_intact() {
    let bench = Bench::new();
    bench.0.put_home(".config/haft/mcp.json", r#"{"other": 1, "mcpServers": {"x": {"command": "x", "foo": true}}}"#);
    let ran = bench.servers(&["add", "fake", "--env", "X_A=b", "--", "python3", "fake.py"]);
    assert!(ran.code == Some(0) && ran.stdout.contains("6 tools: mcp__fake__act"), "{ran:?}");
    let file = bench.0.fixture.home.join(".config/haft/mcp.json");
    let list: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    assert_eq!((&list["other"], &list["mcpServers"]["x"]["foo"]), (&json!(1), &json!(true)));
    assert_eq!(list["mcpServers"]["fake"], json!({ "command": "python3", "args": ["fake.py"], "env": { "X_A": "b" } }));
    for (words, expected) in [
        (&["add", "fake", "--", "x"][..], "a server `fake` already"),
        (&["add", "a b", "--", "x"], "cannot be the name of a server"),
        (&["add", "fake_", "--", "x"], "it ends in `_`"),
        (&["add", "here", "--", "./x.sh"], "nothing was added: `./x.sh` depends on the current folder"),
        (&["add", "web", "--", "https://x.org/mcp"], r#"yourself: {"mcpServers":{"web":{"url":"https://x.org/mcp"}}}"#),
        (&["restart", "fak"], "did you mean `fake`"),
    ] {
        let ran = bench.servers(words);
        assert!(ran.code == Some(1) && ran.stderr.contains(expected), "{ran:?}");
    }
    assert_eq!(bench.0.json(&["mcp-servers"]).as_array().unwrap().len(), 2, "nothing of it is written");
    let ran = bench.servers(&["add", "broken", "--", "sh", "-c", "echo no luck >&2; exit 3"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("no luck"), "{ran:?}");
    assert!(ran.stderr.contains("its entry stays in your mcp.json; add `broken` again to replace it"), "{ran:?}");
    let states = bench.0.json(&["mcp-servers"]);
    let state = |name: &str| states.as_array().unwrap().iter().find(|one| one["name"] == name).unwrap().clone();
    assert_eq!((&state("broken")["state"], &state("fake")["state"]), (&json!("failed"), &json!("ready")));
    assert!(text(&state("broken")["lastError"]).contains("no luck"));
    let ran = bench.servers(&["add", "broken", "--", "python3", "fake.py"]);
    assert!(
        ran.code == Some(0) && ran.stderr.contains("the entry `broken`, which never worked, is replaced"),
        "{ran:?}"
    );
    let ran = bench.servers(&["add", "broken", "--", "python3", "fake.py"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("a server `broken` already"), "it works by now: {ran:?}");
}

#[test]
fn a_server_is_removed_from_a_list_that_stays_intact() {
    let bench = Bench::new();
    bench.0.put_home(
        ".config/haft/mcp.json",
        "{\n  \"mcpServers\": {\n    // mine\n    \"fake\": {\"command\": \"python3\", \"args\": [\"fake.py\"]},\n    \
         \"My Own\": {\"command\": \"x\"}\n  }\n}\n",
    );
    bench.settings("[mcp.servers.kept]\ncommand = 'x'\n");
    bench.does("act", &json!({}));
    let ran = bench.servers(&["remove", "My-Own"]);
    assert!(ran.code == Some(0) && ran.stdout.contains("`My-Own` is removed"), "{ran:?}");
    assert_eq!(bench.0.json(&["mcp-servers", "remove", "fake"]), json!({ "removed": "fake" }));
    let list = std::fs::read_to_string(bench.0.fixture.home.join(".config/haft/mcp.json")).unwrap();
    assert_eq!(list, "{\n  \"mcpServers\": {\n    // mine\n  }\n}\n");
    assert!(!bench.0.fixture.data.join("servers/fake.json").exists());
    assert_eq!(bench.fails("act", &json!({})).0, "TOOL_NOT_FOUND");
    for (name, words) in [("kept", "remove `[mcp.servers.kept]` there"), ("fake", "has no server `fake`")] {
        let ran = bench.servers(&["remove", name]);
        assert!(ran.code == Some(1) && ran.stderr.contains(words), "{ran:?}");
    }
}

#[test]
fn at_a_terminal_the_network_is_asked_about() {
    let bench = Bench::new();
    let mut terminal = Terminal::start(bench.0.haft(&["mcp-servers", "add", "fake", "--", "python3", "fake.py"]));
    terminal.read_until("reach the network?");
    terminal.type_in("y\n");
    terminal.read_until("runs: 6 tools");
    assert_eq!(terminal.exit_code(), Some(0));
    assert_eq!(bench.0.json(&["mcp-servers"])[0]["network"], true);
}

#[test]
fn a_workspaces_list_counts_once_it_is_trusted_and_only_as_it_was() {
    let bench = Bench::new();
    let list = |options: &Value| format!("// ours\n{}", json!({ "mcpServers": { "fake": server(options) } }));
    bench.0.put(".mcp.json", list(&json!({})));
    assert_eq!(bench.fails("echo", &json!({ "text": "a" })).0, "TOOL_NOT_FOUND");
    let shown = bench.0.run(&["trust", "--show"]);
    assert!(shown.stdout.contains(".mcp.json") && shown.stdout.contains("MCP servers"), "{shown:?}");
    assert_eq!(bench.0.run(&["trust", "--yes"]).code, Some(0));
    assert_eq!(bench.does("echo", &json!({ "text": "a" }))["content"], "a");
    bench.0.put(".mcp.json", list(&json!({ "ends": true })));
    assert_eq!(bench.does("echo", &json!({ "text": "a" }))["content"], "a", "what was trusted stays in force");
    assert_eq!(bench.0.json(&["mcp-servers"])[0]["from"], "workspace");
    bench.0.put("fake.py", "import os\nos.system('touch /tmp/evil')\n");
    let (code, message) = bench.fails("echo", &json!({ "text": "a" }));
    assert!(
        code == "NOT_TRUSTED" && message.contains("`fake.py`, which its command names, has changed"),
        "{code}: {message}"
    );
    bench.0.put("fake.py", include_str!("fake.py"));
    assert_eq!(bench.does("echo", &json!({ "text": "a" }))["content"], "a");
    bench.0.put("haft.toml", "[mcp.servers.more]\ncommand = 'x'\n");
    assert_eq!(bench.0.run(&["trust", "--yes"]).code, Some(0));
    assert_eq!(bench.0.json(&["mcp-servers"]).as_array().unwrap().len(), 1, "its settings add no servers");
}

/// A server of the workspace that is started so.
fn brings(bench: &Bench, command: &str, args: &[&str]) {
    let entry = json!({ "command": command, "args": args });
    bench.0.put(".mcp.json", json!({ "mcpServers": { "fake": entry } }).to_string());
    assert_eq!(bench.0.run(&["trust", "--yes"]).code, Some(0));
}

#[test]
fn a_program_named_by_a_link_is_run_as_long_as_the_link_leads_to_what_was_trusted() {
    let bench = Bench::new();
    let (echo, venv) = (json!({ "text": "a" }), bench.0.fixture.path(".venv/bin"));
    std::fs::create_dir_all(&venv).unwrap();
    symlink("python3", venv.join("python")).unwrap();
    symlink("/usr/bin/python3", venv.join("python3")).unwrap();
    brings(&bench, ".venv/bin/python", &["fake.py"]);
    let shown = bench.0.run(&["trust", "--show"]);
    assert!(shown.stdout.contains(".venv/bin/python3") && shown.stdout.contains("to /usr/bin/python3"), "{shown:?}");
    assert_eq!(bench.does("echo", &echo)["content"], "a");
    std::fs::remove_file(venv.join("python3")).unwrap();
    bench.0.put("evil.sh", "#!/bin/sh\n");
    symlink("../../evil.sh", venv.join("python3")).unwrap();
    let (code, said) = bench.fails("echo", &echo);
    assert!(code == "NOT_TRUSTED" && said.contains("`.venv/bin/python` changed since you trusted"), "{code}: {said}");
    let shown = bench.0.run(&["trust", "--show"]);
    assert!(shown.stdout.contains("a link to ../../evil.sh (before to /usr/bin/python3)"), "{shown:?}");
}

#[test]
fn the_program_that_a_link_in_the_workspace_leads_to_is_part_of_what_was_trusted() {
    for padding in [0, 2 << 20] {
        let bench = Bench::new();
        let program = |more: &str| {
            let pad = "#".repeat(padding);
            bench.0.put("node_modules/x/cli.sh", format!("#!/bin/sh\n{more}exec python3 fake.py\n{pad}\n"));
            let file = bench.0.fixture.path("node_modules/x/cli.sh");
            std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
        };
        program("");
        std::fs::create_dir_all(bench.0.fixture.path("node_modules/.bin")).unwrap();
        symlink("../x/cli.sh", bench.0.fixture.path("node_modules/.bin/x")).unwrap();
        brings(&bench, "node_modules/.bin/x", &[]);
        bench.does("act", &json!({}));
        program("echo evil >&2\n");
        let (code, said) = bench.fails("act", &json!({}));
        assert!(code == "NOT_TRUSTED" && said.contains("node_modules/"), "{padding}: {code}: {said}");
        program("");
        bench.does("act", &json!({}));
    }
}

#[test]
fn an_entry_of_a_disabled_server_is_shown_and_not_used() {
    let bench = Bench::of(Person::us());
    let mut fake = server(&json!({}));
    fake["disabled"] = json!(true);
    bench.list(&json!({ "fake": fake }));
    assert_eq!(bench.0.json(&["mcp-servers"])[0]["state"], "disabled");
    assert_eq!(bench.fails("echo", &json!({ "text": "a" })).0, "TOOL_NOT_FOUND");
}

#[test]
fn an_entry_that_adds_to_no_server_is_told_unless_another_workspace_has_it() {
    let bench = Bench::new();
    bench.list(&json!({ "fake": server(&json!({})) }));
    bench.settings("[mcp.servers.fak]\ndenied_tools = ['act']\n");
    let words = "no list has a server of that name; did you mean `fake`?";
    let all = bench.0.json(&["mcp-servers"]);
    assert!(all[0]["state"] == "failed" && text(&all[0]["lastError"]).contains(words), "{all:#}");
    for command in ["mcp", "tools"] {
        let ran = bench.0.run(&[command]);
        assert!(ran.code == Some(0) && ran.stderr.matches(words).count() == 1, "{ran:?}");
    }
    let ran = bench.servers(&["add", "fak", "--", "python3", "fake.py"]);
    assert!(ran.code == Some(0) && ran.stdout.contains("5 tools"), "it is there now, without the one: {ran:?}");

    bench.list(&json!({}));
    bench.settings("[mcp.servers.fake]\nnetwork = true\n");
    bench.0.put(".mcp.json", json!({ "mcpServers": { "fake": server(&json!({})) } }).to_string());
    assert_eq!(bench.0.json(&["mcp-servers"]), json!([]), "the list that has it is not read yet");
    assert_eq!(bench.0.run(&["trust", "--yes"]).code, Some(0));
    assert_eq!(bench.does("echo", &json!({ "text": "a" }))["content"], "a");
    std::fs::remove_file(bench.0.fixture.path(".mcp.json")).unwrap();
    assert_eq!(bench.0.run(&["trust", "--yes"]).code, Some(0));
    assert_eq!(bench.0.json(&["mcp-servers"]), json!([]), "a workspace has it, if not this one");
}
