//! The end of a call in the protocol's words. A model reads either the text or the value, so neither repeats the other;
//! what is no success has only text, because clients check every value against the tool's output schema.

use haft_runtime::{About, Body, ChangeState, Embedded, End, FINAL_INPUT, Outcome, Question, ToolOutput};
use rmcp::{
    ErrorData,
    model::{CallToolResult, ContentBlock, MetaObject, Resource, ResourceContents},
};
use serde_json::{Value, json};

use super::{brief, callers::ClientRequest, results};

/// The tool that looks for others, where not all are listed.
const FIND_TOOLS: &str = "find_tools";

/// The result of a call that has ended, or where it stands.
pub(super) async fn result(server: &ClientRequest, outcome: Outcome) -> CallToolResult {
    let mut facts = facts(&outcome);
    let call = outcome.tool_call_id;
    let mut result = match outcome.end {
        End::Success { result } => {
            let shown = brief::shown(server, (&call, &outcome.tool), result).await;
            // The tool itself may have left something out, too.
            let left_out = shown.structured.get(brief::TRUNCATED) == Some(&Value::Bool(true));
            facts[brief::TRUNCATED] = json!(is_truncated(&shown) || left_out);
            success(&call, shown)
        }
        End::Error { .. } | End::Cancelled { .. } => {
            CallToolResult::error(vec![text(outcome.end.failure().unwrap_or_default())])
        }
        End::Rejected { .. } => CallToolResult::error(vec![text(outcome.end.rejection().unwrap_or_default())]),
        End::Pending { pending } => {
            let (id, until) = (&pending.pending_tool_call_id, pending.expires_at);
            let pending = format!(
                "PENDING: `{}` waits for a person's yes, until {until}. Nothing has been changed yet. A person can still \
                 answer with `haft approve {id}` or `haft reject {id}`, or in `haft approvals`. Follow it with \
                 `wait_call` and `{{\"callId\": \"{id}\"}}`; do not repeat the call.",
                outcome.tool
            );
            CallToolResult::error(vec![text(pending)])
        }
    };
    result.meta = Some(beside(facts));
    result
}

/// What a model is told of a call that has asked something which its client does not answer.
pub(super) fn asks(question: &Question) -> CallToolResult {
    let (tool, call, until) = (&question.tool, &question.call, question.expires_at);
    let asked = match &question.about {
        About::Form(form) => form.message.as_str(),
        About::Approval(_) => question.reason.as_str(),
        About::Result(awaited) => awaited.message.as_str(),
    };
    let mut result = CallToolResult::error(vec![text(format!(
        "PENDING: `{tool}` asks a person in the middle of its work, until {until}: {asked}\nFollow it with `wait_call` and \
         `{{\"callId\": \"{call}\"}}`; do not repeat the call. A person answers it with `haft approve {call} --input JSON` \
         or `haft approvals`."
    ))]);
    result.meta = Some(beside(json!({"callId": call, "status": "pending"})));
    result
}

/// A tool that does not exist is the protocol's own error; everything else is told to the model.
pub(super) async fn unknown_tool(server: &ClientRequest, outcome: &Outcome) -> Option<ErrorData> {
    let error = outcome.end.error().filter(|error| error.code == haft_runtime::ErrorCode::ToolNotFound)?;
    let Some(near) = error.details.get("nearest").and_then(Value::as_array) else {
        return Some(ErrorData::invalid_params(error.message.clone(), None));
    };
    let listing = server.ground.catalog.list(&server.caller).await.unwrap_or_default();
    let searches = listing.offered().iter().any(|tool| tool.spec().name == FIND_TOOLS);
    let where_else = if searches { "look for it with `find_tools`" } else { "`tools/list` lists the tools" };
    let hint = match near.first().and_then(Value::as_str) {
        Some(near) => format!("did you mean `{near}`? Otherwise {where_else}"),
        None => where_else.to_owned(),
    };
    let fact = error.message.split_once("; ").map_or(error.message.as_str(), |(fact, _)| fact);
    Some(ErrorData::invalid_params(format!("{fact}; {hint}"), None))
}

/// Whether the text or the value lacks something.
fn is_truncated(output: &ToolOutput) -> bool {
    output.metadata.get(brief::TRUNCATED) == Some(&Value::Bool(true))
}

fn success(call: &haft_runtime::CallId, output: ToolOutput) -> CallToolResult {
    let is_truncated = is_truncated(&output);
    let mut beside: Vec<ContentBlock> =
        output.images.into_iter().map(|image| ContentBlock::image(image.data, image.mime_type)).collect();
    beside.extend(output.audio.into_iter().map(|audio| ContentBlock::audio(audio.data, audio.mime_type)));
    beside.extend(output.resources.into_iter().map(|resource| ContentBlock::resource(contents(resource))));
    // An empty text says nothing where something else speaks.
    let said = Some(output.content).filter(|said| !said.is_empty() || beside.is_empty()).map(text);
    let mut content: Vec<ContentBlock> = said.into_iter().chain(beside).collect();
    if is_truncated {
        let call = output.handed_on.as_ref().map_or(call, |of| &of.call);
        let link = Resource::new(results::address(call), "the whole result").with_mime_type("application/json");
        content.push(ContentBlock::resource_link(link));
    }
    let mut result = CallToolResult::success(content);
    result.structured_content = Some(output.structured.into_value()).filter(Value::is_object);
    result
}

fn contents(resource: Embedded) -> ResourceContents {
    let contents = match resource.body {
        Body::Text(text) => ResourceContents::text(text, resource.uri),
        Body::Blob(blob) => ResourceContents::blob(blob, resource.uri),
    };
    match resource.mime_type {
        Some(mime_type) => contents.with_mime_type(mime_type),
        None => contents,
    }
}

/// What programs want to know beside the result.
fn facts(outcome: &Outcome) -> Value {
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
        let details = error.facts();
        if !details.is_empty() {
            facts["error"]["details"] = Value::Object(details);
        }
    }
    if let End::Success { result } = &outcome.end
        && let Some(input) = result.metadata.get(FINAL_INPUT)
    {
        facts["argsModified"] = input.clone();
    }
    if let Some(changes) = &outcome.changes {
        facts["changes"] = json!(changes.paths());
        let left = changes.0.iter().filter(|change| change.state == ChangeState::Staged);
        let left: Vec<&str> = left.map(|change| change.path.as_str()).collect();
        if !left.is_empty() {
            facts["leftStaged"] = json!(left);
        }
    }
    facts
}

fn beside(facts: Value) -> MetaObject {
    let mut meta = serde_json::Map::new();
    meta.insert("haft/call".to_owned(), facts);
    MetaObject(meta)
}

fn text(text: String) -> ContentBlock {
    ContentBlock::text(text)
}
