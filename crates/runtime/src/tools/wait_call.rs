//! `wait_call`

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::{Calls, call_id};
use crate::{
    Asks, Audio, CallId, ChangeList, Effect, Embedded, End, ErrorCode, HandedOn, Image, Outcome, Output, Ran, Tool,
    ToolCtx, ToolError, ToolFacts, ToolOutput,
};

pub(super) struct WaitCall(pub(super) Calls);

/// Wait for a call that returned PENDING and return its result once a person has answered. Still pending: call again,
/// or end your turn and tell the user what to approve. Never repeat the original call.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// The call's id.
    #[serde(deserialize_with = "call_id")]
    call_id: CallId,
    /// How long to wait.
    #[serde(default = "default_timeout")]
    #[schemars(range(max = 240_000))]
    timeout_ms: u64,
}

fn default_timeout() -> u64 {
    45_000
}

/// That a result is not the whole, and what of its value is not, in its metadata.
const CUTS: [&str; 2] = ["truncated", "cut"];
/// Where the value of the other call stands in this one.
const RESULT: &str = "/result";

#[derive(Serialize, JsonSchema)]
pub(super) struct WaitCallOutput {
    /// The status of the call: `pending` while it still waits.
    status: String,
    /// The tool that was called, once it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    /// The value that it gave. What can only be seen or heard stands beside it.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
    /// Why it gave nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("type" = "object"))]
    error: Option<Value>,
    /// The files that it changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    changed: Option<Vec<String>>,
    /// What it gave, or why it gave nothing.
    #[serde(skip)]
    said: Option<String>,
    /// What it gave beside its text and its value.
    #[serde(skip)]
    beside: ToolOutput,
    #[serde(skip)]
    handed_on: Option<Box<HandedOn>>,
}

impl WaitCallOutput {
    fn pending() -> Self {
        Self {
            status: "pending".to_owned(),
            tool: None,
            result: None,
            error: None,
            changed: None,
            said: None,
            beside: ToolOutput::default(),
            handed_on: None,
        }
    }

    /// How the call has ended; its result is handed on as it was given.
    fn of(outcome: Outcome) -> Result<Self, ToolError> {
        let unreadable = |err| ToolError::new(ErrorCode::Internal, format!("unreadable outcome: {err}"));
        let error = outcome.end.error().map(serde_json::to_value).transpose().map_err(unreadable)?;
        let mut ended = Self {
            status: outcome.end.status().to_owned(),
            said: said(&outcome),
            tool: Some(outcome.tool.clone()),
            error,
            changed: outcome.changes.as_ref().map(ChangeList::paths),
            ..Self::pending()
        };
        if let End::Success { result } = outcome.end {
            let cuts = result.metadata.iter().filter(|(name, _)| CUTS.contains(&name.as_str()));
            ended.beside.metadata.extend(cuts.map(|(name, is)| (name.clone(), is.clone())));
            ended.result = Some(result.structured.into_value()).filter(|value| !value.is_null());
            (ended.beside.images, ended.beside.audio) = (result.images, result.audio);
            ended.beside.resources = result.resources;
            let (call, tool) = (outcome.tool_call_id, outcome.tool);
            ended.handed_on = Some(Box::new(HandedOn { call, tool, at: RESULT.to_owned() }));
        }
        Ok(ended)
    }
}

impl Output for WaitCallOutput {
    fn text(&self) -> String {
        match &self.said {
            Some(said) => format!("{}{said}", self.status),
            None => self.status.clone(),
        }
    }

    fn metadata(&self) -> Map<String, Value> {
        self.beside.metadata.clone()
    }

    fn images(&mut self) -> Vec<Image> {
        std::mem::take(&mut self.beside.images)
    }

    fn audio(&mut self) -> Vec<Audio> {
        std::mem::take(&mut self.beside.audio)
    }

    fn resources(&mut self) -> Vec<Embedded> {
        std::mem::take(&mut self.beside.resources)
    }

    fn handed_on(&self) -> Option<Box<HandedOn>> {
        self.handed_on.clone()
    }
}

/// How a call ended, for somebody who reads only the text, behind its status.
fn said(outcome: &Outcome) -> Option<String> {
    match &outcome.end {
        End::Success { result } if result.is_shortened() => {
            let (call, content) = (&outcome.tool_call_id, &result.content);
            Some(format!(", the result of {call}, which `result_query` reads with that id\n{content}"))
        }
        End::Success { result } => Some(format!("\n{}", result.content)),
        End::Error { .. } | End::Cancelled { .. } => outcome.end.failure().map(|failure| format!("\n{failure}")),
        End::Rejected { .. } => outcome.end.rejection().map(|rejection| format!("\n{rejection}")),
        End::Pending { .. } => None,
    }
}

impl Tool for WaitCall {
    type Input = Input;
    type Output = WaitCallOutput;
    const FACTS: ToolFacts = ToolFacts {
        permission: "calls.own.read",
        timeout: Duration::from_secs(250),
        asks: Asks::NeverForReads,
        ..ToolFacts::new("wait_call", "calls", Effect::Read)
    };

    fn follows(&self, input: &Input) -> Option<CallId> {
        Some(input.call_id.clone())
    }

    async fn run(&self, ctx: &ToolCtx, input: Input) -> Result<Ran<WaitCallOutput>, ToolError> {
        let deadline = Instant::now() + Duration::from_millis(input.timeout_ms);
        let scope = &ctx.caller.scope;
        let mut call = input.call_id;
        loop {
            self.0.find(&ctx.caller, &call).await?;
            let left = deadline.saturating_duration_since(Instant::now());
            match self.0.journal.ended(scope, &call, left).await? {
                None => return Ok(Ran::plain(WaitCallOutput::pending())),
                Some(Outcome { end: End::Pending { pending }, .. }) if pending.pending_tool_call_id != call => {
                    // An edited input waits in its place.
                    call = pending.pending_tool_call_id;
                }
                // What another call has waited for is not wrapped once more.
                Some(Outcome { end: End::Success { result: ToolOutput { handed_on: Some(of), .. } }, .. }) => {
                    call = of.call
                }
                Some(outcome) => return Ok(Ran::plain(WaitCallOutput::of(outcome)?)),
            }
        }
    }
}
