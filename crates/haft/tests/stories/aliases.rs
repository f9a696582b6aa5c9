//! Other names: those that stay, those that go on a day, and those that are gone.

use haft::house::House;
use haft_runtime::{
    AutoApprove, CallEvent, DeprecatedAlias, Effect, Output, Ran, RegistryError, Tool, ToolCtx, ToolError, ToolFacts,
    to_anthropic, to_mcp, to_openai, typed,
};
use jiff::civil::date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::stage::{Stage, call, code, kinds, request, success, yes};

/// A tool that was renamed, and whose parameter was renamed with it.
struct Greet;

/// Greets somebody. It acts, as far as anybody can tell, so that it is asked about.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Whom to greet.
    name: String,
}

#[derive(Serialize, JsonSchema)]
struct Said {
    /// What was said.
    said: String,
}

impl Output for Said {
    fn text(&self) -> String {
        self.said.clone()
    }
}

impl Tool for Greet {
    type Input = Input;
    type Output = Said;
    const FACTS: ToolFacts = ToolFacts { aliases: &["welcome"], ..ToolFacts::new("greet", "test", Effect::Write) };

    fn deprecated_aliases() -> Vec<DeprecatedAlias> {
        vec![
            DeprecatedAlias::until(date(9999, 12, 30), "hello").renaming("who", "name"),
            DeprecatedAlias::until(date(2000, 1, 1), "hail"),
        ]
    }

    async fn run(&self, _ctx: &ToolCtx, input: Input) -> Result<Ran<Said>, ToolError> {
        Ok(Ran::plain(Said { said: format!("hello {}", input.name) }))
    }
}

async fn greeting_house(stage: &Stage) -> House {
    let house = stage.house().await;
    house.registry.register(typed(Greet)).unwrap();
    house
}

async fn greet(house: &House, name: &str, input: serde_json::Value) -> haft_runtime::Outcome {
    let mut wish = request(house, name, input);
    wish.auto_approve = AutoApprove::Everything;
    house.pipeline.call(wish).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_name_works_until_its_day_and_says_so() {
    let stage = Stage::new();
    let house = greeting_house(&stage).await;
    let outcome = greet(&house, "hello", json!({"who": "ann"})).await;
    assert_eq!(outcome.tool, "greet");
    let result = success(&outcome);
    assert_eq!(result.structured["said"], "hello ann");
    assert_eq!(result.metadata["called_as"], "hello");
    assert_eq!(result.metadata["deprecated"], json!({"use": "greet", "removeBy": "9999-12-30"}));
    let events = house.store.events(&house.scope, &outcome.tool_call_id).await.unwrap();
    let CallEvent::Called { tool, called_as, remove_by, args, .. } = &events[0].2 else { panic!("{events:?}") };
    assert_eq!((tool.as_str(), called_as.as_deref()), ("greet", Some("hello")));
    assert_eq!((*remove_by, args), (Some(date(9999, 12, 30)), &json!({"who": "ann"})), "as it was typed");
    let named = haft_store::CallFilter { tool: Some("greet".into()), ..haft_store::CallFilter::default() };
    assert_eq!(
        house.store.calls(&house.scope, &house.here, &named).await.unwrap().len(),
        1,
        "recorded under its own name"
    );
    let failed = greet(&house, "hello", json!({"who": 5})).await;
    assert_eq!(failed.end.error().unwrap().details["deprecated"]["use"], "greet", "a failure says so too");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_stays_warns_of_nothing() {
    let stage = Stage::new();
    let house = greeting_house(&stage).await;
    let outcome = greet(&house, "welcome", json!({"name": "ann"})).await;
    let metadata = &success(&outcome).metadata;
    assert_eq!((metadata["called_as"].as_str(), metadata.get("deprecated")), (Some("welcome"), None));
    assert!(success(&greet(&house, "greet", json!({"name": "ann"})).await).metadata.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn after_its_day_an_old_name_leads_to_the_new_one() {
    let stage = Stage::new();
    let house = greeting_house(&stage).await;
    let outcome = greet(&house, "hail", json!({"name": "ann"})).await;
    assert_eq!(code(&outcome), "TOOL_NOT_FOUND");
    let message = &outcome.end.error().unwrap().message;
    assert!(message.contains("call `greet` instead") && message.contains("2000-01-01"), "{message}");
    assert_eq!(outcome.tool, "hail", "nothing of that name was called");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_and_a_new_parameter_at_once_are_refused() {
    let stage = Stage::new();
    let house = greeting_house(&stage).await;
    for both in [json!({"who": "ann", "name": "bob"}), json!({"name": "bob", "who": "ann"})] {
        assert_eq!(code(&greet(&house, "hello", both).await), "INVALID_ARGS");
    }
    success(&greet(&house, "hello", json!({"who": "ann", "name": null})).await);
    success(&greet(&house, "hello", json!({"name": "ann"})).await);
    let new_name = greet(&house, "greet", json!({"who": "ann"})).await;
    assert_eq!(code(&new_name), "INVALID_ARGS", "the old parameter belongs to the old name");
    let twice = json!({"path": "a", "content": "", "createDirs": false, "createDirectories": true});
    assert_eq!(code(&call(&house, "write_file", twice).await), "INVALID_ARGS");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_by_an_old_name_is_carried_on_by_another_process() {
    let stage = Stage::new();
    let house = greeting_house(&stage).await;
    let pending = call(&house, "hello", json!({"who": "ann"})).await;
    assert_eq!(pending.end.status(), "pending");
    drop(house);
    let other = greeting_house(&stage).await;
    let outcome = yes(&other, &pending.tool_call_id).await;
    assert_eq!(success(&outcome).structured["said"], "hello ann");
    assert_eq!(success(&outcome).metadata["called_as"], "hello");
    let told = kinds(&other, &pending.tool_call_id).await;
    assert_eq!(told.iter().filter(|kind| *kind == "tool.call").count(), 1, "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_model_is_shown_another_name() {
    let stage = Stage::new();
    let house = greeting_house(&stage).await;
    for export in [to_openai, to_anthropic, to_mcp] {
        let shown = export(&house.tools().specs()).to_string();
        assert!(shown.contains("\"greet\"") && !shown.contains("welcome") && !shown.contains("\"hello\""));
    }
}

/// Has a name that another tool has had.
struct Hello;

impl Tool for Hello {
    type Input = Input;
    type Output = Said;
    const FACTS: ToolFacts = ToolFacts::new("hello", "test", Effect::Read);
}

/// Says of its old name what cannot be.
struct Confused;

impl Tool for Confused {
    type Input = Input;
    type Output = Said;
    const FACTS: ToolFacts = ToolFacts::new("confused", "test", Effect::Read);

    fn deprecated_aliases() -> Vec<DeprecatedAlias> {
        vec![DeprecatedAlias::until(date(9999, 1, 1), "once").renaming("who", "nobody")]
    }
}

/// Is its own old name.
struct Itself;

impl Tool for Itself {
    type Input = Input;
    type Output = Said;
    const FACTS: ToolFacts = ToolFacts::new("itself", "test", Effect::Read);

    fn deprecated_aliases() -> Vec<DeprecatedAlias> {
        vec![DeprecatedAlias::until(date(9999, 1, 1), "itself")]
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_stands_for_one_tool_only() {
    let stage = Stage::new();
    let house = greeting_house(&stage).await;
    assert_eq!(house.registry.register(typed(Hello)), Err(RegistryError::Duplicate { name: "hello".into() }));
    assert_eq!(house.registry.register(typed(Itself)), Err(RegistryError::Duplicate { name: "itself".into() }));
    let refused = house.registry.register(typed(Confused)).unwrap_err().to_string();
    assert!(refused.contains("`who` of `once` cannot stand for `nobody`"), "{refused}");
    assert!(house.registry.unregister("greet"));
    house.registry.register(typed(Hello)).unwrap();
}
