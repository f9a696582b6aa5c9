//! Who decides about what: approvers, several of them, never whoever asked, by whatever way they come.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod http_client;

use std::thread;

use http_client::{Answer, Gateway, person::Person};
use serde_json::{Value, json};

const SCOPES: &str = "tools:read,tools:execute,approvals:decide,events:read";

/// A tenant with a tool that writes, and rules about who lets it.
struct Office {
    served: Gateway,
    operator: String,
}

impl Office {
    fn with(rules: &Value) -> Self {
        let served = Gateway::start();
        served.admin(&["tenant", "add", "acme"]);
        let operator = served.key("operator", "acme", &format!("{SCOPES},tools:write"));
        let tool = json!({"slug": "deploy", "description": "For tests.", "inputSchema": {"type": "object"},
            "executionType": "internal", "effect": "write"});
        assert_eq!(served.post("/api/tools", &tool, Some(&operator)).status, 201);
        let office = Self { served, operator };
        office.set(rules);
        office
    }

    fn set(&self, rules: &Value) {
        let owner = self.person(&format!("olga{}", rules.to_string().len()), "owner");
        let before = owner.get("/api/approval-rules").body["version"].clone();
        let set = owner.ask("PUT", "/api/approval-rules", Some(json!({"rules": rules, "version": before})));
        assert_eq!(set.status, 200, "{set:?}");
    }

    fn person(&self, name: &str, role: &str) -> Person<'_> {
        Person::added(&self.served, &format!("{name}@acme.example"), "acme", role)
    }

    /// A key that somebody made for themselves.
    fn key_of(person: &Person<'_>) -> String {
        let scopes: Vec<&str> = SCOPES.split(',').collect();
        let made = person.post("/api/keys", json!({"name": "own", "scopes": scopes}));
        made.body["key"].as_str().unwrap_or_else(|| panic!("{made:?}")).to_owned()
    }

    fn by_key(&self, key: &str) -> String {
        let asked = self.served.post("/api/tools/deploy/calls", &json!({"input": {}, "wait": 0}), Some(key));
        id(&asked)
    }

    fn state(&self, call: &str) -> Value {
        self.served.get(&format!("/api/calls/{call}"), Some(&self.operator)).body["status"].clone()
    }
}

fn id(answer: &Answer) -> String {
    assert_eq!(answer.status, 202, "it is asked: {answer:?}");
    answer.body["tool_call_id"].as_str().unwrap().to_owned()
}

/// Every way by which somebody may say yes, with the same body.
fn ways(call: &str) -> Vec<(String, Value)> {
    vec![
        (format!("/api/approvals/{call}/approve"), json!({})),
        (format!("/api/approvals/{call}/approve"), json!({"input": {"other": 1}})),
        (format!("/api/calls/{call}/commit"), json!({})),
        ("/approve".to_owned(), json!({"tool_call_id": call})),
        ("/approve".to_owned(), json!({"tool_call_id": call, "modifiedArgs": {"other": 1}})),
    ]
}

#[test]
fn whoever_asked_does_not_answer_by_any_way() {
    let office = Office::with(&json!([{"tool": "deploy", "notTheAuthor": true}]));
    let served = &office.served;
    for role in ["owner", "admin", "member"] {
        let ann = office.person(&format!("ann-{role}"), role);
        let key = Office::key_of(&ann);
        // By a page, where it would be the own yes, and by a key.
        let by_page = id(&ann.post("/api/tools/deploy/calls", json!({"input": {}, "wait": 0})));
        for call in [by_page, office.by_key(&key)] {
            for (path, body) in ways(&call) {
                let page = ann.post(&path, body.clone());
                let other = served.post(&path, &body, Some(&key));
                for answer in [page, other] {
                    assert_eq!(answer.status, 403, "{role} {path} {body}: {answer:?}");
                    assert!(
                        answer.body["error"]["message"].as_str().unwrap().contains("approval rule 1"),
                        "{answer:?}"
                    );
                }
            }
            let digest = ann.get(&format!("/api/approvals/{call}")).body["digest"].clone();
            let several = json!({"ids": [call], "digest": digest, "answer": "approve"});
            let several = ann.post("/api/approvals/answer", several);
            assert_eq!(several.body["items"][0]["error"]["code"], "FORBIDDEN", "{several:?}");
            assert_eq!(office.state(&call), "pending");
            // They may take it back, and nobody else has to do anything.
            assert_eq!(ann.post(&format!("/api/calls/{call}/cancel"), json!({})).status, 200);
        }
        // A key that is gone hides nobody.
        let call = office.by_key(&key);
        let key_id = key.split('_').nth(1).unwrap();
        assert_eq!(ann.ask("DELETE", &format!("/api/keys/{key_id}"), None).status, 200);
        let hidden = ann.post(&format!("/api/approvals/{call}/approve"), json!({}));
        assert_eq!(hidden.status, 403, "{hidden:?}");
    }
    let bob = office.person("bob", "member");
    let call = office.by_key(&office.operator);
    let own = served.post(&format!("/api/approvals/{call}/approve"), &json!({}), Some(&office.operator));
    assert_eq!(own.status, 403, "a key of the operator stands for itself: {own:?}");
    let always = bob.post(&format!("/api/approvals/{call}/approve"), json!({"always": {"kind": "call"}}));
    assert_eq!(always.status, 400, "each time: {always:?}");
    let yes = bob.post(&format!("/api/approvals/{call}/approve"), json!({}));
    assert_eq!(
        (yes.status, &yes.body["answered"], &yes.body["outcome"]["status"]),
        (200, &json!(true), &json!("success"))
    );
    // A grant that the author gave beforehand changes nothing.
    let carl = office.person("carl", "admin");
    carl.post("/api/grants", json!({"tool": "deploy"}));
    id(&carl.post("/api/tools/deploy/calls", json!({"input": {}, "wait": 0})));
}

#[test]
fn several_have_to_agree_and_one_no_is_enough() {
    let rule =
        json!([{"tool": "deploy", "count": 2, "notTheAuthor": true, "approvers": {"roles": ["admin", "owner"]}}]);
    let office = Office::with(&rule);
    let (ann, bob, member) =
        (office.person("ann", "admin"), office.person("bob", "admin"), office.person("mia", "member"));
    let call = office.by_key(&office.operator);
    let path = format!("/api/approvals/{call}/approve");
    assert_eq!(member.post(&path, json!({})).status, 403, "she is not named");
    let first = ann.post(&path, json!({}));
    assert_eq!((&first.body["answered"], &first.body["needed"]), (&json!(false), &json!(1)), "{first:?}");
    let key = Office::key_of(&ann);
    let twice = office.served.post(&path, &json!({}), Some(&key));
    assert_eq!(twice.body["answered"], false, "the same person by a key: {twice:?}");
    let other = bob.post(&path, json!({"input": {"n": 1}}));
    assert_eq!(
        (&other.body["answered"], &other.body["needed"]),
        (&json!(false), &json!(1)),
        "to something else: {other:?}"
    );
    assert_eq!(office.state(&call), "pending");
    let second = bob.post(&path, json!({}));
    assert_eq!(
        (&second.body["answered"], &second.body["outcome"]["status"]),
        (&json!(true), &json!("success")),
        "{second:?}"
    );
    let agreed = ann.get(&format!("/api/approvals/{call}/agreements")).body;
    let people: Vec<&str> =
        agreed["items"].as_array().unwrap().iter().map(|one| one["person"].as_str().unwrap()).collect();
    let mut expected = [ann.id.as_str(), bob.id.as_str()];
    expected.sort_unstable();
    assert_eq!(people, expected, "{agreed}");
    assert_eq!((&agreed["items"][0]["rulesVersion"], agreed["items"][0]["digest"].is_string()), (&json!(1), true));
    let call = office.by_key(&office.operator);
    ann.post(&format!("/api/approvals/{call}/approve"), json!({}));
    let no = bob.post(&format!("/api/approvals/{call}/reject"), json!({"message": "not today"}));
    assert_eq!((no.status, office.state(&call)), (200, json!("rejected")), "{no:?}");
}

#[test]
fn of_many_who_agree_at_once_the_call_runs_once() {
    let office = Office::with(&json!([{"tool": "deploy", "count": 3}]));
    let people: Vec<Person<'_>> = (0..6).map(|n| office.person(&format!("p{n}"), "member")).collect();
    for _ in 0..10 {
        let call = office.by_key(&office.operator);
        let path = format!("/api/approvals/{call}/approve");
        let answers: Vec<Answer> = thread::scope(|scope| {
            let said: Vec<_> = people.iter().map(|person| scope.spawn(|| person.post(&path, json!({})))).collect();
            said.into_iter().map(|said| said.join().unwrap()).collect()
        });
        let counted = answers.iter().filter(|answer| answer.body["answered"] == true).count();
        assert_eq!((counted, office.state(&call)), (1, json!("success")), "{answers:?}");
        assert!(answers.iter().all(|answer| [200, 409].contains(&answer.status)), "{answers:?}");
    }
}

#[test]
fn after_a_while_others_may_answer_too() {
    let rule = json!([{"tool": "deploy", "approvers": {"people": ["ann@acme.example"]},
        "escalateAfter": "1s", "escalateTo": {"roles": ["owner"]}}]);
    let office = Office::with(&json!([]));
    let ann = office.person("ann", "member");
    let owner = office.person("otto", "owner");
    office.set(&rule);
    let call = office.by_key(&office.operator);
    let path = format!("/api/approvals/{call}/approve");
    assert_eq!(owner.post(&path, json!({})).status, 403, "not yet");
    let yes = http_client::until(|| Some(owner.post(&path, json!({}))).filter(|answer| answer.status == 200));
    assert_eq!(yes.body["answered"], true, "{yes:?}");
    let call = office.by_key(&office.operator);
    assert_eq!(ann.post(&format!("/api/approvals/{call}/approve"), json!({})).status, 200);
}

#[test]
fn rules_are_saved_by_those_who_may_and_in_turn() {
    let office = Office::with(&json!([{"tool": "deploy", "count": 2}]));
    let (owner, member) = (office.person("otto", "owner"), office.person("mia", "member"));
    let put = |who: &Person<'_>, rules: Value, version: i64| {
        who.ask("PUT", "/api/approval-rules", Some(json!({"rules": rules, "version": version})))
    };
    assert_eq!(put(&member, json!([]), 1).status, 403);
    assert_eq!(member.get("/api/approval-rules").body["rules"][0]["count"], 2);
    let outrun = put(&owner, json!([]), 0);
    assert_eq!((outrun.status, &outrun.body["error"]["details"]["version"]), (409, &json!(1)), "{outrun:?}");
    for wrong in [
        json!([{"count": 0}]),
        json!([{"approvers": {"people": ["nobody@acme.example"]}}]),
        json!([{"approvers": {"roles": ["king"]}}]),
        json!([{"tool": "deploy", "unknown": 1}]),
        json!([{"tool": "deploy", "bounds": {"paths": 1}}]),
    ] {
        let refused = put(&owner, wrong.clone(), 1);
        assert_eq!(
            (refused.status, &refused.body["error"]["code"]),
            (400, &json!("INVALID_ARGS")),
            "{wrong}: {refused:?}"
        );
    }
    assert_eq!(put(&owner, json!([]), 1).status, 200);
    let free = office.served.post("/api/tools/deploy/calls", &json!({"input": {}}), Some(&office.operator));
    assert_eq!(free.body["status"], "success", "nothing asks any more: {free:?}");
}

#[test]
fn whoever_left_and_whatever_was_said_under_other_rules_counts_no_longer() {
    let rule = json!([{"tool": "deploy", "count": 2}]);
    let office = Office::with(&rule);
    let (owner, ann, bob, eve) = (
        office.person("otto", "owner"),
        office.person("ann", "member"),
        office.person("bob", "member"),
        office.person("eve", "member"),
    );
    let needed = |who: &Person<'_>, call: &str| {
        who.post(&format!("/api/approvals/{call}/approve"), json!({})).body["needed"].clone()
    };
    let demote = |who: &Person<'_>, role: &str| {
        let changed = owner.ask("PATCH", &format!("/api/people/{}", who.id), Some(json!({"role": role})));
        assert_eq!(changed.status, 200, "{changed:?}");
    };
    let call = office.by_key(&office.operator);
    assert_eq!(needed(&ann, &call), 1);
    demote(&ann, "viewer");
    assert_eq!(needed(&bob, &call), 1, "a viewer decides nothing any more");
    assert_eq!(owner.ask("DELETE", &format!("/api/people/{}", ann.id), None).status, 200);
    assert_eq!((needed(&bob, &call), office.state(&call)), (json!(1), json!("pending")));
    // By a key that is gone.
    let key = Office::key_of(&eve);
    let path = format!("/api/approvals/{call}/approve");
    let call_by_key = office.by_key(&office.operator);
    let by_key = office.served.post(&path.replace(&call, &call_by_key), &json!({}), Some(&key));
    assert_eq!(by_key.body["needed"], 1, "{by_key:?}");
    assert_eq!(eve.ask("DELETE", &format!("/api/keys/{}", key.split('_').nth(1).unwrap()), None).status, 200);
    assert_eq!(needed(&bob, &call_by_key), 1);
    // Under other rules everybody is asked anew.
    office.set(&json!([{"tool": "deploy", "count": 2, "notTheAuthor": true}]));
    assert_eq!(needed(&eve, &call), 1, "what bob said was said under the rules before");
    let last = bob.post(&path, json!({}));
    assert_eq!((&last.body["answered"], office.state(&call)), (&json!(true), json!("success")), "{last:?}");
}
