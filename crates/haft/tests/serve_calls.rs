//! Calls over HTTP: their changes, their results, answers with another input, and several at once.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod http_client;

use std::{fs, net::TcpListener, path::PathBuf};

use http_client::{Answer, Gateway};
use serde_json::{Value, json};

const EVERYTHING: &str = "tools:read,tools:execute,tools:write,approvals:decide,events:read";

/// A tenant with a folder of ours, and a key that may do everything there.
struct Shop {
    served: Gateway,
    folder: PathBuf,
    key: String,
}

impl Shop {
    fn open() -> Self {
        let served = Gateway::start();
        let folder = served.workspace();
        served.admin(&["tenant", "add", "acme"]);
        served.admin(&["workspace", "add", "shop", "--tenant", "acme", "--map", folder.to_str().unwrap()]);
        let key = served.key_in("full", "acme", EVERYTHING, "shop");
        Self { served, folder, key }
    }

    fn call(&self, tool: &str, input: &Value) -> Answer {
        self.post(&format!("/api/tools/{tool}/calls"), &json!({"input": input, "wait": 0}))
    }

    fn get(&self, path: &str) -> Answer {
        self.served.get(path, Some(&self.key))
    }

    fn post(&self, path: &str, body: &Value) -> Answer {
        self.served.post(path, body, Some(&self.key))
    }

    fn text(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.folder.join(name)).ok()
    }

    /// Each path that a call changed, and where it stands.
    fn states(&self, call: &str) -> Vec<(String, String)> {
        let shown = self.get(&format!("/api/calls/{call}/changes"));
        assert_eq!(shown.status, 200, "{shown:?}");
        let word = |change: &Value, name: &str| change[name].as_str().unwrap().to_owned();
        let changes = shown.body["changes"].as_array().unwrap().iter();
        let mut states: Vec<_> = changes.map(|change| (word(change, "path"), word(change, "state"))).collect();
        states.sort();
        states
    }
}

fn id(answer: &Answer) -> String {
    answer.body["tool_call_id"].as_str().unwrap_or_else(|| panic!("{answer:?}")).to_owned()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(path, state)| ((*path).to_owned(), (*state).to_owned())).collect()
}

#[test]
fn what_a_command_changed_is_applied_in_part_dropped_undone_and_redone() {
    let shop = Shop::open();
    fs::write(shop.folder.join("a"), "1\n").unwrap();
    fs::write(shop.folder.join("b"), "1\n").unwrap();
    let asked = shop.call("shell_exec", &json!({"command": "echo 2 >> a; rm b; echo said; exit 3"}));
    let call = id(&asked);
    let shown = shop.get(&format!("/api/calls/{call}/changes"));
    assert_eq!((&shown.body["status"], &shown.body["exitCode"]), (&json!("pending"), &json!(3)), "{shown:?}");
    assert_eq!(shown.body["output"], "said\n", "{shown:?}");
    assert_eq!(shop.states(&call), pairs(&[("a", "staged"), ("b", "staged")]));
    let slip = shop.post(&format!("/api/calls/{call}/commit"), &json!({"paths": ["c"]}));
    assert_eq!((slip.status, &slip.body["error"]["code"]), (400, &json!("INVALID_ARGS")), "{slip:?}");
    let some = shop.post(&format!("/api/calls/{call}/commit"), &json!({"paths": ["a"]}));
    assert_eq!((some.status, &some.body["status"]), (200, &json!("success")), "{some:?}");
    assert_eq!(shop.states(&call), pairs(&[("a", "committed"), ("b", "staged")]));
    let dropped = shop.post(&format!("/api/calls/{call}/discard"), &json!({}));
    assert_eq!((dropped.status, &dropped.body["status"]), (200, &json!("success")), "{dropped:?}");
    assert_eq!(shop.states(&call), pairs(&[("a", "committed"), ("b", "discarded")]));
    assert_eq!((shop.text("a").as_deref(), shop.text("b").as_deref()), (Some("1\n2\n"), Some("1\n")));
    for (turn, after) in [("undo", "1\n"), ("redo", "1\n2\n")] {
        let asked = shop.post(&format!("/api/calls/{call}/{turn}"), &json!({}));
        assert_eq!(asked.status, 202, "an undo is a call that is asked about: {asked:?}");
        let yes = shop.post(&format!("/api/approvals/{}/approve", id(&asked)), &json!({}));
        assert_eq!(yes.body["outcome"]["status"], "success", "{yes:?}");
        assert_eq!(shop.text("a").as_deref(), Some(after));
    }
    let again = shop.post(&format!("/api/calls/{call}/redo"), &json!({}));
    assert_eq!((again.status, &again.body["error"]["code"]), (409, &json!("CONFLICT")), "{again:?}");
}

#[test]
fn another_input_is_looked_at_and_then_is_the_yes() {
    let shop = Shop::open();
    let call = id(&shop.call("write_file", &json!({"path": "old", "content": "old\n"})));
    let input = json!({"input": {"path": "new", "content": "new\n"}});
    let preview = shop.post(&format!("/api/approvals/{call}/preview"), &input);
    assert_eq!(preview.body["changes"][0]["path"], "new", "{preview:?}");
    let slip = shop.post(&format!("/api/approvals/{call}/preview"), &json!({"input": {"path": 5}}));
    assert_eq!(slip.status, 400, "{slip:?}");
    assert_eq!((shop.text("old"), shop.text("new")), (None, None), "looking changes nothing");
    let yes = shop.post(&format!("/api/approvals/{call}/approve"), &input);
    assert_eq!(yes.body["outcome"]["status"], "success", "{yes:?}");
    assert_eq!((shop.text("old"), shop.text("new").as_deref()), (None, Some("new\n")));
    let told = shop.get(&format!("/api/calls/{call}")).body;
    assert_eq!((&told["status"], &told["input"]["path"]), (&json!("success"), &json!("old")), "{told}");
    assert_eq!(told["continuedAs"], told["outcome"]["tool_call_id"], "{told}");
    assert_eq!(told["outcome"]["result"]["metadata"]["args_modified"], true, "{told}");
}

#[test]
fn what_waits_and_what_runs_is_cancelled() {
    let shop = Shop::open();
    let call = id(&shop.call("write_file", &json!({"path": "a", "content": "a"})));
    let cancelled = shop.post(&format!("/api/calls/{call}/cancel"), &json!({}));
    assert_eq!((cancelled.status, &cancelled.body["status"]), (200, &json!("cancelled")), "{cancelled:?}");
    let again = shop.post(&format!("/api/calls/{call}/cancel"), &json!({}));
    assert_eq!((again.status, &again.body["error"]["code"]), (409, &json!("CONFLICT")), "{again:?}");
    std::thread::scope(|scope| {
        let running = scope.spawn(|| shop.call("shell_exec", &json!({"command": "echo > here; sleep 100"})));
        let started = (0..600).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(50));
            let listed = shop.get("/api/calls?tool=shell_exec").body;
            listed["items"].as_array()?.first()?["callId"].as_str().map(str::to_owned)
        });
        let cancelled = shop.post(&format!("/api/calls/{}/cancel", started.unwrap()), &json!({}));
        assert_eq!(cancelled.body["status"], "cancelled", "{cancelled:?}");
        assert_eq!(running.join().unwrap().body["status"], "cancelled");
    });
    let own = shop.served.key_in("own", "acme", "tools:execute", "shop");
    let call = id(&shop.call("write_file", &json!({"path": "a", "content": "a"})));
    let others = shop.served.post(&format!("/api/calls/{call}/cancel"), &json!({}), Some(&own));
    assert_eq!(others.status, 404, "the calls of others are not there for who may see only the own: {others:?}");
}

#[test]
fn a_long_result_is_read_in_windows_and_only_by_those_who_may_see_it() {
    let shop = Shop::open();
    let long = "0123456789".repeat(5_000);
    fs::write(shop.folder.join("long"), &long).unwrap();
    let call = id(&shop.call("read_file", &json!({"path": "long", "encoding": "base64"})));
    let first = shop.get(&format!("/api/calls/{call}/output?pointer=/content&limit=30000"));
    assert_eq!((first.status, &first.body["nextOffset"]), (200, &json!(30_000)), "{:?}", first.body["total"]);
    let rest = shop.get(&format!("/api/calls/{call}/output?pointer=/content&limit=30000&offset=30000"));
    assert_eq!(rest.body.get("nextOffset").and_then(Value::as_u64).unwrap_or(60_000), 60_000);
    for wrong in ["limit=0", "limit=30001", "limit=x", "pointer=/nothing"] {
        let refused = shop.get(&format!("/api/calls/{call}/output?{wrong}"));
        assert_eq!((refused.status, &refused.body["error"]["code"]), (400, &json!("INVALID_ARGS")), "{wrong}");
    }
    let own = shop.served.key_in("own", "acme", "tools:execute", "shop");
    let body = json!({"input": {"callId": call}});
    let read = shop.served.post("/api/tools/result_query/calls", &body, Some(&own));
    assert_eq!(read.body["error"]["code"], "INVALID_ARGS", "a tool shows no more than a route: {read:?}");
    assert_eq!(shop.served.get(&format!("/api/calls/{call}/output"), Some(&own)).status, 404);
}

#[test]
fn a_batch_answers_in_order_and_a_refused_item_has_no_id() {
    let shop = Shop::open();
    fs::write(shop.folder.join("a"), "1\n").unwrap();
    let calls = json!({"calls": [
        {"tool": "read_file", "input": {"path": "a"}, "id": "first"},
        {"tool": "no_such_tool"},
        {"tool": "read_file", "input": {"path": 5}},
        {"tool": "write_file", "input": {"path": "b", "content": "b"}},
    ], "wait": 0});
    let answered = shop.post("/api/calls/batch", &calls);
    let items = answered.body["items"].as_array().unwrap_or_else(|| panic!("{answered:?}"));
    let words: Vec<_> = items.iter().map(|item| item["status"].as_str().unwrap()).collect();
    assert_eq!(words, ["success", "error", "error", "pending"], "{answered:?}");
    assert_eq!((&items[0]["id"], &items[1]["error"]["code"]), (&json!("first"), &json!("TOOL_NOT_FOUND")));
    assert!(items[1].get("tool_call_id").is_none() && items[2]["tool_call_id"].is_string(), "{items:?}");
    let many: Vec<Value> = (0..101).map(|_| json!({"tool": "read_file"})).collect();
    assert_eq!(shop.post("/api/calls/batch", &json!({"calls": many})).status, 400);
}

#[test]
fn tools_that_call_each_other_in_a_circle_come_to_an_end() {
    let relay = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = relay.local_addr().unwrap().port();
    let served = Gateway::start_with(&format!("[web]\nallow = [\"127.0.0.1:{port}\"]\nallowlist = [\"127.0.0.1\"]\n"));
    http_client::pass_on(relay, served.url.trim_start_matches("http://"));
    served.admin(&["tenant", "add", "acme"]);
    let key = served.key("full", "acme", EVERYTHING);
    let secret = served.haft(&["secret", "set", "KEY", "--tenant", "acme"]);
    http_client::with_stdin(secret, &key);
    let circle = json!({"slug": "circle", "description": "Calls itself.", "inputSchema": {"type": "object"},
        "executionType": "gateway", "effect": "read",
        "execution": {"url": format!("http://127.0.0.1:{port}/api/tools/circle/calls"), "method": "POST",
            "headers": {"Authorization": "Bearer {{secret:KEY}}"}}});
    assert_eq!(served.post("/api/tools", &circle, Some(&key)).status, 201);
    let ended = served.post("/api/tools/circle/calls", &json!({"input": {}}), Some(&key));
    assert_eq!(ended.status, 200, "{ended:?}");
    let calls = served.get("/api/calls?tool=circle", Some(&key)).body;
    assert_eq!(calls["items"].as_array().unwrap().len(), 6, "one, and the five that it led to: {calls}");
    let last = calls["items"][0]["callId"].as_str().unwrap();
    let last = served.get(&format!("/api/calls/{last}"), Some(&key)).body;
    assert_eq!(last["outcome"]["error"]["details"]["status"], 403, "{last}");
    assert_eq!(last["via"]["calls"].as_array().unwrap().len(), 5, "{last}");
}

#[test]
fn a_request_that_comes_twice_with_its_key_is_done_once() {
    let shop = Shop::open();
    let bearer = format!("Bearer {}", shop.key);
    let send = |path: &str, body: &Value, key: &str| {
        let headers = [("Authorization", bearer.as_str()), ("Idempotency-Key", key)];
        shop.served.request("POST", path, Some(body), &headers)
    };
    let id = |answer: &Answer| answer.body["tool_call_id"].as_str().unwrap().to_owned();
    let asked = shop.call("write_file", &json!({"path": "a.txt", "content": "a"}));
    let call = id(&asked);
    shop.post(&format!("/api/approvals/{call}/approve"), &json!({}));
    for (turn, is_there) in [("undo", false), ("redo", true)] {
        let path = format!("/api/calls/{call}/{turn}");
        let first = send(&path, &json!({}), turn);
        let waiting = id(&first);
        shop.post(&format!("/api/approvals/{waiting}/approve"), &json!({}));
        assert_eq!(shop.text("a.txt").is_some(), is_there, "{turn}: {first:?}");
        let again = send(&path, &json!({}), turn);
        assert_eq!((again.status, id(&again)), (200, waiting), "{turn}: {again:?}");
        assert_eq!(shop.text("a.txt").is_some(), is_there);
    }
    let batch = json!({"wait": 0, "calls": [
        {"tool": "write_file", "input": {"path": "b.txt", "content": "b"}}, {"tool": "nothing", "input": {}},
        {"tool": "read_file", "input": {"path": "a.txt"}}]});
    let [first, again] = [(); 2].map(|()| send("/api/calls/batch", &batch, "batch"));
    let ids = |answer: &Answer| {
        let items = answer.body["items"].as_array().unwrap();
        items.iter().map(|item| item["tool_call_id"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(ids(&first), ids(&again), "{first:?}, {again:?}");
    assert_eq!(first.body["items"][2]["result"], again.body["items"][2]["result"]);
    let other = json!({"wait": 0, "calls": [{"tool": "read_file", "input": {"path": "b.txt"}}]});
    assert_eq!(send("/api/calls/batch", &other, "batch").status, 409, "another request with the same key");
}

#[test]
fn a_preview_says_what_another_input_would_do() {
    let shop = Shop::open();
    let call = id(&shop.call("write_file", &json!({"path": "out/a.txt", "content": "a"})));
    let other = json!({"input": {"path": "b.txt", "content": "b"}});
    let preview = shop.post(&format!("/api/approvals/{call}/preview"), &other).body;
    assert_eq!(preview["reason"], "it would change `b.txt`", "{preview}");
}

#[test]
fn tools_are_listed_for_a_workspace_that_is_named() {
    let shop = Shop::open();
    let nowhere = shop.served.key("nowhere", "acme", EVERYTHING);
    let names = |path: &str| {
        let listed = shop.served.get(path, Some(&nowhere)).body;
        let items = listed["items"].as_array().unwrap_or_else(|| panic!("{listed}")).clone();
        items.iter().any(|tool| tool["name"] == "read_file")
    };
    assert!(!names("/api/tools?limit=200") && names("/api/tools?limit=200&workspace=shop"));
    assert_eq!(shop.served.get("/api/tools/read_file?workspace=shop", Some(&nowhere)).status, 200);
    assert_eq!(shop.served.get("/api/tools?workspace=nothing", Some(&nowhere)).status, 404);
}

/// Whoever comes too late is told what was answered, without what looks like a secret in it.
#[test]
fn a_secret_in_an_answer_is_not_told_to_whoever_comes_too_late() {
    let shop = Shop::open();
    let call = id(&shop.call("write_file", &json!({"path": "a.txt", "content": "a"})));
    let other = json!({"input": {"path": "a.txt", "content": "sk-abcdefghijklmnopqrstuvwx1234567890"}});
    let path = format!("/api/approvals/{call}/approve");
    assert_eq!(shop.post(&path, &other).status, 200);
    let late = shop.post(&path, &json!({}));
    assert_eq!((late.status, &late.body["decided"]["answer"]), (409, &json!("edit")), "{late:?}");
    assert!(!late.body.to_string().contains("sk-abcdef"), "{late:?}");
}
