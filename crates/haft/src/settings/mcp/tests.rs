//! What each place says of a server, and what of it is taken.

use std::time::Duration;

use super::{McpServer, McpSettings, Reached, ServerOrigin, names_only_haft};

#[test]
fn a_server_is_read_from_each_place_and_the_users_counts() {
    let mut settings = McpSettings::default();
    settings.take_workspace_list(
        br#"{"mcpServers": {"git": {"command": "uvx", "args": ["mcp-server-git"], "alwaysAllow": ["x"],
                "network": true, "trusted": true}, "files": {"type": "stdio", "command": "x"},
                "haft": {"command": "/usr/local/bin/haft", "args": ["mcp"]}}}"#,
    );
    assert_eq!(settings.servers().len(), 2, "haft itself is none of them");
    let git = &settings.servers()[1];
    assert_eq!((git.reached.shown().as_str(), git.from), ("uvx mcp-server-git", ServerOrigin::ByTheWorkspace));
    assert!(!git.network && !git.trusted, "a workspace does not say what a server may do");
    settings.take("mcp.servers", "{ git = { network = true, timeout = '5s', effects = { a = 'read' } } }").unwrap();
    let git = &settings.servers()[1];
    assert!(git.network && git.timeout == Duration::from_secs(5) && git.from == ServerOrigin::ByTheWorkspace);
    settings.take("mcp.servers", "{ files = { command = 'mine', args = ['a'] } }").unwrap();
    let files = &settings.servers()[0];
    assert_eq!((files.reached.shown().as_str(), files.from), ("mine a", ServerOrigin::ByTheUser));
    assert_eq!((files.cpu.as_secs(), files.memory, files.open_files), (3600, 1_000_000_000, 256));
}

#[test]
fn what_cannot_be_meant_is_refused_with_a_reason() {
    let mut settings = McpSettings::default();
    for (value, expected) in [
        ("[]", "table of servers"),
        ("{ x = 1 }", "table with `command` or `url`"),
        ("{ 'a b' = { command = 'x' } }", "cannot be the name of a server"),
        ("{ a__b = { command = 'x' } }", "cannot be the name of a server"),
        ("{ a_ = { command = 'x' } }", "`a_` cannot be the name of a server: it ends in `_`"),
        ("{ x = { command = './x' } }", "full path"),
        ("{ x = { command = '' } }", "`command` is empty"),
        ("{ x = { command = 'https://x.org/mcp' } }", "`command` is a URL; write it as `url`"),
        ("{ x = { command = 'x', url = 'http://x' } }", "both"),
        ("{ x = { command = 'x', netwrk = true } }", "did you mean `network`"),
        ("{ x = { command = 'x', network = 'yes' } }", "true or false"),
        ("{ x = { command = 'x', timeout = 'soon' } }", "length of time"),
        ("{ x = { command = 'x', effects = { a = 'huge' } } }", "read, write, execute or destructive"),
        ("{ x = { command = 'x', workspace = 'all' } }", "`read` or `write`"),
    ] {
        let said = format!("{:#}", settings.take("mcp.servers", value).unwrap_err());
        assert!(said.contains(expected), "{value}: {said}");
    }
    assert_eq!(settings, McpSettings::default());
}

#[test]
fn what_other_programs_call_their_keys_is_obeyed() {
    let mut settings = McpSettings::default();
    settings.take_workspace_list(
        br#"{"mcpServers": {
            "a": {"command": "x", "allowedTools": ["one"], "excludeTools": ["two"], "timeout": 5000, "transport": "stdio"},
            "b": {"command": "x", "allowedTools": ["*"], "timeout": 90},
            "c": {"command": "x", "timeout": "2m", "type": "local"},
            "d": {"url": "https://x.example/sse", "transport": "sse"},
            "e": {"url": "https://x.example/sse", "type": "SSE"},
            "f": {"url": "wss://x.example", "type": "ws"},
            "g": {"command": "x", "timeout": 0}}}"#,
    );
    let all = settings.servers();
    let allowed = all[0].allowed_tools.as_ref().unwrap();
    assert!(allowed.contains("one") && allowed.len() == 1 && all[0].denied_tools.contains("two"));
    assert_eq!(all[1].allowed_tools, None);
    let limits: Vec<u64> = all[..3].iter().map(|server| server.timeout.as_secs()).collect();
    assert_eq!(limits, [5, 90, 120]);
    for name in ["d", "e"] {
        let why = refused(&settings, name).unwrap();
        assert!(why.contains("it uses the old SSE transport") && why.contains("write `http` for `sse`"), "{why}");
    }
    assert!(refused(&settings, "f").unwrap().contains("WebSockets"));
    assert!(refused(&settings, "g").unwrap().contains("`timeout`: `0` is too short"));
}

#[test]
fn other_spellings_of_an_allow_list_are_obeyed_and_unknown_keys_are_named() {
    let mut settings = McpSettings::default();
    settings.take_workspace_list(
        br#"{"mcpServers": {
            "a": {"command": "x", "tools": ["one"], "type": "stdio"},
            "b": {"command": "x", "enabled_tools": ["one"], "colour": "red", "autoApprove": ["one"]},
            "c": {"command": "x", "enabledTools": ["one"], "enabled": false}}}"#,
    );
    let all = settings.servers();
    for server in &all {
        let allowed = server.allowed_tools.clone().unwrap_or_default();
        assert_eq!(allowed.into_iter().collect::<Vec<_>>(), ["one"], "{}", server.name);
    }
    assert_eq!(all.iter().map(|server| server.enabled).collect::<Vec<_>>(), [true, true, false]);
    let told: Vec<String> = all.iter().filter_map(McpServer::ignored_keys).collect();
    assert_eq!(told, ["the entry of the MCP server `b` has `colour`, which haft ignores"]);
}

/// What the workspace's list says of a name.
fn refused(settings: &McpSettings, name: &str) -> Option<String> {
    let server = settings.servers().into_iter().find(|server| server.name == name)?;
    match server.reached {
        Reached::Unknown { why } => Some(why),
        Reached::Command { .. } | Reached::Url { .. } => None,
    }
}

#[test]
fn what_adds_to_a_server_that_no_list_has_is_told() {
    for added in ["network = true", "denied_tools = ['x']", "allowed_tools = []", "disabled = true"] {
        let mut settings = McpSettings::default();
        settings.take_workspace_list(br#"{"mcpServers": {"github": {"command": "x"}}}"#);
        settings.take("mcp.servers", &format!("{{ githb = {{ {added} }}, github = {{ {added} }} }}")).unwrap();
        let told =
            "the entry `githb` in your haft.toml is ignored: no list has a server of that name; did you mean `github`?";
        assert_eq!(refused(&settings, "githb").as_deref(), Some(told));
        assert_eq!(settings.lost_additions(), [told]);
        assert!(settings.servers()[0].enabled, "it is shown as one that failed");
        assert_eq!(refused(&settings, "github"), None);
        settings.leave_out(|name| name != "githb");
        assert_eq!(settings.servers().len(), 2, "nothing is taken from servers that are there");
        settings.leave_out(|_| true);
        assert_eq!((settings.servers().len(), settings.lost_additions().len()), (1, 0));
    }
}

#[test]
fn a_file_that_is_no_list_says_so_under_its_own_name() {
    for (list, expected) in [
        (&b"{\n  \"mcpServers\": oops"[..], "it is not JSON: expected value at line 2 column 17"),
        (b"{}", "no `mcpServers`"),
        (b"[]", "not a JSON object"),
        (br#"{"mcpServers": []}"#, "not a table of servers"),
        (b"\xff", "not UTF-8"),
    ] {
        let mut settings = McpSettings::default();
        settings.take_workspace_list(list);
        let said = settings.unread_lists();
        assert!(said[0].starts_with("the workspace's .mcp.json is ignored") && said[0].contains(expected), "{said:?}");
        assert_eq!(refused(&settings, ".mcp.json").as_ref(), Some(&said[0]));
        assert!(!names_only_haft(list));
    }
    for list in
        [&b""[..], br#"{"mcpServers": null}"#, br#"{"mcpServers": {"haft": {"command": "haft", "args": ["mcp"]}}}"#]
    {
        assert!(names_only_haft(list), "{list:?}");
    }
}

#[test]
fn haft_is_known_by_its_name_and_by_being_the_program_that_runs() {
    let running = std::env::current_exe().unwrap();
    let (running, beside) = (running.to_str().unwrap(), running.with_file_name("haft-1.2"));
    for (program, argument, is_haft) in [
        (running, "mcp", true),
        (running, "serve", false),
        ("/elsewhere/haft", "mcp", true),
        (beside.to_str().unwrap(), "mcp", false),
        ("./haft-mcp", "mcp", false),
    ] {
        let list = serde_json::json!({ "mcpServers": { "haft": { "command": program, "args": [argument] } } });
        assert_eq!(names_only_haft(list.to_string().as_bytes()), is_haft, "{program} {argument}");
    }
}

#[test]
fn an_entry_that_cannot_be_understood_costs_only_itself() {
    let mut settings = McpSettings::default();
    settings.take_workspace_list(
        br#"{"mcpServers": {"empty": {}, "listed": {"command": "x", "args": {}}, "nested": {"command": "x", "env": {"A": []}},
            "secret": {"command": "x", "env": {"A": "secret:B"}}, "text": "x", "off": {"disabled": true},
            "good": {"command": "x"}}}"#,
    );
    for (name, expected) in [
        ("empty", "neither `command` nor `url`"),
        ("listed", "`args`: it is not an array of text"),
        ("nested", "`A` must be text, a number, true or false"),
        ("secret", "only your own files"),
        ("text", "a server is a table"),
    ] {
        let said = refused(&settings, name).unwrap();
        let begins = format!("the entry `{name}` in the workspace's .mcp.json cannot be used: ");
        assert!(said.starts_with(&begins) && said.contains(expected) && said.ends_with("`haft trust`"), "{said}");
    }
    assert_eq!(refused(&settings, "good"), None);
    assert!(settings.servers().iter().all(|server| server.enabled == (server.name != "off")));
}

#[test]
fn what_people_paste_is_taken_as_it_is_meant() {
    let mut settings = McpSettings::default();
    settings.take_workspace_list(
        br#"// mine
        {"mcpServers": {
            "a": {"command": "x", "args": null, "url": null, "env": {"PORT": 5, "DEBUG": true, "NONE": null}, "cwd": null},
            "b": {"serverUrl": "https://x.org/mcp"}, /* there */
            "c": {"command": "x", "args": ["--port", 5],},
        },}"#,
    );
    let all = settings.servers();
    let Reached::Command { command, env, cwd } = &all[0].reached else { panic!("{all:?}") };
    assert_eq!((command.len(), env["PORT"].as_str(), env["DEBUG"].as_str(), env.len()), (1, "5", "true", 2));
    assert_eq!(cwd, ".");
    assert_eq!((all[1].reached.shown().as_str(), all[2].reached.shown().as_str()), ("https://x.org/mcp", "x --port 5"));
}

#[test]
fn a_name_that_is_none_becomes_the_nearest() {
    for (written, name) in [
        ("My Server", "My-Server"),
        ("a__b", "a_b"),
        ("github.com/x", "github-com-x"),
        ("@scope/the (best) one!", "scope-the-best-one"),
        ("a--b", "a--b"),
        ("_a_", "a"),
        ("1234567890123456789012345678901 x", "1234567890123456789012345678901"),
    ] {
        let mut settings = McpSettings::default();
        let list = serde_json::json!({ "mcpServers": { written: { "command": "x" } } });
        settings.take_workspace_list(list.to_string().as_bytes());
        assert_eq!(settings.servers()[0].name, name);
    }
    let mut settings = McpSettings::default();
    settings.take_workspace_list(
        br#"{"mcpServers": {"a b": {"command": "1"}, "a/b": {"command": "2"}, "a-b": {"command": "3"}, "/": {"command": "4"},
            "c_": {"command": "5"}, "c": {"command": "6"}}}"#,
    );
    let said = |name| refused(&settings, name).unwrap_or_default();
    assert!(
        said("a b").contains("would be named `a-b`") && said("a/b").contains("would be named `a-b`"),
        "{settings:?}"
    );
    assert!(said("/").contains("needs a name with letters"), "{settings:?}");
    assert!(said("c_").contains("would be named `c`"), "{settings:?}");
    let kept = settings.servers().into_iter().find(|server| server.name == "a-b").unwrap();
    assert_eq!(kept.reached.shown(), "3", "the one that is written so");
}

#[test]
fn a_server_elsewhere_has_headers() {
    let mut settings = McpSettings::default();
    let value = "{ x = { url = 'https://x.org/mcp', headers = { Authorization = 'secret:X' } } }";
    settings.take("mcp.servers", value).unwrap();
    let Reached::Url { url, headers } = &settings.servers()[0].reached else { panic!("it has a URL") };
    assert_eq!((url.as_str(), headers["Authorization"].as_str()), ("https://x.org/mcp", "secret:X"));
}
