//! What is kept, for whom, how long, and what goes when there is no room.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Cache, CacheKey, MOST_BYTES, MOST_ENTRIES};
use crate::{CallRequest, Caller, CallerId, CallerKind, Scope, Source, Stamp, TenantId, ToolOutput, WorkspaceId};

fn caller(tenant: &str, workspace: &str, name: &str) -> Caller {
    let scope = Scope::of_house(TenantId::parse(tenant).unwrap(), Some(WorkspaceId::new(workspace)));
    let id = CallerId { kind: CallerKind::Person, id: name.into() };
    Caller { id, ..Caller::owner(name, scope, Source::Cli) }
}

fn key_of(caller: Caller, input: Value) -> CacheKey {
    let mut spec = crate::policy::tests::spec(crate::Asks::ByEffect);
    spec.input_schema = json!({"type": "object", "properties": {
        "path": {"type": "string"}, "lineNumbers": {"type": "boolean", "default": true}}});
    CacheKey::of(&CallRequest::new(caller, "read_file", input), &spec)
}

fn key(path: &str) -> CacheKey {
    key_of(caller("t", "w", "ann"), json!({"path": path}))
}

fn output(text: impl Into<String>) -> ToolOutput {
    ToolOutput { content: text.into(), ..ToolOutput::default() }
}

fn stamp(text: &str) -> Stamp {
    Stamp(text.into())
}

#[test]
fn a_key_is_what_the_input_means() {
    let ann = || caller("t", "w", "ann");
    let same = key_of(ann(), json!({"path": "a", "lineNumbers": true}));
    assert_eq!(key_of(ann(), json!({"lineNumbers": true, "path": "a"})), same, "whatever the order");
    assert_eq!(key_of(ann(), json!({"path": "a"})), same, "left out or said");
    let nested = |x: Value| key_of(ann(), json!({"path": x}));
    assert_eq!(nested(json!([{"a": 1, "b": 2}])), nested(json!([{"b": 2, "a": 1}])));
    assert_ne!(nested(json!([1, 2])), nested(json!([2, 1])));
    assert_ne!(key_of(ann(), json!({"path": "a", "lineNumbers": false})), same);
    for other in [caller("u", "w", "ann"), caller("t", "x", "ann"), caller("t", "w", "bob")] {
        assert_ne!(key_of(other, json!({"path": "a"})), same, "nobody gets another's answer");
    }
    let renamed = Caller { name: "Ann".into(), ..ann() };
    assert_eq!(key_of(renamed, json!({"path": "a"})), same, "a name is only shown");
    let mut for_bob = ann();
    for_bob.via.on_behalf_of.push(caller("t", "w", "bob").who());
    assert_ne!(key_of(for_bob, json!({"path": "a"})), same, "what is read for somebody is theirs");
}

#[tokio::test(start_paused = true)]
async fn an_answer_holds_as_long_as_its_stamp_and_a_minute_at_the_most() {
    let cache = Cache::default();
    cache.keep(&key("a"), stamp("1"), &output("one"));
    assert_eq!(cache.find(&key("a"), &stamp("1")), Some(output("one")));
    assert_eq!(cache.find(&key("b"), &stamp("1")), None);
    tokio::time::advance(Duration::from_secs(59)).await;
    assert!(cache.find(&key("a"), &stamp("1")).is_some());
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(cache.find(&key("a"), &stamp("1")), None, "being used does not make it last");
    cache.keep(&key("a"), stamp("1"), &output("one"));
    assert_eq!(cache.find(&key("a"), &stamp("2")), None);
    assert_eq!(cache.find(&key("a"), &stamp("1")), None, "what was changed once is forgotten");
}

#[test]
fn the_least_recently_used_goes_first() {
    let cache = Cache::default();
    for at in 0..MOST_ENTRIES {
        cache.keep(&key(&at.to_string()), stamp("1"), &output("x"));
    }
    assert!(cache.find(&key("0"), &stamp("1")).is_some());
    cache.keep(&key("one more"), stamp("1"), &output("x"));
    assert!(cache.find(&key("0"), &stamp("1")).is_some(), "it was just used");
    assert!(cache.find(&key("1"), &stamp("1")).is_none());
    assert!(cache.find(&key("one more"), &stamp("1")).is_some());
}

#[test]
fn it_never_holds_more_than_it_may() {
    let cache = Cache::default();
    let large = output("x".repeat(MOST_BYTES / 10));
    for at in 0..50 {
        cache.keep(&key(&at.to_string()), stamp("1"), &large);
        let kept = cache.lock();
        let really: usize = kept.answers.values().map(|answer| answer.output.content.len()).sum();
        assert!(kept.bytes <= MOST_BYTES && really <= kept.bytes);
        assert_eq!(kept.answers.len(), kept.uses.len());
    }
    assert!(cache.find(&key("49"), &stamp("1")).is_some());
    cache.keep(&key("huge"), stamp("1"), &output("x".repeat(MOST_BYTES / 8 + 1)));
    assert!(cache.find(&key("huge"), &stamp("1")).is_none(), "one answer does not push out all others");
    assert!(cache.find(&key("49"), &stamp("1")).is_some());
}
