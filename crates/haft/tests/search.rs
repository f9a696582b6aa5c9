//! A long search seen from outside: its time, its end by hand, its idle limit.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::{
    fs,
    time::{Duration, Instant},
};

use rustix::process::{Signal, kill_process};
use serde_json::json;
use support::{Fixture, Running, text, until};

/// Hours of text in the space of one file: every name is the same one.
fn endless() -> Fixture {
    let fixture = Fixture::new();
    fixture.put("first", "some text that fills a line, again and again\n".repeat(100_000));
    fs::create_dir(fixture.path("more")).unwrap();
    for name in 0..20_000 {
        fs::hard_link(fixture.path("first"), fixture.path(&format!("more/{name}"))).unwrap();
    }
    fixture
}

#[test]
fn a_search_gives_what_it_has_when_its_time_is_over() {
    let fixture = endless();
    let (code, outcome) = fixture.call("grep", &json!({ "pattern": "again$" }), &["--timeout", "1500"]);
    assert_eq!(code, 0, "{outcome}");
    let result = &outcome["result"];
    assert_eq!((&result["structured"]["truncated"], &result["metadata"]["timed_out"]), (&json!(true), &json!(true)));
    assert_eq!(result["structured"]["matches"].as_array().unwrap().len(), 100);
    assert!(text(&result["content"]).contains("time ran out"), "{outcome}");
}

#[test]
fn an_interrupt_ends_a_search_at_once() {
    let fixture = endless();
    let mut running = Running::start(fixture.haft(&["call", "grep", "--pattern", "(again|and)+ (x|y)", "--json"]));
    until("call at work", || (!fixture.json(&["log"]).as_array()?.is_empty()).then_some(()));
    let begin = Instant::now();
    kill_process(running.pid(), Signal::INT).unwrap();
    assert!(running.ends_within(Duration::from_secs(20)), "it goes on");
    let ran = running.finish();
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert!(begin.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_search_at_work_is_not_silent() {
    let fixture = endless();
    let mut command = fixture.haft(&["call", "grep", "--pattern", "(again|and)+ (x|y)", "--json", "--timeout", "4000"]);
    command.env("HAFT_LIMITS_IDLE", "2s");
    let ran = Running::start(command).finish();
    assert_eq!((ran.code, &ran.json()["result"]["metadata"]["timed_out"]), (Some(0), &json!(true)), "{ran:?}");
}
