//! A tool of an upstream server, as any other tool.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use futures_util::future::BoxFuture;
use haft_runtime::{
    AnyTool, Asks, Caller, Described, Effect, ErrorCode, Isolation, Prepared, Ran, Reach, Shape, Shown, ToolCtx,
    ToolError, ToolOutput, ToolSpec,
};
use serde_json::Value;
use tokio::time::timeout;

use super::{
    answer,
    connection::UpstreamError,
    definition::{ToolDefinition, tool_name},
    pins::ServerPins,
    server::{CALL_PATIENCE, Upstream, UpstreamSpec},
};

/// How long one call may take that goes on telling of its progress; the house may allow less.
const LONGEST: Duration = Duration::from_secs(3600);
/// What upstream tools belong to.
const CATEGORY: &str = "mcp";

/// The tools of a server that were accepted and are used.
pub fn tools_of(upstream: &Arc<Upstream>, pins: &ServerPins) -> Vec<Arc<dyn AnyTool>> {
    let used = pins.tools().filter(|tool| upstream.spec.uses(&tool.name));
    used.map(|tool| -> Arc<dyn AnyTool> {
        Arc::new(UpstreamTool {
            spec: spec(&upstream.spec, tool),
            upstream: Arc::clone(upstream),
            is_held: pins.is_held(&tool.name),
            definition: tool.clone(),
            output: OnceLock::new(),
        })
    })
    .collect()
}

/// That a tool is held which was accepted as something else, and what to do about it.
fn held(upstream: &UpstreamSpec, tool: &str) -> ToolError {
    held_because("is no longer what was accepted", upstream, tool)
}

/// The same of one that the server had not when its tools were accepted.
pub(super) fn held_as_new(upstream: &UpstreamSpec, tool: &str) -> ToolError {
    held_because("was never accepted", upstream, tool)
}

fn held_because(why: &str, upstream: &UpstreamSpec, tool: &str) -> ToolError {
    let (server, accept) = (upstream.name.as_str(), upstream.entry.to_accept(&upstream.name));
    let message = format!("`{tool}` of the MCP server `{server}` {why}, so it was not called; {accept}");
    ToolError::new(ErrorCode::ToolHeld, message).with("server", server).with("tool", tool)
}

struct UpstreamTool {
    spec: ToolSpec,
    upstream: Arc<Upstream>,
    definition: ToolDefinition,
    /// Whether it was known to differ when this was made.
    is_held: bool,
    /// What the server says comes out, made ready when something does.
    output: OnceLock<Option<Shape>>,
}

impl UpstreamTool {
    async fn call(&self, ctx: &ToolCtx, input: &Value) -> Result<ToolOutput, ToolError> {
        let tool = &self.definition.name;
        let upstream = &self.upstream.used_by(&ctx.caller).await?;
        let _use = upstream.begin_use();
        let connection = tokio::select! {
            connection = timeout(CALL_PATIENCE, upstream.connection()) => {
                connection.unwrap_or_else(|_late| Err(upstream.still_starts(CALL_PATIENCE)))?
            }
            () = ctx.cancel.cancelled() => {
                return Err(ToolError::new(ErrorCode::Cancelled, "the call was cancelled").having_done_nothing());
            }
        };
        let (now, news) = match connection.definition(tool).await {
            Ok(found) => found,
            Err(trouble) => return Err(told(upstream, trouble).await.having_done_nothing()),
        };
        if let Some(contact) = news {
            upstream.heard(contact).await;
        }
        // Invariant: nothing is sent to a tool that is not what was accepted.
        if now.as_ref() != Some(&self.definition) {
            return Err(held(&self.upstream.spec, tool));
        }
        match connection.call(ctx, (tool, input), self.upstream.spec.timeout).await {
            Ok(result) => {
                upstream.worked().await;
                let output = answer::read(result).map_err(|error| self.upstream.with_write_hint(error))?;
                self.conforming(output)
            }
            Err(trouble) => Err(told(upstream, trouble).await),
        }
    }

    /// Asks the server itself whether it has come back to what was accepted.
    async fn is_as_accepted_again(&self, caller: &Caller) -> bool {
        let Ok(upstream) = self.upstream.used_by(caller).await else { return false };
        let _use = upstream.begin_use();
        let Ok(connection) = upstream.connection().await else { return false };
        let Ok((now, news)) = connection.definition(&self.definition.name).await else { return false };
        if let Some(contact) = news {
            upstream.heard(contact).await;
        }
        now.as_ref() == Some(&self.definition)
    }

    /// A server that lies about what comes out is not believed.
    fn conforming(&self, output: ToolOutput) -> Result<ToolOutput, ToolError> {
        let made = || self.definition.output().and_then(|schema| Shape::new(&schema).ok());
        let Some(shape) = self.output.get_or_init(made) else { return Ok(output) };
        shape.fault(&output.structured).map_or(Ok(output), |why| {
            let (server, tool) = (&self.upstream.spec.name, &self.definition.name);
            let message = format!(
                "the result of `{tool}` does not fit what the MCP server `{server}` says comes out of it: {why}; the tool \
                 did run, so do not repeat the call"
            );
            Err(ToolError::new(ErrorCode::OutputInvalid, message))
        })
    }
}

async fn told(upstream: &Upstream, trouble: UpstreamError) -> ToolError {
    match trouble {
        UpstreamError::Broke(why) => upstream.broke(&why).await,
        UpstreamError::Unreachable(why) => upstream.broke(&why).await.having_done_nothing(),
        UpstreamError::Refused(error) => error,
    }
}

impl AnyTool for UpstreamTool {
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
        ctx: &'a ToolCtx,
        _input: &'a Value,
    ) -> BoxFuture<'a, Result<Prepared<ToolOutput>, ToolError>> {
        let (upstream, tool) = (&self.upstream.spec, &self.definition.name);
        Box::pin(async move {
            // Nobody is asked about what would not be done.
            if self.is_held && !self.is_as_accepted_again(&ctx.caller).await {
                return Err(held(upstream, tool));
            }
            Ok(described(upstream, tool))
        })
    }

    fn run<'a>(&'a self, ctx: &'a ToolCtx, input: &'a Value) -> BoxFuture<'a, Result<Ran<ToolOutput>, ToolError>> {
        Box::pin(async move {
            let output = self.call(ctx, input).await.map_err(|mut error| {
                error.message = self.upstream.without_secrets(&error.message);
                error
            })?;
            Ok(Ran::Done { output, isolation: isolation(&self.upstream.spec), staged: None })
        })
    }
}

fn described(upstream: &UpstreamSpec, tool: &str) -> Prepared<ToolOutput> {
    let UpstreamSpec { name, command, .. } = upstream;
    let reaches = if upstream.network { ", which reaches any host, this machine included" } else { "" };
    let preview = format!("asks the MCP server `{name}` (`{command}`){reaches} for `{tool}`; it cannot be undone");
    // The user has put the host down as a server, so that reading from it needs no other list.
    let reach = upstream.host.clone().map(|host| Reach { host, listed: true, sends: true });
    Prepared::Plain(Described { isolation: isolation(upstream), reach, ..Described::showing(preview) })
}

/// The rung of the server's process, where it has one here.
fn isolation(upstream: &UpstreamSpec) -> Option<Isolation> {
    upstream.host.is_none().then_some(Isolation::Namespaces)
}

fn spec(upstream: &UpstreamSpec, tool: &ToolDefinition) -> ToolSpec {
    let title = tool.title.clone().filter(|title| !title.is_empty()).unwrap_or_else(|| tool.name.clone());
    let said = tool.description.as_deref().map(str::trim).filter(|text| !text.is_empty());
    let description =
        said.map_or_else(|| format!("`{}` of the MCP server `{}`.", tool.name, upstream.name), str::to_owned);
    ToolSpec {
        name: tool_name(&upstream.name, &tool.name),
        title,
        description,
        category: CATEGORY.to_owned(),
        input_schema: tool.fitting_input(),
        output_schema: tool.fitting_output(),
        example: None,
        effect: effect(upstream, tool),
        aliases: Vec::new(),
        permission: "tools.tenant.execute".to_owned(),
        deprecated_aliases: Vec::new(),
        parameter_aliases: Vec::new(),
        timeout: upstream.timeout.max(LONGEST),
        asks: Asks::ByEffect,
        idempotent: upstream.trusted && tool.hints("idempotentHint"),
        open_world: upstream.network || upstream.host.is_some(),
    }
}

/// The user's word, then the server's as far as it is believed.
fn effect(upstream: &UpstreamSpec, tool: &ToolDefinition) -> Effect {
    upstream.effects.get(&tool.name).copied().unwrap_or_else(|| tool.effect(upstream.trusted))
}
