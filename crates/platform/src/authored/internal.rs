//! A tool that does nothing: its arguments come back, for whoever draws them.

use futures_util::future::BoxFuture;
use haft_runtime::{AnyTool, Described, Effect, Prepared, Ran, Shown, ToolCtx, ToolError, ToolOutput, ToolSpec};
use serde_json::{Value, json};

/// Gives its arguments back.
pub(super) struct InternalTool(pub(super) ToolSpec);

impl AnyTool for InternalTool {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn shown(&self) -> Shown {
        Shown::WhileThereIsRoom
    }

    fn effect(&self, _input: &Value) -> Effect {
        self.0.effect
    }

    fn prepare<'a>(
        &'a self,
        _ctx: &'a ToolCtx,
        _input: &'a Value,
    ) -> BoxFuture<'a, Result<Prepared<ToolOutput>, ToolError>> {
        Box::pin(std::future::ready(Ok(Prepared::Plain(Described::default()))))
    }

    fn run<'a>(&'a self, _ctx: &'a ToolCtx, input: &'a Value) -> BoxFuture<'a, Result<Ran<ToolOutput>, ToolError>> {
        let value = json!({"success": true, "args": input});
        let output = ToolOutput { content: value.to_string(), structured: value.into(), ..ToolOutput::default() };
        Box::pin(std::future::ready(Ok(Ran::plain(output))))
    }
}
