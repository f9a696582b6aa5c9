//! Servers that run elsewhere.

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::PermissionsExt,
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};

use crate::{
    bench::Bench,
    client::{Client, Era, MUTE, failed, said, succeeded},
    support::ALL,
};

/// A made-up server over HTTP on this machine. It does not outlive the test.
struct Elsewhere {
    child: Child,
    how: String,
    port: String,
    url: String,
}

impl Elsewhere {
    fn start(how: &str) -> Self {
        let (child, port) = run(how, "0");
        Self { child, how: how.to_owned(), url: format!("http://127.0.0.1:{port}/mcp"), port }
    }

    fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Runs again at the same address; it knows nothing of before.
    fn run_again(&mut self) {
        self.child = run(&self.how, &self.port).0;
    }

    fn entry(&self, token: &str) -> Value {
        json!({ "fake": { "type": "http", "url": self.url, "headers": { "Authorization": token } } })
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The server's process, and the port that it listens at.
fn run(how: &str, port: &str) -> (Child, String) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/upstream/elsewhere.py");
    #[expect(clippy::disallowed_methods, reason = "this test starts a server of its own")]
    let mut child = Command::new("python3").args([script, how, port]).stdout(Stdio::piped()).spawn().unwrap();
    let mut port = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
    (child, port.trim().to_owned())
}

/// A client of a haft that has met the server.
fn living_beside(server: &Elsewhere) -> (Bench, Client) {
    let bench = Bench::new();
    bench.list(&server.entry("Bearer good-token"));
    let client = Client::with(&bench.0.fixture, Era::Initialize, MUTE, ALL);
    (bench, client)
}

#[test]
fn one_that_was_restarted_is_used_again_however_it_says_that_it_knows_no_session() {
    for how in ["session 404", "session 400", "session text", "session 200"] {
        let mut server = Elsewhere::start(how);
        let (_bench, mut client) = living_beside(&server);
        for _ in 0..2 {
            let result = client.call("mcp__fake__echo", &json!({ "text": "hi" }));
            succeeded(&result);
            assert_eq!(said(&result), "hi", "{how}: {result}");
            server.stop();
            server.run_again();
        }
    }
}

#[test]
fn one_that_does_not_run_was_sent_nothing_and_is_used_once_it_runs() {
    let mut server = Elsewhere::start("session 404");
    let (bench, mut client) = living_beside(&server);
    succeeded(&client.call("mcp__fake__echo", &json!({ "text": "hi" })));
    server.stop();
    for _ in 0..6 {
        failed(&client.call("mcp__fake__echo", &json!({ "text": "hi" })), "error", "UNAVAILABLE");
    }
    assert_eq!(bench.0.json(&["mcp-servers"])[0]["state"], "failed");
    server.run_again();
    succeeded(&client.call("mcp__fake__echo", &json!({ "text": "hi" })));
    assert_eq!(bench.0.json(&["mcp-servers"])[0]["state"], "ready");
}

#[test]
fn an_error_that_names_no_request_ends_the_one_that_it_answers() {
    for how in ["refuses", "refuses 500", "refuses events"] {
        let server = Elsewhere::start(how);
        let bench = Bench::new();
        bench.list(&server.entry("Bearer good-token"));
        let (code, said) = bench.fails("echo", &json!({ "text": "hi" }));
        assert_eq!((code.as_str(), said.as_str()), ("EXECUTION_ERROR", "the disk is full"), "{how}");
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
    let begins = "did not start: it did not answer as an MCP server: HTTP 500";
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
