//! Servers that go wrong, each in its own way.

use std::time::{Duration, Instant};

use haft_runtime::{ErrorCode, ToolError};
use haft_tools::LanguageServers;
use serde_json::{Value, json};

use crate::{
    bench::{Bench, ctx, script},
    support::Fixture,
};

fn bench(mode: &str) -> Bench {
    with(mode, LanguageServers::default())
}

fn with(mode: &str, settings: LanguageServers) -> Bench {
    let bench = Bench::with(json!({ "mode": mode }), settings);
    bench.fixture.put("a.fake", "word");
    bench
}

async fn hover(bench: &Bench) -> Result<Value, ToolError> {
    bench.try_to("hover", json!({ "path": "a.fake", "line": 1, "col": 1 })).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_crashes_in_a_loop_is_left_alone_after_three_times() {
    let bench = bench("crashes");
    let began = Instant::now();
    let refused = hover(&bench).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::Unavailable);
    assert!(refused.message.contains("broke 3 times") && refused.message.contains("fake: I crash"), "{refused}");
    assert!(began.elapsed() > Duration::from_millis(1250), "it is not started again at once");
    let began = Instant::now();
    assert_eq!(hover(&bench).await.unwrap_err().code, ErrorCode::Unavailable);
    assert!(began.elapsed() < Duration::from_secs(1), "it is not started any more");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_crashed_once_answers_after_all_and_keeps_its_folder() {
    let bench = bench("crashes once");
    assert_eq!(hover(&bench).await.unwrap()["ready"], json!(true));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_breaks_the_conversation() {
    for (mode, expected) in [("garbled", "`hello there`"), ("no json", "no JSON"), ("huge", "64 MiB")] {
        let refused = hover(&bench(mode)).await.unwrap_err();
        assert_eq!(refused.code, ErrorCode::Unavailable);
        assert!(refused.message.contains(expected), "{mode}: {refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_answer_is_ended_and_the_next_call_has_a_new_one() {
    let settings = LanguageServers { timeout: Duration::from_secs(5), ..LanguageServers::default() };
    let bench = with("silent", settings.clone());
    let refused = hover(&bench).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::Timeout, "{refused}");
    assert!(
        refused.message.contains("did not answer within 5 s") && refused.message.contains("lsp.timeout"),
        "{refused}"
    );
    assert_eq!(bench.ask("symbols", json!({ "path": "a.fake" })).await["symbols"][0]["name"], json!("word"));
    let settings = LanguageServers { timeout: Duration::from_millis(500), ..settings };
    let refused = hover(&with("never begins", settings)).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::Timeout, "{refused}");
    assert!(refused.message.contains("did not answer within 2 s and was ended"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_cannot_begin_is_told_with_its_last_words() {
    let refused = hover(&bench("refuses to begin")).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::Unavailable);
    assert!(
        refused.message.contains("could not be started") && refused.message.contains("fake: cannot begin"),
        "{refused}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_server_is_passed_over_where_there_is_another() {
    let broken = |words: &str| format!("#!/bin/sh\necho '{words}' >&2\nexit 3\n");
    let works = format!("#!/bin/sh\nexec python3 {}/fake.py\n", script().display());
    let bench = Bench::programs(&[("pyright-langserver", broken("pyright: no node here")), ("pylsp", works)]);
    bench.fixture.put("a.py", "word");
    for _ in 0..4 {
        let found = bench.output(&ctx(), "symbols", json!({ "path": "a.py" })).await.unwrap();
        assert_eq!(found.structured["symbols"][0]["name"], json!("word"));
        let note = found.structured["note"].as_str().unwrap();
        assert!(note.starts_with("`pyright-langserver --stdio` "), "{note}");
        assert!(note.contains("pyright: no node here") && found.content.contains(note), "{note}");
        assert_eq!(found.metadata["server"]["passedOver"][0], json!(note));
    }
    let bench = Bench::programs(&[("pyright-langserver", broken("no node")), ("pylsp", broken("no module"))]);
    bench.fixture.put("a.py", "word");
    let refused = bench.try_to("symbols", json!({ "path": "a.py" })).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::Unavailable);
    assert!(refused.message.contains("no node") && refused.message.contains("no module"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_says_of_itself_is_not_believed() {
    let bench = bench("lies");
    let refused = hover(&bench).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::ExecutionError);
    assert!(refused.message.contains("is not text about it"), "{refused}");
    let refused = bench.try_to("definition", json!({ "path": "a.fake", "line": 1, "col": 1 })).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::ExecutionError);
    assert!(refused.message.contains("no such method (-32601)"), "{refused}");
    let refused = hover(&self::bench("cannot")).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::Unavailable);
    assert!(refused.message.contains("`fake` cannot tell"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_gets_answers_and_changes_nothing() {
    let bench = bench("asks");
    let state = bench.state("a.fake").await;
    let answers = &state["answers"];
    assert_eq!((&answers["q0"]["applied"], &answers["q1"]), (&json!(false), &json!([1])), "{state:#}");
    assert_eq!((&answers["q2"], &answers["q3"], &answers["q4"]["code"]), (&Value::Null, &Value::Null, &json!(-32601)));
    assert_eq!(bench.fixture.text("a.fake").as_deref(), Some("word"));
}

#[tokio::test(flavor = "multi_thread")]
async fn noise_on_the_standard_error_does_no_harm() {
    assert_eq!(hover(&bench("flood")).await.unwrap()["ready"], json!(true));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_server_is_for_is_told_with_the_lines_to_write() {
    let bench = bench("");
    bench.fixture.put("a.zig", "");
    let refused = bench.try_to("symbols", json!({ "path": "a.zig" })).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::Unavailable);
    assert!(
        refused.message.contains("`.zig` files") && refused.message.contains("extensions = [\"zig\"]"),
        "{refused}"
    );
    bench.fixture.put("b.fake", [0xff, 0xfe]);
    assert_eq!(bench.try_to("symbols", json!({ "path": "b.fake" })).await.unwrap_err().code, ErrorCode::BinaryFile);
}

#[test]
fn where_no_server_is_found_models_are_shown_no_tool_for_one() {
    let fixture = Fixture::new();
    fixture.put("a.rs", "fn main() {}");
    let bin = fixture.home.join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    let names = |flags: &[&str]| {
        let mut command = fixture.haft(&[&["tools", "--json"], flags].concat());
        let listed = command.env("PATH", &bin).output().unwrap();
        let listed: Vec<Value> = serde_json::from_slice(&listed.stdout).unwrap();
        listed.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let tools = ["definition", "diagnostics", "hover", "references", "symbols"].map(str::to_owned);
    assert!(tools.iter().all(|tool| !names(&[]).contains(tool)), "{:?}", names(&[]));
    assert!(tools.iter().all(|tool| names(&["--all"]).contains(tool)), "{:?}", names(&["--all"]));
    let mut command = fixture.haft(&["call", "symbols", "--path", "a.rs"]);
    let asked = command.env("PATH", &bin).output().unwrap();
    let said = String::from_utf8_lossy(&asked.stderr);
    assert!(said.contains("rustup component add rust-analyzer"), "{said}");
    std::fs::write(bin.join("rust-analyzer"), "").unwrap();
    assert!(tools.iter().all(|tool| names(&[]).contains(tool)), "{:?}", names(&[]));
}

#[test]
fn the_lines_to_write_go_into_the_file_that_is_read() {
    let fixture = Fixture::new();
    fixture.put("a.zig", "");
    let mut command = fixture.haft(&["call", "symbols", "--path", "a.zig"]);
    let asked = command.env("XDG_CONFIG_HOME", fixture.home.join("mine")).output().unwrap();
    let said = String::from_utf8_lossy(&asked.stderr);
    assert!(said.contains("name it in ~/mine/haft/haft.toml:"), "{said}");
}
