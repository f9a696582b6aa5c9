//! A tool whose result somebody outside gives: a program, or a person where it is shown.

use futures_util::future::BoxFuture;
use haft_runtime::{
    AnyTool, CallerWait, Described, Effect, Prepared, Ran, Shown, ToolCtx, ToolError, ToolOutput, ToolSpec, WaitFor,
};
use serde_json::{Value, json};

use super::definition::{AuthoredTool, USUAL_TIMEOUT, millis};

/// Waits for its result.
pub(super) struct ExternalTool {
    spec: ToolSpec,
    tool: AuthoredTool,
}

impl ExternalTool {
    pub(super) fn new(tool: &AuthoredTool) -> Self {
        Self { spec: tool.spec(), tool: tool.clone() }
    }

    /// What it waits for.
    fn awaited(&self) -> WaitFor {
        let schema = self.tool.output_schema.clone().unwrap_or_else(|| json!({}));
        let mut wait = WaitFor::result(format!("the result of `{}`", self.spec.name), schema);
        if let Some(expires_after) = millis(self.tool.expires_after) {
            wait.expires_after = expires_after;
        }
        wait.execution_type = self.tool.execution_type.word().to_owned();
        wait.caller = match self.tool.is_async {
            true => CallerWait::Async,
            false => CallerWait::Sync { within: millis(self.tool.timeout).unwrap_or(USUAL_TIMEOUT) },
        };
        wait
    }
}

impl AnyTool for ExternalTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn shown(&self) -> Shown {
        Shown::WhileThereIsRoom
    }

    fn effect(&self, _input: &Value) -> Effect {
        self.spec.effect
    }

    fn prepare<'a>(
        &'a self,
        _ctx: &'a ToolCtx,
        _input: &'a Value,
    ) -> BoxFuture<'a, Result<Prepared<ToolOutput>, ToolError>> {
        let described = Described::showing("somebody outside does it and gives the result");
        Box::pin(std::future::ready(Ok(Prepared::Plain(described))))
    }

    fn run<'a>(&'a self, _ctx: &'a ToolCtx, _input: &'a Value) -> BoxFuture<'a, Result<Ran<ToolOutput>, ToolError>> {
        Box::pin(std::future::ready(Ok(Ran::Waits(self.awaited()))))
    }
}
