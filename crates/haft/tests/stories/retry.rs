//! Passing trouble: what is tried again, how often, after how long, and what never is.
//!
//! The clock stands still but for the waits of the line itself, so nothing here takes time.

use haft::house::OwnerGuard;
use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::future::BoxFuture;
use haft::house::House;
use haft_runtime::{
    AutoApprove, CallEvent, CallId, CallRequest, ChangeList, Doors, Effect, ErrorCode, HouseWide, Isolation, Limits,
    OnePolicy, Outcome, Output, Pipeline, Policy, Ran, Recovered, Scope, Tool, ToolCtx, ToolError, ToolFacts, Turn,
    Workbench, typed,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::Instant;

use crate::stage::{Stage, code, kinds, request, success};

/// What is at the other end: answers as it was told to, and knows when it was asked.
#[derive(Clone, Default)]
struct Line(Arc<Mutex<(VecDeque<ToolError>, Vec<Instant>)>>);

impl Line {
    fn failing(errors: impl IntoIterator<Item = ToolError>) -> Self {
        Self(Arc::new(Mutex::new((errors.into_iter().collect(), Vec::new()))))
    }

    fn use_once(&self) -> Result<Said, ToolError> {
        let mut line = self.0.lock().unwrap();
        line.1.push(Instant::now());
        line.0.pop_front().map_or_else(|| Ok(Said { said: "done".into() }), Err)
    }

    fn uses(&self) -> usize {
        self.0.lock().unwrap().1.len()
    }

    /// The times between the attempts.
    fn waits(&self) -> Vec<u128> {
        self.0.lock().unwrap().1.windows(2).map(|pair| (pair[1] - pair[0]).as_millis()).collect()
    }
}

/// Uses the line.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Serialize, JsonSchema)]
struct Said {
    /// What came back.
    said: String,
}

impl Output for Said {
    fn text(&self) -> String {
        self.said.clone()
    }
}

macro_rules! transport {
    ($tool:ident, $name:literal, $worst:expr, $idempotent:literal) => {
        struct $tool(Line);

        impl Tool for $tool {
            type Input = Nothing;
            type Output = Said;
            const FACTS: ToolFacts = ToolFacts { idempotent: $idempotent, ..ToolFacts::new($name, "test", $worst) };

            async fn run(&self, _ctx: &ToolCtx, _input: Nothing) -> Result<Ran<Said>, ToolError> {
                self.0.use_once().map(Ran::plain)
            }
        }
    };
}
transport!(Fetch, "fetch", Effect::Read, false);
transport!(Put, "put", Effect::Write, true);
transport!(Post, "post", Effect::Write, false);

fn down() -> ToolError {
    ToolError::new(ErrorCode::Unavailable, "the line is down")
}

async fn house_with(stage: &Stage, line: &Line) -> House {
    let house = stage.house().await;
    for tool in [typed(Fetch(line.clone())), typed(Put(line.clone())), typed(Post(line.clone()))] {
        house.registry.register(tool).unwrap();
    }
    house
}

fn wish(house: &House, tool: &str) -> CallRequest {
    let mut wish = request(house, tool, json!({}));
    wish.auto_approve = AutoApprove::Everything;
    wish
}

/// One call while the clock stands still. The store has its own clock, so it runs again afterwards.
async fn call(house: &House, wish: CallRequest) -> Outcome {
    tokio::time::pause();
    let outcome = house.pipeline.call(wish).await;
    tokio::time::resume();
    outcome
}

async fn used(tool: &str, line: &Line) -> (Outcome, Vec<String>) {
    let stage = Stage::on_sqlite();
    let house = house_with(&stage, line).await;
    let outcome = call(&house, wish(&house, tool)).await;
    house.close().await.unwrap();
    let house = stage.house().await;
    let counted = house.store.tools_used(&house.scope, &house.here, None).await.unwrap();
    assert_eq!((counted[0].tool.as_str(), counted[0].calls), (tool, 1), "one call, however often it was tried");
    let record = haft_runtime::Journal::find(&house.store, &house.scope, &outcome.tool_call_id).await.unwrap().unwrap();
    assert_eq!(record.outcome.unwrap().attempts, outcome.attempts);
    let kinds = kinds(&house, &outcome.tool_call_id).await;
    (outcome, kinds)
}

#[tokio::test]
async fn a_read_is_tried_again_after_growing_delays() {
    let line = Line::failing([down(), down(), down()]);
    let (outcome, kinds) = used("fetch", &line).await;
    assert_eq!(success(&outcome).content, "done");
    assert_eq!((outcome.attempts, line.uses()), (4, 4));
    assert_eq!(kinds.iter().filter(|kind| *kind == "tool.started").count(), 4, "{kinds:?}");
    let waits = line.waits();
    for (wait, base) in waits.iter().zip([200, 400, 800]) {
        // A timer rings up to a millisecond late.
        assert!((base * 8 / 10..=base * 12 / 10 + 2).contains(wait), "{waits:?}");
    }
    assert!(u128::from(outcome.execution_time_ms) >= waits.iter().sum(), "{outcome:?}");
}

#[tokio::test]
async fn after_three_retries_the_error_goes_back() {
    let line = Line::failing(vec![down(); 10]);
    let (outcome, _) = used("fetch", &line).await;
    assert_eq!((code(&outcome).as_str(), outcome.attempts, line.uses()), ("UNAVAILABLE", 4, 4));
    assert!(outcome.end.error().unwrap().recoverable, "the caller may go on trying");
}

#[tokio::test]
async fn what_is_not_passing_trouble_is_not_tried_again() {
    for error in [ErrorCode::ExecutionError, ErrorCode::Timeout, ErrorCode::PermissionDenied] {
        let line = Line::failing([ToolError::new(error, "no")]);
        let (outcome, _) = used("fetch", &line).await;
        assert_eq!((code(&outcome), line.uses()), (error.to_string(), 1));
    }
}

#[tokio::test]
async fn an_act_is_tried_again_only_where_that_does_no_harm() {
    let line = Line::failing([down()]);
    let (outcome, _) = used("put", &line).await;
    assert_eq!((outcome.end.status(), outcome.attempts), ("success", 2), "it says itself that twice is once");
    let line = Line::failing([down()]);
    let (outcome, _) = used("post", &line).await;
    assert_eq!((code(&outcome).as_str(), outcome.attempts, line.uses()), ("OUTCOME_UNKNOWN", 1, 1));
    assert!(!outcome.end.error().unwrap().recoverable);
    let line = Line::failing([down().having_done_nothing(), down().having_done_nothing()]);
    let (outcome, _) = used("post", &line).await;
    assert_eq!((outcome.end.status(), outcome.attempts), ("success", 3), "nothing was sent");
    let line = Line::failing([down().having_done_nothing(), down()]);
    let (outcome, _) = used("post", &line).await;
    assert_eq!((code(&outcome).as_str(), line.uses()), ("OUTCOME_UNKNOWN", 2), "the second may have been");
}

#[tokio::test]
async fn whoever_says_when_to_come_back_is_heard_if_there_is_time() {
    let line = Line::failing([down().to_be_tried_after(Duration::from_secs(9))]);
    let (outcome, _) = used("fetch", &line).await;
    assert_eq!(outcome.end.status(), "success");
    assert!((9000..9003).contains(&line.waits()[0]), "{:?}", line.waits());
    let line = Line::failing([down().to_be_tried_after(Duration::from_secs(3600))]);
    let (outcome, _) = used("fetch", &line).await;
    assert_eq!((code(&outcome).as_str(), line.uses()), ("UNAVAILABLE", 1), "told at once, not after the limit");
    assert_eq!(outcome.end.error().unwrap().details["retryAfterMs"], 3_600_000);
    let line = Line::failing([down().with("retryAfterMs", u64::MAX)]);
    assert_eq!(code(&used("fetch", &line).await.0), "UNAVAILABLE", "whatever is said");
}

#[tokio::test]
async fn all_attempts_and_delays_share_one_time_limit() {
    let stage = Stage::on_sqlite();
    let line = Line::failing(vec![down(); 10]);
    let house = house_with(&stage, &line).await;
    let mut wish = wish(&house, "fetch");
    wish.timeout = Some(Duration::from_millis(900));
    let outcome = call(&house, wish).await;
    // 200 and 400 ms are waited for, each up to a fifth shorter or longer; another 800 would be too long.
    assert_eq!((code(&outcome).as_str(), outcome.attempts), ("UNAVAILABLE", 3), "{outcome:?}");
    assert!(outcome.execution_time_ms < 900, "{outcome:?}");
}

#[tokio::test]
async fn cancelling_ends_a_delay_at_once() {
    for (tool, ends) in [("fetch", "CANCELLED"), ("put", "OUTCOME_UNKNOWN")] {
        let stage = Stage::on_sqlite();
        let line = Line::failing(vec![down(); 10]);
        let house = house_with(&stage, &line).await;
        let mut wish = wish(&house, tool);
        let cancel = wish.cancel.clone();
        wish.listener = Some(Arc::new(move |event| {
            if let CallEvent::Progress { message, .. } = event {
                assert!(message.contains("the line is down; trying again in"), "{message}");
                cancel.cancel();
            }
        }));
        let outcome = call(&house, wish).await;
        assert_eq!((code(&outcome).as_str(), line.uses()), (ends, 1));
        assert!(outcome.execution_time_ms < 160, "{outcome:?}");
    }
}

/// A workbench that is always busy, and counts how often it was asked.
struct Busy(Arc<dyn Workbench>, AtomicUsize);

impl Workbench for Busy {
    fn show<'a>(&'a self, scope: &'a Scope, call: &'a CallId) -> BoxFuture<'a, Result<ChangeList, ToolError>> {
        self.0.show(scope, call)
    }

    fn preview<'a>(&'a self, scope: &'a Scope, turn: &'a Turn) -> BoxFuture<'a, Result<ChangeList, ToolError>> {
        self.0.preview(scope, turn)
    }

    fn take<'a>(&'a self, _scope: &'a Scope, _turn: &'a Turn) -> BoxFuture<'a, Result<ChangeList, ToolError>> {
        self.1.fetch_add(1, Ordering::SeqCst);
        let busy = ToolError::new(ErrorCode::Busy, "another commit is under way").having_done_nothing();
        Box::pin(std::future::ready(Err(busy)))
    }

    fn discard<'a>(&'a self, scope: &'a Scope, call: &'a CallId) -> BoxFuture<'a, Result<(), ToolError>> {
        self.0.discard(scope, call)
    }

    fn recover<'a>(&'a self, scope: &'a Scope, turn: &'a Turn) -> BoxFuture<'a, Result<Recovered, ToolError>> {
        self.0.recover(scope, turn)
    }
}

#[tokio::test]
async fn a_commit_that_has_begun_is_never_tried_again() {
    let stage = Stage::on_sqlite();
    let house = stage.house().await;
    let busy = Arc::new(Busy(house.workbench.clone(), AtomicUsize::new(0)));
    let pipeline = Pipeline::new(Doors {
        catalog: house.catalog.clone(),
        guard: Arc::new(OwnerGuard::new(house.scope.clone())),
        workbench: busy.clone(),
        questions: Arc::new(house.store.clone()),
        journal: Arc::new(house.store.clone()),
        deliveries: Vec::new(),
        house: HouseWide::of_house(house.here.clone()),
        policies: Arc::new(OnePolicy::new(Policy::without_rules(Isolation::Namespaces))),
        limits: Limits::default(),
        spans: None,
    });
    let mut write = request(&house, "write_file", json!({"path": "a", "content": "b\n"}));
    write.auto_approve = AutoApprove::Everything;
    let outcome = pipeline.call(write).await;
    assert_eq!((code(&outcome).as_str(), outcome.attempts), ("BUSY", 1));
    assert_eq!((busy.1.load(Ordering::SeqCst), stage.text("a")), (1, None));
}
