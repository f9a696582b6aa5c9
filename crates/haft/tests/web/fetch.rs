//! What `web_fetch` gives, and what it refuses.

use std::io::Write;

use serde_json::{Value, json};

use crate::{
    server::{Server, reaching},
    support::{ALL, Fixture},
};

fn fetched(fixture: &Fixture, input: &Value) -> Value {
    let (code, outcome) = fixture.call("web_fetch", input, &[]);
    assert_eq!((code, &outcome["status"]), (0, &json!("success")), "{outcome:#}");
    outcome["result"].clone()
}

fn refused(fixture: &Fixture, input: &Value, code: &str) -> Value {
    let (exit, outcome) = fixture.call("web_fetch", input, ALL);
    assert_eq!((exit, &outcome["error"]["code"]), (1, &json!(code)), "{input}: {outcome:#}");
    outcome["error"].clone()
}

#[test]
fn an_answer_is_given_as_it_is() {
    let server = Server::page("text/plain; charset=latin1", b"caf\xe9");
    let fixture = reaching(&[&server]);
    let result = fetched(&fixture, &json!({"url": server.url("/a?b=c"), "headers": {"X-Thing": "1"}}));
    assert_eq!(
        result["structured"],
        json!({
            "status": 200,
            "headers": {"content-type": "text/plain; charset=latin1", "content-length": "4"},
            "body": "café",
            "url": server.url("/a?b=c"),
            "contentType": "text/plain; charset=latin1",
            "bytes": 4,
            "truncated": false,
            "binary": false,
        })
    );
    assert_eq!(result["metadata"]["redirects"], json!([]));
    let request = server.request();
    assert!(request.starts_with("GET /a?b=c HTTP/1.1\r\n") && request.contains("x-thing: 1\r\n"), "{request}");
    assert!(request.contains(&format!("host: {}\r\n", server.address)), "{request}");
}

#[test]
fn people_read_the_status_and_then_the_page() {
    let server = Server::page("text/html", "<title>T</title><h1>Hello</h1><p>One <b>two</b> <a href=/x>three</a>");
    let fixture = reaching(&[&server]);
    let input = json!({"url": server.url("/"), "format": "markdown"}).to_string();
    let ran = fixture.run(&["call", "web_fetch", &input]);
    let head = format!("HTTP 200 {} (text/html, 68 bytes)", server.url("/"));
    assert_eq!(ran.stdout.trim_end(), format!("{head}\n\n# Hello\n\nOne **two** [three]({})", server.url("/x")));
}

#[test]
fn every_status_is_a_success() {
    for status in [204, 304, 404, 418, 500, 503] {
        let server = Server::new(move |_, stream| {
            let _gone = write!(stream, "HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n");
        });
        let fixture = reaching(&[&server]);
        assert_eq!(fetched(&fixture, &json!({"url": server.url("/")}))["structured"]["status"], status);
    }
}

#[test]
fn what_is_binary_is_left_out_and_what_is_long_is_cut() {
    let server = Server::page("image/png", b"\x89PNG\r\n\x1a\n\0\0\0");
    let fixture = reaching(&[&server]);
    let result = fetched(&fixture, &json!({"url": server.url("/")}));
    assert_eq!((&result["structured"]["binary"], &result["structured"]["body"]), (&json!(true), &json!("")));
    assert_eq!(result["structured"]["bytes"], 11);

    let server = Server::page("text/plain", "ä".repeat(1000));
    let fixture = reaching(&[&server]);
    let result = fetched(&fixture, &json!({"url": server.url("/"), "maxBytes": 101}));
    let (body, bytes) = (&result["structured"]["body"], &result["structured"]["bytes"]);
    assert_eq!((body, bytes, &result["structured"]["truncated"]), (&json!("ä".repeat(50)), &json!(101), &json!(true)));
}

#[test]
fn a_body_that_breaks_off_is_given_as_far_as_it_came() {
    let server = Server::new(|_, stream| {
        let _gone = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\npart");
    });
    let fixture = reaching(&[&server]);
    let result = fetched(&fixture, &json!({"url": server.url("/")}));
    assert_eq!((&result["structured"]["body"], &result["structured"]["truncated"]), (&json!("part"), &json!(true)));
    assert!(result["metadata"]["incomplete"].is_string(), "{result}");
}

#[test]
fn redirects_are_shown_followed_or_not() {
    let end = Server::page("text/plain", "here");
    let to = end.url("/end");
    let start = Server::new(move |_, stream| {
        let _gone = write!(stream, "HTTP/1.1 302 X\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n");
    });
    let fixture = reaching(&[&start, &end]);
    let result = fetched(&fixture, &json!({"url": start.url("/")}));
    assert_eq!(
        (&result["structured"]["body"], &result["structured"]["url"]),
        (&json!("here"), &json!(end.url("/end")))
    );
    assert_eq!(result["metadata"]["redirects"], json!([end.url("/end")]));

    // The end may be reached, but nobody has said yes to it.
    let fixture = reaching(&[&start]);
    let text = format!("web.allow = ['{}', '{}']\nweb.allowlist = ['{}']\n", start.address, end.address, start.address);
    crate::server::settings(&fixture, &text);
    let result = fetched(&fixture, &json!({"url": start.url("/")}));
    assert_eq!((&result["structured"]["status"], end.others()), (&json!(302), 1));
    assert_eq!(result["metadata"]["not_followed"]["to"], json!(end.url("/end")));

    // The end may not be reached.
    let fixture = reaching(&[&start]);
    let error = refused(&fixture, &json!({"url": start.url("/")}), "URL_NOT_ALLOWED");
    let said = error["message"].as_str().unwrap();
    assert!(said.contains("loopback") && end.others() == 0, "{error}");
    assert!(said.contains(&start.url("/")) && said.contains(&end.url("/end")), "{error}");
    assert_eq!(error["details"]["url"], json!(end.url("/end")));
}

#[test]
fn addresses_that_are_not_public_are_refused_in_every_mode() {
    let server = Server::page("text/plain", "secret");
    let fixture = Fixture::new();
    let port = server.address.port();
    for url in [
        server.url("/"),
        format!("http://localhost:{port}/"),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
        "http://127.0.0.1:1/".to_owned(),
        "http://169.254.169.254/".to_owned(),
        "ftp://example.org/".to_owned(),
        "https://me:hunter2@example.org/".to_owned(),
        "not a url".to_owned(),
    ] {
        refused(&fixture, &json!({"url": url}), "URL_NOT_ALLOWED");
        let (code, outcome) = fixture.call("web_fetch", &json!({"url": url}), &[]);
        assert_eq!((code, &outcome["error"]["code"]), (1, &json!("URL_NOT_ALLOWED")), "not even asked: {outcome}");
    }
    assert_eq!(server.others(), 0);
}

#[test]
fn inputs_that_make_no_sense_are_refused() {
    let fixture = Fixture::new();
    let url = "https://example.org/";
    for input in [
        json!({"url": url, "headers": {"Host": "x"}}),
        json!({"url": url, "headers": {"transfer-encoding": "chunked"}}),
        json!({"url": url, "headers": {"Content-Length": "1"}}),
        json!({"url": url, "headers": {"Connection": "upgrade"}}),
        json!({"url": url, "headers": {"Proxy-Authorization": "x"}}),
        json!({"url": url, "headers": {"a b": "x"}}),
        json!({"url": url, "headers": {"x": "a\r\nHost: evil"}}),
        json!({"url": url, "body": "x"}),
        json!({"url": url, "method": "DELETE"}),
        json!({"url": url, "timeout": 0}),
        json!({"url": url, "maxBytes": 0}),
        json!({"url": url, "format": "pdf"}),
        json!({"url": url, "unknown": 1}),
        json!({}),
    ] {
        refused(&fixture, &input, "INVALID_ARGS");
    }
}

#[test]
fn a_call_that_says_how_long_it_waits_outlasts_silence() {
    let (_open, held) = std::sync::mpsc::channel::<()>();
    let held = std::sync::Mutex::new(held);
    let slow = Server::new(move |_, stream| {
        let _later = held.lock().unwrap().recv_timeout(std::time::Duration::from_millis(600));
        let _gone = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nslow");
    });
    let fixture = Fixture::new();
    let all = [slow.address.to_string()];
    let settings = format!("web.silence = '100ms'\nweb.allow = {all:?}\nweb.allowlist = {all:?}\n");
    crate::server::settings(&fixture, &settings);
    refused(&fixture, &json!({"url": slow.url("/")}), "NETWORK_ERROR");
    let result = fetched(&fixture, &json!({"url": slow.url("/"), "timeoutMs": 20_000}));
    assert_eq!(result["structured"]["body"], json!("slow"));
}

#[test]
fn nobody_there_is_a_network_error_and_too_late_a_timeout() {
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let fixture = Fixture::new();
    crate::server::settings(&fixture, &format!("web.allow = ['{gone}']"));
    let error = refused(&fixture, &json!({"url": format!("http://{gone}/")}), "NETWORK_ERROR");
    assert_eq!((&error["category"], &error["recoverable"]), (&json!("transient"), &json!(true)), "{error}");

    let (_open, held) = std::sync::mpsc::channel::<()>();
    let held = std::sync::Mutex::new(held);
    let mute = Server::new(move |_, _| {
        let _never = held.lock().unwrap().recv_timeout(std::time::Duration::from_secs(60));
    });
    let fixture = reaching(&[&mute]);
    let error = refused(&fixture, &json!({"url": mute.url("/"), "timeoutMs": 300}), "TIMEOUT");
    assert!(error["message"].as_str().unwrap().contains("timeout"), "{error}");
}
