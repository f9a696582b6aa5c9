//! Servers that run elsewhere.

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::PermissionsExt,
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};

use crate::bench::Bench;

/// A made-up server over HTTP on this machine. It does not outlive the test.
struct Elsewhere {
    child: Child,
    url: String,
}

impl Elsewhere {
    fn start(how: &str) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/upstream/elsewhere.py");
        #[expect(clippy::disallowed_methods, reason = "this test starts a server of its own")]
        let mut child = Command::new("python3").args([script, how]).stdout(Stdio::piped()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self { child, url: format!("http://127.0.0.1:{}/mcp", port.trim()) }
    }

    fn entry(&self, token: &str) -> Value {
        json!({ "fake": { "type": "http", "url": self.url, "headers": { "Authorization": token } } })
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn its_tools_are_called_with_the_token_that_the_user_has_for_it() {
    for how in ["at once", "events"] {
        let server = Elsewhere::start(how);
        let mut bench = Bench::new();
        bench.0.variables.push(("TOKEN", "Bearer good-token".into()));
        bench.list(&server.entry("secret:TOKEN"));
        let (code, outcome) = bench.call("echo", &json!({ "text": "hi" }));
        assert_eq!((code, &outcome["result"]["content"]), (0, &json!("hi")), "{how}: {outcome}");
        assert_eq!(outcome["isolation"], "none", "no process was started");
        let said = bench.servers(&[]).said() + &bench.0.run(&["log", "--json"]).said();
        assert!(!said.contains("good-token"), "{said}");
        assert_eq!(bench.0.call("mcp__fake__echo", &json!({ "text": "hi" }), &[]).0, 4, "it asks");
    }
}

#[test]
fn a_token_is_a_variable_or_a_file_that_only_its_owner_reads() {
    let server = Elsewhere::start("at once");
    let mut bench = Bench::new();
    bench.0.variables.push(("TOKEN", "good-token".into()));
    bench.list(&server.entry("Bearer ${TOKEN}"));
    assert_eq!(bench.does("echo", &json!({ "text": "hi" }))["content"], "hi");

    let bench = Bench::new();
    let headers = format!("url = '{}'\nheaders = {{ Authorization = 'secret:THERE' }}\n", server.url);
    bench.settings(&format!("[mcp.servers.fake]\n{headers}"));
    let (_, said) = bench.fails("echo", &json!({ "text": "hi" }));
    assert!(said.contains("its header `Authorization`: there is no secret `THERE`"), "{said}");
    let secrets = bench.0.fixture.data.join("secrets");
    fs::create_dir_all(&secrets).unwrap();
    fs::write(secrets.join("THERE"), "Bearer good-token\n").unwrap();
    fs::set_permissions(secrets.join("THERE"), fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(bench.does("echo", &json!({ "text": "hi" }))["content"], "hi");
}

#[test]
fn one_that_wants_a_login_says_so() {
    let server = Elsewhere::start("at once");
    let bench = Bench::new();
    bench.list(&server.entry("Bearer old-token"));
    let (code, message) = bench.fails("echo", &json!({ "text": "hi" }));
    assert!(code == "UNAVAILABLE" && message.contains("needs a login (HTTP 401)"), "{code}: {message}");
    assert!(!message.contains("old-token"), "{message}");
    let shown = bench.servers(&[]).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for said in [message, shown] {
        assert!(said.contains("the header `Authorization` with the value `secret:NAME`"), "{said}");
        assert!(said.contains("then `haft mcp-servers restart fake` tries it"), "{said}");
        assert!(!said.contains("[redacted]"), "{said}");
    }
    assert_eq!(bench.0.json(&["mcp-servers"])[0]["state"], "needs login");
}

#[test]
fn one_that_tells_its_token_is_not_quoted() {
    let server = Elsewhere::start("tells");
    let mut bench = Bench::new();
    bench.0.variables.push(("THERE", server.url.clone().into()));
    let mut entry = server.entry("Bearer good-token");
    entry["fake"]["url"] = json!("${THERE}");
    bench.list(&entry);
    let (_, said) = bench.fails("echo", &json!({ "text": "hi" }));
    assert!(said.contains("nobody is known by [redacted]") && !said.contains("good-token"), "{said}");
    let begins = "did not start: it did not begin as MCP wants it: HTTP 500";
    assert!(said.contains(begins) && !said.contains("rmcp") && !said.contains("ransport"), "{said}");
}

#[test]
fn what_may_have_happened_there_is_said() {
    let server = Elsewhere::start("lost");
    let bench = Bench::new();
    bench.list(&server.entry("Bearer good-token"));
    let (code, said) = bench.fails("echo", &json!({ "text": "hi" }));
    assert!(code == "OUTCOME_UNKNOWN" && !said.contains("rmcp") && !said.contains("ransport"), "{code}: {said}");
}

#[test]
fn a_workspace_reaches_nothing_on_this_machine() {
    let server = Elsewhere::start("at once");
    let bench = Bench::new();
    bench.0.put(".mcp.json", json!({ "mcpServers": server.entry("Bearer good-token") }).to_string());
    assert_eq!(bench.0.run(&["trust", "--yes"]).code, Some(0));
    let (code, message) = bench.fails("echo", &json!({ "text": "hi" }));
    assert!(code == "UNAVAILABLE" && message.contains("127.0.0.1"), "{code}: {message}");
}
