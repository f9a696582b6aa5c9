//! Killed under load and started again: what was acknowledged is there, and nothing is there twice.

use std::{
    collections::HashMap,
    io::{Read, Write},
    net::TcpStream,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{http_client::Gateway, talk::Talk, tenant, text, tool};

const CALLERS: usize = 4;
/// How many calls are acknowledged before it is killed.
const ENOUGH: usize = 120;

/// A call by a key of its own, which says what became of it; `None` when nobody answered.
fn call(address: &str, key: &str, (slug, number): (&str, &str)) -> Option<Value> {
    let body = json!({"input": {"n": number}, "wait": 0}).to_string();
    let request = format!(
        "POST /api/tools/{slug}/calls HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\nConnection: close\r\n\
         Idempotency-Key: {number}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(30))).ok()?;
    stream.write_all(request.as_bytes()).ok()?;
    let mut said = String::new();
    stream.read_to_string(&mut said).ok()?;
    serde_json::from_str(said.split_once("\r\n\r\n")?.1).ok()
}

#[test]
fn what_was_acknowledged_is_there_after_a_kill_and_nothing_is_there_twice() {
    let mut served = Gateway::start();
    let key = tenant(&served, "acme");
    let mut talk = Talk::by_key(&served, &key);
    let mut waits = tool("waits", "external");
    waits["isAsync"] = json!(true);
    for written in [tool("echo", "internal"), waits] {
        assert_eq!(talk.post("/api/tools", &written).status, 201);
    }
    let (address, acknowledged) = (served.url.trim_start_matches("http://").to_owned(), AtomicUsize::new(0));
    let told: HashMap<String, (String, Value)> = thread::scope(|scope| {
        let callers: Vec<_> = (0..CALLERS)
            .map(|caller| {
                let (address, key, acknowledged) = (&address, &key, &acknowledged);
                scope.spawn(move || {
                    let mut told = Vec::new();
                    for number in 0.. {
                        let (slug, number) = (["echo", "waits"][number % 2], format!("{caller}-{number}"));
                        let Some(envelope) = call(address, key, (slug, &number)) else { break };
                        acknowledged.fetch_add(1, Ordering::Relaxed);
                        told.push((number, (slug.to_owned(), envelope)));
                    }
                    told
                })
            })
            .collect();
        while acknowledged.load(Ordering::Relaxed) < ENOUGH {
            thread::yield_now();
        }
        served.kill();
        callers.into_iter().flat_map(|caller| caller.join().unwrap()).collect()
    });
    let served = served.start_again(&[], &[]);
    let mut talk = Talk::by_key(&served, &key);
    let address = served.url.trim_start_matches("http://");
    for (number, (slug, envelope)) in &told {
        let id = text(&envelope["tool_call_id"]);
        let shown = talk.get(&format!("/api/calls/{id}")).json();
        assert_eq!((&shown["status"], &shown["input"]["n"]), (&envelope["status"], &json!(number)), "{shown}");
        // Whoever did not hear the answer asks once more, and starts nothing.
        let again = call(address, &key, (slug, number)).unwrap();
        assert_eq!(again["tool_call_id"], envelope["tool_call_id"], "{again}");
    }
    let (mut seen, mut after) = (HashMap::new(), String::new());
    loop {
        let page = talk.get(&format!("/api/calls?limit=200{after}")).json();
        for call in page["items"].as_array().unwrap() {
            let id = text(&call["callId"]);
            let shown = talk.get(&format!("/api/calls/{id}")).json();
            let earlier = seen.insert(text(&shown["input"]["n"]), id);
            assert_eq!(earlier, None, "{shown}");
        }
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    assert!(seen.len() >= told.len() && seen.len() <= told.len() + CALLERS, "{} {}", seen.len(), told.len());
}
