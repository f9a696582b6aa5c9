//! Two people who have to agree, by two kinds of clients, and a node that is killed between them.

use std::thread;

use serde_json::{Value, json};

use crate::{
    http_client::{person::Person, until, within},
    kills::LEASE_IS_OVER,
    site::{Site, new_database, start, text},
};

#[test]
fn what_one_agreed_to_on_a_node_that_died_is_completed_on_another() {
    let Some((_folder, url)) = new_database() else { return };
    let mut site = Site::with(vec![start(&url, &[]), start(&url, &[])]);
    site.tool("deploy", "internal", json!({"effect": "write"}));
    let other = site.nodes.remove(1);
    let ann = Person::added(site.node(0), "ann@acme.example", "acme", "admin");
    let scopes = ["tools:read", "tools:execute", "approvals:decide"];
    let made = ann.post("/api/keys", json!({"name": "terminal", "scopes": scopes}));
    let by_key = format!("Bearer {}", text(&made.body["key"]));
    // A sign-in ends with the node that it was made at.
    let bob = Person::added(&other, "bob@acme.example", "acme", "owner");
    let rules = json!([{"tool": "deploy", "count": 2, "notTheAuthor": true}]);
    let set = bob.ask("PUT", "/api/approval-rules", Some(json!({"rules": rules, "version": 0})));
    assert_eq!(set.status, 200, "{set:?}");
    let call = thread::scope(|scope| {
        // Its caller waits at the node that is killed, which carries the call until then.
        let held = || site.try_post(0, "/api/tools/deploy/calls", &json!({"input": {"n": 1}, "wait": 600}));
        let waiting = scope.spawn(held);
        let call = until(|| site.open(0, "deploy").pop());
        let path = format!("/api/approvals/{call}/approve");
        let yes = site.node(0).request("POST", &path, Some(&json!({})), &[("Authorization", &by_key)]);
        assert_eq!(
            (yes.status, &yes.body["answered"], &yes.body["needed"]),
            (200, &json!(false), &json!(1)),
            "{yes:?}"
        );
        let process = nix::unistd::Pid::from_raw(site.node(0).process().cast_signed());
        nix::sys::signal::kill(process, nix::sys::signal::Signal::SIGKILL).unwrap();
        assert!(waiting.join().unwrap().is_none(), "its caller hears no more of it");
        call
    });
    let again = other.request(
        "POST",
        &format!("/api/approvals/{call}/approve"),
        Some(&json!({})),
        &[("Authorization", &by_key)],
    );
    assert_eq!(again.body["answered"], json!(false), "whoever says it twice is one: {again:?}");
    let yes = bob.post(&format!("/api/approvals/{call}/approve"), json!({}));
    assert_eq!((yes.status, &yes.body["answered"]), (200, &json!(true)), "{yes:?}");
    let ended = within(LEASE_IS_OVER, || {
        Some(bob.get(&format!("/api/calls/{call}")).body).filter(|shown| shown["state"] == "ended")
    });
    assert_eq!(ended.unwrap()["status"], "success");
    let receipt = bob.get(&format!("/api/calls/{call}/receipt")).body;
    let mut kinds: Vec<&Value> = receipt["answeredBy"].as_array().unwrap().iter().map(|by| &by["kind"]).collect();
    kinds.sort_by_key(|kind| kind.to_string());
    assert_eq!(kinds, [&json!("key"), &json!("person")], "{receipt}");
    let checked = other.haft(&["admin", "audit", "verify", "--json", "--tenant", "acme"]).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
}
