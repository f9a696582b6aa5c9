//! The same server over HTTP: who is let in, what a request must say, and that a client which hangs up has cancelled.

use std::{
    fs,
    io::{BufRead, BufReader, Lines, Read, Write},
    net::TcpStream,
    os::unix::fs::PermissionsExt,
    process::{Child, ChildStderr, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::{
    client::recorded,
    streaming::{Sleepers, ended},
    support::{Fixture, LIMIT, until},
};

const TOKEN: &str = "a-token-of-the-test";
const MODERN: &str = "2026-07-28";
const PREFIX: &str = "io.modelcontextprotocol/";

/// The program, listening. It does not outlive the test.
struct Listening {
    child: Child,
    said: Lines<BufReader<ChildStderr>>,
    address: String,
}

/// What was answered.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Listening {
    fn start(fixture: &Fixture, token: Option<&str>) -> Self {
        let mut command = fixture.haft(&["mcp", "--http", "127.0.0.1:0"]);
        command.envs(token.map(|token| ("HAFT_MCP_TOKEN", token)));
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
        let first = said.next().unwrap().unwrap();
        let address = first.split_once("http://").and_then(|(_, rest)| rest.strip_suffix("/mcp")).unwrap().to_owned();
        Self { child, said, address }
    }

    /// Sends a request, and hangs up only when the whole answer is there.
    fn post(&self, headers: &[(&str, &str)], body: &str) -> Answer {
        self.post_as("application/json", headers, body)
    }

    fn post_as(&self, kind: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut stream = self.begin(&[&[("Content-Type", kind)], headers].concat(), body);
        let mut whole = Vec::new();
        stream.read_to_end(&mut whole).unwrap();
        let whole = String::from_utf8_lossy(&whole).into_owned();
        let (head, body) = whole.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head: head.to_lowercase(), body: body.to_owned() }
    }

    fn begin(&self, headers: &[(&str, &str)], body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let mut head = "POST /mcp HTTP/1.1\r\nConnection: close\r\n\
                        Accept: application/json, text/event-stream\r\n"
            .to_owned();
        if !headers.iter().any(|(name, _)| *name == "Host") {
            head.push_str(&format!("Host: {}\r\n", self.address));
        }
        headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
        head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
        stream.write_all(head.as_bytes()).unwrap();
        // A body that is too long need not be read to its end.
        let _ = stream.write_all(body.as_bytes());
        stream
    }

    /// A request of the newer era, with the headers that it must have.
    fn ask(&self, method: &str, params: Value) -> Answer {
        let (name, body) = modern(method, params);
        let authorization = format!("Bearer {TOKEN}");
        let mut headers =
            vec![("Authorization", authorization.as_str()), ("MCP-Protocol-Version", MODERN), ("Mcp-Method", method)];
        headers.extend(name.as_deref().map(|name| ("Mcp-Name", name)));
        self.post(&headers, &body)
    }

    /// Whether a token is the right one.
    fn list_with(&self, token: &str) -> Answer {
        let (_, body) = modern("tools/list", json!({}));
        let authorization = format!("Bearer {token}");
        let version = [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/list")];
        self.post(&[&[("Authorization", authorization.as_str())], &version[..]].concat(), &body)
    }

    fn end(mut self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        assert!(until("end of the program", || self.child.try_wait().unwrap()).success());
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Answer {
    /// The one message in it, whether it came alone or as an event.
    fn message(&self) -> Value {
        let lines = self.body.lines().map(|line| line.strip_prefix("data:").unwrap_or(line).trim());
        lines.filter_map(|line| serde_json::from_str(line).ok()).find(|found: &Value| found.is_object()).unwrap()
    }
}

/// The body of a request of the newer era, and what its header names.
fn modern(method: &str, mut params: Value) -> (Option<String>, String) {
    let name = params["name"].as_str().map(str::to_owned);
    params["_meta"] = json!({
        format!("{PREFIX}protocolVersion"): MODERN,
        format!("{PREFIX}clientCapabilities"): {},
        format!("{PREFIX}clientInfo"): {"name": "raw", "version": "1"},
    });
    (name, json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string())
}

#[test]
fn only_who_has_the_token_is_heard() {
    let fixture = Fixture::new();
    let listening = Listening::start(&fixture, Some(TOKEN));
    let (_, body) = modern("tools/list", json!({}));
    for wrong in [None, Some("Bearer wrong"), Some("Bearer "), Some("Basic YTph"), Some(TOKEN)] {
        let headers: Vec<_> = wrong.iter().map(|wrong| ("Authorization", *wrong)).collect();
        let refused = listening.post(&headers, &body);
        assert_eq!(refused.status, 401, "{wrong:?}: {}", refused.body);
        assert!(refused.head.contains("www-authenticate: bearer") && !refused.body.contains(TOKEN));
        let hint = "`haft mcp --http` prints where";
        assert!(refused.body.contains(hint) && !refused.body.contains("/data"), "{}", refused.body);
    }
    let right = format!("Bearer {TOKEN}");
    let address = listening.address.clone();
    for twice in [
        [("Authorization", right.as_str()), ("Authorization", "Bearer wrong")],
        [("Host", &address), ("Host", "evil.example")],
    ] {
        let refused = listening.post(&twice, &body);
        assert_eq!(refused.status, 400, "{twice:?}: {}", refused.body);
    }
    let listed = listening.ask("tools/list", json!({}));
    assert_eq!(listed.status, 200, "{}", listed.body);
    assert!(listed.message()["result"]["tools"].as_array().unwrap().len() > 20);
    listening.end();
}

#[test]
fn pages_of_others_and_names_that_are_not_ours_are_turned_away() {
    let fixture = Fixture::new();
    let listening = Listening::start(&fixture, Some(TOKEN));
    let authorization = format!("Bearer {TOKEN}");
    let (_, body) = modern("tools/list", json!({}));
    for strange in [("Origin", "https://evil.example"), ("Origin", "null"), ("Host", "evil.example")] {
        let refused = listening.post(&[("Authorization", &authorization), strange], &body);
        assert_eq!(refused.status, 403, "{strange:?}: {}", refused.body);
    }
}

#[test]
fn headers_must_say_what_the_body_says() {
    let fixture = Fixture::new();
    let listening = Listening::start(&fixture, Some(TOKEN));
    let authorization = ("Authorization", &*format!("Bearer {TOKEN}"));
    let (_, body) = modern("tools/call", json!({"name": "list_directory", "arguments": {}}));
    let right = [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/call"), ("Mcp-Name", "list_directory")];
    let all: Vec<_> = right.into_iter().chain([authorization]).collect();
    assert_eq!(listening.post(&all, &body).status, 200);
    for (at, other) in ["2025-11-25", "tools/list", "read_file"].into_iter().enumerate() {
        let mut wrong = all.clone();
        wrong[at].1 = other;
        assert_eq!(listening.post(&wrong, &body).status, 400, "{other}");
    }
    let long = format!("{{\"text\": \"{}\"}}", "x".repeat(17 << 20));
    assert_eq!(listening.post(&all, &long).status, 413);
    for (wrong, code) in [
        ("not JSON", -32700),
        ("", -32700),
        ("{\"jsonrpc\"", -32700),
        ("[]", -32600),
        (&format!("[{body}, {body}]"), -32600),
        ("{\"id\": 1}", -32600),
        ("7", -32600),
    ] {
        let refused = listening.post(&all, wrong);
        assert_eq!(refused.status, 400, "{wrong}: {}", refused.body);
        assert!(refused.head.contains("content-type: application/json"), "{}", refused.head);
        let error = refused.message();
        assert_eq!((&error["jsonrpc"], &error["error"]["code"]), (&json!("2.0"), &json!(code)), "{wrong}: {error:#}");
    }
    // What calls itself something else is not looked into.
    assert_eq!(listening.post_as("text/plain", &all, &body).status, 415);
    assert_eq!(listening.post(&all, &body).status, 200, "and the next good one is heard");
}

#[test]
fn an_older_client_has_a_session() {
    let fixture = Fixture::new();
    fixture.put("a.txt", "one\n");
    let listening = Listening::start(&fixture, Some(TOKEN));
    let authorization = format!("Bearer {TOKEN}");
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}});
    let greeted = listening.post(&[("Authorization", &authorization)], &hello.to_string());
    assert_eq!(greeted.message()["result"]["protocolVersion"], "2025-11-25", "{}", greeted.body);
    let session = greeted.head.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap();
    let known = [
        ("Authorization", authorization.as_str()),
        ("Mcp-Session-Id", session),
        ("MCP-Protocol-Version", "2025-11-25"),
    ];
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(listening.post(&known, &ready.to_string()).status, 202);
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": {"name": "read_file", "arguments": {"path": "a.txt"}}});
    let read = listening.post(&known, &call.to_string());
    let result = read.message();
    assert_eq!(result["id"], 2, "{}", read.body);
    assert_eq!(result["result"]["structuredContent"]["content"], "one\n", "{}", read.body);
}

#[test]
fn an_older_client_whose_stream_broke_off_hears_the_rest_of_it() {
    let fixture = Fixture::new();
    let listening = Listening::start(&fixture, Some(TOKEN));
    let authorization = format!("Bearer {TOKEN}");
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}});
    let greeted = listening.post(&[("Authorization", &authorization)], &hello.to_string());
    let session = greeted.head.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap();
    let known = [
        ("Authorization", authorization.as_str()),
        ("Mcp-Session-Id", session),
        ("MCP-Protocol-Version", "2025-11-25"),
        ("Content-Type", "application/json"),
    ];
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(listening.post(&known[..3], &ready.to_string()).status, 202);
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"_meta": {"progressToken": 7},
        "name": "shell_exec", "arguments": {"command": "echo begun; sleep 1; echo done"}}});
    let lines = BufReader::new(listening.begin(&known, &call.to_string())).lines().map(Result::unwrap);
    let mut behind = lines.skip_while(|line| !line.contains("begun"));
    let last = behind.find_map(|line| Some(line.strip_prefix("id:")?.trim().to_owned())).unwrap();
    drop(behind);
    let resume = || {
        let mut stream = TcpStream::connect(&listening.address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let mut head = format!("GET /mcp HTTP/1.1\r\nConnection: close\r\nHost: {}\r\n", listening.address);
        let more = [("Accept", "text/event-stream"), ("Last-Event-ID", last.as_str())];
        known[..3].iter().chain(&more).for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
        stream.write_all(format!("{head}\r\n").as_bytes()).unwrap();
        stream
    };
    // While the call is at work, and once more when it has long ended.
    for _ in 0..2 {
        let mut heard = String::new();
        resume().read_to_string(&mut heard).unwrap();
        assert!(heard.contains(r#""id":2"#) && heard.contains("done") && !heard.contains("begun\\n\"}}"), "{heard}");
    }
    // What answers at once is no event, however long it is, and what is deleted is gone.
    let list = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/list", "params": {}});
    let listed = listening.post(&known[..3], &list.to_string());
    assert!(listed.head.contains("content-type: application/json"), "{}", listed.head);
    assert_eq!(listed.message()["id"], 3, "{}", listed.body);
    let mut stream = TcpStream::connect(&listening.address).unwrap();
    let mut head = format!("DELETE /mcp HTTP/1.1\r\nConnection: close\r\nHost: {}\r\n", listening.address);
    known[..3].iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
    stream.write_all(format!("{head}\r\n").as_bytes()).unwrap();
    let mut deleted = String::new();
    stream.read_to_string(&mut deleted).unwrap();
    assert!(deleted.starts_with("HTTP/1.1 204"), "{deleted}");
    listening.end();
}

#[test]
fn only_a_call_that_tells_of_its_progress_is_answered_by_events() {
    let fixture = Fixture::new();
    fixture.put("a.txt", "a\n");
    let listening = Listening::start(&fixture, Some(TOKEN));
    let read = listening.ask("tools/call", json!({"name": "read_file", "arguments": {"path": "a.txt"}}));
    assert!(read.head.contains("content-type: application/json"), "{}", read.head);
    assert_eq!(serde_json::from_str::<Value>(&read.body).unwrap()["id"], 1, "{}", read.body);
    let (name, body) =
        modern("tools/call", json!({"name": "shell_exec", "arguments": {"command": "echo told; sleep 1"}}));
    let mut body: Value = serde_json::from_str(&body).unwrap();
    body["params"]["_meta"]["progressToken"] = json!(7);
    let authorization = format!("Bearer {TOKEN}");
    let told = listening.post(&calling(&authorization, name.as_deref().unwrap()), &body.to_string());
    assert!(told.head.contains("content-type: text/event-stream"), "{}", told.head);
    assert!(told.body.contains("notifications/progress") && told.body.contains(r#""id":1"#), "{}", told.body);
    listening.end();
}

/// What a modern client says of a call before its body.
fn calling<'a>(authorization: &'a str, tool: &'a str) -> [(&'a str, &'a str); 4] {
    [
        ("Authorization", authorization),
        ("MCP-Protocol-Version", MODERN),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", tool),
    ]
}

#[test]
fn a_client_that_hangs_up_has_cancelled() {
    let fixture = Fixture::new();
    let listening = Listening::start(&fixture, Some(TOKEN));
    let sleepers = Sleepers::new(91);
    let (name, body) = modern("tools/call", json!({"name": "shell_exec", "arguments": sleepers.input()}));
    let authorization = format!("Bearer {TOKEN}");
    let headers = calling(&authorization, name.as_deref().unwrap());
    let stream = listening.begin(&[&[("Content-Type", "application/json")], &headers[..]].concat(), &body);
    sleepers.wait_until_at_work();
    drop(stream);
    until("their end", || (sleepers.alive() == 0).then_some(()));
    let row = ended(&fixture);
    assert_eq!((&row["status"], &row["code"]), (&json!("cancelled"), &json!("CANCELLED")), "{row:#}");
    listening.end();
}

#[test]
fn a_client_that_hangs_up_withdraws_the_question_that_it_may_not_answer() {
    let fixture = Fixture::new();
    fixture.put("old.txt", "old\n");
    let listening = Listening::start(&fixture, Some(TOKEN));
    let (name, body) = modern("tools/call", json!({"name": "delete_file", "arguments": {"path": "old.txt"}}));
    let mut body: Value = serde_json::from_str(&body).unwrap();
    body["params"]["_meta"][format!("{PREFIX}clientCapabilities")] = json!({"elicitation": {"form": {}}});
    // First without progress, then with it.
    for _ in 0..2 {
        let authorization = format!("Bearer {TOKEN}");
        let headers = calling(&authorization, name.as_deref().unwrap());
        let headers = [&[("Content-Type", "application/json")], &headers[..]].concat();
        let stream = listening.begin(&headers, &body.to_string());
        let call = fixture.asked(&[]);
        drop(stream);
        until("its end", || (fixture.story(&call)["outcome"]["status"] == "cancelled").then_some(()));
        assert_eq!(fixture.json(&["approvals"]), json!([]));
        body["params"]["_meta"]["progressToken"] = json!("told");
    }
    listening.end();
}

#[test]
fn a_token_is_made_once_and_kept_for_its_owner() {
    let fixture = Fixture::new();
    let file = fixture.data.join("mcp.token");
    let shown = file.display().to_string();
    let mut first = Listening::start(&fixture, None);
    let told = first.said.next().unwrap().unwrap();
    let token = told.rsplit_once(' ').unwrap().1.to_owned();
    assert!(token.len() >= 43 && told.contains(&shown), "{told}");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_to_string(&file).unwrap().trim(), token);
    first.end();
    let mut second = Listening::start(&fixture, None);
    let told = second.said.next().unwrap().unwrap();
    assert!(told.contains(&shown) && !told.contains(&token), "{told}");
    assert_eq!(second.list_with(&token).status, 200, "the same token");
    second.end();
}

#[test]
fn a_client_that_does_not_say_its_name_is_called_a_client() {
    let fixture = Fixture::new();
    let listening = Listening::start(&fixture, Some(TOKEN));
    let (name, body) = modern("tools/call", json!({"name": "list_directory", "arguments": {}}));
    let mut body: Value = serde_json::from_str(&body).unwrap();
    body["params"]["_meta"].as_object_mut().unwrap().remove(&format!("{PREFIX}clientInfo"));
    let authorization = format!("Bearer {TOKEN}");
    let headers = calling(&authorization, name.as_deref().unwrap());
    let called = listening.post(&headers, &body.to_string()).message();
    let story = recorded(&fixture, &called["result"]);
    assert_eq!(story["caller"], json!("an MCP client"), "{story:#}");
}

#[test]
fn an_address_that_is_taken_is_said() {
    let fixture = Fixture::new();
    let listening = Listening::start(&fixture, Some(TOKEN));
    let ran = fixture.run(&["mcp", "--http", &listening.address]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.said().contains(&format!("cannot listen at {}", listening.address)), "{}", ran.said());
    assert_eq!(fixture.run(&["mcp", "--http", "nowhere"]).code, Some(2));
}
