//! Servers that the operator has started here, and a real one that runs elsewhere.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};

use crate::{Member, http_client::Gateway, set_secret, until};

/// The made-up server over standard input and output.
const FAKE: &str = include_str!("../upstream/fake.py");

fn add(served: &Gateway, tenant: &str, more: &[&str]) -> Value {
    let behind = ["--", "python3", "-c", FAKE, "{}"];
    served.admin_with(&[&["mcp", "add", "files", "--tenant", tenant], more].concat(), &behind)
}

fn facts(member: &Member) -> Value {
    serde_json::from_str(&member.says("mcp__files__facts", &json!({}))).unwrap()
}

#[test]
fn it_has_a_home_and_a_folder_of_its_own_and_nothing_of_the_host() {
    let served = Gateway::start();
    let (acme, bolt) = (Member::of(&served, "acme", &[]), Member::of(&served, "bolt", &[]));
    set_secret(&served, "acme", "acme-s3cr3t-value");
    let added = add(&served, "acme", &["--env", "X_PLAIN=plain-value", "--env", "X_TOKEN=secret:TOKEN"]);
    assert_eq!(
        (&added["transport"], &added["env"]),
        (&json!("stdio"), &json!({"X_PLAIN": "…", "X_TOKEN": "secret:TOKEN"}))
    );
    add(&served, "bolt", &[]);
    until("tool", || acme.tools().first().cloned());
    let (ours, theirs) = (facts(&acme), facts(&bolt));
    assert_eq!(ours["variables"]["X_PLAIN"], "plain-value");
    assert_eq!(ours["variables"]["X_TOKEN"], "[redacted]", "it has it, and nobody hears of it");
    assert_eq!((&theirs["variables"], &theirs["starts"]), (&json!({}), &json!(1)), "the home of its own");
    assert_eq!((&ours["writes"], &ours["interfaces"]), (&json!(true), &theirs["interfaces"]));
    assert!(ours["cwd"] != theirs["cwd"] && !served.workspace().join("made-by-server").exists(), "{ours} {theirs}");
    let shown = acme.get("/api/servers/files");
    assert_eq!((&shown["state"], &shown["command"]), (&json!("ready"), &Value::Null), "{shown:#}");
    assert!(!shown.to_string().contains("plain-value"), "{shown}");
    let listed = served.admin(&["mcp", "list", "--tenant", "acme"]);
    assert_eq!((&listed["items"][0]["name"], &listed["items"][0]["state"]), (&json!("files"), &json!("ready")));
    assert_eq!(served.admin(&["mcp", "show", "files", "--tenant", "acme"])["command"][0], "python3");
    let stays = acme.send("PATCH", "/api/servers/files", &json!({"command": ["sh"]}));
    assert_eq!(stays.status, 400, "{stays:?}");
    acme.change("files", &json!({"allowedTools": ["echo"]}));
    assert_eq!(acme.tools(), ["mcp__files__echo"]);
    served.admin(&["mcp", "remove", "files", "--tenant", "acme"]);
    until("end", || acme.tools().is_empty().then_some(()));
    assert!(!bolt.tools().is_empty());
}

#[test]
fn a_folder_of_the_host_is_there_when_the_operator_names_it_and_is_only_read() {
    let served = Gateway::start();
    let acme = Member::of(&served, "acme", &[]);
    let folder = served.workspace();
    fs::write(folder.join("fake.py"), FAKE).unwrap();
    let map = ["--map", folder.to_str().unwrap()];
    let behind = ["--", "python3", "fake.py"];
    served.admin_with(&[&["mcp", "add", "files", "--tenant", "acme"], &map[..]].concat(), &behind);
    let seen = facts(&acme);
    assert_eq!(seen["cwd"], folder.to_str().unwrap());
    assert!(seen["writes"].to_string().contains("ead-only"), "{seen}");
    served.admin(&["mcp", "remove", "files", "--tenant", "acme"]);
    served.admin_with(&[&["mcp", "add", "files", "--tenant", "acme", "--write"], &map[..]].concat(), &behind);
    until("right to write", || (facts(&acme)["writes"] == true).then_some(()));
    assert!(folder.join("made-by-server").exists());
}

#[test]
fn one_that_dies_says_why_and_is_started_again() {
    let served = Gateway::start();
    let acme = Member::of(&served, "acme", &[]);
    let options = json!({"dies": "act", "last_words": "out of luck"}).to_string();
    let args = ["mcp", "add", "files", "--tenant", "acme"];
    served.admin_with(&args, &["--", "python3", "-c", FAKE, &options]);
    let died = acme.call("mcp__files__act", &json!({}));
    assert_eq!(died["status"], "error", "{died:#}");
    let failed = acme.get("/api/servers/files");
    assert!(failed["state"] == "failed" && failed["reason"].to_string().contains("out of luck"), "{failed:#}");
    assert_eq!(facts(&acme)["starts"], 2);
    assert_eq!(acme.get("/api/servers/files")["state"], "ready");
}

#[test]
fn one_that_nobody_uses_is_ended_and_started_again_by_the_next_call() {
    let served = Gateway::start_with("serve.mcp_idle = '1s'\n");
    let acme = Member::of(&served, "acme", &[]);
    let marker = format!("{{\"marker\": \"{}\"}}", served.url);
    let args = ["mcp", "add", "files", "--tenant", "acme"];
    served.admin_with(&args, &["--", "python3", "-c", FAKE, &marker]);
    assert_eq!(facts(&acme)["starts"], 1);
    assert!(runs(&marker));
    until("end", || (!runs(&marker)).then_some(()));
    assert_eq!(acme.get("/api/servers/files")["state"], "ready");
    assert_eq!(facts(&acme)["starts"], 2);
}

/// Whether a process has this among its arguments.
fn runs(marker: &str) -> bool {
    let lines =
        fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines.into_iter().any(|line| line.split(|byte| *byte == 0).any(|word| word == marker.as_bytes()))
}

/// A server made with the Python SDK; it does not outlive the test.
struct PythonServer(Child);

impl Drop for PythonServer {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[expect(clippy::disallowed_methods, reason = "the program is found as the set-up puts it, and started by this test")]
fn python_server() -> (PythonServer, String) {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.unwrap_or_else(|| PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache"));
    let python = cache.join("haft/tools/clients/bin/python");
    assert!(python.exists(), "{} is missing; `scripts/setup tests` installs it", python.display());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/serve_servers/fast.py");
    let mut child = Command::new(python).arg(script).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut port = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
    (PythonServer(child), format!("127.0.0.1:{}", port.trim()))
}

#[test]
fn a_real_server_elsewhere_is_used_with_its_schemas() {
    let ((_server, host), served) = (python_server(), Gateway::start());
    let acme = Member::of(&served, "acme", &[&host]);
    let added = acme.add(&json!({"name": "sums", "url": format!("http://{host}/mcp"), "trusted": true}));
    assert_eq!(added.status, 201, "{added:?}");
    until("tool", || acme.tools().first().cloned());
    let sum = acme.call("mcp__sums__add", &json!({"a": 2, "b": 3}));
    assert_eq!((&sum["status"], &sum["result"]["structured"]["result"]), (&json!("success"), &json!(5)), "{sum:#}");
    assert_eq!(acme.call("mcp__sums__add", &json!({"a": "two", "b": 3}))["error"]["code"], "INVALID_ARGS");
}
