//! Other secrets in the place of those that may be known: the master key, secrets of tenants, keys of programs.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that cannot go on fails, and starts the program itself"
)]

#[path = "stories/database.rs"]
mod database;
mod http_client;

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    process::{Command, Stdio},
    sync::mpsc::{Receiver, channel},
    time::Duration,
};

use http_client::{Answer, Gateway, haft, new_folder, until, with_stdin, within};
use serde_json::{Value, json};
use tempfile::TempDir;

const SCOPES: &str = "tools:read,tools:execute,tools:write,approvals:decide,events:read";
const OLD: &str = "the-old-master-key-of-these-tests-only";
const NEW: &str = "the-new-master-key-of-these-tests-only";

/// Somebody who is sent secrets, and tells which.
fn listener() -> (u16, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (told, heard) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            for line in lines.take_while(|line| !line.is_empty()) {
                if let Some(token) = line.to_ascii_lowercase().strip_prefix("x-token: ") {
                    told.send(token.to_owned()).unwrap();
                }
            }
            let _answered = (&stream).write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}");
        }
    });
    (port, heard)
}

/// Variables of a site: the master key where a server keeps the data, a file otherwise.
fn variables(folder: &TempDir) -> Vec<(String, String)> {
    let url = database::create(folder.path());
    let with_url = |url| vec![("HAFT_STORE_URL".to_owned(), url), ("HAFT_SECRET_KEY".to_owned(), OLD.to_owned())];
    url.map(with_url).unwrap_or_default()
}

fn start(folder: TempDir, variables: &[(String, String)]) -> Gateway {
    let variables: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    Gateway::start_in(folder, &variables)
}

fn uses(served: &Gateway, key: &str) -> Answer {
    served.post("/api/tools/tell/calls", &json!({"input": {}}), Some(key))
}

fn set(served: &Gateway, value: &str) {
    with_stdin(served.haft(&["secret", "set", "TOKEN", "--tenant", "acme"]), value);
}

fn secret(served: &Gateway) -> Value {
    let listed = served.haft(&["secret", "list", "--tenant", "acme", "--json"]).output().unwrap();
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    listed["items"][0].clone()
}

/// A tenant with a tool that sends a secret.
fn with_tool(served: &Gateway, port: u16) -> String {
    served.admin(&["tenant", "add", "acme"]);
    served.admin(&["tenant", "set", "acme", "--allow", &format!("127.0.0.1:{port}")]);
    set(served, "first-value-0001");
    let key = served.key("k", "acme", SCOPES);
    let tool = json!({
        "slug": "tell", "description": "d", "inputSchema": {"type": "object"}, "executionType": "gateway",
        "execution": {"url": format!("http://127.0.0.1:{port}/"), "method": "GET", "headers": {"X-Token": "{{secret:TOKEN}}"}},
    });
    let saved = served.post("/api/tools", &tool, Some(&key));
    assert_eq!(saved.status, 201, "{saved:?}");
    key
}

#[test]
fn a_secret_is_replaced_and_says_who_uses_it() {
    let (port, heard) = listener();
    let folder = new_folder("");
    let variables = variables(&folder);
    let served = start(folder, &variables);
    let key = with_tool(&served, port);
    let first = secret(&served);
    assert_eq!((&first["usedBy"], first.get("lastUsedAt")), (&json!(["tell"]), None), "{first}");
    assert_eq!(uses(&served, &key).body["status"], "success");
    assert_eq!(heard.recv_timeout(Duration::from_secs(10)).unwrap(), "first-value-0001");
    let used = until(|| Some(secret(&served)).filter(|secret| secret.get("lastUsedAt").is_some()));
    assert_eq!(used["setAt"], first["setAt"]);
    set(&served, "second-value-0002");
    assert_eq!(uses(&served, &key).body["status"], "success");
    assert_eq!(heard.recv_timeout(Duration::from_secs(10)).unwrap(), "second-value-0002");
    let again = secret(&served);
    assert!(again["setAt"].as_str() > first["setAt"].as_str() && again["hosts"] == json!(["127.0.0.1"]), "{again}");
}

#[test]
fn another_master_key_opens_everything_and_the_old_one_nothing() {
    let (port, heard) = listener();
    let folder = new_folder("");
    let variables = variables(&folder);
    let by_variable = !variables.is_empty();
    let mut served = start(folder, &variables);
    let key = with_tool(&served, port);
    let mut rotate = served.haft(&["admin", "master-key", "rotate", "--json"]);
    let refused = rotate.env("HAFT_SECRET_KEY_NEW", NEW).output().unwrap();
    assert!(String::from_utf8_lossy(&refused.stdout).contains("end every server first"), "{refused:?}");
    served.terminate();
    served.ended();

    let mut rotate = served.haft(&["admin", "master-key", "rotate", "--json"]);
    if by_variable {
        let refused = rotate.output().unwrap();
        assert!(String::from_utf8_lossy(&refused.stdout).contains("HAFT_SECRET_KEY_NEW"), "{refused:?}");
        rotate.env("HAFT_SECRET_KEY_NEW", NEW);
    }
    let before = fs::read(served.data().join("secret.key")).ok();
    let done = rotate.output().unwrap();
    assert!(done.status.success(), "{done:?}");
    let done: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(done["resealed"], 1, "{done}");
    if by_variable {
        // A node with the old key does not start, and a second rotation finds that all is done.
        let mut old = served.haft(&["serve", "--listen", "127.0.0.1:0"]);
        let refused = old.stdout(Stdio::null()).output().unwrap();
        assert!(String::from_utf8_lossy(&refused.stderr).contains("another master key"), "{refused:?}");
        let again = served.haft(&["admin", "master-key", "rotate", "--json"]).env("HAFT_SECRET_KEY_NEW", NEW).output();
        assert_eq!(serde_json::from_slice::<Value>(&again.unwrap().stdout).unwrap()["resealed"], 0);
    } else {
        assert_ne!(fs::read(served.data().join("secret.key")).ok(), before);
    }
    let new = variables.iter().map(|(name, value)| (name.as_str(), if value == OLD { NEW } else { value.as_str() }));
    let served = served.start_again(&[], &new.collect::<Vec<_>>());
    assert_eq!(uses(&served, &key).body["status"], "success");
    assert_eq!(heard.recv_timeout(Duration::from_secs(10)).unwrap(), "first-value-0001");
}

#[test]
fn a_rotation_that_is_killed_leaves_one_key_that_works() {
    let folder = new_folder("");
    let mut add = haft(&folder, &["secret", "set", "TOKEN"]);
    let run = |command: &mut Command| command.stdout(Stdio::null()).output().unwrap();
    add.stderr(Stdio::null());
    with_stdin(add, "a-value-of-mine");
    for round in 0..12 {
        let mut child = haft(&folder, &["admin", "master-key", "rotate"]).stdout(Stdio::null()).spawn().unwrap();
        within(Duration::from_millis(1 << round.min(9)), || child.try_wait().unwrap());
        child.kill().ok();
        child.wait().unwrap();
        let listed = run(&mut haft(&folder, &["secret", "list"]));
        assert!(listed.status.success(), "round {round}: {}", String::from_utf8_lossy(&listed.stderr));
    }
    // The last key opens everything, or it could not be changed once more.
    let done = haft(&folder, &["admin", "master-key", "rotate", "--json"]).output().unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&done.stdout).unwrap()["resealed"], 1, "{done:?}");
}

#[test]
fn a_key_gets_another_secret_and_the_old_one_counts_no_longer_than_it_should() {
    let folder = new_folder("");
    let variables = variables(&folder);
    let served = start(folder, &variables);
    served.admin(&["tenant", "add", "acme"]);
    let made = served.admin(&["key", "add", "k", "--tenant", "acme", "--scopes", "tools:read"]);
    let (id, first) = (made["id"].as_str().unwrap(), made["key"].as_str().unwrap());
    let may = |key: &str| served.get("/api/tools", Some(key)).status;
    assert_eq!(may(first), 200);
    let second = served.admin(&["key", "rotate", id, "--tenant", "acme", "--grace", "24h"]);
    let second = second["key"].as_str().unwrap();
    assert_eq!((may(first), may(second)), (200, 200));
    let listed = served.admin(&["key", "list", "--tenant", "acme"]);
    assert!(listed["items"][0].get("oldSecretUntil").is_some() && listed["items"][0]["name"] == "k", "{listed}");
    let third = served.admin(&["key", "rotate", id, "--tenant", "acme"]);
    let third = third["key"].as_str().unwrap();
    assert_eq!((may(first), may(second), may(third)), (401, 401, 200));

    // A person does the same with their own, and with nobody else's.
    let link = served.admin(&["person", "add", "ann@example.org", "--tenant", "acme", "--role", "member"]);
    let signed_in = served.post("/api/sign-in", &json!({"link": link["signIn"]}), None);
    let cookie = signed_in.header("set-cookie").unwrap().split(';').next().unwrap();
    let page = [("Cookie", cookie), ("X-CSRF-Token", signed_in.body["csrf"].as_str().unwrap())];
    let ask = |path: &str, body: &Value| served.request("POST", path, Some(body), &page);
    let own = ask("/api/keys", &json!({"name": "mine", "scopes": ["tools:read"]})).body;
    let path = format!("/api/keys/{}/rotate", own["id"].as_str().unwrap());
    let rotated = ask(&path, &json!({"grace": "1h"}));
    assert_eq!(rotated.status, 200, "{rotated:?}");
    assert_eq!((may(own["key"].as_str().unwrap()), may(rotated.body["key"].as_str().unwrap())), (200, 200));
    for wrong in [json!({"grace": "soon"}), json!({"grace": "90d"}), json!({"graze": "1h"})] {
        assert_eq!(ask(&path, &wrong).status, 400, "{wrong}");
    }
    assert_eq!(ask(&format!("/api/keys/{id}/rotate"), &json!({})).status, 404);
}
