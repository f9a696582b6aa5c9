//! A call that waits for a result from outside, after the yes: it survives its process, is answered once, and ends anywhere.
#![expect(clippy::disallowed_methods, reason = "these stories start processes")]

use std::{
    env,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Output as Exited, Stdio},
    time::Duration,
};

use haft::house::House;
use haft_runtime::{
    Answer, Answerers, AutoApprove, CallEvent, CallId, CallRequest, CallState, CallerId, CallerKind, CallerWait,
    Effect, End, ErrorCode, Outcome, Output, Ran, Reply, Tool, ToolCtx, ToolError, ToolFacts, WaitFor, typed,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::stage::{Stage, answer, code, request, success};

/// Tells the process that a story starts where to play.
const STAGE: &str = "HAFT_STORY_STAGE";
/// No step of these stories takes longer.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// Asks somebody outside to deliver a parcel.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Parcel {
    to: String,
    /// In milliseconds.
    expires_after: Option<u64>,
    /// Who alone may say that it has arrived.
    only: Option<String>,
    /// How long its caller waits at most, in microseconds; 0 is not at all.
    within: Option<u64>,
    /// It is asked for in a space.
    space: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Arrived {
    at: String,
}

impl Output for Arrived {
    fn text(&self) -> String {
        self.at.clone()
    }
}

pub(crate) struct Deliver;

impl Tool for Deliver {
    type Input = Parcel;
    type Output = Arrived;
    const FACTS: ToolFacts = ToolFacts::new("deliver", "test", Effect::Write);

    async fn run(&self, _ctx: &ToolCtx, input: Parcel) -> Result<Ran<Arrived>, ToolError> {
        let schema = json!({"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]});
        let mut wait = WaitFor::result(format!("a parcel for {}", input.to), schema);
        if let Some(millis) = input.expires_after {
            wait.expires_after = Duration::from_millis(millis);
        }
        if let Some(person) = input.only {
            wait.answerers = Answerers::Only(vec![CallerId { kind: CallerKind::Person, id: person }]);
        }
        // However slow the machine is, these stories do not wait for half a minute to be over.
        wait.caller = match input.within {
            Some(0) => CallerWait::Async,
            Some(micros) => CallerWait::Sync { within: Duration::from_micros(micros) },
            None => CallerWait::Sync { within: LIMIT * 2 },
        };
        if input.space == Some(true) {
            wait.execution_type = "space".to_owned();
        }
        Ok(Ran::Waits(wait))
    }
}

pub(crate) async fn house(stage: &Stage) -> House {
    let house = stage.house().await;
    house.registry.register(typed(Deliver)).unwrap();
    house
}

/// A call that nobody need be asked about.
pub(crate) fn deliver(house: &House, input: Value) -> CallRequest {
    let mut wish = request(house, "deliver", input);
    wish.auto_approve = AutoApprove::Everything;
    wish
}

pub(crate) async fn events(house: &House, call: &CallId) -> Vec<CallEvent> {
    let events = house.store.events(&house.scope, call).await.unwrap();
    events.into_iter().map(|(_, _, event)| event).collect()
}

/// The events after which nothing more happens to a call.
pub(crate) fn terminal(events: &[CallEvent]) -> Vec<&CallEvent> {
    let ends = |event: &&CallEvent| {
        matches!(
            event,
            CallEvent::Completed { .. }
                | CallEvent::Failed { .. }
                | CallEvent::Cancelled { .. }
                | CallEvent::Rejected { .. }
                | CallEvent::Interrupted { .. }
        )
    };
    events.iter().filter(ends).collect()
}

pub(crate) async fn assert_ended_once(house: &House, call: &CallId) {
    let events = events(house, call).await;
    assert_eq!(terminal(&events).len(), 1, "{events:#?}");
    let told = events.iter().filter(|event| matches!(event, CallEvent::Pending { .. })).count();
    assert_eq!(told, 1, "whoever acts on it acts once: {events:#?}");
}

fn result(at: &str) -> Answer {
    Answer::Result { value: json!({"at": at}) }
}

/// Not a story: the process that the stories below start, with the tool that waits.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_waits() {
    let Ok(folder) = env::var(STAGE) else { return };
    let stage = Stage::at(Path::new(&folder));
    let house = house(&stage).await;
    let mut wish = deliver(&house, json!({"to": "anna"}));
    wish.wait = LIMIT;
    let (call, pipeline) = (wish.id.clone(), house.pipeline.clone());
    let calling = tokio::spawn(async move { pipeline.call(wish).await });
    while house.question(&call).await.unwrap().is_none() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    println!("\nwaits {call}");
    println!("\nended {}", calling.await.unwrap().end.status());
}

/// A process of its own that has made the call and waits for the result.
pub(crate) struct Waiting {
    pub(crate) child: Child,
    lines: BufReader<std::process::ChildStdout>,
    pub(crate) call: CallId,
}

impl Waiting {
    pub(crate) fn start(stage: &Stage) -> Self {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["awaited::a_process_that_waits", "--exact", "--nocapture"]);
        command.env(STAGE, stage.folder()).stdout(Stdio::piped()).stderr(Stdio::null()).stdin(Stdio::null());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        let mut waiting = Self { child, lines, call: CallId::new() };
        waiting.call = CallId::parse(&waiting.said("waits ")).unwrap();
        waiting
    }

    fn said(&mut self, before: &str) -> String {
        loop {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "it ended without `{before}`");
            if let Some(rest) = line.trim_end().strip_prefix(before) {
                return rest.to_owned();
            }
        }
    }

    /// `kill -9`
    pub(crate) fn kill(mut self) -> CallId {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.call.clone()
    }
}

/// The program itself, which knows nothing of the tool.
pub(crate) fn haft(stage: &Stage, args: &[&str]) -> Exited {
    let mut command = Command::new(env!("CARGO_BIN_EXE_haft"));
    command.args(args).current_dir(stage.path("")).env_clear();
    command.env("HAFT_DATA_DIR", &stage.settings.data).env("HOME", stage.folder()).env("USER", "tester");
    command.envs(stage.settings.store_url.iter().map(|url| ("HAFT_STORE_URL", url)));
    command.stdin(Stdio::null()).output().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_is_given_by_another_process_after_the_first_was_killed() {
    let stage = Stage::new();
    let call = Waiting::start(&stage).kill();
    let house = stage.house().await;
    let record = haft_runtime::Journal::find(&house.store, &house.scope, &call).await.unwrap().unwrap();
    assert_eq!(record.state, CallState::Waiting, "it is not interrupted: it waits for nobody who is dead");

    let wrong = haft(&stage, &["approve", call.as_str(), "--input", r#"{"on": "monday"}"#]);
    assert_eq!(wrong.status.code(), Some(1), "{wrong:?}");
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("at"), "{wrong:?}");
    let yes = haft(&stage, &["approve", call.as_str()]);
    assert!(String::from_utf8_lossy(&yes.stderr).contains("waits for a result"), "{yes:?}");
    assert!(matches!(house.question(&call).await.unwrap(), Some((_, None))), "the question stays open");

    let given = haft(&stage, &["approve", call.as_str(), "--input", r#"{"at": "noon"}"#, "--json"]);
    assert_eq!(given.status.code(), Some(0), "{given:?}");
    let outcome: Outcome = serde_json::from_slice(&given.stdout).unwrap();
    assert_eq!(*success(&outcome).structured, json!({"at": "noon"}));
    assert_eq!((outcome.tool.as_str(), outcome.attempts), ("deliver", 1));
    assert_eq!(outcome.approved_by, Some(haft_runtime::ApprovedBy::Config));
    let late = haft(&stage, &["approve", call.as_str(), "--input", r#"{"at": "night"}"#]);
    assert!(String::from_utf8_lossy(&late.stderr).contains("already answered"), "{late:?}");
    assert_ended_once(&house, &call).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_hears_the_result_from_another_process() {
    let stage = Stage::new();
    let mut waiting = Waiting::start(&stage);
    let call = waiting.call.clone();
    let given = haft(&stage, &["approve", call.as_str(), "--input", r#"{"at": "noon"}"#, "--json"]);
    assert_eq!(given.status.code(), Some(0), "{given:?}");
    assert_eq!(waiting.said("ended "), "success");
    waiting.child.wait().unwrap();
    assert_ended_once(&stage.house().await, &call).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_results_at_once_one_counts() {
    for round in 0..4 {
        let stage = Stage::new();
        let waiting = Waiting::start(&stage);
        let (call, living) =
            if round % 2 == 0 { (waiting.kill(), None) } else { (waiting.call.clone(), Some(waiting)) };
        let stage = &stage;
        let gave = std::thread::scope(|threads| {
            let given = ["one", "two"].map(|at| {
                let (call, value) = (call.to_string(), json!({"at": at}).to_string());
                threads.spawn(move || haft(stage, &["approve", &call, "--input", &value, "--json"]))
            });
            given.map(|thread| thread.join().unwrap())
        });
        let won: Vec<&Exited> = gave.iter().filter(|one| one.status.success()).collect();
        assert_eq!(won.len(), 1, "{gave:?}");
        let outcome: Outcome = serde_json::from_slice(&won[0].stdout).unwrap();
        let house = stage.house().await;
        let recorded = haft_runtime::Journal::find(&house.store, &house.scope, &call).await.unwrap().unwrap();
        assert_eq!(recorded.outcome.unwrap().end, outcome.end, "everybody hears of the same");
        assert_ended_once(&house, &call).await;
        if let Some(mut living) = living {
            living.child.wait().unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_does_not_wait_is_told_to_come_back() {
    let stage = Stage::new();
    let house = house(&stage).await;
    let outcome = house.pipeline.call(deliver(&house, json!({"to": "anna"}))).await;
    let End::Pending { pending } = &outcome.end else { panic!("{outcome:?}") };
    let (call, week) = (&outcome.tool_call_id, jiff::SignedDuration::from_hours(7 * 24));
    assert_eq!(&pending.pending_tool_call_id, call);
    let left = pending.expires_at.duration_since(jiff::Timestamp::now());
    assert!(left < week && left > week - jiff::SignedDuration::from_mins(1), "{left:?}");
    let told = events(&house, call).await;
    let Some(CallEvent::Pending { result: Some(wanted), .. }) = told.last() else { panic!("{told:#?}") };
    assert_eq!((wanted.tool.as_str(), &wanted.args, wanted.waited), ("deliver", &json!({"to": "anna"}), false));
    drop(house);
    // Who ends it need not know the tool.
    let other = stage.house().await;
    let reply = answer(&other, call, Answer::Failed { code: None, message: "the van broke down".into() }).await;
    let Reply::Counted(outcome) = reply else { panic!("{reply:?}") };
    assert_eq!(code(&outcome), "EXECUTION_ERROR");
    assert_ended_once(&other, call).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_nobody_gives_expires_and_one_that_nobody_wants_is_cancelled() {
    let stage = Stage::new();
    let house = house(&stage).await;
    let old = house.pipeline.call(deliver(&house, json!({"to": "anna", "expires_after": 1}))).await;
    let unwanted = house.pipeline.call(deliver(&house, json!({"to": "anna"}))).await;
    drop(house);
    tokio::time::sleep(Duration::from_millis(5)).await;
    let next = stage.house().await;
    let record = haft_runtime::Journal::find(&next.store, &next.scope, &old.tool_call_id).await.unwrap().unwrap();
    let ended = record.outcome.unwrap();
    assert_eq!((ended.end.status(), code(&ended).as_str()), ("cancelled", "EXPIRED"));
    let told = events(&next, &old.tool_call_id).await;
    assert_eq!(terminal(&told), [&CallEvent::Cancelled { reason: "expired".into() }]);
    let cancelled = haft(&stage, &["cancel", unwanted.tool_call_id.as_str(), "--json"]);
    let outcome: Outcome = serde_json::from_slice(&cancelled.stdout).unwrap();
    assert_eq!((outcome.end.status(), code(&outcome).as_str()), ("cancelled", "CANCELLED"));
    assert_ended_once(&next, &unwanted.tool_call_id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_who_is_meant_gives_a_result() {
    let stage = Stage::new();
    let house = house(&stage).await;
    let pending = house.pipeline.call(deliver(&house, json!({"to": "anna", "only": "postman"}))).await;
    let (question, _) = house.question(&pending.tool_call_id).await.unwrap().unwrap();
    let refused = house.pipeline.answer(&house.caller, &question.id(), result("noon")).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::Forbidden);
    let Reply::Counted(outcome) = answer(&house, &pending.tool_call_id, Answer::Cancel).await else { panic!() };
    assert_eq!(outcome.end.status(), "cancelled", "its caller may always take it back");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_yes_comes_first_and_is_the_caller_s_only_question() {
    let stage = Stage::new();
    let house = house(&stage).await;
    let asked = house.pipeline.call(request(&house, "deliver", json!({"to": "anna"}))).await;
    let id = &asked.tool_call_id;
    assert!(house.question(id).await.unwrap().unwrap().0.evidence().is_some(), "nothing waits before the yes");
    let Reply::Counted(waits) = answer(&house, id, Answer::Approve { paths: None }).await else { panic!() };
    assert_eq!(waits.end.status(), "pending");
    assert!(house.question(id).await.unwrap().unwrap().0.wants_a_result());
    let Reply::Counted(outcome) = answer(&house, id, result("noon")).await else { panic!() };
    assert_eq!(outcome.approved_by, Some(haft_runtime::ApprovedBy::User));
    assert_eq!(success(&outcome).content, r#"{"at":"noon"}"#);
}
