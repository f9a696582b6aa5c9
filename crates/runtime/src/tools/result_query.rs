//! `result_query`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Calls, call_id};
use crate::{
    Asks, CallId, Effect, ErrorCode, Output, Ran, Tool, ToolCtx, ToolError, ToolFacts, ToolOutput, outcome::CAPPED,
};

pub(super) struct ResultQuery(pub(super) Calls);

/// Read the rest of a long result that was cut: a window of its text, or a part of its value. Needs the `callId` of the
/// call that was cut. Do not repeat the original call for this.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// The call's id.
    #[serde(deserialize_with = "call_id")]
    call_id: CallId,
    /// First character, from 0.
    #[serde(default)]
    offset: usize,
    /// Characters at most.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 30_000))]
    limit: usize,
    /// JSON Pointer into the value, such as `/entries/0`; without it the text is read.
    pointer: Option<String>,
}

fn default_limit() -> usize {
    20_000
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResultQueryOutput {
    /// The text of the window; JSON when a pointer was given and it names more than a string.
    content: String,
    /// Where to go on reading; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<usize>,
    /// How many characters there are.
    total: usize,
    /// The result was longer than haft keeps: this is only its beginning.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    capped: bool,
}

impl Output for ResultQueryOutput {
    fn text(&self) -> String {
        self.content.clone()
    }
}

impl Tool for ResultQuery {
    type Input = Input;
    type Output = ResultQueryOutput;
    const FACTS: ToolFacts = ToolFacts {
        permission: "calls.own.read",
        asks: Asks::NeverForReads,
        ..ToolFacts::new("result_query", "calls", Effect::Read)
    };

    async fn run(&self, ctx: &ToolCtx, input: Input) -> Result<Ran<ResultQueryOutput>, ToolError> {
        let (mut call, mut output) = (input.call_id.clone(), self.output(ctx, &input.call_id).await?);
        // The whole of what is handed on is with the call that gave it.
        if let Some(of) = output.handed_on.take().filter(|_| input.pointer.is_none()) {
            output = self.output(ctx, &of.call).await?;
            call = of.call;
        }
        if output.is_shortened() {
            let message = format!("the whole result of {call} is not kept any more; use the tool again");
            return Err(ToolError::new(ErrorCode::Unavailable, message));
        }
        let capped = output.metadata.contains_key(CAPPED);
        let text = match &input.pointer {
            None => output.content,
            Some(pointer) => part(&output.structured, pointer)?,
        };
        Ok(Ran::plain(ResultQueryOutput { capped, ..window(&text, input.offset, input.limit) }))
    }
}

impl ResultQuery {
    async fn output(&self, ctx: &ToolCtx, call: &CallId) -> Result<ToolOutput, ToolError> {
        let scope = &ctx.caller.scope;
        self.0.find(scope, call).await?;
        self.0.journal.output(scope, call).await?.ok_or_else(|| {
            let message = format!("{call} has no result to read: it has not ended with success");
            ToolError::new(ErrorCode::InvalidArgs, message)
        })
    }
}

fn part(value: &Value, pointer: &str) -> Result<String, ToolError> {
    let Some(found) = value.pointer(pointer) else {
        let message = format!("the value has nothing at `{pointer}`; a pointer looks like `/entries/0/name`");
        return Err(ToolError::new(ErrorCode::InvalidArgs, message));
    };
    Ok(found.as_str().map_or_else(|| found.to_string(), str::to_owned))
}

fn window(text: &str, offset: usize, limit: usize) -> ResultQueryOutput {
    let total = text.chars().count();
    let content: String = text.chars().skip(offset).take(limit).collect();
    let end = offset.saturating_add(limit);
    ResultQueryOutput { content, next_offset: (end < total).then_some(end), total, capped: false }
}
