//! What the definitions cost a model, and which of them it is shown.

use std::sync::Arc;

use haft_runtime::{MOST_TOKENS, PinnedTools, RegisteredTool, Shown, ToolListing};

use crate::show::{
    Out,
    safe::safe,
    style::{DIM, WARN},
    table::table,
};

/// The catalogue as models are shown it.
pub(super) struct Costs {
    pub(super) listing: Arc<ToolListing>,
    pub(super) pins: PinnedTools,
}

impl Costs {
    /// Whether models are shown a tool, in a word.
    pub(super) fn standing(&self, tool: &RegisteredTool) -> &'static str {
        match tool.shown() {
            Shown::Always | Shown::ForOthers => "always",
            Shown::Never => "never",
            Shown::WhileThereIsRoom if self.pins.name(&tool.spec().name) => "pinned",
            Shown::WhileThereIsRoom if self.listing.deferred().is_empty() => "fits",
            Shown::WhileThereIsRoom => "deferred",
        }
    }

    pub(super) fn list(&self, out: &Out, tools: &[Arc<RegisteredTool>]) {
        let row = |tool: &Arc<RegisteredTool>| {
            let spec = tool.spec();
            let tokens = tool.tokens().to_string();
            vec![spec.name.clone(), super::effect(spec), tokens, self.standing(tool).to_owned(), super::first(spec)]
        };
        let rows: Vec<Vec<String>> = tools.iter().map(row).collect();
        out.text(&table(&["TOOL", "EFFECT", "TOKENS", "SHOWN", "WHAT IT DOES"], &rows));
        out.line(&format!("{DIM}{} tokens in all{DIM:#}", sum(tools)));
        self.explain(out);
    }

    fn explain(&self, out: &Out) {
        let deferred = self.listing.deferred();
        if !deferred.is_empty() {
            let (shown, left) = (sum(self.listing.offered()), sum(deferred));
            out.line(&format!("models are shown {} tools for {shown} tokens", self.listing.offered().len()));
            out.line(&format!(
                "deferred are {} of upstream servers for {left}: all of theirs cost more than {MOST_TOKENS}",
                deferred.len()
            ));
            out.line("`find_tools` finds them, `call_tool` calls them; `mcp.pins` keeps chosen ones shown");
        }
        for pin in self.pins.idle(&self.listing.tools()) {
            out.line(&format!("{WARN}`{}` in mcp.pins names no tool{WARN:#}", safe(pin)));
        }
    }
}

fn sum(tools: &[Arc<RegisteredTool>]) -> usize {
    tools.iter().map(|tool| tool.tokens()).sum()
}
