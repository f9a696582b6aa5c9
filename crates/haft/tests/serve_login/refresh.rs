//! Tokens that run out: fetched anew by one at a time, however many want one, in however many processes.
#![allow(clippy::print_stdout, reason = "a test that has nothing to do says so")]

use serde_json::json;

use crate::{
    WHOAMI, added,
    guarded_peer::GuardedPeer,
    http_client::{Gateway, person::Person},
    is_nobody, logged_in, site, state, whoami,
};

#[path = "../stories/database.rs"]
mod database;

/// Somebody who has logged in, and a key of theirs.
fn logged_in_with_key(served: &Gateway, peer: &GuardedPeer) -> String {
    let ann = Person::added(served, "ann@acme.example", "acme", "admin");
    added(&ann, peer, &json!({}));
    logged_in(&ann, "ann");
    let key = ann.post("/api/keys", json!({"name": "k", "scopes": ["tools:read", "tools:execute"]}));
    key.body["key"].as_str().unwrap().to_owned()
}

/// Twenty calls at once, in turn at each of these, all of which are answered.
fn race(nodes: &[&Gateway], key: &str) {
    std::thread::scope(|scope| {
        let call = |number: usize| {
            let node = nodes[number % nodes.len()];
            scope.spawn(move || node.post(WHOAMI, &json!({"input": {}}), Some(key)).body)
        };
        let calls: Vec<_> = (0..20).map(call).collect();
        for call in calls {
            let answer = call.join().unwrap();
            assert_eq!(answer["result"]["content"], "ann", "{answer}");
        }
    });
}

#[test]
fn twenty_calls_fetch_one_token() {
    let peer = GuardedPeer::start();
    let served = site(&peer);
    let key = logged_in_with_key(&served, &peer);
    for round in 1..=2 {
        peer.fault(&json!({"forget": true}));
        race(&[&served], &key);
        assert_eq!(peer.count("refresh"), round, "one request for all of them");
    }
}

#[test]
fn twenty_calls_at_two_nodes_fetch_one_token() {
    let folder = tempfile::tempdir().unwrap();
    let Some(url) = database::create(folder.path()) else {
        println!("skipped: two nodes need a PostgreSQL server");
        return;
    };
    let shared = [("HAFT_STORE_URL", url.as_str()), ("HAFT_SECRET_KEY", "0123456789abcdef0123456789abcdef")];
    let (first, second) = (Gateway::start_among("", &shared), Gateway::start_among("", &shared));
    let peer = GuardedPeer::start();
    first.admin(&["tenant", "add", "acme"]);
    first.admin(&["tenant", "set", "acme", "--allow", &peer.host()]);
    let key = logged_in_with_key(&first, &peer);
    for round in 1..=2 {
        peer.fault(&json!({"forget": true}));
        race(&[&first, &second], &key);
        assert_eq!(peer.count("refresh"), round, "one request for all of them");
    }
}

#[test]
fn a_token_is_fetched_before_the_old_one_ends_and_a_refused_one_needs_a_login() {
    let peer = GuardedPeer::start();
    let served = site(&peer);
    let ann = Person::added(&served, "ann@acme.example", "acme", "admin");
    added(&ann, &peer, &json!({}));
    peer.fault(&json!({"expires_in": 0}));
    logged_in(&ann, "ann");
    peer.fault(&json!({"expires_in": 3600}));
    assert_eq!(whoami(&ann)["result"]["content"], "ann");
    let refreshed = peer.count("refresh");
    assert!(refreshed >= 1);
    peer.fault(&json!({"forget": true, "token": "redirect"}));
    let broken = whoami(&ann);
    assert_eq!(broken["error"]["code"], "UNAVAILABLE", "what cannot be asked for now may be later: {broken}");
    peer.fault(&json!({"token": null}));
    assert_eq!(whoami(&ann)["result"]["content"], "ann");
    peer.fault(&json!({"forget": true, "refuse_refresh": true}));
    is_nobody(&whoami(&ann));
    assert_eq!(state(&ann), "needs_login");
    let asked = peer.count("refresh");
    is_nobody(&whoami(&ann));
    assert_eq!(peer.count("refresh"), asked, "a refused one is not tried again");
    peer.fault(&json!({"refuse_refresh": false}));
    logged_in(&ann, "ann-again");
    assert_eq!(whoami(&ann)["result"]["content"], "ann-again");
}
