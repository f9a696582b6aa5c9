//! `haft mcp install`: the lines that each client reads, and files that keep everything else.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
};

use serde_json::{Value, json};
use support::{Fixture, Terminal, copy_program, text};

/// A workspace of somebody who has installed haft.
fn fixture() -> Fixture {
    let fixture = Fixture::new();
    fixture.install_program();
    fixture
}

/// The program that clients are told to start.
fn program(fixture: &Fixture) -> String {
    fixture.home.join(".local/bin/haft").display().to_string()
}

/// The text with this program and this workspace in their places.
fn golden(fixture: &Fixture, text: &str) -> String {
    text.replace("HAFT", &program(fixture)).replace("FOLDER", fixture.workspace.to_str().unwrap())
}

fn install(fixture: &Fixture, args: &[&str]) -> Value {
    fixture.json(&[&["mcp", "install"], args].concat())
}

fn home(fixture: &Fixture, path: &str) -> Option<String> {
    fs::read_to_string(fixture.home.join(path)).ok()
}

const CLAUDE: &str = r#"{
  "mcpServers": {
    "haft": {
      "type": "stdio",
      "command": "HAFT",
      "args": [
        "mcp"
      ]
    }
  }
}
"#;
const CODEX: &str = "[mcp_servers.haft]\ncommand = \"HAFT\"\nargs = [\"mcp\"]\nrequired = true\n";
const OPENCODE: &str = r#"{
  "$schema": "https://opencode.ai/config.json",
  "mcp": {
    "haft": {
      "type": "local",
      "command": [
        "HAFT",
        "mcp"
      ],
      "enabled": true
    }
  }
}
"#;
const VSCODE: &str = r#"{
  "servers": {
    "haft": {
      "type": "stdio",
      "command": "HAFT",
      "args": [
        "mcp",
        "--workspace",
        "${workspaceFolder}"
      ]
    }
  }
}
"#;
const ZED: &str = r#"{
  "context_servers": {
    "haft": {
      "command": "HAFT",
      "args": [
        "mcp",
        "--workspace",
        "FOLDER"
      ],
      "env": {}
    }
  }
}
"#;
/// Each client with its file and what it must say; a `~` stands for the home folder.
const CLIENTS: [(&str, &str, &str); 5] = [
    ("claude", ".mcp.json", CLAUDE),
    ("codex", "~/.codex/config.toml", CODEX),
    ("opencode", "opencode.json", OPENCODE),
    ("vscode", ".vscode/mcp.json", VSCODE),
    ("zed", ".zed/settings.json", ZED),
];

#[test]
fn a_build_is_never_named_but_the_installed_program() {
    let fixture = Fixture::new();
    let ran = fixture.run(&["mcp", "install", "claude"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("make install"), "{ran:?}");
    assert!(!fixture.path(".mcp.json").exists());
    let installed = fixture.install_program();
    install(&fixture, &["claude"]);
    assert!(fixture.text(".mcp.json").unwrap().contains(installed.to_str().unwrap()));
    // One that lies anywhere else is named as it is.
    let other = fixture.home.join("opt");
    fs::create_dir(&other).unwrap();
    copy_program(support::HAFT.as_ref(), &other.join("haft"));
    let mut command = fixture.program(other.join("haft").to_str().unwrap());
    command.args(["mcp", "install", "claude", "--print"]);
    let ran = support::Running::start(command).finish();
    assert!(ran.stdout.contains(other.to_str().unwrap()), "{ran:?}");
}

#[test]
fn every_client_gets_its_lines_and_a_second_time_changes_nothing() {
    let fixture = fixture();
    for (client, file, lines) in CLIENTS {
        let path = match file.strip_prefix("~/") {
            Some(file) => fixture.home.join(file),
            None => fixture.path(file),
        };
        let lines = golden(&fixture, lines);
        let printed = fixture.run(&["mcp", "install", client, "--print"]);
        assert_eq!((printed.code, &printed.stdout), (Some(0), &lines), "{printed:?}");
        assert!(!path.exists(), "nothing is written by it");
        let first = install(&fixture, &[client]);
        assert_eq!((text(&first["became"]), text(&first["file"])), ("added".into(), path.display().to_string()));
        assert_eq!(fs::read_to_string(&path).unwrap(), lines, "{client}");
        let second = install(&fixture, &[client]);
        assert_eq!((&second["became"], &second["callId"]), (&json!("unchanged"), &Value::Null));
        assert_eq!(fs::read_to_string(&path).unwrap(), lines, "{client}");
    }
    assert_eq!(home(&fixture, ".config/haft/haft.toml").as_deref(), Some("mcp.client_may_approve = \"safe\"\n"));
}

#[test]
fn a_file_of_the_workspace_is_written_by_a_call_that_can_be_undone() {
    let fixture = fixture();
    let call = text(&install(&fixture, &["vscode"])["callId"]);
    assert_eq!(fixture.story(&call)["tool"], "write_file");
    assert_eq!(fixture.run(&["undo", &call, "--yes"]).code, Some(0));
    assert!(!fixture.path(".vscode/mcp.json").exists());
}

#[test]
fn haft_itself_is_nothing_that_a_workspace_brings() {
    let fixture = fixture();
    install(&fixture, &["claude"]);
    for command in ["approvals", "mcp-servers"] {
        let ran = fixture.run(&[command]);
        assert!(ran.code == Some(0) && !ran.stderr.contains("trust"), "{ran:?}");
    }
    let others = fixture.text(".mcp.json").unwrap().replace("\"haft\"", "\"x\": {\"command\": \"x\"},\n    \"haft\"");
    fixture.put(".mcp.json", others);
    let ran = fixture.run(&["approvals"]);
    assert!(ran.stderr.contains("not trusted: 1 file of this workspace is not used"), "{ran:?}");
}

#[test]
fn what_else_is_in_a_file_stays_and_an_old_entry_is_changed() {
    let fixture = fixture();
    let zed = "// my settings\n{\n  \"theme\": \"One\", // dark\n  \"context_servers\": {\n    \"haft\": {\"command\": \"/old/haft\"},\n    \"x\": {}\n  },\n}\n";
    fixture.put(".zed/settings.json", zed);
    assert_eq!(install(&fixture, &["zed"])["became"], "changed");
    let now = fixture.text(".zed/settings.json").unwrap();
    for kept in ["// my settings", "\"theme\": \"One\", // dark", "\"x\": {}\n  },\n}\n", &program(&fixture)] {
        assert!(now.contains(kept), "{kept}: {now}");
    }
    assert!(!now.contains("/old/haft"));

    let codex = fixture.home.join(".codex/config.toml");
    fs::create_dir(codex.parent().unwrap()).unwrap();
    let old = "model = \"x\" # mine\n\n[mcp_servers.haft]\ncommand = \"/old/haft\"\n\n# docs\n[mcp_servers.docs]\ncommand = \"d\"\n";
    fs::write(&codex, old).unwrap();
    fs::set_permissions(&codex, fs::Permissions::from_mode(0o640)).unwrap();
    assert_eq!(install(&fixture, &["codex"])["became"], "changed");
    let lines = golden(&fixture, CODEX);
    let expected = format!("model = \"x\" # mine\n\n{lines}\n# docs\n[mcp_servers.docs]\ncommand = \"d\"\n");
    assert_eq!(fs::read_to_string(&codex).unwrap(), expected);
    assert_eq!(codex.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    let left: Vec<_> = fs::read_dir(codex.parent().unwrap()).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing lies beside it");
}

#[test]
fn what_people_have_put_into_the_entry_stays() {
    let fixture = fixture();
    let codex = fixture.home.join(".codex/config.toml");
    fs::create_dir(codex.parent().unwrap()).unwrap();
    let env = "[mcp_servers.haft.env]\nHAFT_DATA_DIR = \"/x\" # here\n";
    let slow = "tool_timeout_sec = 600 # keep\n";
    let lines = golden(&fixture, CODEX);
    for (old, new) in [
        (env.to_owned(), format!("{env}\n{lines}")),
        (format!("{env}\n[mcp_servers.haft]\ncommand = \"/old/haft\"\n{slow}"), format!("{env}\n{lines}{slow}")),
        (format!("[mcp_servers.haft]\ncommand = \"/old/haft\"\n{slow}\n{env}"), format!("{lines}{slow}\n{env}")),
    ] {
        fs::write(&codex, old).unwrap();
        assert_eq!(install(&fixture, &["codex"])["became"], "changed");
        assert_eq!(fs::read_to_string(&codex).unwrap(), new);
        assert_eq!(install(&fixture, &["codex"])["became"], "unchanged");
    }
    for (client, file, _) in CLIENTS.into_iter().filter(|(client, ..)| *client != "codex") {
        install(&fixture, &[client]);
        let lines = fixture.text(file).unwrap();
        let mine = "\"mine\": [1,2], // mine\n      \"env\": {\"HAFT_DATA_DIR\": \"/x\"},\n      ";
        let mine = lines
            .replace("      \"env\": {}", "")
            .replace("\"haft\": {\n      ", &format!("\"haft\": {{\n      {mine}"));
        fixture.put(file, mine.replace(&program(&fixture), "/old/haft"));
        assert_eq!(install(&fixture, &[client])["became"], "changed", "{client}");
        assert_eq!(fixture.text(file).unwrap(), mine, "{client}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_left_and_the_lines_are_said() {
    let fixture = fixture();
    fixture.put(".mcp.json", "{ not json");
    let ran = fixture.run(&["mcp", "install", "claude"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("put these lines into it yourself") && ran.stderr.contains(&golden(&fixture, CLAUDE)));
    let reason =
        ran.stderr.find("it is not JSON: key must be a string at line 1 column 3; it is left as it is").unwrap();
    assert!(reason < ran.stderr.find("mcpServers").unwrap(), "the reason comes first: {}", ran.stderr);
    assert_eq!(fixture.text(".mcp.json").as_deref(), Some("{ not json"));
    assert!(home(&fixture, ".config/haft/haft.toml").is_none(), "half an installation is none");
}

#[test]
fn an_entry_that_is_reached_elsewhere_is_left() {
    let fixture = fixture();
    let json = r#"{"mcpServers": {"haft": {"type": "http", "url": "https://x.org/mcp"}}}"#;
    let toml = "[mcp_servers.haft]\nurl = 'https://x.org/mcp'\n";
    fixture.put(".mcp.json", json);
    fs::create_dir(fixture.home.join(".codex")).unwrap();
    fs::write(fixture.home.join(".codex/config.toml"), toml).unwrap();
    for client in ["claude", "codex"] {
        let ran = fixture.run(&["mcp", "install", client]);
        assert!(ran.code == Some(1) && ran.stderr.contains("its entry `haft` has a `url`"), "{ran:?}");
    }
    assert_eq!(fixture.text(".mcp.json").as_deref(), Some(json));
    assert_eq!(home(&fixture, ".codex/config.toml").as_deref(), Some(toml));
}

#[test]
fn a_user_may_have_it_everywhere_or_for_one_workspace() {
    let fixture = fixture();
    let real = fixture.home.join("dotfiles.json");
    fs::write(&real, "{\n  \"projects\": {}\n}\n").unwrap();
    symlink(&real, fixture.home.join(".claude.json")).unwrap();
    assert_eq!(install(&fixture, &["claude", "--user"])["became"], "added");
    let entry = json!({"type": "stdio", "command": program(&fixture), "args": ["mcp"]});
    let now: Value = serde_json::from_str(&fs::read_to_string(&real).unwrap()).unwrap();
    assert_eq!(now, json!({"projects": {}, "mcpServers": {"haft": entry}}));
    assert!(fixture.home.join(".claude.json").is_symlink(), "a link stays a link");

    let folder = fixture.workspace.to_str().unwrap();
    install(&fixture, &["codex", "--workspace", folder]);
    let codex = home(&fixture, ".codex/config.toml").unwrap();
    assert!(codex.contains(&format!("args = [\"mcp\", \"--workspace\", \"{folder}\"]")), "{codex}");
}

#[test]
fn what_a_client_may_approve_is_recorded_and_never_widened_in_silence() {
    let fixture = fixture();
    let haft_toml = ".config/haft/haft.toml";
    assert_eq!(install(&fixture, &["claude", "--client-may-approve", "no"])["clientMayApprove"], "none");
    assert_eq!(home(&fixture, haft_toml).as_deref(), Some("mcp.client_may_approve = \"none\"\n"));
    assert_eq!(install(&fixture, &["claude"])["clientMayApprove"], "none", "nobody said anything else");
    assert_eq!(install(&fixture, &["claude", "--client-may-approve", "yes"])["clientMayApprove"], "safe");
    fs::write(fixture.home.join(haft_toml), "# mine\n[mcp]\nclient_may_approve = \"all\" # brave\n").unwrap();
    assert_eq!(install(&fixture, &["claude", "--client-may-approve", "yes"])["clientMayApprove"], "all");
    assert_eq!(home(&fixture, haft_toml).unwrap(), "# mine\n[mcp]\nclient_may_approve = \"all\" # brave\n");
    assert_eq!(fixture.run(&["mcp", "install", "claude", "--client-may-approve", "maybe"]).code, Some(2));
}

#[test]
fn somebody_at_the_terminal_is_asked() {
    let fixture = fixture();
    let mut terminal = Terminal::start(fixture.haft(&["mcp", "install", "opencode"]));
    terminal.read_until("[Y]es [n]o ");
    terminal.type_in("what\n");
    let again = terminal.read_until("[Y]es [n]o ");
    assert!(again.contains("neither y nor n"), "{again}");
    terminal.type_in("n\n");
    terminal.read_until("client_may_approve = \"none\"");
    assert_eq!(terminal.exit_code(), Some(0));
    assert!(fixture.text("opencode.json").is_some());
}
