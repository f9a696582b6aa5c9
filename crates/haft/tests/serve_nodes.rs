//! Two nodes on one PostgreSQL: a workspace lives on one of them, any of them takes answers, and tools and rules are the same.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on fails, or says that it has nothing to do"
)]

#[path = "stories/database.rs"]
mod database;
mod http_client;

use http_client::{Gateway, until};
use serde_json::{Value, json};

const EVERYTHING: &str = "tools:read,tools:execute,tools:write,approvals:decide,events:read";
const SECRET: &str = "a-secret-key-for-tests-of-nodes-only";

fn node(url: &str, name: &str) -> Gateway {
    Gateway::start_as(&[], &variables(url, name))
}

fn variables<'a>(url: &'a str, name: &'a str) -> [(&'a str, &'a str); 3] {
    [("HAFT_STORE_URL", url), ("HAFT_SECRET_KEY", SECRET), ("HAFT_SERVE_NODE", name)]
}

fn asked(on: &Gateway, key: &str, path: &str) -> String {
    let body = json!({"input": {"path": path, "content": "x"}, "wait": 0});
    let asked = on.post("/api/tools/write_file/calls", &body, Some(key));
    assert_eq!(asked.status, 202, "{asked:?}");
    asked.body["tool_call_id"].as_str().unwrap().to_owned()
}

fn call(on: &Gateway, key: &str, id: &str) -> Value {
    on.get(&format!("/api/calls/{id}"), Some(key)).body
}

fn approve(on: &Gateway, key: &str, id: &str) -> Value {
    let yes = on.post(&format!("/api/approvals/{id}/approve"), &json!({}), Some(key));
    assert_eq!((yes.status, &yes.body["answered"]), (200, &json!(true)), "{yes:?}");
    yes.body
}

#[test]
fn an_answer_is_taken_anywhere_and_carried_out_where_the_workspace_lives() {
    let folder = tempfile::tempdir().unwrap();
    let Some(url) = database::create(folder.path()) else {
        println!("skipped: only PostgreSQL serves several nodes");
        return;
    };
    let (a, mut b) = (node(&url, "a"), node(&url, "b"));
    let shop = b.workspace();
    a.admin(&["tenant", "add", "acme"]);
    a.admin(&["workspace", "add", "shop", "--tenant", "acme", "--map", shop.to_str().unwrap()]);
    let key = a.key_in("full", "acme", EVERYTHING, "shop");

    // Both live: what was asked on one is answered on the other.
    let first = asked(&b, &key, "first.txt");
    approve(&a, &key, &first);
    until(|| (call(&a, &key, &first)["status"] == "success").then_some(()));
    assert!(shop.join("first.txt").exists());
    let listed = a.admin(&["workspace", "list", "--tenant", "acme"]);
    assert_eq!(listed["items"][0]["node"], "b", "{listed}");
    let elsewhere = a.post("/api/tools/read_file/calls", &json!({"input": {"path": "first.txt"}}), Some(&key));
    assert_eq!((elsewhere.status, &elsewhere.body["error"]["details"]["node"]), (503, &json!("b")), "{elsewhere:?}");

    // Its node is down: the answer counts, and waits for it.
    let second = asked(&b, &key, "second.txt");
    b.kill();
    approve(&a, &key, &second);
    let waiting = call(&a, &key, &second);
    assert_eq!((&waiting["status"], &waiting["waitingFor"]), (&json!("pending"), &json!("node b")), "{waiting}");
    assert!(!shop.join("second.txt").exists());
    let b = b.start_again(&[], &variables(&url, "b"));
    until(|| (call(&a, &key, &second)["status"] == "success").then_some(()));
    assert!(shop.join("second.txt").exists() && call(&a, &key, &second).get("waitingFor").is_none());

    // Moved to a node that sees the same folder.
    a.admin(&["workspace", "move", "shop", "--tenant", "acme", "--to", "a"]);
    let read = until(|| {
        let read = a.post("/api/tools/read_file/calls", &json!({"input": {"path": "second.txt"}}), Some(&key));
        (read.status == 200).then_some(read)
    });
    assert_eq!(read.body["status"], "success", "{read:?}");
    until(|| {
        let refused = b.post("/api/tools/read_file/calls", &json!({"input": {"path": "second.txt"}}), Some(&key));
        (refused.status == 503).then_some(())
    });
    let third = asked(&a, &key, "third.txt");
    approve(&b, &key, &third);
    until(|| (call(&b, &key, &third)["status"] == "success").then_some(()));
    assert!(shop.join("third.txt").exists());
}

#[test]
fn tools_and_rules_that_change_on_one_node_have_changed_on_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let Some(url) = database::create(folder.path()) else {
        println!("skipped: only PostgreSQL serves several nodes");
        return;
    };
    let (a, b) = (node(&url, "a"), node(&url, "b"));
    a.admin(&["tenant", "add", "acme"]);
    let key = a.key("full", "acme", EVERYTHING);
    let bearer = format!("Bearer {key}");
    let tool =
        json!({"slug": "echo", "description": "d", "inputSchema": {"type": "object"}, "executionType": "internal"});
    let call = |on: &Gateway| on.post("/api/tools/echo/calls", &json!({"input": {}}), Some(&key));
    let change = |body: &Value| a.request("PATCH", "/api/tools/echo", Some(body), &[("Authorization", &bearer)]);
    assert_eq!(call(&b).status, 404);
    assert_eq!(a.post("/api/tools", &tool, Some(&key)).status, 201);
    assert_eq!(call(&b).body["status"], "success", "at once: the version came with the key");
    assert_eq!(change(&json!({"enabled": false})).status, 200);
    assert_eq!(call(&b).status, 404);
    assert_eq!(change(&json!({"enabled": true})).status, 200);

    let link = a.admin(&["person", "add", "ann@example.org", "--tenant", "acme", "--role", "admin"]);
    let signed_in = a.post("/api/sign-in", &json!({"link": link["signIn"]}), None);
    let cookie = signed_in.header("set-cookie").unwrap().split(';').next().unwrap();
    let page = [("Cookie", cookie), ("X-CSRF-Token", signed_in.body["csrf"].as_str().unwrap())];
    let deny = json!({"rules": [{"tool": "echo", "decision": "deny"}], "version": 0});
    assert_eq!(a.request("PUT", "/api/policy", Some(&deny), &page).status, 200);
    assert_eq!(call(&b).body["error"]["code"], "FORBIDDEN", "{:?}", call(&b));
    a.admin(&["tool", "disable", "wait_call", "--all-tenants"]);
    let wait = json!({"input": {"callId": "tc_00000000000000000000000000000000", "timeoutMs": 1}});
    assert_eq!(b.post("/api/tools/wait_call/calls", &wait, Some(&key)).status, 404);
}
