//! Ten thousand tools: what a call costs beside them, and what it takes to find one.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use futures_util::future::BoxFuture;
use haft::house::House;
use haft_runtime::{
    AnyTool, Asks, CallRequest, Effect, End, Prepared, Ran, Shown, ToolCtx, ToolError, ToolOutput, ToolSpec,
};
use serde_json::{Value, json};

use crate::{Measured, line::house_in, median, memory};

const TOOLS: usize = 10_000;
const LAPS: usize = 2000;
const VERBS: [&str; 10] =
    ["create", "list", "delete", "update", "search", "merge", "close", "assign", "export", "archive"];
const NOUNS: [&str; 10] =
    ["issue", "branch", "ticket", "invoice", "page", "channel", "deployment", "alert", "customer", "calendar"];

/// A tool of an upstream server that does nothing.
struct NoopTool(ToolSpec);

impl AnyTool for NoopTool {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn shown(&self) -> Shown {
        Shown::WhileThereIsRoom
    }

    fn effect(&self, _input: &Value) -> Effect {
        Effect::Read
    }

    fn prepare<'a>(
        &'a self,
        _ctx: &'a ToolCtx,
        _input: &'a Value,
    ) -> BoxFuture<'a, Result<Prepared<ToolOutput>, ToolError>> {
        Box::pin(async { Ok(Prepared::Plain(haft_runtime::Described::default())) })
    }

    fn run<'a>(&'a self, _ctx: &'a ToolCtx, _input: &'a Value) -> BoxFuture<'a, Result<Ran<ToolOutput>, ToolError>> {
        let output = ToolOutput { structured: json!({}).into(), ..ToolOutput::default() };
        Box::pin(async { Ok(Ran::plain(output)) })
    }
}

fn upstream(at: usize) -> Arc<dyn AnyTool> {
    let (verb, noun) = (VERBS[at % 10], NOUNS[at / 10 % 10]);
    let text = |about: &str| json!({"type": "string", "description": format!("The {about} of the {noun} to {verb}.")});
    let properties =
        json!({"owner": text("owner"), "name": text("name"), "label": text("label"), "since": text("age")});
    Arc::new(NoopTool(ToolSpec {
        name: format!("mcp__server{}__{verb}_{noun}", at / 100),
        title: format!("{verb} {noun}"),
        description: format!(
            "Can {verb} one {noun} of the project number {at}. Use it when somebody asks to {verb} a {noun}, and not for \
             anything else. The answer names the {noun} and says when it was last changed and by whom."
        ),
        category: "mcp".to_owned(),
        input_schema: json!({"type": "object", "properties": properties}),
        output_schema: json!({"type": "object"}),
        example: None,
        effect: Effect::Read,
        aliases: Vec::new(),
        permission: "tools.tenant.execute".to_owned(),
        deprecated_aliases: Vec::new(),
        parameter_aliases: Vec::new(),
        timeout: Duration::from_secs(1),
        asks: Asks::ByEffect,
        idempotent: false,
        open_world: false,
    }))
}

/// The same calls with one such tool and with ten thousand, in turns.
pub(crate) async fn measure() -> Result<Vec<Measured>> {
    let (one, many) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let (small, large) = (house_in(one.path()).await?, house_in(many.path()).await?);
    small.registry.exchange(&[], vec![upstream(0)]);
    let before = private()?;
    let begin = Instant::now();
    let failed = large.registry.exchange(&[], (0..TOOLS).map(upstream).collect());
    let taken_in = begin.elapsed();
    ensure!(failed.is_empty(), "{failed:?}");
    let begin = Instant::now();
    ensure!(large.tools().listing().deferred().len() == TOOLS, "all are deferred");
    large.tools().listing().find("anything", 1);
    let listed = begin.elapsed();
    let each = (private()? - before) / TOOLS as u64;
    // Calls come from tasks of the runtime, as they do in a server.
    tokio::spawn(async move {
        let (few, most) = side_by_side(&small, &large).await?;
        let (calls, alone) = searches(&large).await?;
        let (p99, p99_alone) = (calls[LAPS * 99 / 100], alone[LAPS * 99 / 100]);
        small.close().await?;
        large.close().await?;
        Ok(vec![
            Measured::new(
                "taking 10,000 tools in, and first listing them",
                format!("{taken_in:.0?}, {listed:.0?}"),
                "",
                true,
            ),
            Measured::new("memory of each of them", format!("{} KB", each / 1024), "≤ 64 KB", each <= 64 << 10),
            Measured::new(
                "an empty call beside 10,000 tools",
                format!("p50 {most:.1?} (beside one {few:.1?})"),
                "≤ 1.1 × beside one",
                most.as_secs_f64() <= 1.1 * few.as_secs_f64(),
            ),
            Measured::new(
                "find_tools among 10,000",
                format!("p50 {:.0?}, p99 {p99:.1?} (search p99 {p99_alone:.1?})", calls[LAPS / 2]),
                "p99 < 5 ms",
                p99 < Duration::from_millis(5),
            ),
        ])
    })
    .await?
}

async fn side_by_side(small: &House, large: &House) -> Result<(Duration, Duration)> {
    let (mut few, mut most) = (Vec::new(), Vec::new());
    for _ in 0..LAPS {
        few.push(lap(small, "mcp__server0__create_issue", json!({})).await?);
        most.push(lap(large, "mcp__server0__create_issue", json!({})).await?);
    }
    Ok((median(few), median(most)))
}

/// Whole calls, and the searches by themselves, sorted by the time they took.
async fn searches(house: &House) -> Result<(Vec<Duration>, Vec<Duration>)> {
    let (mut calls, mut alone) = (Vec::new(), Vec::new());
    let listing = house.tools().listing();
    for at in 0..LAPS {
        let (verb, noun) = (VERBS[at % 10], NOUNS[at / 10 % 10]);
        let query = match at % 4 {
            0 => format!("mcp__server{}__{verb}_{noun}", at % 100),
            1 => format!("{verb} {noun}"),
            2 => format!("how can I {verb} the {noun} of a customer and name its owner"),
            _ => format!("the project {at}"),
        };
        let begin = Instant::now();
        ensure!(!listing.find(&query, 10).is_empty(), "{query} finds nothing");
        alone.push(begin.elapsed());
        calls.push(lap(house, "find_tools", json!({"query": query})).await?);
    }
    calls.sort();
    alone.sort();
    Ok((calls, alone))
}

async fn lap(house: &House, tool: &str, input: Value) -> Result<Duration> {
    let request = CallRequest::new(house.caller.clone(), tool, input);
    let begin = Instant::now();
    let outcome = house.pipeline.call(request).await;
    let taken = begin.elapsed();
    ensure!(matches!(outcome.end, End::Success { .. }), "{outcome:?}");
    Ok(taken)
}

/// The memory that this process holds for itself.
fn private() -> Result<u64> {
    Ok(memory::private(std::process::id()).context("the kernel says nothing of this process's memory")? * 1024)
}
