//! Time limits, cancelling, vanished callers, faults of tools, long results.

use std::{future::pending, sync::Arc, time::Duration};

use haft_runtime::{
    AutoApprove, CallEvent, Described, Effect, End, ErrorCode, Journal, Output, Prepared, Ran, Stream, Tool, ToolCtx,
    ToolError, ToolFacts, typed,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::stage::{Stage, code, kinds, request, start_waiting, success};

/// Does what its input says, so that the line around it can be watched.
struct Odd;

/// A tool for tests that does what it is told, however odd.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// What to do.
    what: String,
}

#[derive(Serialize, JsonSchema)]
struct Said {
    /// What came out.
    said: String,
}

impl Output for Said {
    fn text(&self) -> String {
        self.said.clone()
    }
}

impl Tool for Odd {
    type Input = Input;
    type Output = Said;
    const FACTS: ToolFacts =
        ToolFacts { timeout: Duration::from_millis(300), ..ToolFacts::new("odd", "test", Effect::Write) };

    fn effect(&self, input: &Input) -> Effect {
        if input.what == "act for ever" { Effect::Write } else { Effect::Read }
    }

    async fn prepare(&self, _ctx: &ToolCtx, input: &Input) -> Result<Prepared<Said>, ToolError> {
        if input.what == "panic in prepare" {
            panic!("odd");
        }
        Ok(Prepared::Plain(Described::showing(&input.what)))
    }

    async fn run(&self, ctx: &ToolCtx, input: Input) -> Result<Ran<Said>, ToolError> {
        match input.what.as_str() {
            "sleep for ever" | "act for ever" => {
                ctx.output(Stream::Stdout, "half ").await;
                ctx.output(Stream::Stdout, "done").await;
                pending().await
            }
            "be quiet" => {
                ctx.output(Stream::Text, "last words").await;
                pending().await
            }
            "count for ever" => {
                let mut tick = tokio::time::interval(Duration::from_millis(20));
                for number in 0.. {
                    tick.tick().await;
                    ctx.output(Stream::Stdout, format!("{number} ")).await;
                }
                pending().await
            }
            "panic" => panic!("odd"),
            "talk" => {
                for word in 0..1000 {
                    ctx.output(Stream::Stdout, format!("{word} ")).await;
                }
                Ok(Ran::plain(Said { said: "done".into() }))
            }
            "say very much" => Ok(Ran::plain(Said { said: "é".repeat(6 << 20) })),
            "say much" => Ok(Ran::plain(Said { said: "0123456789".repeat(10_000) })),
            other => Err(ToolError::new(ErrorCode::ExecutionError, other)),
        }
    }
}

async fn odd_house(stage: &Stage) -> haft::house::House {
    let house = stage.house().await;
    house.registry.register(typed(Odd)).unwrap();
    house
}

async fn odd(house: &haft::house::House, what: &str) -> haft_runtime::Outcome {
    let mut request = request(house, "odd", json!({"what": what}));
    request.auto_approve = AutoApprove::Everything;
    house.pipeline.call(request).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_absolute_limit_stops_a_call_and_keeps_what_it_said() {
    let stage = Stage::new();
    let house = odd_house(&stage).await;
    let outcome = odd(&house, "sleep for ever").await;
    assert_eq!(code(&outcome), "TIMEOUT");
    let error = outcome.end.error().unwrap();
    assert_eq!(error.message, "Tool timed out after 300ms");
    assert!(error.recoverable);
    assert_eq!(error.details["partialOutput"], "half done");
    let unknown = odd(&house, "act for ever").await;
    assert_eq!(code(&unknown), "OUTCOME_UNKNOWN", "what acts outside may have happened");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_idle_limit_counts_from_the_last_words() {
    let mut stage = Stage::new();
    stage.settings.idle = Some(Duration::from_millis(50));
    let house = odd_house(&stage).await;
    let outcome = odd(&house, "be quiet").await;
    assert_eq!(code(&outcome), "TIMEOUT");
    assert!(outcome.end.error().unwrap().message.contains("no output for 50ms"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_s_own_limit_is_never_above_the_house_s() {
    let mut stage = Stage::new();
    stage.settings.longest_work = Duration::from_millis(40);
    let house = odd_house(&stage).await;
    let mut request = request(&house, "odd", json!({"what": "sleep for ever"}));
    request.timeout = Some(Duration::from_secs(3600));
    let outcome = house.pipeline.call(request).await;
    assert_eq!(outcome.end.error().unwrap().message, "Tool timed out after 40ms");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_panics_fails_alone() {
    let stage = Stage::new();
    let house = odd_house(&stage).await;
    for what in ["panic", "panic in prepare"] {
        let outcome = odd(&house, what).await;
        assert_eq!(code(&outcome), "INTERNAL");
    }
    success(&odd(&house, "talk").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn output_arrives_in_order_and_is_in_the_journal() {
    let stage = Stage::new();
    let house = odd_house(&stage).await;
    let heard = Arc::new(std::sync::Mutex::new(String::new()));
    let mut request = request(&house, "odd", json!({"what": "talk"}));
    let ear = heard.clone();
    request.listener = Some(Arc::new(move |event| {
        if let CallEvent::OutputAppended { chunk, offset, .. } = event {
            let mut heard = ear.lock().unwrap();
            assert_eq!(*offset, heard.len() as u64);
            heard.push_str(chunk);
        }
    }));
    let outcome = house.pipeline.call(request).await;
    let all: String = (0..1000).map(|word| format!("{word} ")).collect();
    assert_eq!(*heard.lock().unwrap(), all);
    house.close().await.unwrap();
    let house = stage.house().await;
    let events = house.store.events(&house.scope, &outcome.tool_call_id).await.unwrap();
    let kept: String = events
        .iter()
        .filter_map(|(_, _, event)| match event {
            CallEvent::OutputAppended { chunk, .. } => Some(chunk.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(kept, all);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_result_is_cut_and_can_be_read_on() {
    let stage = Stage::new();
    let house = odd_house(&stage).await;
    let outcome = odd(&house, "say much").await;
    let result = success(&outcome);
    assert_eq!(result.metadata["truncated"], true);
    assert!(result.content.chars().count() < 31_000 && result.content.contains("bytes omitted"));
    let mut read = String::new();
    let mut offset = Some(0);
    while let Some(at) = offset {
        let input = json!({"callId": outcome.tool_call_id, "offset": at, "limit": 30_000});
        let part = house.pipeline.call(request(&house, "result_query", input)).await;
        let part = &success(&part).structured;
        read.push_str(part["content"].as_str().unwrap());
        offset = part["nextOffset"].as_u64();
    }
    assert_eq!(read, "0123456789".repeat(10_000));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_process_sees_what_a_call_says_while_it_runs() {
    let mut stage = Stage::new();
    stage.settings.longest_work = Duration::from_secs(60);
    let (house, other) = (odd_house(&stage).await, stage.house().await);
    let mut request = request(&house, "odd", json!({"what": "count for ever"}));
    request.timeout = Some(Duration::from_secs(60));
    let id = request.id.clone();
    let running = tokio::spawn(house.pipeline.call(request));
    let mut heard = other.store.listen(&other.scope, haft_store::EventsOf::Call(id.clone()), Some(0)).await.unwrap();
    let (mut said, begun) = (String::new(), std::time::Instant::now());
    // What is said a second after the beginning comes long after the call was first seen.
    while !said.contains(" 50 ") {
        let next = tokio::time::timeout(Duration::from_secs(20), heard.next()).await.unwrap().unwrap();
        if let haft_store::StreamItem::Event(event) = next
            && let CallEvent::OutputAppended { chunk, offset, .. } = &event.event
        {
            assert_eq!(*offset, said.len() as u64);
            said.push_str(chunk);
        }
    }
    assert!(!running.is_finished() && begun.elapsed() < Duration::from_secs(15));
    assert!(other.store.want_stop(&other.scope, &id).await.unwrap());
    assert_eq!(code(&running.await.unwrap()), "CANCELLED");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_call_can_be_stopped_from_another_process() {
    let mut stage = Stage::new();
    stage.settings.longest_work = Duration::from_secs(60);
    let (house, other) = (odd_house(&stage).await, stage.house().await);
    let mut request = request(&house, "odd", json!({"what": "sleep for ever"}));
    request.timeout = Some(Duration::from_secs(60));
    let id = request.id.clone();
    let running = tokio::spawn(house.pipeline.call(request));
    while Journal::find(&other.store, &other.scope, &id).await.unwrap().is_none() {
        tokio::task::yield_now().await;
    }
    assert!(other.store.want_stop(&other.scope, &id).await.unwrap());
    let outcome = running.await.unwrap();
    assert!(matches!(outcome.end, End::Cancelled { .. }), "{outcome:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_goes_away_cancels_its_call_and_the_journal_says_so() {
    let stage = Stage::new();
    let house = odd_house(&stage).await;
    let mut request = request(&house, "odd", json!({"what": "sleep for ever"}));
    request.timeout = Some(Duration::from_secs(60));
    let id = request.id.clone();
    let gone = tokio::time::timeout(Duration::from_millis(20), house.pipeline.call(request)).await;
    assert!(gone.is_err());
    house.close().await.unwrap();
    let house = stage.house().await;
    assert_eq!(kinds(&house, &id).await.last().map(String::as_str), Some("tool.cancelled"));
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_while_it_waits_closes_the_question() {
    let stage = Stage::new();
    let house = stage.house().await;
    let wish = request(&house, "write_file", json!({"path": "a", "content": "a\n"}));
    let cancel = wish.cancel.clone();
    let (id, waiting) = start_waiting(&house, wish).await;
    cancel.cancel();
    let outcome = waiting.await.unwrap();
    assert_eq!(code(&outcome), "CANCELLED");
    assert!(house.open_questions(&house.here).await.unwrap().is_empty());
    assert_eq!(stage.text("a"), None);
    assert_eq!(kinds(&house, &id).await.last().map(String::as_str), Some("tool.cancelled"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_huge_value_reaches_neither_the_answer_nor_the_row_but_can_be_read_on() {
    let stage = Stage::new();
    let house = odd_house(&stage).await;
    let outcome = odd(&house, "say very much").await;
    let result = success(&outcome);
    assert!(serde_json::to_string(&outcome).unwrap().len() < 400 << 10, "the answer is bounded");
    let kept = result.structured["said"].as_str().unwrap();
    assert!(kept.len() > 200 << 10 && kept.chars().all(|letter| letter == 'é'), "no notice inside the value");
    assert_eq!(result.metadata["cut"][0]["pointer"], "/said");
    let record = Journal::find(&house.store, &house.scope, &outcome.tool_call_id).await.unwrap().unwrap();
    assert_eq!(success(record.outcome.as_ref().unwrap()), result);
    // 10 MiB of it are kept, and the end of that is marked.
    for (offset, content, next) in [(0, 30_000, true), (5_242_870, 10, false), (6_000_000, 0, false)] {
        let input = json!({"callId": outcome.tool_call_id, "offset": offset, "limit": 30_000, "pointer": "/said"});
        let part = house.pipeline.call(request(&house, "result_query", input)).await;
        let part = &success(&part).structured;
        let read = part["content"].as_str().unwrap().chars().count();
        assert!(read.abs_diff(content) <= 16, "{offset}: {read}");
        assert_eq!((part["capped"].as_bool(), part["nextOffset"].is_u64()), (Some(true), next));
    }
}
