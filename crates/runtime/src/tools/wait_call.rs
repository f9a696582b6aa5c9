//! `wait_call`

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;

use super::{Calls, call_id};
use crate::{Asks, CallId, Effect, End, ErrorCode, Outcome, Output, Ran, Tool, ToolCtx, ToolError};

pub(super) struct WaitCall(pub(super) Calls);

/// Waits for a call that was handed back as `pending`, and gives its outcome once somebody has answered it. Call it
/// again when the status is still `pending`; do not repeat the original call.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// The `pendingToolCallId` of the pending outcome.
    #[serde(deserialize_with = "call_id")]
    call_id: CallId,
    /// How long to wait, in milliseconds.
    #[serde(default = "default_timeout")]
    #[schemars(range(max = 240_000))]
    timeout_ms: u64,
}

fn default_timeout() -> u64 {
    45_000
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Answer {
    /// The status of the call: `pending` while it still waits.
    status: String,
    /// The whole outcome, once it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("type" = "object"))]
    outcome: Option<Value>,
    /// What it gave, or why it gave nothing.
    #[serde(skip)]
    said: Option<String>,
}

impl Output for Answer {
    fn text(&self) -> String {
        match &self.said {
            Some(said) => format!("{}\n{said}", self.status),
            None => self.status.clone(),
        }
    }
}

/// How a call ended, for somebody who reads only the text.
fn said(end: &End) -> Option<String> {
    match end {
        End::Success { result } => Some(result.content.clone()),
        End::Error { error } | End::Cancelled { error } => Some(error.to_string()),
        End::Rejected { .. } => end.rejection(),
        End::Pending { .. } => None,
    }
}

impl Tool for WaitCall {
    type Input = Input;
    type Output = Answer;
    const NAME: &'static str = "wait_call";
    const CATEGORY: &'static str = "calls";
    const WORST: Effect = Effect::Read;
    const TIMEOUT: Duration = Duration::from_secs(250);
    const ASKS: Asks = Asks::NeverForReads;

    async fn run(&self, ctx: &ToolCtx, input: Input) -> Result<Ran<Answer>, ToolError> {
        let deadline = Instant::now() + Duration::from_millis(input.timeout_ms);
        let scope = &ctx.caller.scope;
        let mut call = input.call_id;
        loop {
            self.0.find(scope, &call).await?;
            let left = deadline.saturating_duration_since(Instant::now());
            match self.0.journal.ended(scope, &call, left).await? {
                None => return Ok(Ran::plain(Answer { status: "pending".to_owned(), outcome: None, said: None })),
                Some(Outcome { end: End::Pending { pending }, .. }) if pending.pending_tool_call_id != call => {
                    // An edited input waits in its place.
                    call = pending.pending_tool_call_id;
                }
                Some(outcome) => {
                    let (status, said) = (outcome.end.status().to_owned(), said(&outcome.end));
                    let outcome = serde_json::to_value(outcome)
                        .map_err(|err| ToolError::new(ErrorCode::Internal, format!("unreadable outcome: {err}")))?;
                    return Ok(Ran::plain(Answer { status, outcome: Some(outcome), said }));
                }
            }
        }
    }
}
