//! Lines that are no message, or one too many: each has its error, and the next good request works.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::{
    client::{Client, Era, MUTE, succeeded},
    support::{Fixture, text},
};

/// Sends lines that must each be answered with this error, and a good request behind each.
fn refused(lines: &[&[u8]], code: i64) {
    let fixture = Fixture::new();
    fixture.put("a.txt", "a\n");
    for era in Era::BOTH {
        let mut client = Client::new(&fixture, era, MUTE);
        for line in lines {
            client.send_bytes(line);
            client.send_bytes(b"\n");
            let complaint = client.complaint();
            let shown = String::from_utf8_lossy(&line[..line.len().min(200)]);
            assert_eq!(complaint["code"], json!(code), "{shown}: {complaint:#}");
            succeeded(&client.call("read_file", &json!({"path": "a.txt"})));
            assert!(client.heard().is_empty(), "{:?}", client.heard());
        }
        assert!(client.leave().success());
    }
}

#[test]
fn what_is_not_json_is_a_parse_error() {
    // Deep, and not closed.
    let deep = [b"{\"id\":1,\"params\":".as_slice(), &[b'['; 200]].concat();
    let list = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"";
    let twice = format!("{list}}} {list}}}");
    refused(
        &[b"garbage", b"{", b"\xff\xfe\x00", b"{\"a\": \"\xff\"}", list.as_bytes(), twice.as_bytes(), &deep, b"\0"],
        -32700,
    );
}

#[test]
fn what_is_no_message_is_an_invalid_request() {
    let list = br#"{"id":1,"method":"tools/list"}"#;
    let old = br#"{"jsonrpc":"1.0","id":1,"method":"tools/list"}"#;
    let deep = [[b'['; 200], [b']'; 200]].concat();
    let batch = br#"[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]"#;
    refused(&[b"[]", &deep, batch, b"1", b"null", b"\"text\"", b"{}"], -32600);
    // These name a request, so their error does too.
    let wordless = br#"{"jsonrpc":"2.0","id":1,"method":7}"#;
    let row = br#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[1]}"#;
    for (line, code) in [(list.as_slice(), -32600), (old, -32600), (wordless, -32600), (row, -32602)] {
        let fixture = Fixture::new();
        let mut client = Client::new(&fixture, Era::Initialize, MUTE);
        client.send_bytes(&[line, b"\n"].concat());
        let answer = client.answer_to(&json!(1));
        assert_eq!(answer["error"]["code"], json!(code), "{answer:#}");
    }
}

#[test]
fn what_is_nested_too_deeply_is_told_so() {
    let fixture = Fixture::new();
    for era in Era::BOTH {
        let mut client = Client::new(&fixture, era, MUTE);
        let (open, close) = ("[".repeat(5000), "]".repeat(5000));
        let arguments = format!("{{\"name\":\"read_file\",\"arguments\":{{\"path\":{open}{close}}}}}");
        let line =
            format!("{{\"jsonrpc\":\"2.0\",\"id\":\"deep\",\"method\":\"tools/call\",\"params\":{arguments}}}\n");
        client.send_bytes(line.as_bytes());
        let answer = client.answer_to(&json!("deep"));
        assert_eq!(answer["error"]["code"], json!(-32600), "{answer:#}");
        assert!(text(&answer["error"]["message"]).contains("nested too deeply"), "{answer:#}");
        assert!(client.ask("tools/list", json!({}))["result"]["tools"].is_array());
    }
}

#[test]
fn an_id_is_a_number_or_text() {
    let with = |id: &str| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/list\"}}").into_bytes();
    let odd: Vec<Vec<u8>> = ["null", "true", "1.5", "[1]", "{}", "1e400"].map(with).to_vec();
    let fixture = Fixture::new();
    for line in odd {
        let mut client = Client::new(&fixture, Era::Initialize, MUTE);
        client.send_bytes(&[line.as_slice(), b"\n"].concat());
        let code = client.complaint()["code"].as_i64().unwrap();
        assert!([-32600, -32700].contains(&code), "{}: {code}", String::from_utf8_lossy(&line));
        assert!(client.ask("tools/list", json!({}))["result"]["tools"].is_array());
    }
}

#[test]
fn a_line_that_is_too_long_is_passed_over() {
    let mut long = vec![b'x'; 17 << 20];
    long.splice(..1, *b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"x\":\"");
    refused(&[&long], -32600);
}

#[test]
fn a_long_line_that_fits_is_read() {
    let fixture = Fixture::new();
    let mut client = Client::with(&fixture, Era::Initialize, MUTE, &["--auto-approve", "all"]);
    let content = "0123456789abcde\n".repeat(256 << 10);
    succeeded(&client.call("write_file", &json!({"path": "long.txt", "content": content})));
    assert!(fixture.text("long.txt").unwrap() == content);
}

#[test]
fn nothing_is_said_about_what_asks_nothing() {
    let fixture = Fixture::new();
    for era in Era::BOTH {
        let mut client = Client::new(&fixture, era, MUTE);
        client.send_bytes(b"\n\n  \t \r\n\n");
        client.send(&json!({"jsonrpc": "2.0", "id": 99, "result": {}}));
        client.send(&json!({"jsonrpc": "2.0", "id": "no", "error": {"code": -1, "message": "no"}}));
        client.send(&json!({"jsonrpc": "2.0", "method": "tools/list"}));
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/unheard_of", "params": {"a": [1]}}));
        client.notify("notifications/cancelled", json!({"requestId": 12345}));
        client.notify("notifications/progress", json!({"progressToken": "none", "progress": 1}));
        assert!(client.ask("tools/list", json!({}))["result"]["tools"].is_array());
        assert!(client.heard().is_empty(), "{:?}", client.heard());
        assert!(client.leave().success());
    }
}

#[test]
fn a_client_may_begin_with_nonsense() {
    let fixture = Fixture::new();
    for era in Era::BOTH {
        let mut client = Client::silent(fixture.haft(&["mcp"]), era, MUTE);
        client.send_bytes(b"GET / HTTP/1.1\n");
        assert_eq!(client.complaint()["code"], json!(-32700));
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client.send(&json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
        client.send(&json!({"jsonrpc": "2.0", "id": "early", "method": "tools/list"}));
        let early = client.answer_to(&json!("early"));
        assert_eq!(early["error"]["code"], json!(-32602), "{early:#}");
        client.notify("notifications/cancelled", json!({"requestId": 1}));
        assert!(client.greet()["result"]["capabilities"].is_object());
        client.notify("notifications/cancelled", json!({"requestId": 1}));
        assert!(client.ask("tools/list", json!({}))["result"]["tools"].is_array());
    }
}

#[test]
fn a_second_request_with_an_open_id_is_refused_and_the_first_is_answered() {
    let fixture = Fixture::new();
    for era in Era::BOTH {
        let mut client = Client::new(&fixture, era, MUTE);
        let input = json!({"path": format!("{era:?}"), "content": "a\n"});
        let open = client.begin("write_file", &input);
        let call = fixture.asked(&[]);
        client.request_as(&open, "tools/list", json!({}));
        let refused = client.answer_to(&open);
        assert_eq!(refused["error"]["code"], json!(-32600), "{refused:#}");
        assert_eq!(fixture.run(&["approve", &call]).code, Some(0));
        succeeded(&client.result_of(&open));
        // Answered, so it may be had again.
        client.request_as(&open, "tools/list", json!({}));
        assert!(client.answer_to(&open)["result"]["tools"].is_array());
    }
}

#[test]
fn a_huge_id_comes_back_as_it_was() {
    let fixture = Fixture::new();
    let mut client = Client::new(&fixture, Era::Initialize, MUTE);
    for id in [json!("i".repeat(1 << 20)), json!(i64::MAX), json!(-1), json!(0)] {
        client.request_as(&id, "tools/list", json!({}));
        assert!(client.answer_to(&id)["result"]["tools"].is_array());
    }
}

#[test]
fn a_message_that_is_cut_by_the_end_is_none() {
    let fixture = Fixture::new();
    for beginning in ["", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"too"] {
        let mut client = Client::silent(fixture.haft(&["mcp"]), Era::Initialize, MUTE);
        client.send_bytes(beginning.as_bytes());
        client.close_input();
        assert!(client.end().success());
        assert_eq!(client.line(), None);
    }
    let mut client = Client::new(&fixture, Era::Initialize, MUTE);
    client.send_bytes(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"na");
    assert!(client.leave().success());
}

#[test]
fn thousands_of_requests_at_once_are_each_answered_once() {
    let fixture = Fixture::new();
    fixture.put("a.txt", "a\n");
    for era in Era::BOTH {
        let mut client = Client::new(&fixture, era, MUTE);
        let mut open: HashSet<u64> =
            (0..4000).map(|_| client.begin("read_file", &json!({"path": "a.txt"})).as_u64().unwrap()).collect();
        while !open.is_empty() {
            let answer: Value = client.hear();
            assert!(open.remove(&answer["id"].as_u64().unwrap()), "{answer:#}");
            succeeded(&answer["result"]);
        }
        assert!(client.leave().success());
        let calls = fixture.json(&["log", "--tool", "read_file", "--limit", "5"]);
        assert_eq!(calls[4]["status"], json!("success"), "{calls:#}");
    }
}
