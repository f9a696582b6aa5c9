//! Calls while they go on: what is heard of them, and how they end when nobody wants them any more.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Stdio},
};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    client::{ASKS, Client, Era, MUTE, failed, recorded, succeeded},
    support::{Fixture, HAFT, text, until},
};

/// A command of three processes, one of which has left its session; each is told by its time.
pub(crate) struct Sleepers(String);

impl Sleepers {
    /// No two tests have the same.
    pub(crate) fn new(seconds: u32) -> Self {
        Self(format!("sleep {seconds}.{}", std::process::id()))
    }

    pub(crate) fn input(&self) -> Value {
        let sleep = &self.0;
        json!({"command": format!("echo begun; ({sleep} & setsid {sleep} & {sleep})")})
    }

    pub(crate) fn alive(&self) -> usize {
        let words: Vec<u8> = self.0.replace(' ', "\0").into_bytes();
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
        lines.filter(|line| line.strip_suffix(b"\0") == Some(&words)).count()
    }

    pub(crate) fn wait_until_at_work(&self) {
        until("the command at work", || (self.alive() == 3).then_some(()));
    }
}

/// The one call of a command that was recorded, once it has ended.
pub(crate) fn ended(fixture: &Fixture) -> Value {
    until("its record", || {
        let rows = fixture.json(&["log", "--tool", "shell_exec"]);
        rows.as_array().unwrap().first().filter(|row| row["state"] == "ended").cloned()
    })
}

/// What was heard of a call's progress, in order.
fn told(client: &Client, token: &Value) -> Vec<(f64, String)> {
    let heard = client.heard().iter().filter(|message| message["method"] == "notifications/progress");
    let told = heard.filter(|message| message["params"]["progressToken"] == *token);
    told.map(|message| (message["params"]["progress"].as_f64().unwrap(), text(&message["params"]["message"]))).collect()
}

#[test]
fn output_is_heard_as_progress_before_the_result() {
    let fixture = Fixture::new();
    for era in Era::BOTH {
        for token in [json!("token"), json!(7)] {
            let mut client = Client::new(&fixture, era, MUTE);
            let command = json!({"command": "for i in 1 2 3; do echo line $i; sleep 0.2; done; echo last >&2"});
            let params = json!({"name": "shell_exec", "arguments": command, "_meta": {"progressToken": token}});
            let call = client.request("tools/call", params);
            let result = client.result_of(&call);
            succeeded(&result);
            let told_before = told(&client, &token);
            assert!(told_before.len() > 1, "{told_before:?}");
            assert!(told_before.windows(2).all(|pair| pair[0].0 < pair[1].0), "{told_before:?}");
            let words: String = told_before.iter().map(|(_, words)| words.as_str()).collect();
            for line in ["line 1\n", "line 2\n", "line 3\n", "last\n"] {
                assert!(words.contains(line), "{words}");
            }
            // Nothing comes behind the result.
            client.ask("tools/list", json!({}));
            assert_eq!(told(&client, &token).len(), told_before.len());
            assert_eq!(text(&result["structuredContent"]["stdout"]), "line 1\nline 2\nline 3\n", "{result:#}");
        }
    }
}

#[test]
fn nothing_is_heard_without_a_token() {
    let fixture = Fixture::new();
    for era in Era::BOTH {
        let mut client = Client::new(&fixture, era, MUTE);
        succeeded(&client.call("shell_exec", &json!({"command": "echo one; sleep 0.1; echo two"})));
        assert!(client.heard().is_empty(), "{:?}", client.heard());
    }
}

#[test]
fn a_flood_of_output_comes_through_and_grows() {
    let fixture = Fixture::new();
    let mut client = Client::new(&fixture, Era::Initialize, MUTE);
    let command = json!({"command": "seq 1 200000"});
    let params = json!({"name": "shell_exec", "arguments": command, "_meta": {"progressToken": "flood"}});
    let call = client.request("tools/call", params);
    succeeded(&client.result_of(&call));
    let told = told(&client, &json!("flood"));
    assert!(told.windows(2).all(|pair| pair[0].0 < pair[1].0));
}

#[test]
fn a_waiting_call_tells_who_can_answer_it() {
    let fixture = Fixture::new();
    let mut client = Client::new(&fixture, Era::Stateless, MUTE);
    let input = json!({"path": "a.txt", "content": "a\n"});
    let params = json!({"name": "write_file", "arguments": input, "_meta": {"progressToken": "wait"}});
    let waiting = client.request("tools/call", params);
    let call = fixture.asked(&[]);
    assert_eq!(fixture.run(&["approve", &call]).code, Some(0));
    succeeded(&client.result_of(&waiting));
    let told = told(&client, &json!("wait"));
    assert!(told.iter().any(|(_, words)| words.contains(&format!("haft approve {call}"))), "{told:?}");
}

#[test]
fn a_client_that_may_not_answer_hears_again_and_again_that_its_call_waits() {
    let fixture = Fixture::new();
    fixture.put("old.txt", "old\n");
    for era in Era::BOTH {
        let mut client = Client::new(&fixture, era, ASKS);
        let params =
            json!({"name": "delete_file", "arguments": {"path": "old.txt"}, "_meta": {"progressToken": "wait"}});
        let waiting = client.request("tools/call", params);
        let call = fixture.asked(&[]);
        let told = [client.hear(), client.hear()].map(|message| text(&message["params"]["message"]));
        let words = format!("haft approve {call}");
        assert!(told.iter().all(|told| told.contains(&words)) && told[1].starts_with("still working: "), "{told:?}");
        assert_eq!(fixture.run(&["reject", &call]).code, Some(0));
        failed(&client.result_of(&waiting), "rejected", "REJECTED");
    }
}

#[test]
fn output_is_heard_after_the_yes_too() {
    let fixture = Fixture::new();
    let mut client = Client::new(&fixture, Era::Stateless, ASKS);
    let input = json!({"command": "for i in 1 2 3; do echo line $i; sleep 0.2; done", "network": true});
    let asked = client.call("shell_exec", &input);
    let params = json!({
        "name": "shell_exec",
        "arguments": input,
        "requestState": asked["requestState"],
        "inputResponses": {"approval": {"action": "accept", "content": {"approve": true}}},
        "_meta": {"progressToken": "again"},
    });
    let call = client.request("tools/call", params);
    succeeded(&client.result_of(&call));
    let words: String = told(&client, &json!("again")).into_iter().map(|(_, words)| words).collect();
    assert!(["line 1\n", "line 2\n", "line 3\n"].iter().all(|line| words.contains(line)), "{words}");
}

#[test]
fn a_cancelled_call_ends_with_everything_it_started() {
    let fixture = Fixture::new();
    fixture.put("a.txt", "a\n");
    for (era, seconds) in Era::BOTH.into_iter().zip(71..) {
        let mut client = Client::new(&fixture, era, MUTE);
        let sleepers = Sleepers::new(seconds);
        let call = client.begin("shell_exec", &sleepers.input());
        sleepers.wait_until_at_work();
        client.notify("notifications/cancelled", json!({"requestId": call, "reason": "no longer wanted"}));
        until("their end", || (sleepers.alive() == 0).then_some(()));
        let row = ended(&fixture);
        assert_eq!((&row["status"], &row["code"]), (&json!("cancelled"), &json!("CANCELLED")), "{row:#}");
        // Who has cancelled hears no answer, and may go on.
        let result = client.call("read_file", &json!({"path": "a.txt"}));
        succeeded(&result);
        assert!(client.heard().is_empty(), "{:?}", client.heard());
        assert_eq!(recorded(&fixture, &result)["caller"], json!("raw"));
    }
}

#[test]
fn a_client_that_closes_its_end_takes_its_calls_along() {
    for (era, seconds) in Era::BOTH.into_iter().zip(73..) {
        let fixture = Fixture::new();
        let mut client = Client::new(&fixture, era, MUTE);
        let sleepers = Sleepers::new(seconds);
        let params = json!({"name": "shell_exec", "arguments": sleepers.input(), "_meta": {"progressToken": 1}});
        client.request("tools/call", params);
        sleepers.wait_until_at_work();
        client.close_input();
        assert!(client.end().success());
        assert_eq!(sleepers.alive(), 0);
        let row = ended(&fixture);
        assert_eq!((&row["status"], &row["code"]), (&json!("cancelled"), &json!("CANCELLED")), "{row:#}");
    }
}

#[test]
fn a_server_that_is_told_to_end_ends_its_calls_first() {
    for (signal, seconds) in [Signal::TERM, Signal::INT].into_iter().zip(85..) {
        let fixture = Fixture::new();
        let mut client = Client::new(&fixture, Era::BOTH[0], MUTE);
        let sleepers = Sleepers::new(seconds);
        client.begin("shell_exec", &sleepers.input());
        sleepers.wait_until_at_work();
        client.signal(signal);
        assert!(client.end().success());
        assert_eq!(sleepers.alive(), 0);
        let row = ended(&fixture);
        assert_eq!((&row["status"], &row["code"]), (&json!("cancelled"), &json!("CANCELLED")), "{row:#}");
    }
}

#[test]
fn calls_that_end_soon_are_answered_to_a_client_that_says_no_more() {
    let fixture = Fixture::new();
    fixture.put("a.txt", "a\n");
    for era in Era::BOTH {
        let mut client = Client::new(&fixture, era, MUTE);
        let calls: Vec<Value> = (0..20).map(|_| client.begin("read_file", &json!({"path": "a.txt"}))).collect();
        client.close_input();
        for call in calls {
            succeeded(&client.result_of(&call));
        }
        assert!(client.end().success());
        assert_eq!(client.line(), None);
    }
}

#[test]
fn a_client_that_reads_nothing_does_not_keep_its_server() {
    let fixture = Fixture::new();
    let mut command = fixture.haft(&["mcp"]);
    let mut server = Started(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap());
    let mut stdin = server.0.stdin.take().unwrap();
    let about =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "deaf", "version": "1"}});
    writeln!(stdin, "{}", json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": about})).unwrap();
    // More than fits into a pipe.
    for id in 1..50 {
        writeln!(stdin, "{}", json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"})).unwrap();
    }
    drop(stdin);
    assert!(until("the server's end", || server.0.try_wait().unwrap()).success());
}

#[test]
fn a_client_that_is_killed_takes_its_server_along() {
    let fixture = Fixture::new();
    let sleepers = Sleepers::new(75);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/vanishing.py");
    let mut command = fixture.program("python3");
    command.args([script, &sleepers.input().to_string(), HAFT, "mcp"]).stdout(Stdio::piped());
    let mut client = Started(command.spawn().unwrap());
    let mut server = String::new();
    BufReader::new(client.0.stdout.take().unwrap()).read_line(&mut server).unwrap();
    sleepers.wait_until_at_work();
    drop(client);
    until("the server's end", || (!is_haft(server.trim())).then_some(()));
    assert_eq!(sleepers.alive(), 0);
    let row = ended(&fixture);
    assert_eq!((&row["status"], &row["code"]), (&json!("cancelled"), &json!("CANCELLED")), "{row:#}");
}

/// A process that does not outlive the test.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether the process is still at work; one that nobody has waited for yet is not.
fn is_haft(pid: &str) -> bool {
    fs::read(Path::new("/proc").join(pid).join("cmdline")).is_ok_and(|line| line.starts_with(HAFT.as_bytes()))
}
