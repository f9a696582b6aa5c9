//! Results from outside: given on any node, heard once, whatever runs out meanwhile.

use std::{
    collections::BTreeMap,
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    http_client::{Answer, until},
    site::{Dice, Site, for_each, id, is_end, text},
};

/// How many calls are raced on each database.
const RACED: usize = 500;
/// How long the tool `short` holds its caller; its request waits longer.
const SHORT: Duration = Duration::from_millis(400);
/// How long a request for the tool `long` waits; that would hold it longer.
const ONE_SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_result_given_on_another_node_reaches_whoever_waits() {
    let Some(site) = Site::of_two_nodes() else { return };
    site.tool("long", "external", json!({"timeout": 60_000}));
    let mut quickest = Duration::MAX;
    for n in 0..5 {
        thread::scope(|scope| {
            let waiting = scope.spawn(|| (site.call(0, "long", n, json!({"wait": 60})), Instant::now()));
            let call = until(|| site.open(1, "long").pop());
            let given = Instant::now();
            let resolved = site.submit(1, &call, &json!({"n": n}));
            assert_eq!((resolved.status, &resolved.body["delivered"]), (200, &json!("inline")), "{resolved:?}");
            let (answer, heard) = waiting.join().unwrap();
            assert_eq!(answer.body["result"]["structured"], json!({"n": n}), "{answer:?}");
            quickest = quickest.min(heard.saturating_duration_since(given));
        });
    }
    println!("measured: a result crosses over within {quickest:?}");
    assert!(quickest <= Duration::from_millis(300), "{quickest:?}");
    assert_eq!(site.inbox(0), BTreeMap::new());
}

#[test]
fn a_result_at_the_moment_when_the_wait_runs_out_is_heard_once() {
    if let Some(site) = Site::of_two_nodes() {
        race(&site, &|_, _| None);
    }
}

#[test]
fn on_sqlite_too_with_another_process_beside_the_server() {
    let site = Site::on_a_file();
    // A process of its own takes its time, so that only some of the calls have one.
    race(&site, &|n, call| (n % 25 == 0).then(|| told_at_the_terminal(&site, call)));
}

/// Whether the terminal's result counted, was the same as another one, or was not.
fn told_at_the_terminal(site: &Site, call: &str) -> u16 {
    let told = site.node(0).haft(&["approve", call, "--input", r#"{"v":3}"#, "--json"]).output().unwrap();
    if told.status.success() { 200 } else { 409 }
}

/// One raced call: what its caller heard, and what those heard who gave results.
struct Raced {
    call: String,
    heard: Answer,
    given: Vec<Answer>,
    at_the_terminal: Option<u16>,
}

fn race(site: &Site, terminal: &(dyn Fn(usize, &str) -> Option<u16> + Sync)) {
    site.tool("short", "external", json!({"timeout": SHORT.as_millis()}));
    site.tool("long", "external", json!({"timeout": 60_000}));
    let (asked, raced) = (Mutex::new(BTreeMap::new()), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        scope.spawn(|| note_what_is_asked(site, &asked));
        for_each(RACED, 40, |n| {
            let one = raced_once(site, n, &asked, terminal);
            raced.lock().unwrap().push(one);
        });
    });
    judge(site, &raced.into_inner().unwrap());
}

/// Remembers which call of which run waits, and since when.
fn note_what_is_asked(site: &Site, asked: &AskedCalls) {
    let mut stream = site.events(0, "/api/events?types=tool.pending", Some(0));
    for _ in 0..RACED {
        let frame = stream.next().unwrap();
        let (run, call) = (text(&frame.data["runId"]), text(&frame.data["toolCallId"]));
        asked.lock().unwrap().insert(run, (call, Instant::now()));
    }
}

/// The call of each run, and since when it waits.
type AskedCalls = Mutex<BTreeMap<String, (String, Instant)>>;

fn raced_once(
    site: &Site,
    n: usize,
    asked: &AskedCalls,
    terminal: &(dyn Fn(usize, &str) -> Option<u16> + Sync),
) -> Raced {
    let (tool, wait, runs_out) = if n.is_multiple_of(2) { ("short", 60, SHORT) } else { ("long", 1, ONE_SECOND) };
    let run = format!("run-{n}");
    thread::scope(|scope| {
        let waiting = scope.spawn(|| site.call(n / 2, tool, n, json!({"wait": wait, "run": run})));
        let (call, since) = until(|| asked.lock().unwrap().get(&run).cloned());
        // Somewhat before, at, or after that moment.
        let early = Duration::from_millis(Dice::new(n as u64 * 7919 + 1).below(40) as u64);
        let moment = since + runs_out - early;
        until(|| (Instant::now() >= moment).then_some(()));
        let path = format!("/api/runs/{run}/tool-results");
        let give = |node: usize, value: u32| site.post(node, &path, &json!({"callId": call, "result": {"v": value}}));
        let (given, at_the_terminal) = thread::scope(|scope| {
            let terminal = scope.spawn(|| terminal(n, &call));
            let given = [(0, 1), (1, 1), (0, 2)].map(|(node, value)| scope.spawn(move || give(node, value)));
            (given.map(|given| given.join().unwrap()).into(), terminal.join().unwrap())
        });
        Raced { heard: waiting.join().unwrap(), given, at_the_terminal, call }
    })
}

/// Every reply fits what was stored, and each result was heard in one way.
fn judge(site: &Site, raced: &[Raced]) {
    let (inbox, history) = (site.inbox(0), site.history(1));
    let mut tally: BTreeMap<&str, usize> = BTreeMap::new();
    for Raced { call, heard, given, at_the_terminal } in raced {
        let (value, delivered) = counted_result(given, *at_the_terminal);
        let of_call = || history.iter().filter(|(_, _, data)| data["toolCallId"] == **call);
        let ends = of_call().filter(|(_, name, data)| is_end(name, data)).count();
        let late = of_call().filter(|(_, _, data)| data["late"] == true).count();
        let items = inbox.get(call).map_or(&[][..], Vec::as_slice);
        let (way, expected) = match heard.body["status"].as_str().unwrap() {
            "success" => ("inline", (1, 0, 0)),
            "pending" => ("inbox", (1, 0, 1)),
            _ => ("late", (1, 1, 1)),
        };
        assert_eq!((ends, late, items.len()), expected, "{call}: {heard:?}, {given:?}");
        let told = if way == "inline" { &heard.body["result"]["structured"] } else { &items[0]["result"] };
        assert_eq!(told["v"], value, "{call}: {given:?}");
        if way == "late" {
            assert_eq!((&heard.body["error"]["code"], &items[0]["late"]), (&json!("TIMEOUT"), &json!(true)), "{call}");
        }
        let expected = if way == "inline" { "inline" } else { "inbox" };
        assert!(delivered.is_none_or(|delivered| delivered == expected), "{call}: {way}, {given:?}");
        *tally.entry(way).or_default() += 1;
    }
    println!("measured: of {} results {tally:?}", raced.len());
}

/// The one value that counted, and how it was said to be delivered. Whoever gives the same gets the same reply, whoever gives
/// another one is told of the conflict.
fn counted_result(given: &[Answer], terminal: Option<u16>) -> (u32, Option<String>) {
    let mut counted = Vec::new();
    for (answer, value) in given.iter().zip([1, 1, 2]) {
        match answer.status {
            200 => counted.push((value, Some(text(&answer.body["delivered"])))),
            409 => assert_eq!(answer.body["error"]["code"], "CONFLICT", "{answer:?}"),
            _ => panic!("{answer:?}"),
        }
    }
    if terminal == Some(200) {
        counted.push((3, None));
    }
    counted.dedup();
    assert_eq!(counted.len(), 1, "{given:?}, at the terminal {terminal:?}");
    counted.remove(0)
}

/// How long the tools of the next test are waited for.
const EXPIRES_MS: u64 = 600;

#[test]
fn what_nobody_gives_in_time_expires_once_with_every_node_looking() {
    let Some(site) = Site::of_two_nodes() else { return };
    site.tool("async", "external", json!({"isAsync": true, "expiresAfter": EXPIRES_MS}));
    site.tool("sync", "external", json!({"timeout": 60_000, "expiresAfter": EXPIRES_MS}));
    let calls = Mutex::new(Vec::new());
    for_each(20, 20, |n| {
        let tool = if n % 2 == 0 { "async" } else { "sync" };
        let answer = site.call(n / 2, tool, n, json!({"wait": 60}));
        let call = id(&answer);
        let ended = site.ended(n, &call);
        assert_eq!((&ended["status"], &ended["outcome"]["error"]["code"]), (&json!("cancelled"), &json!("EXPIRED")));
        let late = site.submit(n, &call, &json!({}));
        assert_eq!((late.status, &late.body["error"]["code"]), (410, &json!("EXPIRED")), "{late:?}");
        if tool == "sync" {
            assert_eq!(answer.body["error"]["code"], "EXPIRED", "{answer:?}");
        }
        calls.lock().unwrap().push((call, tool));
    });
    let (inbox, history) = (site.inbox(0), site.history(1));
    for (call, tool) in calls.into_inner().unwrap() {
        let ends: Vec<&(i64, String, Value)> =
            history.iter().filter(|(_, name, data)| data["toolCallId"] == *call && is_end(name, data)).collect();
        assert_eq!(ends.len(), 1, "{ends:?}");
        assert_eq!((ends[0].1.as_str(), &ends[0].2["reason"]), ("tool.cancelled", &json!("expired")));
        assert_eq!(inbox.get(&call).map_or(0, Vec::len), usize::from(tool == "async"), "{tool}");
    }
}
