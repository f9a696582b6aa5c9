//! The end of a call in the protocol's words. A model reads either the text or the value, so neither repeats the other;
//! what is no success has only text, because clients check every value against the tool's output schema.

use haft_runtime::{End, Outcome, ToolError, ToolOutput};
use rmcp::{
    ErrorData,
    model::{CallToolResult, ContentBlock, MetaObject, Resource},
};
use serde_json::{Value, json};

use super::results;

/// The result of a call that has ended, or where it stands.
pub(super) fn result(outcome: Outcome) -> CallToolResult {
    let facts = facts(&outcome);
    let call = outcome.tool_call_id.clone();
    let mut result = match outcome.end {
        End::Success { result } => success(&call, result),
        End::Error { error } | End::Cancelled { error } => CallToolResult::error(vec![text(failure(&error))]),
        End::Rejected { reason, user_message, error } => {
            let words = user_message.map(|words| format!("\nTheir words: {words}")).unwrap_or_default();
            CallToolResult::error(vec![text(format!("{}: {reason}{words}", error.code))])
        }
        End::Pending { pending } => {
            let (id, until) = (&pending.pending_tool_call_id, pending.expires_at);
            let pending = format!(
                "PENDING: `{}` waits for a person's yes, until {until}. Nothing has been changed yet. Follow it with \
                 `wait_call` and `{{\"callId\": \"{id}\"}}`; do not repeat the call. A person answers it with \
                 `haft approve {id}` or `haft approvals`.",
                outcome.tool
            );
            CallToolResult::error(vec![text(pending)])
        }
    };
    result.meta = Some(facts);
    result
}

/// A tool that does not exist is the protocol's own error; everything else is told to the model.
pub(super) fn unknown_tool(outcome: &Outcome) -> Option<ErrorData> {
    let error = outcome.end.error().filter(|error| error.code == haft_runtime::ErrorCode::ToolNotFound)?;
    Some(ErrorData::invalid_params(error.message.clone(), None))
}

fn success(call: &haft_runtime::CallId, output: ToolOutput) -> CallToolResult {
    let mut content = vec![text(output.content)];
    content.extend(output.images.into_iter().map(|image| ContentBlock::image(image.data, image.mime_type)));
    if output.metadata.get("truncated") == Some(&Value::Bool(true)) {
        let link = Resource::new(results::address(call), "the whole result").with_mime_type("application/json");
        content.push(ContentBlock::resource_link(link));
    }
    let mut result = CallToolResult::success(content);
    result.structured_content = Some(output.structured).filter(Value::is_object);
    result
}

fn failure(error: &ToolError) -> String {
    let again = if error.recoverable { "; the same call may succeed later" } else { "" };
    let mut text = format!("{}: {}{again}", error.code, error.message);
    if !error.details.is_empty() {
        text.push_str(&format!("\n{}", Value::Object(error.details.clone())));
    }
    text
}

/// What programs want to know beside the result.
fn facts(outcome: &Outcome) -> MetaObject {
    let mut facts = json!({
        "callId": outcome.tool_call_id,
        "status": outcome.end.status(),
        "isolation": outcome.isolation,
        "undoable": outcome.undoable,
        "cached": outcome.cached,
        "executionTimeMs": outcome.execution_time_ms,
    });
    if let Some(error) = outcome.end.error() {
        facts["error"] = json!({"code": error.code, "recoverable": error.recoverable, "category": error.category});
    }
    if let Some(changes) = &outcome.changes {
        facts["changes"] = json!(changes.paths());
    }
    let mut meta = serde_json::Map::new();
    meta.insert("haft/call".to_owned(), facts);
    MetaObject(meta)
}

fn text(text: String) -> ContentBlock {
    ContentBlock::text(text)
}
