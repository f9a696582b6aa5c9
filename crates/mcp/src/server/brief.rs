//! A long value as a model reads it at once. Clients show models the value as often as the text, so it gets as much room.

use haft_runtime::{CallId, FINAL_INPUT, HandedOn, INDIVISIBLE, Structured, ToolOutput};
use serde_json::{Value, json};

use super::callers::ClientRequest;

/// The bytes that a value may take, beside a short text too; a text has as many letters.
const ROOM: usize = 30_000;
/// What names and numbers take around a text that is all of a value.
const AROUND: usize = 512;
/// That something is missing, in the metadata.
pub(super) const TRUNCATED: &str = "truncated";
/// What is told of a cut is called so.
const CUT: &str = "cut";

/// The output of a call with a value that fits beside its text, still is what its schema says, and tells what it lacks.
/// The whole is in the journal, as ever.
pub(super) async fn shown(server: &ClientRequest, (call, tool): (&CallId, &str), output: ToolOutput) -> ToolOutput {
    match output.handed_on.clone() {
        Some(of) => as_given(server, &of, output).await,
        None => fitted(server, (call, tool), output).await,
    }
}

/// What is handed on is shown as the call shows it that gave it.
async fn as_given(server: &ClientRequest, of: &HandedOn, mut output: ToolOutput) -> ToolOutput {
    let mut value = output.structured.clone().into_value();
    let Some(place) = value.pointer_mut(&of.at) else { return output };
    let (structured, metadata) = (place.take().into(), output.metadata.clone());
    // The first line says how the call ended, and the rest is what it gave.
    let content = output.content.split_once('\n').map_or_else(String::new, |(_, given)| given.to_owned());
    let given = ToolOutput { content, structured, metadata, ..ToolOutput::default() };
    let given = fitted(server, (&of.call, &of.tool), given).await;
    output.metadata.extend(given.metadata.get_key_value(TRUNCATED).map(|(name, is)| (name.clone(), is.clone())));
    *place = given.structured.into_value();
    output.structured = value.into();
    output
}

async fn fitted(server: &ClientRequest, (call, tool): (&CallId, &str), mut output: ToolOutput) -> ToolOutput {
    if output.metadata.contains_key(INDIVISIBLE) {
        return output;
    }
    if output.metadata.contains_key(FINAL_INPUT) {
        output.structured = with_room_for_the_input(server, tool, output.structured).await;
    }
    let scope = &server.caller.scope;
    // Of a value that was cut before, only the beginning is left.
    let whole = match output.metadata.contains_key(CUT) {
        true => server.ground.journal.output(scope, call).await.ok().flatten().map(|whole| whole.structured),
        false => None,
    };
    let value = whole.as_ref().unwrap_or(&output.structured);
    let Some((brief, parts)) = value.brief(room(&output)) else { return output };
    let lacks_something = lacks_something(&parts);
    let marked = if lacks_something { brief.clone().marked_as_cut(call) } else { brief.clone() };
    let marked = with_what_was_added(marked.into_value(), &output.structured);
    let tool = server.ground.catalog.find(&server.caller, tool).await.ok();
    let fits = |value: &Value| tool.as_ref().is_none_or(|tool| tool.may_give(value));
    let tells = telling(marked.clone(), notice(&parts));
    let Some(fitting) = tells.into_iter().chain([marked, brief.into_value()]).find(fits) else { return output };
    if lacks_something {
        // Whoever reads on reads the journal; one that cannot be written tells them so.
        drop(server.ground.journal.caught_up().await);
        output.metadata.insert(TRUNCATED.to_owned(), Value::Bool(true));
    }
    output.structured = fitting.into();
    output
}

/// The tool of somebody else may have a value that the input of an approver cannot be added to.
async fn with_room_for_the_input(server: &ClientRequest, tool: &str, value: Structured) -> Structured {
    let tool = server.ground.catalog.find(&server.caller, tool).await.ok();
    if tool.is_none_or(|tool| tool.may_give(&value)) {
        return value;
    }
    let mut value = value.into_value();
    value.as_object_mut().and_then(|fields| fields.shift_remove("argsModified"));
    value.into()
}

/// What was added to the value of an outcome, such as what it changed, is not in the whole that the journal keeps.
fn with_what_was_added(mut brief: Value, told: &Value) -> Value {
    if let (Value::Object(fields), Value::Object(told)) = (&mut brief, told) {
        for (name, added) in told {
            if !fields.contains_key(name) {
                fields.insert(name.clone(), added.clone());
            }
        }
    }
    brief
}

/// How much room the value has: what is told in the text can be told in the value.
fn room(output: &ToolOutput) -> usize {
    if output.structured.text().len() <= ROOM {
        return ROOM;
    }
    let text = serde_json::to_string(&output.content).map_or(0, |text| text.len());
    ROOM.max(text + AROUND)
}

/// Whether something stands there nowhere; what is only left out beside its equal does.
fn lacks_something(parts: &Value) -> bool {
    parts.as_array().is_some_and(|parts| parts.iter().any(|part| part.get("total").is_some()))
}

fn notice(parts: &Value) -> Value {
    let mut notice = json!({ "parts": parts });
    if lacks_something(parts) {
        let more = "`result_query` with `callId` and the `pointer` of a part reads the whole of it; \
                    `{\"$from\": \"haft://result/CALLID#POINTER\"}` as an argument of another call hands it on";
        notice["more"] = json!(more);
    }
    notice
}

/// The value with what is told of its cuts, where it has a place for that.
fn telling(mut value: Value, notice: Value) -> Option<Value> {
    let fields = value.as_object_mut().filter(|fields| !fields.contains_key(CUT))?;
    fields.insert(CUT.to_owned(), notice);
    Some(value)
}
