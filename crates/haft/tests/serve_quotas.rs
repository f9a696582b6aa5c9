//! How much a tenant may have and use: refused with what to do, exactly at the limit, also in a race.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod http_client;

use std::thread;

use http_client::{Answer, Gateway, person::Person};
use serde_json::{Value, json};

const SCOPES: &str = "tools:read,tools:execute,tools:write,approvals:decide,events:read";

fn with_acme(settings: &str, variables: &[(&str, &str)]) -> (Gateway, String) {
    let served = Gateway::start_among(settings, variables);
    served.admin(&["tenant", "add", "acme"]);
    let key = served.key("operator", "acme", SCOPES);
    for (slug, effect, policy) in [("look", "read", "auto"), ("deploy", "write", "always_ask")] {
        let tool = json!({"slug": slug, "description": "For tests.", "inputSchema": {"type": "object"},
            "executionType": "internal", "effect": effect, "permissionPolicy": policy});
        assert_eq!(served.post("/api/tools", &tool, Some(&key)).status, 201);
    }
    (served, key)
}

fn set(served: &Gateway, quota: &str) {
    served.admin(&["tenant", "set", "acme", "--quota", quota]);
}

fn used(served: &Gateway, key: &str, name: &str) -> Value {
    let all = served.get("/api/quotas", Some(key)).body;
    all["items"].as_array().unwrap().iter().find(|quota| quota["name"] == name).unwrap().clone()
}

fn code(answer: &Answer) -> (u16, &str) {
    (answer.status, answer.body["error"]["code"].as_str().unwrap_or_default())
}

#[test]
fn people_keys_and_tools_are_refused_above_the_quota_until_it_is_lifted() {
    let (served, key) = with_acme("", &[]);
    let eve = Person::added(&served, "eve@example.org", "acme", "owner");
    set(&served, "people=2,keys=2,tools=3");
    let adds = [
        (
            "/api/people",
            json!({"email": "ann@example.org", "role": "member"}),
            json!({"email": "bob@example.org", "role": "member"}),
            "people",
        ),
        (
            "/api/keys",
            json!({"name": "a", "scopes": ["tools:read"]}),
            json!({"name": "b", "scopes": ["tools:read"]}),
            "keys",
        ),
        ("/api/tools", tool("third"), tool("fourth"), "tools"),
    ];
    for (path, last, above, quota) in adds {
        assert_eq!(eve.post(path, last.clone()).status, 201, "the last one of {quota}");
        let refused = eve.post(path, above.clone());
        assert_eq!(code(&refused), (429, "QUOTA_REACHED"), "{refused:?}");
        assert_eq!(refused.body["error"]["details"]["quota"], quota);
        let full = used(&served, &key, quota);
        assert_eq!((full["used"].as_i64(), full["near"].as_bool()), (full["most"].as_i64(), Some(true)), "{full}");
        set(&served, &format!("{quota}="));
        assert_eq!(eve.post(path, above).status, 201, "{quota} was lifted");
    }
    set(&served, "people=1");
    let by_operator =
        served.haft(&["admin", "person", "add", "cy@example.org", "--tenant", "acme", "--json"]).output().unwrap();
    assert!(String::from_utf8_lossy(&by_operator.stdout).contains("QUOTA_REACHED"), "it holds for the operator too");
    // Whoever is there already is no more than before.
    served.admin(&["person", "add", "eve@example.org", "--tenant", "acme", "--role", "owner"]);
    assert_eq!(eve.ask("PATCH", "/api/tools/look", Some(json!({"description": "Other."}))).status, 200);
    let shown = served.haft(&["admin", "tenant", "show", "acme"]).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("quotas\n  people           3 of 1 (nearly used up)"), "{shown}");
    for wrong in ["people=0", "people=many", "poeple=3", "people"] {
        assert!(!served.haft(&["admin", "tenant", "set", "acme", "--quota", wrong]).output().unwrap().status.success());
    }
}

fn tool(slug: &str) -> Value {
    json!({"slug": slug, "description": "For tests.", "inputSchema": {"type": "object"}, "executionType": "internal"})
}

fn call(served: &Gateway, key: &str, name: &str) -> Answer {
    served.post(&format!("/api/tools/{name}/calls"), &json!({"input": {}, "wait": 0}), Some(key))
}

#[test]
fn calls_of_a_day_are_counted_once_each_and_never_above_the_quota() {
    let (served, key) = with_acme("", &[("HAFT_LOG", "warn")]);
    call(&served, &key, "look");
    set(&served, "calls_per_day=20");
    let asked = call(&served, &key, "deploy");
    assert_eq!(asked.status, 202, "{asked:?}");
    let id = asked.body["tool_call_id"].as_str().unwrap();
    assert_eq!(served.post(&format!("/api/approvals/{id}/approve"), &json!({}), Some(&key)).status, 200);
    assert_eq!(used(&served, &key, "calls_per_day")["used"], 1, "an answer carries the same call on");
    let answers: Vec<Answer> = thread::scope(|scope| {
        let calls: Vec<_> =
            (0..8).map(|_| scope.spawn(|| (0..5).map(|_| call(&served, &key, "look")).collect::<Vec<_>>())).collect();
        calls.into_iter().flat_map(|calls| calls.join().unwrap()).collect()
    });
    let done = answers.iter().filter(|answer| answer.status == 200 && answer.body["status"] == "success").count();
    assert_eq!(done, 19, "one was made before");
    let refused = answers.iter().find(|answer| answer.status == 429).unwrap();
    assert_eq!(code(refused), (429, "QUOTA_REACHED"));
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=24 * 3600).contains(&wait), "until the next day: {wait}");
    let batch = json!({"calls": [{"tool": "look", "input": {}}]});
    let batch = served.post("/api/calls/batch", &batch, Some(&key)).body;
    assert_eq!(batch["items"][0]["error"]["code"], "QUOTA_REACHED", "no other way either: {batch}");
    assert!(served.log().contains("a quota is nearly used up"), "{}", served.log());
    assert_eq!(used(&served, &key, "calls_per_day")["used"], 20);
    set(&served, "calls_per_day=30");
    http_client::until(|| (call(&served, &key, "look").status == 200).then_some(()));
}

#[test]
fn open_questions_and_media_have_their_quota_too() {
    let (served, key) = with_acme("", &[]);
    set(&served, "open_questions=2,media=1kB");
    let first = call(&served, &key, "deploy");
    assert_eq!((first.status, call(&served, &key, "deploy").status), (202, 202));
    let refused = call(&served, &key, "deploy");
    assert_eq!(
        (code(&refused), &refused.body["error"]["details"]["quota"]),
        ((429, "QUOTA_REACHED"), &json!("open_questions"))
    );
    let id = first.body["tool_call_id"].as_str().unwrap();
    assert_eq!(served.post(&format!("/api/approvals/{id}/reject"), &json!({}), Some(&key)).status, 200);
    assert_eq!(call(&served, &key, "deploy").status, 202, "one was answered");
    let eve = Person::added(&served, "eve@example.org", "acme", "owner");
    let upload = |text: &str| eve.post("/api/media?name=a", json!(text));
    assert_eq!(upload(&"x".repeat(998)).status, 201, "with its quotes it has a thousand bytes");
    let refused = upload("y");
    assert_eq!(code(&refused), (429, "QUOTA_REACHED"), "{refused:?}");
}
