//! The database is away, slow, silent or full: every request is answered in time and in one shape, nothing that was
//! acknowledged is lost, and everything goes on by itself when it is back.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::json;
use tokio_postgres::NoTls;

use crate::{
    cluster::Cluster,
    http_client::{Answer, until, within},
    proxy::{Proxy, ProxyMode},
    site::{Site, for_each, id, is_end, new_database, text},
};

/// How long an answer may take while the database does not.
const BOUND: Duration = Duration::from_secs(25);

/// Whether an answer says that the store is away, as every such answer does.
fn is_away(answer: &Answer) -> bool {
    answer.status == 503
        && answer.body["error"]["code"] == "STORE_UNAVAILABLE"
        && answer.body["error"]["recoverable"] == true
}

#[test]
fn a_database_that_goes_away_and_comes_back_costs_nobody_what_was_acknowledged() {
    let Some(cluster) = Cluster::start(100) else { return };
    let site = Site::on(&[&cluster.url, &cluster.url]);
    site.tool("ask", "internal", json!({"effect": "write", "permissionPolicy": "always_ask"}));
    site.tool("outside", "external", json!({"timeout": 600_000}));
    site.tool("write", "internal", json!({"effect": "write"}));
    let (stop, told) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let mut stream = site.events(1, "/api/events", Some(0));
    thread::scope(|scope| {
        let waiting: Vec<_> = ["ask", "outside"]
            .map(|tool| {
                let site = &site;
                scope.spawn(move || site.call(0, tool, 1, json!({"wait": 600})))
            })
            .into();
        let [ask, outside] = ["ask", "outside"].map(|tool| until(|| site.open(1, tool).pop()));
        for node in 0..6 {
            let (site, stop, told) = (&site, &stop, &told);
            scope.spawn(move || call_until(site, node, stop, told));
        }
        until(|| (told.lock().unwrap().len() >= 60).then_some(()));
        cluster.stop();
        away(&site);
        cluster.restart();
        until(|| (0..2).all(|node| site.node(node).get("/readyz", None).status == 200).then_some(()));
        let before = told.lock().unwrap().len();
        until(|| (told.lock().unwrap().len() >= before + 60).then_some(()));
        stop.store(true, Ordering::Relaxed);
        // Whoever waited before still does.
        let yes = site.approve(1, &ask);
        assert_eq!(yes.body["outcome"]["status"], "success", "{yes:?}");
        let given = site.submit(1, &outside, &json!(7));
        assert_eq!((given.status, &given.body["delivered"]), (200, &json!("inline")), "{given:?}");
        for waiting in waiting {
            assert_eq!(waiting.join().unwrap().body["status"], "success");
        }
    });
    settled(&site, &told.into_inner().unwrap());
    // The stream went on through all of it.
    let history = site.history(0);
    for (number, _, _) in &history {
        assert_eq!(stream.next().unwrap().id.unwrap(), number.to_string());
    }
}

/// Reads and writes on a node until told to stop, and keeps every answer.
fn call_until(site: &Site, node: usize, stop: &AtomicBool, told: &Mutex<Vec<Answer>>) {
    let tools = ["write", "echo"];
    let mut n = 0;
    while !stop.load(Ordering::Relaxed) {
        n += 1;
        let begun = Instant::now();
        let answer = site.call(node, tools[n % 2], n, json!({"wait": 0}));
        assert!(begun.elapsed() < BOUND, "{answer:?} took {:?}", begun.elapsed());
        told.lock().unwrap().push(answer);
    }
}

/// While nobody is there, every node says so, and lives.
fn away(site: &Site) {
    for node in 0..2 {
        let ready = site.node(node).get("/readyz", None);
        assert!(is_away(&ready), "{ready:?}");
        assert_eq!(site.node(node).get("/healthz", None).status, 200);
        for path in ["/api/me", "/api/calls", "/api/tools", "/api/approvals", "/api/events"] {
            let refused = site.get(node, path);
            assert!(is_away(&refused), "{path}: {refused:?}");
        }
    }
}

/// Every answer was one of two, what was acknowledged is there, and nothing is left half-way.
fn settled(site: &Site, told: &[Answer]) {
    let mut refused = 0;
    for answer in told {
        if answer.status == 200 {
            let shown = site.shown(1, &id(answer));
            assert_eq!(
                (&shown["state"], &shown["status"]),
                (&json!("ended"), &json!("success")),
                "{answer:?}, {shown}"
            );
            continue;
        }
        assert!(is_away(answer), "{answer:?}");
        refused += 1;
        // A call that was begun, and whose end could not be written, is ended by whoever looks after such calls.
        if let Some(call) = answer.body["callId"].as_str() {
            let left = within(Duration::from_secs(20), || {
                let shown = site.get(1, &format!("/api/calls/{call}"));
                (shown.status == 404 || shown.body["state"] == "ended").then_some(())
            });
            assert!(left.is_some(), "{call} was left half-way: {}", site.shown(1, call));
        }
    }
    println!("measured: of {} calls {refused} were refused while the database was away", told.len());
    let history = site.history(1);
    let mut ended: Vec<String> = history
        .iter()
        .filter(|(_, name, data)| is_end(name, data))
        .map(|(_, _, data)| text(&data["toolCallId"]))
        .collect();
    let all = ended.len();
    ended.sort();
    ended.dedup();
    assert_eq!(ended.len(), all, "every call ended once");
}

#[test]
fn a_silent_database_is_waited_for_only_so_long() {
    let Some((_folder, url)) = new_database() else { return };
    let proxy = Proxy::before(&url);
    let site = Site::on(&[&proxy.url(), &url]);
    site.tool("write", "internal", json!({"effect": "write"}));
    proxy.set(ProxyMode::Silent);
    let begun = Instant::now();
    thread::scope(|scope| {
        for n in 0..12 {
            let site = &site;
            scope.spawn(move || {
                let answer = match n {
                    0 => site.node(0).get("/readyz", None),
                    n => site.call(0, ["write", "echo"][n % 2], n, json!({})),
                };
                assert!(is_away(&answer), "{answer:?}");
            });
        }
        assert_eq!(site.node(0).get("/healthz", None).status, 200);
    });
    println!("measured: a silent database was given up after {:?}", begun.elapsed());
    assert!(begun.elapsed() < BOUND, "{:?}", begun.elapsed());
    assert_eq!(site.call(1, "write", 1, json!({})).status, 200, "the other node goes on");
    proxy.set(ProxyMode::Open);
    until(|| (site.call(0, "write", 1, json!({})).status == 200).then_some(()));
}

#[test]
fn a_request_sent_again_after_an_outage_starts_its_call() {
    let Some((_folder, url)) = new_database() else { return };
    let proxy = Proxy::before(&url);
    let site = Site::on(&[&proxy.url(), &url]);
    site.tool("write", "internal", json!({"effect": "write"}));
    let bearer = format!("Bearer {}", site.key);
    let send = |key: &str| {
        let headers = [("Authorization", bearer.as_str()), ("Idempotency-Key", key)];
        site.node(0).request("POST", "/api/tools/write/calls", Some(&json!({"input": {"n": 1}})), &headers)
    };
    // The key is written down; its call cannot be begun any more.
    proxy.set(ProxyMode::SilentAfter("into idempotency_keys"));
    let first = send("k");
    assert!(is_away(&first), "{first:?}");
    proxy.set(ProxyMode::Open);
    let again = until(|| Some(send("k")).filter(|again| again.status == 200));
    assert_eq!(send("k").body["tool_call_id"], again.body["tool_call_id"], "it was started once");
}

#[test]
fn a_full_database_is_shared() {
    let Some(cluster) = Cluster::start(16) else { return };
    let site = Site::on(&[&cluster.url, &cluster.url]);
    site.tool("write", "internal", json!({"effect": "write"}));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let others = runtime.block_on(async {
        // Others take every connection that is left.
        let mut others = Vec::new();
        while let Ok((client, connection)) = tokio_postgres::connect(&cluster.url, NoTls).await {
            others.push((client, tokio::spawn(connection)));
        }
        others
    });
    assert!(!others.is_empty());
    let answers = Mutex::new(Vec::new());
    for_each(24, 12, |n| {
        let begun = Instant::now();
        let answer = site.call(n, "write", n, json!({}));
        assert!(begun.elapsed() < BOUND);
        answers.lock().unwrap().push(answer);
    });
    let served = answers.lock().unwrap().iter().filter(|answer| answer.status == 200).count();
    println!("measured: {served} of 24 calls were made while no connection was free");
    assert!(answers.lock().unwrap().iter().all(|answer| answer.status == 200 || is_away(answer)));
    assert!(served > 0);
    drop(others);
    until(|| (site.call(0, "write", 1, json!({})).status == 200).then_some(()));
}
