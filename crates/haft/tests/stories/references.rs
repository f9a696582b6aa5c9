//! A result as the argument of another call: copied whole, checked like any other, and never looked into again.

use haft::house::House;
use haft_runtime::{
    AutoApprove, CallId, Effect, Journal, Outcome, Output, Ran, Tool, ToolCtx, ToolError, ToolFacts, typed,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::stage::{Stage, answer, call, code, counted, request, success, yes};

/// Gives back what it is told, so that any value can be a result.
struct Parrot;

/// A tool for tests that repeats.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// JSON that is read and given back.
    text: Option<String>,
    /// A value that is given back.
    value: Option<Value>,
    /// A list that is given back.
    list: Option<Vec<Value>>,
    /// Whether it acts outside.
    #[serde(default)]
    acts: bool,
}

#[derive(Serialize, JsonSchema)]
struct Repeated {
    value: Value,
}

impl Output for Repeated {
    fn text(&self) -> String {
        self.value.to_string()
    }
}

impl Tool for Parrot {
    type Input = Input;
    type Output = Repeated;
    const FACTS: ToolFacts = ToolFacts::new("parrot", "test", Effect::Write);

    fn effect(&self, input: &Input) -> Effect {
        if input.acts { Effect::Write } else { Effect::Read }
    }

    async fn run(&self, _ctx: &ToolCtx, input: Input) -> Result<Ran<Repeated>, ToolError> {
        let read = input.text.map(|text| serde_json::from_str(&text).unwrap());
        let value = read.or(input.value).or(input.list.map(Value::Array)).unwrap_or_default();
        Ok(Ran::plain(Repeated { value }))
    }
}

async fn parrots(stage: &Stage) -> House {
    let house = stage.house().await;
    house.registry.register(typed(Parrot)).unwrap();
    house
}

fn from(call: &CallId, pointer: &str) -> Value {
    json!({"$from": format!("haft://result/{call}{pointer}")})
}

fn message(outcome: &Outcome) -> &str {
    &outcome.end.error().unwrap_or_else(|| panic!("no error: {outcome:?}")).message
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_result_goes_from_tool_to_tool_and_the_journal_keeps_the_reference() {
    let stage = Stage::new();
    let long = "0123456789".repeat(50_000);
    stage.put("long.txt", &long);
    let house = parrots(&stage).await;
    let read = call(&house, "parrot", json!({"text": json!({"rows": [{"note": long}]}).to_string()})).await;
    let told = success(&read);
    let (id, form) = (&read.tool_call_id, format!("{{\"$from\": \"haft://result/{}#/pointer\"}}", read.tool_call_id));
    assert!(
        told.is_shortened() && told.content.contains("result_query") && told.content.contains(&form),
        "{}",
        told.content
    );
    let given = json!({"path": "copy.txt", "content": from(id, "#/value/rows/0/note")});
    let asked = call(&house, "write_file", given.clone()).await;
    assert_eq!(asked.end.status(), "pending", "{asked:?}");
    let (question, _) = house.question(&asked.tool_call_id).await.unwrap().unwrap();
    assert_eq!(question.input["content"], json!(long), "whoever is asked sees what the tool gets");
    let record = Journal::find(&house.store, &house.scope, &asked.tool_call_id).await.unwrap().unwrap();
    assert_eq!(record.opening.input, given);
    // Another process carries it out, on what was asked.
    let other = stage.house().await;
    success(&yes(&other, &asked.tool_call_id).await);
    assert_eq!(stage.text("copy.txt"), Some(long));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_is_copied_wherever_it_is_wanted_and_nothing_in_it_is_followed() {
    let stage = Stage::new();
    let house = parrots(&stage).await;
    let first = call(&house, "parrot", json!({"value": {"a/b": [1, 2]}})).await.tool_call_id;
    let input = json!({"list": [from(&first, "#/value/a~1b/1"), {"deep": [from(&first, "")]}]});
    let many = call(&house, "parrot", input).await;
    assert_eq!(success(&many).structured["value"], json!([2, {"deep": [{"value": {"a/b": [1, 2]}}]}]));
    let whole = call(&house, "parrot", from(&first, "#")).await;
    assert_eq!(success(&whole).structured["value"], json!({"a/b": [1, 2]}), "also as all of an input");
    // A result that holds what looks like a reference, such as a page from the web.
    let baited = call(&house, "parrot", json!({"text": from(&first, "#/value").to_string()})).await.tool_call_id;
    let copied = call(&house, "parrot", json!({"value": from(&baited, "#/value")})).await;
    assert_eq!(success(&copied).structured["value"], from(&first, "#/value"));
    let asked = call(&house, "parrot", json!({"value": from(&baited, "#/value"), "acts": true})).await;
    let done = yes(&parrots(&stage).await, &asked.tool_call_id).await;
    assert_eq!(success(&done).structured["value"], from(&first, "#/value"), "also when it is carried on elsewhere");
    let asked = call(&house, "parrot", json!({"value": from(&baited, "#/value"), "acts": true})).await;
    let edited = haft_runtime::Answer::Edit { input: json!({"value": [from(&first, "#/value")], "acts": true}) };
    let done = counted(answer(&house, &asked.tool_call_id, edited).await);
    assert_eq!(success(&done).structured["value"], json!([from(&first, "#/value")]), "also when somebody edits it");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_reference_brings_is_checked_like_everything_else() {
    let stage = Stage::new();
    let house = parrots(&stage).await;
    let bait = call(&house, "parrot", json!({"value": {"path": "../../etc/passwd", "number": 7}})).await.tool_call_id;
    let mut wish = request(&house, "read_file", json!({"path": from(&bait, "#/value/path")}));
    wish.auto_approve = AutoApprove::Everything;
    assert_eq!(code(&house.pipeline.call(wish).await), "INVALID_PATH");
    let unfit = call(&house, "read_file", json!({"path": from(&bait, "#/value/number")})).await;
    assert_eq!(code(&unfit), "INVALID_ARGS");
    assert!(message(&unfit).contains("`read_file.path` must be of type string (got 7)"), "{}", message(&unfit));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reference_that_leads_nowhere_names_its_argument() {
    let stage = Stage::new();
    let house = parrots(&stage).await;
    let known = call(&house, "parrot", json!({"value": {"a": 1}})).await.tool_call_id;
    let failed = call(&house, "read_file", json!({"path": "absent.txt"})).await.tool_call_id;
    let nobodys = CallId::new();
    let cases = [
        (from(&nobodys, "#/a"), format!("refers to {nobodys}, and there is no such call")),
        (from(&failed, ""), format!("refers to {failed}, which has no result")),
        (from(&known, "#/value/b"), format!("refers to {known}, which has nothing at `/value/b`")),
        (from(&known, "#value"), "is no reference; write it like".to_owned()),
        (json!({"$from": "haft://result/tc_1"}), "is no reference; write it like".to_owned()),
        (json!({"$from": format!("haft://result/{known}"), "more": 1}), "is no reference; write it like".to_owned()),
    ];
    for (reference, why) in cases {
        let refused = call(&house, "parrot", json!({"list": [0, reference]})).await;
        assert_eq!(code(&refused), "INVALID_ARGS", "{reference}");
        let expected = format!("`parrot.list.1` {why}");
        assert!(message(&refused).starts_with(&expected), "{} is not {expected}", message(&refused));
        assert_eq!(refused.end.error().unwrap().details["issues"][0]["path"], "/list/1");
    }
    let plain = call(&house, "parrot", json!({"value": {"$from": "here", "to": "there"}})).await;
    assert_eq!(success(&plain).structured["value"], json!({"$from": "here", "to": "there"}), "other things are data");
}

#[tokio::test(flavor = "multi_thread")]
async fn references_are_bounded_in_number_size_and_depth() {
    let stage = Stage::new();
    let house = parrots(&stage).await;
    let large = "x".repeat(3 << 20);
    let large = call(&house, "parrot", json!({"value": large})).await.tool_call_id;
    let deep = (0..60).fold(json!(1), |inner, _| json!([inner]));
    let deep = call(&house, "parrot", json!({"value": deep})).await.tool_call_id;
    let nested = (0..60).fold(from(&deep, "#/value"), |inner, _| json!([inner]));
    for (value, why) in [
        (json!(vec![from(&large, "#/value"); 3]), None),
        (json!(vec![from(&large, "#/value"); 4]), Some("takes 10 MiB of results at most")),
        (json!(vec![from(&deep, "#/value"); 65]), Some("has 65 references, and may have 64")),
        (nested, Some("is nested deeper than 100")),
    ] {
        let outcome = call(&house, "parrot", json!({"value": value})).await;
        match why {
            None => assert_eq!(outcome.end.status(), "success"),
            Some(why) => assert!(message(&outcome).contains(why), "{}", message(&outcome)),
        }
    }
}
