//! Sessions, runs and streams of `haft serve`, and when somebody may listen no longer.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod http_client;

use std::time::{Duration, Instant};

use http_client::{
    Answer, Gateway,
    event_stream::{EventReader, StreamFrame},
    person::Person,
};
use serde_json::{Value, json};

/// How soon a stream ends after it may not go on: a second, and what a busy machine adds.
const SOON: Duration = Duration::from_secs(4);

/// A tenant with a tool that gives back what it is told.
fn with_echo() -> Gateway {
    let served = Gateway::start();
    served.admin(&["tenant", "add", "acme"]);
    let writer = served.key("writer", "acme", "tools:write");
    let schema = json!({"type": "object", "properties": {"q": {}}});
    let echo = json!({"slug": "echo", "description": "Repeats.", "inputSchema": schema, "executionType": "internal"});
    assert_eq!(served.post("/api/tools", &echo, Some(&writer)).status, 201);
    served
}

#[expect(clippy::needless_pass_by_value, reason = "what is written in its place reads best")]
fn echo(served: &Gateway, key: &str, more: Value) -> Answer {
    let mut body = json!({"input": {"q": "hello"}});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    served.post("/api/tools/echo/calls", &body, Some(key))
}

fn id(answer: &Answer) -> &str {
    answer.body["tool_call_id"].as_str().unwrap_or_else(|| panic!("{answer:?}"))
}

fn names(heard: &[StreamFrame]) -> Vec<&str> {
    heard.iter().filter_map(|frame| frame.event.as_deref()).collect()
}

#[test]
fn calls_belong_to_sessions_that_exist() {
    let served = with_echo();
    let (key, own) = (served.key("k", "acme", "tools:execute,events:read"), served.key("o", "acme", "tools:execute"));
    let made = served.post("/api/sessions", &json!({"title": "Work"}), Some(&key));
    assert_eq!((made.status, &made.body["title"], &made.body["status"]), (201, &json!("Work"), &json!("idle")));
    let session = made.body["id"].as_str().unwrap();
    let call = echo(&served, &key, json!({"session": session}));
    assert_eq!((call.status, &call.body["status"]), (200, &json!("success")), "{call:?}");
    echo(&served, &key, json!({}));
    let shown = served.get(&format!("/api/sessions/{session}"), Some(&key)).body;
    assert_eq!(shown["calls"], json!({"total": 1, "waiting": 0, "running": 0}), "{shown}");
    assert_eq!(shown["createdBy"]["name"], "k");
    let listed = served.get(&format!("/api/calls?session={session}"), Some(&key)).body;
    assert_eq!((listed["items"].as_array().unwrap().len(), &listed["items"][0]["callId"]), (1, &json!(id(&call))));
    let unknown = echo(&served, &key, json!({"session": "se_none"}));
    let others = echo(&served, &own, json!({"session": session}));
    assert_eq!((unknown.status, others.status, &others.body), (404, 404, &unknown.body), "it is not theirs to see");
    assert_eq!(served.get(&format!("/api/sessions/{session}"), Some(&own)).status, 404);
    assert_eq!(served.get(&format!("/api/sessions/{session}/events"), Some(&own)).status, 404);
    assert_eq!(served.get("/api/sessions", Some(&own)).body["items"], json!([]));
    let mine = served.post("/api/sessions", &json!({}), Some(&own)).body;
    assert_eq!(served.get("/api/sessions", Some(&own)).body["items"][0]["id"], mine["id"]);
    let both = served.get("/api/sessions?limit=1", Some(&key)).body;
    assert_eq!((&both["items"][0]["id"], &both["next"]), (&mine["id"], &mine["id"]), "newest first");
    let rest = served.get(&format!("/api/sessions?after={}", both["next"].as_str().unwrap()), Some(&key)).body;
    assert_eq!(rest["items"][0]["id"], session);
    served.admin(&["tenant", "add", "bolt"]);
    let stranger = served.key("s", "bolt", "tools:execute,events:read");
    assert_eq!(served.get(&format!("/api/sessions/{session}"), Some(&stranger)).status, 404);
    assert_eq!(served.get(&format!("/api/calls?session={session}"), Some(&stranger)).body["items"], json!([]));
}

#[test]
fn a_session_and_a_run_are_heard_by_those_who_may() {
    let served = with_echo();
    let (all, own) =
        (served.key("all", "acme", "tools:execute,events:read"), served.key("own", "acme", "tools:execute"));
    let session = served.post("/api/sessions", &json!({}), Some(&own)).body["id"].as_str().unwrap().to_owned();
    let path = format!("/api/sessions/{session}/events");
    let (mut to_all, mut to_own) =
        (EventReader::by_key(&served, &path, &all), EventReader::by_key(&served, &path, &own));
    let theirs = echo(&served, &all, json!({"session": session, "run": "r1"}));
    let mine = echo(&served, &own, json!({"session": session, "run": "r1"}));
    echo(&served, &own, json!({}));
    let calls = |heard: &[StreamFrame]| {
        let mut calls: Vec<String> =
            heard.iter().map(|frame| frame.data["toolCallId"].as_str().unwrap().to_owned()).collect();
        calls.dedup();
        calls
    };
    let mut heard = to_all.until("tool.completed");
    heard.extend(to_all.until("tool.completed"));
    assert_eq!(calls(&heard), [id(&theirs), id(&mine)]);
    let heard = to_own.until("tool.completed");
    assert_eq!(calls(&heard), [id(&mine)], "what others do in a session is theirs");
    assert_eq!(names(&heard)[0], "tool.call");
    assert_eq!(heard[0].data["sessionId"], json!(session));
    let mut run = EventReader::by_key(&served, "/api/runs/r1/events", &own);
    assert_eq!(calls(&run.until("tool.completed")), [id(&mine)], "a run is told from its beginning");
    let alone = echo(&served, &own, json!({}));
    let mut call = EventReader::by_key(&served, &format!("/api/runs/{}/events", id(&alone)), &own);
    assert_eq!(calls(&call.until("tool.completed")), [id(&alone)], "a call without a run is one of its own");
    let mut call = EventReader::by_key(&served, &format!("/api/calls/{}/events", id(&alone)), &own);
    assert_eq!(names(&call.until("tool.completed"))[0], "tool.call");
    for unseen in [id(&theirs), id(&mine), &format!("tc_{}", "0".repeat(32))] {
        assert_eq!(served.get(&format!("/api/runs/{unseen}/events"), Some(&own)).status, 404, "{unseen} is no run");
    }
    assert_eq!(served.get("/api/events", Some(&own)).status, 403);
}

#[test]
fn streams_are_narrowed_and_end_when_they_are_told_to() {
    let served = with_echo();
    let key = served.key("k", "acme", "tools:execute,events:read");
    let mut narrow = EventReader::by_key(&served, "/api/events?spaces=s1,s2&types=tool.c*", &key);
    let mut agents = EventReader::by_key(&served, "/api/events?agents=a1&maxAge=1", &key);
    echo(&served, &key, json!({"space": "s3"}));
    let wanted = echo(&served, &key, json!({"space": "s2"}));
    let heard = narrow.until("tool.completed");
    assert_eq!(names(&heard), ["tool.call", "tool.completed"]);
    assert!(heard.iter().all(|frame| frame.data["toolCallId"] == json!(id(&wanted))), "{heard:?}");
    let last = agents.frame().unwrap();
    assert_eq!((last.event, last.retry.as_deref(), last.comment.as_deref()), (None, Some("1000"), Some("maxAge")));
    assert_eq!(agents.frame(), None, "nothing comes behind it");
    for wrong in ["maxAge=0", "maxAge=90000", "maxAge=x", "profile=x"] {
        assert_eq!(served.get(&format!("/api/events?{wrong}"), Some(&key)).status, 400, "{wrong}");
    }
    // Whoever comes back with the last number misses nothing.
    let number = heard.last().unwrap().id.clone().unwrap();
    let next = echo(&served, &key, json!({}));
    let bearer = format!("Bearer {key}");
    let headers = [("Authorization", bearer.as_str()), ("Last-Event-ID", number.as_str())];
    let mut resumed = EventReader::open(&served, "/api/events", &headers);
    assert_eq!(resumed.until("tool.completed").last().unwrap().data["toolCallId"], json!(id(&next)));
}

/// Opens a stream, does something that takes the right to it away, and sees it end.
fn ends_after(served: &Gateway, mut stream: EventReader, what: &str, takes_away: impl FnOnce()) {
    assert!(stream.head.contains(" 200 "), "{}", stream.head);
    takes_away();
    let begun = Instant::now();
    while stream.frame().is_some() {}
    assert!(begun.elapsed() < SOON, "{what}: the stream went on for {:?}", begun.elapsed());
    assert_eq!(served.get("/healthz", None).status, 200);
}

#[test]
fn a_stream_ends_with_the_right_to_hear_it() {
    let served = with_echo();
    let eve = Person::added(&served, "eve@example.org", "acme", "owner");
    let bob = Person::added(&served, "bob@example.org", "acme", "member");
    let key_of = |person: &Person<'_>| {
        let made = person.post("/api/keys", json!({"name": "k", "scopes": ["tools:execute", "events:read"]})).body;
        (made["id"].as_str().unwrap().to_owned(), made["key"].as_str().unwrap().to_owned())
    };
    let (removed, key) = key_of(&bob);
    let listening = EventReader::by_key(&served, "/api/events", &key);
    ends_after(&served, listening, "the key is removed", || {
        assert_eq!(bob.ask("DELETE", &format!("/api/keys/{removed}"), None).status, 200);
    });
    let (_, key) = key_of(&bob);
    let session = served.post("/api/sessions", &json!({}), Some(&key)).body["id"].as_str().unwrap().to_owned();
    let by_key = EventReader::by_key(&served, &format!("/api/sessions/{session}/events"), &key);
    let by_cookie = EventReader::open(&served, "/api/events", &[("Cookie", &bob.cookie)]);
    let other = EventReader::open(&served, "/api/events", &[("Cookie", &eve.cookie)]);
    let path = format!("/api/people/{}", bob.id);
    ends_after(&served, by_cookie, "their role has changed", || {
        assert_eq!(eve.ask("PATCH", &path, Some(json!({"role": "viewer"}))).status, 200);
    });
    ends_after(&served, by_key, "whoever made the key has left", || {
        assert_eq!(eve.ask("DELETE", &path, None).status, 200);
    });
    // A command of the operator, in another process, counts as well.
    let made = served.admin(&["key", "add", "o", "--tenant", "acme", "--scopes", "events:read"]);
    let listening = EventReader::by_key(&served, "/api/events", made["key"].as_str().unwrap());
    ends_after(&served, listening, "the operator removed the key", || {
        served.admin(&["key", "remove", made["id"].as_str().unwrap(), "--tenant", "acme"]);
    });
    let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(2);
    let body = json!({"name": "short", "scopes": ["events:read"], "expiresAt": soon.to_string()});
    let short = eve.post("/api/keys", body).body["key"].as_str().unwrap().to_owned();
    let listening = EventReader::by_key(&served, "/api/events", &short);
    ends_after(&served, listening, "the key has ended", || {});
    ends_after(&served, other, "they have signed out", || {
        assert_eq!(eve.post("/api/sign-out", json!({})).status, 200);
    });
}

#[test]
fn a_result_of_somebody_else_is_referred_to_by_those_who_may_see_it() {
    let served = with_echo();
    let (one, other, all) = (
        served.key("one", "acme", "tools:execute"),
        served.key("other", "acme", "tools:execute"),
        served.key("all", "acme", "tools:execute,events:read"),
    );
    let given = echo(&served, &one, json!({"input": {"q": {"rows": [1, 2, 3]}}}));
    let reference = json!({"$from": format!("haft://result/{}#/args/q/rows", id(&given))});
    let handed_on = |key: &str| echo(&served, key, json!({"input": {"q": [reference]}}));
    for key in [&one, &all] {
        let answer = handed_on(key);
        assert_eq!(answer.body["result"]["structured"]["args"]["q"], json!([[1, 2, 3]]), "{answer:?}");
        let shown = served.get(&format!("/api/calls/{}", id(&answer)), Some(key)).body;
        assert_eq!(shown["input"]["q"], json!([reference]), "the journal keeps what was sent");
    }
    let nobodys = format!("tc_{}", "0".repeat(32));
    let unknown = json!({"$from": format!("haft://result/{nobodys}#/args/q/rows")});
    let (forbidden, unknown) = (handed_on(&other), echo(&served, &other, json!({"input": {"q": [unknown]}})));
    let message = |answer: &Answer| answer.body["error"]["message"].as_str().unwrap().to_owned();
    assert_eq!((forbidden.status, &forbidden.body["error"]["code"]), (200, &json!("INVALID_ARGS")), "{forbidden:?}");
    assert_eq!(message(&forbidden).replace(id(&given), &nobodys), message(&unknown), "said in the same words");
    assert!(message(&forbidden).starts_with("`echo.q.0` refers to"), "{}", message(&forbidden));
    served.admin(&["tenant", "add", "bolt"]);
    let stranger = served.key("s", "bolt", "tools:execute,tools:write,events:read");
    let schema = json!({"type": "object", "properties": {"q": {}}});
    let tool = json!({"slug": "echo", "description": "R.", "inputSchema": schema, "executionType": "internal"});
    assert_eq!(served.post("/api/tools", &tool, Some(&stranger)).status, 201);
    assert_eq!(message(&handed_on(&stranger)), message(&forbidden), "another tenant's is as if it never was");
}

/// Whoever does the work needs the input; whoever only listens does not need what looks like a secret in it.
#[test]
fn who_does_the_work_gets_the_input_as_it_was_given() {
    let served = Gateway::start();
    served.admin(&["tenant", "add", "acme"]);
    let worker = served.key("worker", "acme", "tools:execute,tools:write,events:read");
    let watcher = served.key("watcher", "acme", "events:read");
    let tool = json!({"slug": "outside", "description": "For tests.", "executionType": "external", "isAsync": true,
        "inputSchema": {"type": "object"}});
    assert_eq!(served.post("/api/tools", &tool, Some(&worker)).status, 201);
    let [mut working, mut watching] = [&worker, &watcher].map(|key| EventReader::by_key(&served, "/api/events", key));
    let input = json!({"token": "sk-abcdefghijklmnopqrstuvwx1234567890", "n": {"m": 1}});
    served.post("/api/tools/outside/calls", &json!({"input": input}), Some(&worker));
    let heard = working.until("tool.pending").pop().unwrap().data;
    assert_eq!((&heard["args"], heard["submitToken"].is_string()), (&input, true), "{heard}");
    let heard = watching.until("tool.pending").pop().unwrap().data;
    assert_eq!((&heard["args"]["token"], &heard["submitToken"]), (&json!("[redacted]"), &Value::Null), "{heard}");
}
