//! Spans for a collector: one for each request and call, with the names that others use, never with what a call was about; and
//! a collector that hangs holds nobody up.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod http_client;

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::mpsc::{Receiver, Sender, channel},
    thread,
    time::{Duration, Instant},
};

use http_client::{Gateway, until};
use serde_json::{Value, json};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// A request that somebody got: its head and its body.
type GotRequest = (Vec<String>, Value);

/// Somebody who takes requests with JSON and answers each with an empty object.
fn peer() -> (String, Receiver<GotRequest>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (told, heard) = channel();
    thread::spawn(move || listener.incoming().flatten().for_each(|stream| answer(stream, &told)));
    (address, heard)
}

fn answer(mut stream: TcpStream, told: &Sender<GotRequest>) {
    let mut lines = BufReader::new(stream.try_clone().unwrap());
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line).unwrap_or(0) == 0 || line.trim().is_empty() {
            break;
        }
        head.push(line.trim().to_owned());
    }
    let length = head.iter().find_map(|line| line.to_lowercase().strip_prefix("content-length: ").map(str::to_owned));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    lines.read_exact(&mut body).unwrap();
    stream
        .write_all(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}",
        )
        .unwrap();
    told.send((head, serde_json::from_slice(&body).unwrap_or_default())).ok();
}

fn with_tool(served: &Gateway, address: &str) -> String {
    served.admin(&["tenant", "add", "acme"]);
    served.admin(&["tenant", "set", "acme", "--allow", address]);
    let key = served.key("k", "acme", "tools:read,tools:execute,tools:write,approvals:decide,events:read");
    for (slug, more) in [
        (
            "ask",
            json!({"executionType": "gateway", "execution": {"url": format!("http://{address}/x"), "method": "POST"}, "effect": "read"}),
        ),
        ("deploy", json!({"executionType": "internal", "effect": "write", "permissionPolicy": "always_ask"})),
    ] {
        let mut tool = json!({"slug": slug, "description": "d", "inputSchema": {"type": "object"}});
        tool.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let saved = served.post("/api/tools", &tool, Some(&key));
        assert_eq!(saved.status, 201, "{saved:?}");
    }
    key
}

/// The spans of the trace, as soon as one of this name is there.
fn spans_until(heard: &Receiver<GotRequest>, name: &str) -> (Vec<Value>, Vec<String>, Value) {
    let mut all = Vec::new();
    let patience = Instant::now() + Duration::from_secs(30);
    loop {
        let (head, body) = heard.recv_timeout(patience - Instant::now()).unwrap();
        let sent = &body["resourceSpans"][0];
        let spans = sent["scopeSpans"][0]["spans"].as_array().unwrap().iter();
        all.extend(spans.filter(|span| span["traceId"] == TRACE).cloned());
        if all.iter().any(|span| span["name"] == name) {
            return (all, head, sent["resource"].clone());
        }
    }
}

fn named<'a>(spans: &'a [Value], name: &str) -> &'a Value {
    spans.iter().find(|span| span["name"] == name).unwrap_or_else(|| panic!("{name}: {spans:?}"))
}

fn attribute<'a>(span: &'a Value, key: &str) -> Option<&'a str> {
    let found = span["attributes"].as_array().unwrap().iter().find(|attribute| attribute["key"] == key)?;
    found["value"]["stringValue"].as_str().or_else(|| found["value"]["intValue"].as_str())
}

#[test]
fn a_request_and_its_call_are_spans_of_the_callers_trace_and_the_next_one_hears_of_it() {
    let (collector, spans) = peer();
    let (upstream, asked) = peer();
    let settings =
        format!("[telemetry]\nendpoint = \"http://{collector}\"\nheaders = \"secret:OTEL\"\nservice = \"tools\"\n");
    let served = Gateway::start_among(&settings, &[("OTEL", "x-api-key=swordfish9")]);
    let key = with_tool(&served, &upstream);
    let headers = [("Authorization", &*format!("Bearer {key}")), ("traceparent", PARENT)];
    let body = json!({"input": {"word": "marmalade"}});
    let answer = served.request("POST", "/api/tools/ask/calls", Some(&body), &headers);
    assert_eq!(answer.status, 200, "{answer:?}");
    let (spans_of_it, head, resource) = spans_until(&spans, "POST /api/tools/{slug}/calls");
    assert!(head.iter().any(|line| line == "x-api-key: swordfish9"), "{head:?}");
    assert!(head[0].starts_with("POST /v1/traces "), "{head:?}");
    assert_eq!(attribute(&json!({"attributes": resource["attributes"]}), "service.name"), Some("tools"));

    let request = named(&spans_of_it, "POST /api/tools/{slug}/calls");
    assert_eq!((&request["parentSpanId"], &request["kind"]), (&json!("00f067aa0ba902b7"), &json!(2)));
    assert_eq!(attribute(request, "http.response.status_code"), Some("200"));
    let call = named(&spans_of_it, "execute_tool ask");
    assert_eq!((&call["parentSpanId"], &call["kind"]), (&request["spanId"], &json!(1)));
    for (key, value) in [
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.name", "ask"),
        ("gen_ai.tool.call.id", answer.body["tool_call_id"].as_str().unwrap()),
        ("haft.status", "success"),
        ("haft.effect", "read"),
        ("haft.approved_by", "auto"),
        ("haft.isolation", "none"),
    ] {
        assert_eq!(attribute(call, key), Some(value), "{key}");
    }
    for stage in ["prepare", "approve", "execute"] {
        assert_eq!(named(&spans_of_it, stage)["parentSpanId"], call["spanId"], "{stage}");
    }
    let text = json!(spans_of_it).to_string();
    assert!(!text.contains("marmalade") && !text.contains("acme") && !text.contains("swordfish"), "{text}");

    let (head, _) = asked.recv_timeout(Duration::from_secs(10)).unwrap();
    let passed_on = head.iter().find_map(|line| line.strip_prefix("traceparent: ")).unwrap();
    let within = named(&spans_of_it, "execute")["spanId"].as_str().unwrap();
    assert_eq!(passed_on, format!("00-{TRACE}-{within}-01"));

    // An answer by somebody else, in the same trace, carries the call on.
    let waits = served.request("POST", "/api/tools/deploy/calls", Some(&json!({"input": {}, "wait": 0})), &headers);
    let id = waits.body["tool_call_id"].as_str().unwrap();
    let yes = served.request("POST", &format!("/api/approvals/{id}/reject"), Some(&json!({})), &headers);
    assert_eq!(yes.status, 200, "{yes:?}");
    let (later, ..) = spans_until(&spans, "POST /api/approvals/{id}/reject");
    let rejected = later.iter().find(|span| attribute(span, "error.type") == Some("REJECTED"));
    assert_eq!(rejected.unwrap_or_else(|| panic!("{later:?}"))["status"]["code"], 2);
    until(|| served.text("/metrics").contains("haft_spans_dropped_total 0").then_some(()));
}

#[test]
fn contents_are_sent_only_where_a_setting_says_so_and_samples_as_it_says() {
    let (collector, spans) = peer();
    let (upstream, _asked) = peer();
    let settings = format!("[telemetry]\nendpoint = \"http://{collector}\"\ncontent = true\nsample = 0\n");
    let served = Gateway::start_with(&settings);
    let key = with_tool(&served, &upstream);
    let bearer = format!("Bearer {key}");
    let body = json!({"input": {"word": "marmalade"}});
    // Without a trace of its own nothing of it is kept, and one whose caller keeps it is.
    served.request("POST", "/api/tools/ask/calls", Some(&body), &[("Authorization", &bearer)]);
    let unsampled = PARENT.replace("-01", "-00");
    served.request(
        "POST",
        "/api/tools/ask/calls",
        Some(&body),
        &[("Authorization", &bearer), ("traceparent", &unsampled)],
    );
    served.request("POST", "/api/tools/ask/calls", Some(&body), &[("Authorization", &bearer), ("traceparent", PARENT)]);
    let (kept, ..) = spans_until(&spans, "POST /api/tools/{slug}/calls");
    assert_eq!(kept.iter().filter(|span| span["name"] == "execute_tool ask").count(), 1, "{kept:?}");
    let call = named(&kept, "execute_tool ask");
    assert_eq!(attribute(call, "gen_ai.tool.call.arguments"), Some(r#"{"word":"marmalade"}"#));
}

#[test]
fn a_collector_that_hangs_holds_nobody_up() {
    // It takes connections, and never says a word.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let (upstream, _asked) = peer();
    let settings = format!("[telemetry]\nendpoint = \"http://{}\"\n", silent.local_addr().unwrap());
    let mut served = Gateway::start_with(&settings);
    let key = with_tool(&served, &upstream);
    let longest = (0..40)
        .map(|_| {
            let began = Instant::now();
            assert_eq!(served.post("/api/tools/ask/calls", &json!({"input": {}}), Some(&key)).status, 200);
            began.elapsed()
        })
        .max()
        .unwrap();
    assert!(longest < Duration::from_secs(4), "a collector may take 5 s, a call does not wait for it: {longest:?}");
    let dropped = |text: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix("haft_spans_dropped_total "))?;
        line.parse::<u64>().ok().filter(|count| *count > 0)
    };
    until(|| dropped(&served.text("/metrics")));
    let began = Instant::now();
    served.terminate();
    assert_eq!(served.ended().0, Some(0));
    assert!(began.elapsed() < Duration::from_secs(15), "nor does the end: {:?}", began.elapsed());
    let off = Gateway::start();
    assert!(!off.text("/metrics").contains("haft_spans"), "nothing is counted where nothing is sent");
}
