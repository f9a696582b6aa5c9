//! Questions that are asked on one node and answered on any: once, by whoever was first.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    http_client::{Answer, Gateway, until},
    site::{Dice, EVERYTHING, Site, for_each, id, new_database, text, variables},
};

/// How many questions several answer at once.
const ASKED: usize = 1000;

#[test]
fn a_question_of_one_node_is_shown_and_answered_on_another() {
    let Some(site) = Site::of_two_nodes() else { return };
    site.tool("ask", "internal", json!({"effect": "write", "permissionPolicy": "always_ask"}));
    let mut quickest = Duration::MAX;
    for n in 0..5 {
        thread::scope(|scope| {
            let waiting = scope.spawn(|| (site.call(0, "ask", n, json!({"wait": 60})), Instant::now()));
            let call = until(|| site.open(1, "ask").pop());
            let card = site.get(1, &format!("/api/approvals/{call}"));
            assert_eq!((card.status, &card.body["input"]), (200, &json!({"n": n})), "{card:?}");
            let said = Instant::now();
            let yes = site.approve(1, &call);
            assert_eq!((yes.status, &yes.body["answered"]), (200, &json!(true)), "{yes:?}");
            let (answer, heard) = waiting.join().unwrap();
            assert_eq!((answer.status, &answer.body["status"]), (200, &json!("success")), "{answer:?}");
            assert_eq!(yes.body["outcome"]["status"], "success", "whoever answers hears how it ended: {yes:?}");
            quickest = quickest.min(heard.saturating_duration_since(said));
        });
    }
    println!("measured: an answer crosses over within {quickest:?}");
    assert!(quickest <= Duration::from_millis(300), "{quickest:?}");
}

/// A service outside that counts which numbers it was sent.
struct Counter {
    port: u16,
    seen: Arc<Mutex<BTreeMap<u64, usize>>>,
}

impl Counter {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, seen) = (listener.local_addr().unwrap().port(), Arc::<Mutex<BTreeMap<u64, usize>>>::default());
        let counted = Arc::clone(&seen);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let counted = Arc::clone(&counted);
                thread::spawn(move || count(stream, &counted));
            }
        });
        Self { port, seen }
    }
}

/// Answers each request on a connection, and counts the number that it brings.
fn count(stream: TcpStream, counted: &Mutex<BTreeMap<u64, usize>>) -> Option<()> {
    let mut lines = BufReader::new(stream.try_clone().ok()?);
    let mut stream = stream;
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if lines.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        lines.read_exact(&mut body).ok()?;
        let body: Value = serde_json::from_slice(&body).ok()?;
        *counted.lock().unwrap().entry(body["n"].as_u64()?).or_default() += 1;
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}").ok()?;
    }
}

#[test]
fn of_all_answers_to_a_thousand_questions_one_each_counts() {
    let Some((_folder, url)) = new_database() else { return };
    let counter = Counter::start();
    let settings = format!("[web]\nallow = [\"127.0.0.1:{}\"]\n", counter.port);
    let site = Site::with(vec![
        Gateway::start_among(&settings, &variables(&url)),
        Gateway::start_among(&settings, &variables(&url)),
    ]);
    let execution = json!({"url": format!("http://127.0.0.1:{}/", counter.port)});
    site.tool("send", "gateway", json!({"execution": execution, "permissionPolicy": "always_ask"}));
    let calls = asked_in_batches(&site);
    // Each has a name, so that everybody else can be told who was first.
    let people: Vec<(usize, &str, String)> = [(0, "approve"), (1, "approve"), (1, "reject")]
        .into_iter()
        .map(|(node, word)| (node, word, site.node(0).key(&format!("{word}-{node}"), "acme", EVERYTHING)))
        .collect();
    let answers: Vec<Mutex<BTreeMap<usize, Answer>>> = people.iter().map(|_| Mutex::default()).collect();
    thread::scope(|scope| {
        for ((node, word, key), said) in people.iter().zip(&answers) {
            let (site, calls, order) = (&site, &calls, shuffled(*node * 2 + word.len()));
            scope.spawn(move || {
                for_each(ASKED, 8, |place| {
                    let n = order[place];
                    let path = format!("/api/approvals/{}/{word}", calls[n]);
                    said.lock().unwrap().insert(n, site.node(*node).post(&path, &json!({}), Some(key)));
                });
            });
        }
    });
    let mut sent = 0;
    for (n, call) in calls.iter().enumerate() {
        let all: Vec<Answer> = answers.iter().map(|said| said.lock().unwrap().remove(&n).unwrap()).collect();
        let first = first_of(&all);
        let (_, word, _) = &people[first];
        for (place, other) in all.iter().enumerate().filter(|(place, _)| *place != first) {
            assert_eq!((other.status, &other.body["error"]["code"]), (409, &json!("CONFLICT")), "{place}: {other:?}");
            let expected = format!("{word}-{}", people[first].0);
            assert_eq!(other.body["decided"]["by"]["name"], expected, "{other:?}");
        }
        let status = text(&site.ended(n, call)["status"]);
        assert_eq!(status, if *word == "approve" { "success" } else { "rejected" }, "{call}");
        let times = counter.seen.lock().unwrap().get(&(n as u64)).copied().unwrap_or(0);
        assert_eq!(times, usize::from(*word == "approve"), "{call} was sent {times} times");
        sent += times;
    }
    println!("measured: {sent} of {ASKED} calls were approved");
}

/// Asks all of them, half on each node.
fn asked_in_batches(site: &Site) -> Vec<String> {
    let mut calls = Vec::new();
    for first in (0..ASKED).step_by(100) {
        let batch: Vec<Value> = (first..first + 100).map(|n| json!({"tool": "send", "input": {"n": n}})).collect();
        let asked = site.post(first / 100, "/api/calls/batch", &json!({"calls": batch, "wait": 0}));
        calls.extend(asked.body["items"].as_array().unwrap().iter().map(|item| text(&item["tool_call_id"])));
    }
    calls
}

/// All numbers in an order of its own.
fn shuffled(seed: usize) -> Vec<usize> {
    let (mut dice, mut order) = (Dice::new(seed as u64 * 7919 + 3), (0..ASKED).collect::<Vec<_>>());
    for place in (1..ASKED).rev() {
        order.swap(place, dice.below(place + 1));
    }
    order
}

/// Whose answer counted.
fn first_of(all: &[Answer]) -> usize {
    let counted: Vec<usize> =
        (0..all.len()).filter(|place| all[*place].status == 200 && all[*place].body["answered"] == true).collect();
    assert_eq!(counted.len(), 1, "{all:?}");
    counted[0]
}

/// What a server's own tool asks is answered at the terminal, too: there it is not known, and the server goes on with it.
#[test]
fn the_terminal_and_the_page_answer_the_same_questions() {
    let site = Site::on_a_file();
    site.tool("ask", "internal", json!({"effect": "write", "permissionPolicy": "always_ask"}));
    let folder = site.node(0).workspace();
    let path = folder.to_str().unwrap();
    site.node(0).admin(&["workspace", "add", "here", "--tenant", "local", "--map", path]);
    let terminal_was_first = AtomicUsize::new(0);
    for_each(16, 4, |n| {
        let call = if n % 2 == 0 {
            id(&site.call(0, "ask", n, json!({"wait": 0})))
        } else {
            let input = json!({"input": {"path": format!("{n}.txt"), "content": "x"}, "wait": 0, "workspace": "here"});
            id(&site.post(0, "/api/tools/write_file/calls", &input))
        };
        let begun = Instant::now();
        let told = thread::scope(|scope| {
            let told = scope.spawn(|| site.node(0).haft(&["approve", &call, "--json"]).output().unwrap());
            until(|| (begun.elapsed() >= Duration::from_millis(n as u64 * 40)).then_some(()));
            let no = site.post(0, &format!("/api/approvals/{call}/reject"), &json!({}));
            let told = told.join().unwrap();
            assert_ne!(told.status.success(), no.status == 200, "one of them counts: {told:?}, {no:?}");
            told
        });
        let ended = site.ended(0, &call);
        let expected = if told.status.success() { "success" } else { "rejected" };
        assert_eq!(ended["status"], expected, "{call}: {told:?}");
        if n % 2 == 1 {
            assert_eq!(folder.join(format!("{n}.txt")).exists(), told.status.success());
        }
        terminal_was_first.fetch_add(usize::from(told.status.success()), Ordering::Relaxed);
    });
    println!("measured: the terminal was first {terminal_was_first:?} times of 16");
}
