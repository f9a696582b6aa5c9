//! A tool asks in the middle of its work: who answers, what fits, and that such time costs it nothing.

use std::time::Duration;

use haft::house::House;
use haft_runtime::{
    About, Answer, CallEvent, CallId, CallRequest, CallState, Described, Effect, End, Form, FormAnswer, Journal,
    Outcome, Output, Prepared, Question, Questions, Ran, Reply, Source, Tool, ToolCtx, ToolError, ToolFacts, typed,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::stage::{Stage, answer, code, kinds, request, success};

/// How long a tool of these stories may work: less than their answers take.
const WORK: Duration = Duration::from_millis(150);

struct Asker;

/// Asks what it is told to ask.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// `once`, `twice`, `both at once`, `before the yes`, or `and give up`.
    how: String,
}

#[derive(Serialize, JsonSchema)]
struct Heard {
    /// What it was told.
    heard: Vec<String>,
}

impl Output for Heard {
    fn text(&self) -> String {
        self.heard.join(", ")
    }
}

fn form(name: &str) -> Form {
    let fields = json!({"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0, "default": 7}});
    let schema = json!({"type": "object", "properties": fields, "required": ["name"]});
    Form::new(format!("Who is {name}?"), schema).unwrap().named(name)
}

async fn heard(ctx: &ToolCtx, name: &str) -> Result<String, ToolError> {
    Ok(match ctx.ask(form(name)).await? {
        FormAnswer::Accepted(filled) => format!("{} {}", filled.values()["name"], filled.values()["age"]),
        FormAnswer::Declined { message } => format!("declined: {}", message.unwrap_or_default()),
        FormAnswer::Cancelled => "cancelled".to_owned(),
    })
}

impl Tool for Asker {
    type Input = Input;
    type Output = Heard;
    const FACTS: ToolFacts = ToolFacts { timeout: WORK, ..ToolFacts::new("asker", "test", Effect::Write) };

    fn effect(&self, input: &Input) -> Effect {
        if input.how == "before the yes" { Effect::Write } else { Effect::Read }
    }

    async fn prepare(&self, ctx: &ToolCtx, input: &Input) -> Result<Prepared<Heard>, ToolError> {
        if input.how == "before the yes" {
            return Ok(Prepared::Plain(Described::showing(heard(ctx, "first").await?)));
        }
        Ok(Prepared::Plain(Described::default()))
    }

    async fn run(&self, ctx: &ToolCtx, input: Input) -> Result<Ran<Heard>, ToolError> {
        let heard = match input.how.as_str() {
            "twice" => vec![heard(ctx, "first").await?, heard(ctx, "second").await?],
            "both at once" => {
                let (first, second) = tokio::join!(heard(ctx, "first"), heard(ctx, "second"));
                vec![first?, second?]
            }
            "and give up" => {
                let asked = tokio::time::timeout(Duration::from_millis(20), heard(ctx, "first")).await;
                vec![asked.unwrap_or_else(|_| Ok("gave up".to_owned()))?]
            }
            _ => vec![heard(ctx, "first").await?],
        };
        Ok(Ran::plain(Heard { heard }))
    }
}

async fn house(stage: &Stage) -> House {
    let house = stage.house().await;
    house.registry.register(typed(Asker)).unwrap();
    house
}

/// Begins a call that asks.
fn begun(house: &House, how: &str) -> (CallRequest, JoinHandle<Outcome>) {
    let request = request(house, "asker", json!({"how": how}));
    (request.clone(), tokio::spawn(house.pipeline.call(request)))
}

/// The open question of a call with this number, once there is one.
async fn asked(house: &House, call: &CallId, number: u32) -> Question {
    tokio::time::timeout(Duration::from_secs(20), async {
        loop {
            let news = house.store.watch_questions(&house.scope);
            match house.question(call).await.unwrap() {
                Some((question, None)) if question.number == number => return question,
                _ => news.changed().await,
            }
        }
    })
    .await
    .unwrap()
}

fn filled(question: &Question, values: Value) -> Result<Answer, ToolError> {
    let About::Form(form) = &question.about else { panic!("not a form: {question:?}") };
    let Value::Object(values) = values else { panic!("an object") };
    form.filled(values).map(|values| Answer::Fill { values })
}

async fn fill(house: &House, question: &Question, values: Value) {
    let filled = filled(question, values).unwrap();
    let reply = answer(house, &question.call, filled).await;
    assert!(matches!(reply, Reply::Heard), "{reply:?}");
}

async fn is_closed(house: &House, call: &CallId) -> bool {
    Questions::open(&house.store, &house.scope, &house.here)
        .await
        .unwrap()
        .iter()
        .all(|question| question.call != *call)
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_in_another_process_answers_and_the_wait_costs_nothing() {
    let mut stage = Stage::new();
    stage.settings.idle = Some(Duration::from_millis(80));
    let (here, elsewhere) = (house(&stage).await, stage.house().await);
    let (request, calling) = begun(&here, "twice");
    for number in [1, 2] {
        let question = asked(&elsewhere, &request.id, number).await;
        assert_eq!(
            Questions::open(&elsewhere.store, &elsewhere.scope, &elsewhere.here).await.unwrap(),
            std::slice::from_ref(&question)
        );
        // Longer than the tool may work, or be silent.
        assert_eq!(elsewhere.store.wait(&elsewhere.scope, &question.id(), WORK * 2).await.unwrap(), None);
        fill(&elsewhere, &question, json!({"name": format!("n{number}")})).await;
    }
    let outcome = calling.await.unwrap();
    assert_eq!(success(&outcome).content, r#""n1" 7, "n2" 7"#);
    assert!(u128::from(outcome.execution_time_ms) < WORK.as_millis(), "{} ms", outcome.execution_time_ms);
    let told = kinds(&elsewhere, &request.id).await;
    let wanted = ["tool.asks", "tool.answered", "tool.asks", "tool.answered", "tool.completed"];
    assert!(told.ends_with(&wanted.map(str::to_owned)), "{told:?}");
    let events = elsewhere.store.events(&elsewhere.scope, &request.id).await.unwrap();
    let by = events.iter().find_map(|(_, _, event)| match event {
        CallEvent::Answered { by, source: Source::Cli, .. } => Some(by.name.clone()),
        _ => None,
    });
    assert_eq!(by.as_deref(), Some("ann"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_fit_is_told_and_the_question_stays_open() {
    let stage = Stage::new();
    let house = house(&stage).await;
    let (request, calling) = begun(&house, "once");
    let question = asked(&house, &request.id, 1).await;
    let wrong = filled(&question, json!({"name": "x", "age": -1})).unwrap_err();
    assert!(wrong.message.contains("`first.age` must be ≥ 0"), "{wrong}");
    assert!(!is_closed(&house, &request.id).await);
    fill(&house, &question, json!({"name": "x", "age": 3})).await;
    assert_eq!(success(&calling.await.unwrap()).content, r#""x" 3"#);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_no_is_told_to_the_tool_with_its_words() {
    let stage = Stage::new();
    let house = house(&stage).await;
    for (given, heard) in
        [(Answer::Reject { message: Some("not you".into()) }, "declined: not you"), (Answer::Cancel, "cancelled")]
    {
        let (request, calling) = begun(&house, "once");
        asked(&house, &request.id, 1).await;
        answer(&house, &request.id, given).await;
        assert_eq!(success(&calling.await.unwrap()).content, heard);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_answer_counts_and_an_old_one_never_answers_the_next_question() {
    let stage = Stage::new();
    let house = house(&stage).await;
    let (request, calling) = begun(&house, "both at once");
    let first = asked(&house, &request.id, 1).await;
    fill(&house, &first, json!({"name": "a"})).await;
    let second = asked(&house, &request.id, 2).await;
    let late = filled(&first, json!({"name": "late"})).unwrap();
    let reply = house.pipeline.answer(&house.caller, &first.id(), late).await.unwrap();
    assert!(matches!(reply, Reply::TooLate(_)), "{reply:?}");
    fill(&house, &second, json!({"name": "b"})).await;
    assert_eq!(success(&calling.await.unwrap()).content, r#""a" 7, "b" 7"#);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_waited_for_longer_than_the_caller_does() {
    let stage = Stage::new();
    let house = house(&stage).await;
    let mut request = request(&house, "asker", json!({"how": "once"}));
    request.form_wait = Some(Duration::ZERO);
    let outcome = house.pipeline.call(request).await;
    assert_eq!(code(&outcome), "APPROVAL_EXPIRED");
    assert!(is_closed(&house, &outcome.tool_call_id).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_cancelled_or_gives_up_takes_its_question_away() {
    let stage = Stage::new();
    let house = house(&stage).await;
    let (request, calling) = begun(&house, "once");
    asked(&house, &request.id, 1).await;
    request.cancel.cancel();
    assert!(matches!(calling.await.unwrap().end, End::Cancelled { .. }));
    assert!(is_closed(&house, &request.id).await);

    let (request, calling) = begun(&house, "once");
    asked(&house, &request.id, 1).await;
    assert!(house.store.want_stop(&house.scope, &request.id).await.unwrap());
    assert!(matches!(calling.await.unwrap().end, End::Cancelled { .. }));
    assert!(is_closed(&house, &request.id).await);

    let (request, calling) = begun(&house, "and give up");
    assert_eq!(success(&calling.await.unwrap()).content, "gave up");
    assert!(is_closed(&house, &request.id).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_before_the_yes_and_the_yes_are_two_questions() {
    let stage = Stage::new();
    let (here, elsewhere) = (house(&stage).await, house(&stage).await);
    let (request, calling) = begun(&here, "before the yes");
    let question = asked(&here, &request.id, 1).await;
    fill(&here, &question, json!({"name": "a"})).await;
    let pending = calling.await.unwrap();
    assert!(matches!(pending.end, End::Pending { .. }), "{pending:?}");
    let yes = asked(&here, &request.id, 2).await;
    assert!(yes.evidence().is_some() && !is_closed(&here, &request.id).await);
    // It waits for the yes, not for whoever had filled in the form.
    assert!(here.store.answered(&haft_runtime::HouseWide::of_house(here.here.clone())).await.unwrap().is_empty());
    drop(here);
    // Whoever says yes carries it on, and hears what it asks then.
    let (pipeline, caller, id) = (elsewhere.pipeline.clone(), elsewhere.caller.clone(), yes.id());
    let approve = Answer::Approve { paths: None };
    let carried = tokio::spawn(async move { pipeline.answer(&caller, &id, approve).await.unwrap() });
    let last = asked(&elsewhere, &request.id, 3).await;
    fill(&elsewhere, &last, json!({"name": "c"})).await;
    let Reply::Counted(outcome) = carried.await.unwrap() else { panic!("the yes did not count") };
    assert_eq!(success(&outcome).content, r#""c" 7"#);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_question_of_a_process_that_died_is_closed_with_its_call() {
    let stage = Stage::new();
    let dying = house(&stage).await;
    let opening = {
        let (request, calling) = begun(&dying, "once");
        let question = asked(&dying, &request.id, 1).await;
        // What the journal knows while it asks, under the id of a call that nobody goes on with.
        let record = Journal::find(&dying.store, &dying.scope, &request.id).await.unwrap().unwrap();
        answer(&dying, &request.id, Answer::Cancel).await;
        calling.await.unwrap();
        (record.opening, question)
    };
    let call = CallId::new();
    let entry = haft_runtime::Entry {
        call: call.clone(),
        via: std::sync::Arc::default(),
        opening: Some(opening.0),
        state: CallState::Executing,
        turn: None,
        outcome: None,
        whole_output: None,
        result_of: None,
        events: Vec::new(),
    };
    let question = Question { call: call.clone(), ..opening.1 };
    dying.store.ask(&dying.scope, &question, entry).await.unwrap();
    let next = stage.heir(dying, &call).await;
    assert!(is_closed(&next, &call).await);
    let ended = next.store.ended(&next.scope, &call, Duration::from_secs(20)).await.unwrap().unwrap();
    assert_eq!(code(&ended), "INTERRUPTED");
    let late = filled(&question, json!({"name": "late"})).unwrap();
    assert!(matches!(answer(&next, &call, late).await, Reply::TooLate(_)));
}
