//! What the definitions cost a model, and which of them it is shown.

use haft_runtime::{MOST_TOKENS, PinnedTools, RegisteredTool, Shown, ToolListing};

use crate::{
    backend::ListedTool,
    show::{
        Out,
        safe::safe,
        style::{DIM, WARN},
        table::table,
        time::count,
    },
};

/// Models find it by a search alone.
const DEFERRED: &str = "deferred";
/// Models are not shown it.
const NEVER: &str = "never";

/// Whether models are shown a tool, in a word.
pub(super) fn standing(tool: &RegisteredTool, listing: &ToolListing, pins: &PinnedTools) -> &'static str {
    match tool.shown() {
        Shown::Always | Shown::ForOthers => "always",
        Shown::Never => NEVER,
        Shown::WhileThereIsRoom if pins.name(&tool.spec().name) => "pinned",
        Shown::WhileThereIsRoom if listing.deferred().is_empty() => "fits",
        Shown::WhileThereIsRoom => DEFERRED,
    }
}

/// Lists tools with what they cost, and says which of all are not shown.
pub(super) fn list(out: &Out, tools: &[ListedTool], all: &[ListedTool], idle_pins: &[String]) {
    let row = |tool: &ListedTool| {
        let spec = &tool.spec;
        let tokens = tool.tokens.to_string();
        vec![spec.name.clone(), super::effect(spec), tokens, tool.shown.clone(), super::first(spec)]
    };
    let rows: Vec<Vec<String>> = tools.iter().map(row).collect();
    out.text(&table(&["TOOL", "EFFECT", "TOKENS", "SHOWN", "WHAT IT DOES"], &rows));
    out.line(&format!("{DIM}{} tokens in all{DIM:#}", sum(tools.iter())));
    let deferred: Vec<&ListedTool> = all.iter().filter(|tool| tool.shown == DEFERRED).collect();
    if !deferred.is_empty() {
        let offered: Vec<&ListedTool> =
            all.iter().filter(|tool| tool.shown != DEFERRED && tool.shown != NEVER).collect();
        let (shown, left) = (sum(offered.iter().copied()), sum(deferred.iter().copied()));
        out.line(&format!("models are shown {} tools for {shown} tokens", offered.len()));
        out.line(&format!(
            "{} ({left} tokens) are not shown: together they exceed {MOST_TOKENS}.",
            count(deferred.len(), "upstream tool")
        ));
        out.line("Models find them with `find_tools` and call them with `call_tool`. `mcp.pins` keeps some shown.");
    }
    for pin in idle_pins {
        out.line(&format!("{WARN}`{}` in mcp.pins names no tool{WARN:#}", safe(pin)));
    }
}

fn sum<'a>(tools: impl Iterator<Item = &'a ListedTool>) -> usize {
    tools.map(|tool| tool.tokens).sum()
}
