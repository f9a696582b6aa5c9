//! Nodes that are killed, frozen or asked to end while much is under way: what was acknowledged is there, nothing happens
//! twice, and the others go on.

use std::{
    process::{Command, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, Scope},
    time::{Duration, Instant},
};

use nix::{sys::signal::Signal, unistd::Pid};
use serde_json::{Value, json};

use crate::{
    http_client::{Answer, Gateway, until, within},
    site::{EVERYTHING, Site, id, is_end, new_database, start, text, variables},
};

/// How long the lease of a dead node lasts, how long others take to look, and what a busy machine adds.
pub(crate) const LEASE_IS_OVER: Duration = Duration::from_secs(60);
/// A command that nothing else here runs.
const COMMAND: &str = "echo x >> ran.txt; exec sleep 1234567";

fn signal(node: &Gateway, signal: Signal) {
    nix::sys::signal::kill(Pid::from_raw(node.process().cast_signed()), signal).unwrap();
}

/// Whether the command runs.
fn runs(command: &str) -> bool {
    let found = Command::new("pgrep").args(["-f", command]).stdout(Stdio::null()).status().unwrap();
    found.success()
}

/// Calls `write` on one node until it is gone or told to stop, and keeps what was acknowledged.
fn write_until_the_end(site: &Site, node: usize, stop: &AtomicBool, acknowledged: &Mutex<Vec<Answer>>) {
    let body = json!({"input": {"n": 1}, "wait": 0});
    while !stop.load(Ordering::Relaxed) {
        let Some(answer) = site.try_post(node, "/api/tools/write/calls", &body) else { return };
        acknowledged.lock().unwrap().push(answer);
    }
}

/// The calls of each event that ends one, in order.
fn ends(site: &Site, node: usize) -> Vec<String> {
    let history = site.history(node);
    let mut calls: Vec<String> = history
        .iter()
        .filter(|(_, name, data)| is_end(name, data))
        .map(|(_, _, data)| text(&data["toolCallId"]))
        .collect();
    calls.sort();
    calls
}

/// Calls that are still under way when their node is killed: three wait for somebody, one runs.
fn call_and_wait<'scope>(scope: &'scope Scope<'scope, '_>, site: &'scope Site, in_shop: &str) {
    let calls = [
        ("ask", json!({"n": 1}), site.key.as_str()),
        ("outside", json!({"n": 1}), site.key.as_str()),
        ("write_file", json!({"path": "w.txt", "content": "w"}), in_shop),
        ("shell_exec", json!({"command": COMMAND}), in_shop),
    ];
    for (tool, input, key) in calls {
        let (path, bearer) = (format!("/api/tools/{tool}/calls"), format!("Bearer {key}"));
        let body = json!({"input": input, "wait": 600});
        scope.spawn(move || site.node(0).try_request("POST", &path, Some(&body), &[("Authorization", &bearer)]).ok());
    }
}

#[test]
fn what_a_killed_node_left_is_carried_on_by_the_others() {
    let Some((_folder, url)) = new_database() else { return };
    let mut site = Site::with(vec![start(&url, &[]), start(&url, &[])]);
    site.tool("ask", "internal", json!({"effect": "write", "permissionPolicy": "always_ask"}));
    site.tool("outside", "external", json!({"timeout": 600_000}));
    site.tool("write", "internal", json!({"effect": "write"}));
    let folder = site.node(0).workspace();
    site.node(0).admin(&["workspace", "add", "shop", "--tenant", "acme", "--map", folder.to_str().unwrap()]);
    let in_shop = site.node(0).key_in("shop", "acme", EVERYTHING, "shop");
    let (stop, acknowledged) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let mut killed = None;
    let calls = thread::scope(|scope| {
        call_and_wait(scope, &site, &in_shop);
        let calls = ["ask", "outside", "write_file"].map(|tool| until(|| site.open(1, tool).pop()));
        until(|| runs("^sleep 1234567$").then_some(()));
        for _ in 0..8 {
            scope.spawn(|| write_until_the_end(&site, 0, &stop, &acknowledged));
        }
        until(|| (acknowledged.lock().unwrap().len() >= 200).then_some(()));
        signal(site.node(0), Signal::SIGKILL);
        killed = Some(Instant::now());
        calls
    });
    assert!(
        within(Duration::from_secs(10), || (!runs("^sleep 1234567$")).then_some(())).is_some(),
        "its command is gone"
    );
    survives(&mut site, &calls, &acknowledged.into_inner().unwrap(), killed.unwrap());
    let [ask, outside, write] = calls;
    let shell = text(&site.get(1, "/api/calls?tool=shell_exec").body["items"][0]["callId"]);
    // Its workspace lives on the node that was killed, which is started again.
    assert_eq!(site.shown(1, &write)["state"], "waiting");
    let again = site.nodes.remove(0).start_again(&["--database", &url], &variables(&url));
    site.nodes.insert(0, again);
    for (call, status, code) in [
        (&ask, "success", None),
        (&outside, "success", None),
        (&write, "success", None),
        (&shell, "error", Some("INTERRUPTED")),
    ] {
        let ended =
            within(LEASE_IS_OVER, || Some(site.shown(0, call)).filter(|shown| shown["state"] == "ended")).unwrap();
        assert_eq!(
            (ended["status"].as_str(), ended["outcome"]["error"]["code"].as_str()),
            (Some(status), code),
            "{ended}"
        );
    }
    assert_eq!(std::fs::read_to_string(folder.join("w.txt")).unwrap(), "w");
    assert!(!folder.join("ran.txt").exists(), "a command that was cut off has changed nothing");
    let ended = ends(&site, 0);
    let mut once = ended.clone();
    once.dedup();
    assert_eq!(ended, once, "every call ended once");
    assert_eq!(site.call(0, "write", 1, json!({})).status, 200, "it goes on");
}

/// The other node takes answers at once, and carries on what needs no folder when the lease is over.
fn survives(site: &mut Site, [ask, outside, write]: &[String; 3], acknowledged: &[Answer], killed: Instant) {
    let quick = Instant::now();
    assert_eq!(site.call(1, "write", 1, json!({})).status, 200);
    println!("measured: another node wrote {:?} after the kill, within {:?}", killed.elapsed(), quick.elapsed());
    for call in [ask, write] {
        let yes = site.approve(1, call);
        assert_eq!((yes.status, &yes.body["answered"]), (200, &json!(true)), "{yes:?}");
    }
    let given = site.submit(1, outside, &json!({"v": 7}));
    assert_eq!((given.status, &given.body["delivered"]), (200, &json!("inbox")), "{given:?}");
    assert_eq!(site.inbox(1)[outside].len(), 1);
    let ended = within(LEASE_IS_OVER, || Some(site.shown(1, ask)).filter(|shown| shown["state"] == "ended")).unwrap();
    assert_eq!(ended["status"], "success", "{ended}");
    println!("measured: a call that waited was carried on {:?} after the kill", killed.elapsed());
    assert!(acknowledged.len() >= 200);
    for answer in acknowledged {
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(site.shown(1, &id(answer))["status"], "success", "what was acknowledged is there");
    }
    let twice = site.approve(1, ask);
    assert_eq!(twice.status, 409, "{twice:?}");
}

/// A process that stands still holds what it was writing; the database takes that back.
#[test]
fn a_node_that_stands_still_does_not_stop_the_others() {
    let Some(site) = Site::of_two_nodes() else { return };
    site.tool("write", "internal", json!({"effect": "write"}));
    let (stop, acknowledged) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let mut longest = Duration::ZERO;
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| write_until_the_end(&site, 0, &stop, &acknowledged));
        }
        for round in 1..=4 {
            until(|| (acknowledged.lock().unwrap().len() > round * 20).then_some(()));
            signal(site.node(0), Signal::SIGSTOP);
            let begun = Instant::now();
            let written = site.call(1, "write", 1, json!({}));
            assert_eq!(written.status, 200, "{written:?}");
            longest = longest.max(begun.elapsed());
            signal(site.node(0), Signal::SIGCONT);
        }
        stop.store(true, Ordering::Relaxed);
    });
    println!("measured: beside a node that stands still a write took {longest:?} at the most");
    for answer in acknowledged.into_inner().unwrap() {
        let known = site.shown(1, &id(&answer));
        assert!(answer.status != 200 || known["status"] == "success", "{answer:?}, {known}");
    }
    let ended = ends(&site, 1);
    let mut once = ended.clone();
    once.dedup();
    assert_eq!(ended, once);
}

#[test]
fn a_node_that_is_asked_to_end_under_load_loses_nothing() {
    let Some((_folder, url)) = new_database() else { return };
    let mut site = Site::with(vec![start(&url, &[]), start(&url, &[])]);
    site.tool("ask", "internal", json!({"effect": "write", "permissionPolicy": "always_ask"}));
    site.tool("outside", "external", json!({"timeout": 600_000}));
    site.tool("write", "internal", json!({"effect": "write"}));
    let (stop, acknowledged) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let waited: Vec<Answer> = thread::scope(|scope| {
        let waiting: Vec<_> = ["ask", "outside"]
            .map(|tool| {
                let site = &site;
                scope.spawn(move || site.call(0, tool, 1, json!({"wait": 600})))
            })
            .into();
        until(|| (site.open(1, "ask").len() + site.open(1, "outside").len() == 2).then_some(()));
        for _ in 0..8 {
            scope.spawn(|| write_until_the_end(&site, 0, &stop, &acknowledged));
        }
        until(|| (acknowledged.lock().unwrap().len() >= 100).then_some(()));
        site.node(0).terminate();
        waiting.into_iter().map(|waiting| waiting.join().unwrap()).collect()
    });
    let (code, _) = site.nodes[0].ended();
    assert_eq!(code, Some(0), "{}", site.nodes[0].log());
    for answer in acknowledged.into_inner().unwrap() {
        match answer.status {
            200 => assert_eq!(site.shown(1, &id(&answer))["status"], "success", "{answer:?}"),
            _ => assert_eq!((answer.status, answer.body["error"].is_object()), (503, true), "{answer:?}"),
        }
    }
    // Whoever waited was handed back, and the other node goes on with it at once.
    for answer in &waited {
        assert_eq!((answer.status, &answer.body["status"]), (202, &json!("pending")), "{answer:?}");
    }
    let (ask, outside) = (id(&waited[0]), id(&waited[1]));
    let yes = site.approve(1, &ask);
    assert_eq!(yes.body["outcome"]["status"], "success", "{yes:?}");
    let given = site.submit(1, &outside, &json!(1));
    assert_eq!((given.status, &given.body["delivered"]), (200, &json!("inbox")), "{given:?}");
    let open: Vec<Value> =
        site.get(1, "/api/calls?status=pending").body["items"].as_array().cloned().unwrap_or_default();
    assert!(open.iter().all(|call| call["state"] == "ended"), "{open:?}");
    let again = site.nodes.remove(0).start_again(&["--database", &url], &variables(&url));
    site.nodes.insert(0, again);
    assert_eq!(site.call(0, "write", 1, json!({})).status, 200);
}
