//! A large catalogue: what is deferred is found, and is called as itself.

use std::{fs, sync::Arc, time::Duration};

use futures_util::{FutureExt, StreamExt, future::BoxFuture, stream};
use haft::{house::House, rules};
use haft_runtime::{
    Answer, AnyTool, ApprovedBy, Asks, AutoApprove, Bounds, CallEvent, Described, Effect, Grant, Journal, PinnedTools,
    Prepared, Questions, Ran, RegisteredTool, Shown, ToolCtx, ToolError, ToolOutput, ToolSpec, Trial, Wish,
    WrittenBounds,
};
use haft_store::CallFilter;
use serde_json::{Value, json};

use crate::stage::{Stage, answer, call, code, counted, request, start_waiting, success, yes};

/// A tool of an upstream server: it acts elsewhere, so that it can only be described.
struct Upstream(ToolSpec);

impl AnyTool for Upstream {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn shown(&self) -> Shown {
        Shown::WhileThereIsRoom
    }

    fn effect(&self, _input: &Value) -> Effect {
        Effect::Write
    }

    fn prepare<'a>(
        &'a self,
        _ctx: &'a ToolCtx,
        _input: &'a Value,
    ) -> BoxFuture<'a, Result<Prepared<ToolOutput>, ToolError>> {
        async { Ok(Prepared::Plain(Described::showing("opens a ticket"))) }.boxed()
    }

    fn run<'a>(&'a self, _ctx: &'a ToolCtx, input: &'a Value) -> BoxFuture<'a, Result<Ran<ToolOutput>, ToolError>> {
        let output = ToolOutput { structured: json!({"got": input}).into(), ..ToolOutput::default() };
        async { Ok(Ran::plain(output)) }.boxed()
    }
}

const TICKET: &str = "mcp__hub__create_ticket";

fn upstream(name: &str, description: &str) -> Arc<dyn AnyTool> {
    Arc::new(Upstream(ToolSpec {
        name: name.to_owned(),
        title: name.to_owned(),
        description: description.to_owned(),
        category: "mcp".to_owned(),
        input_schema: json!({"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}),
        output_schema: json!({"type": "object"}),
        example: None,
        effect: Effect::Write,
        aliases: Vec::new(),
        permission: Effect::Write.workspace_permission().to_owned(),
        deprecated_aliases: Vec::new(),
        parameter_aliases: Vec::new(),
        timeout: Duration::from_secs(5),
        asks: Asks::ByEffect,
        idempotent: false,
        open_world: false,
    }))
}

/// A house whose upstream servers have more tools than a model is shown.
async fn large_house(stage: &Stage) -> House {
    let house = stage.house().await;
    let long = "Does what nobody has asked for. ".repeat(20);
    let mut tools: Vec<_> = (0..100).map(|at| upstream(&format!("mcp__hub__other_{at}"), &long)).collect();
    tools.push(upstream(TICKET, "Opens a ticket for somebody to look at."));
    assert!(house.registry.exchange(&[], tools).is_empty());
    house
}

fn through(title: &str) -> Value {
    json!({"tool": TICKET, "input": {"title": title}})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_is_done_by_whoever_has_it_and_by_nobody_else() {
    let stage = Stage::new();
    let house = stage.house().await;
    let saved = upstream("sketch", "Saved under the same name.");
    house.registry.register(saved).unwrap();
    let draft = || {
        let mut draft = request(&house, "sketch", json!({"title": "tried"}));
        draft.caller.via.trial = Some(Trial::Draft);
        draft.draft = Some(Arc::new(RegisteredTool::new(upstream("sketch", "Saved nowhere.")).unwrap()));
        draft
    };
    let (id, waiting) = start_waiting(&house, draft()).await;
    yes(&house, &id).await;
    assert_eq!(success(&waiting.await.unwrap()).structured["got"], json!({"title": "tried"}));
    let mut handed_back = draft();
    handed_back.wait = Duration::ZERO;
    let pending = house.pipeline.call(handed_back).await;
    assert_eq!(pending.end.status(), "pending");
    let ended = yes(&house, &pending.tool_call_id).await;
    assert_eq!(code(&ended), "INTERRUPTED", "the saved one is something else than what was shown: {ended:?}");
    let record = Journal::find(&house.store, &house.scope, &id).await.unwrap().unwrap();
    assert_eq!(record.opening.caller.via.trial, Some(Trial::Draft));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_deferred_is_found_by_whoever_looks() {
    let stage = Stage::new();
    let house = large_house(&stage).await;
    let listing = house.tools().listing();
    let offered: Vec<&str> = listing.offered().iter().map(|tool| tool.spec().name.as_str()).collect();
    assert!(offered.contains(&"find_tools") && offered.contains(&"call_tool") && offered.contains(&"read_file"));
    assert!(!offered.contains(&TICKET) && listing.deferred().len() == 101);
    let mut wish = request(&house, "find_tools", json!({"query": "open a ticket"}));
    wish.auto_approve = AutoApprove::Nothing;
    let outcome = house.pipeline.call(wish).await;
    let found = &success(&outcome).structured["tools"][0];
    assert_eq!(found["name"], TICKET, "{found}");
    assert_eq!(found["inputSchema"]["required"], json!(["title"]));

    let small = Stage::new().house().await;
    assert!(small.tools().listing().deferred().is_empty());
    assert!(small.tools().specs().iter().all(|spec| spec.name != "find_tools" && spec.name != "call_tool"));
}

#[tokio::test(flavor = "multi_thread")]
async fn pins_in_the_settings_keep_a_deferred_tool_in_sight() {
    let mut stage = Stage::new();
    stage.settings.client.pins = PinnedTools(vec!["mcp__hub__create_*".into()]);
    let listing = large_house(&stage).await.tools().listing();
    assert!(listing.offered().iter().any(|tool| tool.spec().name == TICKET));
    assert_eq!(listing.deferred().len(), 100);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_was_handed_on_asks_and_is_recorded_as_the_tool_it_means() {
    let stage = Stage::new();
    let house = large_house(&stage).await;
    let pending = call(&house, "call_tool", through("a")).await;
    assert_eq!((pending.end.status(), pending.tool.as_str()), ("pending", TICKET));
    let (question, _) = house.question(&pending.tool_call_id).await.unwrap().unwrap();
    assert_eq!((question.tool.as_str(), &question.input), (TICKET, &json!({"title": "a"})));
    drop(house);
    let other = large_house(&stage).await;
    let outcome = yes(&other, &pending.tool_call_id).await;
    assert_eq!((outcome.tool.as_str(), outcome.approved_by), (TICKET, Some(ApprovedBy::User)));
    assert_eq!(*success(&outcome).structured, json!({"got": {"title": "a"}}));
    assert_eq!(success(&outcome).metadata["called_as"], "call_tool");
    let events = other.store.events(&other.scope, &pending.tool_call_id).await.unwrap();
    let CallEvent::Called { tool, called_as, args, .. } = &events[0].2 else { panic!("{events:?}") };
    assert_eq!((tool.as_str(), called_as.as_deref(), args), (TICKET, Some("call_tool"), &json!({"title": "a"})));
    for (tool, count) in [(TICKET, 1), ("call_tool", 0)] {
        let filter = CallFilter { tool: Some(tool.into()), ..CallFilter::default() };
        assert_eq!(other.store.calls(&other.scope, &other.here, &filter).await.unwrap().len(), count, "{tool}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edited_input_is_the_inner_tools() {
    let stage = Stage::new();
    let house = large_house(&stage).await;
    let pending = call(&house, "call_tool", through("a")).await;
    let edit = Answer::Edit { input: json!({"title": "b"}) };
    let outcome = counted(answer(&house, &pending.tool_call_id, edit).await);
    let value = json!({"got": {"title": "b"}, "argsModified": {"title": "b"}});
    assert_eq!((outcome.tool.as_str(), &*success(&outcome).structured), (TICKET, &value));
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_and_grants_of_the_inner_tool_hold() {
    let mut stage = Stage::new();
    let denied: toml::Value =
        toml::toml! { rule = [{ tool = "mcp__hub__create_ticket", decision = "deny" }] }["rule"].clone();
    stage.settings.rules = rules::read(&denied, "test").unwrap();
    fs::create_dir(stage.path("src")).unwrap();
    let house = large_house(&stage).await;
    assert_eq!(code(&call(&house, "call_tool", through("a")).await), "FORBIDDEN");

    let write = |path: &str| json!({"tool": "write_file", "input": {"path": path, "content": "text\n"}});
    assert_eq!(call(&house, "call_tool", write("src/a")).await.end.status(), "pending");
    let bounds = WrittenBounds { paths: Some(vec!["src/**".into()]), ..WrittenBounds::default() };
    let grant = Grant::new("write_file", Bounds::try_from(bounds).unwrap());
    house.store.remember(&house.scope, &grant).await.unwrap();
    let covered = call(&house, "call_tool", write("src/a")).await;
    assert_eq!((covered.tool.as_str(), covered.grant), ("write_file", Some(grant.id)));
    assert_eq!(stage.text("src/a").as_deref(), Some("text\n"));
    assert_eq!(call(&house, "call_tool", write("elsewhere")).await.end.status(), "pending");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_sees_what_a_handed_on_call_does() {
    let stage = Stage::new();
    let house = stage.house().await;
    let wishes = [
        json!({"tool": "write_file", "input": {"path": "a", "content": "one\n"}}),
        json!({"tool": "read_file", "input": {"path": "a"}}),
        json!({"tool": "read_file", "input": {"path": "a"}}),
    ];
    let wishes = wishes.into_iter().enumerate().map(|(at, input)| {
        let mut wish = request(&house, "call_tool", input);
        wish.auto_approve = AutoApprove::Everything;
        (at, Wish::Call(Box::new(wish)))
    });
    let wishes = stream::iter(wishes.collect::<Vec<_>>());
    let ended: Vec<_> = house.pipeline.batch(wishes, &<_>::default()).collect().await;
    let order: Vec<usize> = ended.iter().map(|(at, _)| *at).collect();
    assert_eq!(order, [0, 1, 2]);
    assert_eq!(success(&ended[2].1).structured["content"], "one\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_catalogue_that_is_searched_is_the_one_there_is_now() {
    let stage = Stage::new();
    let house = large_house(&stage).await;
    let find = async |query: &str| {
        let outcome = call(&house, "find_tools", json!({"query": query, "limit": 1})).await;
        success(&outcome).structured["tools"][0]["name"].clone()
    };
    assert_eq!(find(TICKET).await, TICKET);
    house.registry.exchange(&[TICKET.to_owned()], vec![upstream("mcp__hub__close_ticket", "Closes a ticket.")]);
    assert_eq!(find("ticket").await, "mcp__hub__close_ticket");
}
