//! `result_query`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Calls, call_id};
use crate::{
    Asks, CallId, Effect, ErrorCode, Journal, Output, Ran, Scope, Tool, ToolCtx, ToolError, ToolFacts, ToolOutput,
    outcome::CAPPED,
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

/// A window of a result.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResultWindow {
    /// The text of the window; JSON when a pointer was given and it names more than a string.
    pub content: String,
    /// Where to go on reading; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<usize>,
    /// How many characters there are.
    pub total: usize,
    /// The result was longer than haft keeps: this is only its beginning.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub capped: bool,
}

impl Output for ResultWindow {
    fn text(&self) -> String {
        self.content.clone()
    }
}

impl Tool for ResultQuery {
    type Input = Input;
    type Output = ResultWindow;
    const FACTS: ToolFacts = ToolFacts {
        permission: "calls.own.read",
        asks: Asks::NeverForReads,
        ..ToolFacts::new("result_query", "calls", Effect::Read)
    };

    async fn run(&self, ctx: &ToolCtx, input: Input) -> Result<Ran<ResultWindow>, ToolError> {
        self.0.find(&ctx.caller, &input.call_id).await?;
        let part = ResultPart { offset: input.offset, limit: input.limit, pointer: input.pointer };
        read_result(&*self.0.journal, &ctx.caller.scope, &input.call_id, &part).await.map(Ran::plain)
    }
}

/// Which part of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultPart {
    /// The first character, from 0.
    pub offset: usize,
    /// So many characters at most.
    pub limit: usize,
    /// A JSON Pointer into the value; without it the text is read.
    pub pointer: Option<String>,
}

/// Reads a part of the whole result of a call. Whether the caller may see the call is known before.
pub async fn read_result(
    journal: &dyn Journal,
    scope: &Scope,
    call: &CallId,
    part: &ResultPart,
) -> Result<ResultWindow, ToolError> {
    let (mut call, mut output) = (call.clone(), output_of(journal, scope, call).await?);
    // The whole of what is handed on is with the call that gave it.
    if let Some(of) = output.handed_on.take().filter(|_| part.pointer.is_none()) {
        output = output_of(journal, scope, &of.call).await?;
        call = of.call;
    }
    if output.is_shortened() {
        let message = format!("the whole result of {call} is not kept any more; use the tool again");
        return Err(ToolError::new(ErrorCode::Unavailable, message));
    }
    let capped = output.metadata.contains_key(CAPPED);
    let text = match &part.pointer {
        None => output.content,
        Some(pointer) => at_pointer(&output.structured, pointer)?,
    };
    Ok(ResultWindow { capped, ..window(&text, part.offset, part.limit) })
}

async fn output_of(journal: &dyn Journal, scope: &Scope, call: &CallId) -> Result<ToolOutput, ToolError> {
    journal.output(scope, call).await?.ok_or_else(|| {
        let message = format!("{call} failed or has not ended, so it has no result to read");
        ToolError::new(ErrorCode::InvalidArgs, message)
    })
}

fn at_pointer(value: &Value, pointer: &str) -> Result<String, ToolError> {
    let Some(found) = value.pointer(pointer) else {
        let message = format!("the value has nothing at `{pointer}`; a pointer looks like `/entries/0/name`");
        return Err(ToolError::new(ErrorCode::InvalidArgs, message));
    };
    Ok(found.as_str().map_or_else(|| found.to_string(), str::to_owned))
}

fn window(text: &str, offset: usize, limit: usize) -> ResultWindow {
    let total = text.chars().count();
    let content: String = text.chars().skip(offset).take(limit).collect();
    let end = offset.saturating_add(limit);
    ResultWindow { content, next_offset: (end < total).then_some(end), total, capped: false }
}
