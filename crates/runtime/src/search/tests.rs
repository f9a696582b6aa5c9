//! What is found, in which order, and what costs too much to be looked for.

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::{humps, words};
use crate::{
    AnyTool, Asks, Caller, Catalog, Effect, ErrorCode, Layers, MOST_TOKENS, PinnedTools, Prepared, Ran, RegisteredTool,
    Registry, Scope, Shown, Source, ToolCtx, ToolError, ToolListing, ToolOutput, ToolSpec, Tools,
};

/// A tool from elsewhere that is only a definition.
struct Foreign {
    spec: ToolSpec,
    shown: Shown,
}

impl AnyTool for Foreign {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn shown(&self) -> Shown {
        self.shown
    }

    fn effect(&self, _input: &Value) -> Effect {
        Effect::Write
    }

    fn prepare<'a>(
        &'a self,
        _ctx: &'a ToolCtx,
        _input: &'a Value,
    ) -> BoxFuture<'a, Result<Prepared<ToolOutput>, ToolError>> {
        Box::pin(async { Err(ToolError::new(ErrorCode::Internal, "only a definition")) })
    }

    fn run<'a>(&'a self, _ctx: &'a ToolCtx, _input: &'a Value) -> BoxFuture<'a, Result<Ran<ToolOutput>, ToolError>> {
        Box::pin(async { Err(ToolError::new(ErrorCode::Internal, "only a definition")) })
    }
}

pub(crate) fn tool(name: &str, description: &str, properties: &Value, shown: Shown) -> Arc<dyn AnyTool> {
    let spec = ToolSpec {
        name: name.to_owned(),
        title: name.to_owned(),
        description: description.to_owned(),
        category: "test".to_owned(),
        input_schema: json!({"type": "object", "properties": properties}),
        output_schema: json!({"type": "object"}),
        example: None,
        effect: Effect::Write,
        aliases: Vec::new(),
        permission: Effect::Write.workspace_permission().to_owned(),
        deprecated_aliases: Vec::new(),
        parameter_aliases: Vec::new(),
        timeout: Duration::from_secs(1),
        asks: Asks::ByEffect,
        idempotent: false,
        open_world: false,
    };
    Arc::new(Foreign { spec, shown })
}

/// A catalogue of one layer, which can be changed.
struct Small {
    registry: Arc<Registry>,
    layers: Layers,
}

impl Small {
    fn of(tools: impl IntoIterator<Item = Arc<dyn AnyTool>>, pins: PinnedTools) -> Self {
        let registry = Arc::new(Registry::with(tools).unwrap());
        Self { layers: Layers::new(vec![registry.clone()]).pinning(pins), registry }
    }

    fn tools(&self) -> Arc<Tools> {
        self.layers.tools(&anybody())
    }

    fn listing(&self) -> Arc<ToolListing> {
        self.tools().listing()
    }
}

fn anybody() -> Caller {
    Caller::owner("ann", Scope::local("here"), Source::Cli)
}

fn catalogue() -> Small {
    let always = |name, description, properties: Value| tool(name, description, &properties, Shown::Always);
    let text = json!({"type": "string"});
    let tools = [
        always("mcp__hub__create_issue", "Opens a ticket in a repository.", json!({"title": text})),
        always("mcp__hub__list_issues", "Lists tickets.", json!({"state": text})),
        always("mcp__mail__send", "Sends a letter.", json!({"to": {"description": "Who gets the parcel."}})),
        always("mcp__db__runQuery", "Asks a GitHub database.", json!({"sql": {"properties": {"dialect": text}}})),
        tool("find_tools", "Finds tickets.", &json!({}), Shown::ForOthers),
        tool("hidden", "Opens tickets in secret.", &json!({}), Shown::Never),
    ];
    Small::of(tools, PinnedTools::default())
}

fn found(query: &str) -> Vec<String> {
    catalogue().listing().find(query, 10).iter().map(|found| found.tool.spec().name.clone()).collect()
}

#[test]
fn the_very_name_comes_first_and_words_after_it() {
    let listing = catalogue().listing();
    let fitting = listing.find(" MCP__hub__list_issues ", 10);
    assert_eq!((fitting[0].tool.spec().name.as_str(), fitting[0].score), ("mcp__hub__list_issues", 1.0));
    assert!(fitting.len() > 1 && fitting[1..].iter().all(|other| other.score > 0.0 && other.score < 1.0));
    assert_eq!(listing.find("mcp__hub__list_issues", 1).len(), 1);
}

#[test]
fn words_are_looked_for_everywhere() {
    assert_eq!(found("create an issue")[0], "mcp__hub__create_issue");
    assert_eq!(found("issues"), ["mcp__hub__list_issues", "mcp__hub__create_issue"], "one or many; the shorter first");
    assert_eq!(found("parcel"), ["mcp__mail__send"], "in what is said of a parameter");
    assert_eq!(found("dialect"), ["mcp__db__runQuery"], "in a parameter of a parameter");
    assert_eq!(found("query"), ["mcp__db__runQuery"], "in a part of a name");
    assert_eq!(found("github"), ["mcp__db__runQuery"]);
    assert_eq!(found("repo"), ["mcp__hub__create_issue"], "by the beginning of a word");
    assert_eq!(found("secret"), Vec::<String>::new(), "nobody has set it up");
    assert!(!found("tickets").contains(&"find_tools".to_owned()));
    for nothing in ["", "  ", "***", "zzz", "re"] {
        assert_eq!(found(nothing), Vec::<String>::new(), "{nothing:?}");
    }
}

#[test]
fn names_are_taken_apart() {
    assert_eq!(humps("readHTTPBody"), ["read", "HTTP", "Body"]);
    assert_eq!(humps("utf8"), ["utf8"]);
    assert_eq!(humps("ÄrgerÜber"), ["Ärger", "Über"]);
    let taken: Vec<String> = words("mcp__a-b__getFiles, GLASS").collect();
    assert_eq!(taken, ["mcp", "a", "b", "getfile", "get", "file", "glass"]);
}

fn names(tools: &[Arc<RegisteredTool>]) -> Vec<&str> {
    tools.iter().map(|tool| tool.spec().name.as_str()).collect()
}

fn many(count: usize) -> Vec<Arc<dyn AnyTool>> {
    let long = "words ".repeat(100);
    (0..count).map(|at| tool(&format!("mcp__x__t{at:04}"), &long, &json!({}), Shown::WhileThereIsRoom)).collect()
}

#[test]
fn what_can_be_found_is_shown_as_long_as_it_costs_little() {
    let small = catalogue();
    let registry = &small.registry;
    assert!(registry.exchange(&[], many(20)).is_empty());
    let listing = small.listing();
    assert!(listing.deferred().is_empty() && listing.offered().len() == 24);
    assert!(!names(listing.offered()).contains(&"find_tools"), "it would find nothing more");
    assert!(Arc::ptr_eq(&listing, &small.listing()), "the same until something changes");
    let all: Vec<String> = listing.tools().iter().map(|tool| tool.spec().name.clone()).collect();
    assert_eq!(all, small.tools().specs().into_iter().map(|spec| spec.name).collect::<Vec<_>>());

    let failed = registry.exchange(&["mcp__x__t0000".to_owned()], many(80));
    assert_eq!(failed.len(), 19, "those that were there and stayed");
    let listing = small.listing();
    assert_eq!((listing.deferred().len(), listing.offered().len()), (80, 5));
    assert!(names(listing.offered()).contains(&"find_tools"));
    assert!(listing.tools().iter().map(|tool| tool.tokens()).sum::<usize>() > MOST_TOKENS);
    assert_eq!(listing.find("mcp__x__t0042", 1)[0].tool.spec().name, "mcp__x__t0042");
}

#[tokio::test]
async fn nobody_is_sent_to_a_tool_that_is_not_listed() {
    async fn said(small: &Small, name: &str) -> String {
        small.layers.find(&anybody(), name).await.err().unwrap().message
    }
    let small = catalogue();
    for name in ["find_tool", "hiden"] {
        let said = said(&small, name).await;
        assert!(!said.contains("did you mean"), "{said}");
    }
    assert!(said(&small, "mcp__mail__sent").await.contains("did you mean `mcp__mail__send`?"));
    small.registry.exchange(&[], many(80));
    assert!(said(&small, "find_tool").await.contains("did you mean `find_tools`?"));
    assert!(said(&small, "mcp__x__t0042x").await.contains("did you mean `mcp__x__t0042`?"));
}

#[test]
fn pins_keep_tools_in_sight() {
    let pinned = Small::of(many(80), PinnedTools(vec!["*__t000?".into(), "*__t001*".into()]));
    let listing = pinned.listing();
    assert_eq!((listing.offered().len(), listing.deferred().len()), (10, 70));
    assert_eq!(PinnedTools(vec!["*__t000?".into(), "*1*".into()]).idle(listing.tools()), ["*__t000?"]);
    assert!(pinned.registry.unregister("mcp__x__t0010"));
    assert_eq!(pinned.listing().offered().len(), 9, "after a change too");
    let all = Small::of(many(80), PinnedTools(vec!["*".into()]));
    assert!(all.listing().deferred().is_empty());
}

#[test]
fn long_texts_are_read_only_so_far() {
    let endless = "word ".repeat(100_000);
    let one = RegisteredTool::new(tool("mcp__x__long", &endless, &json!({}), Shown::Always)).unwrap();
    let listing = ToolListing::of([&Arc::new(one)], &PinnedTools::default());
    assert_eq!(listing.find(&endless, 5).len(), 1);
}
