//! What a project tool gives back.

use haft_runtime::{Shape, ToolOutput};
use serde_json::{Map, Value, json};

use crate::fenced::CommandResult;

/// The schema of a project tool's result; `result` is what its JSON answer is like, where its manifest says so.
pub(super) fn schema(result: Option<&Value>) -> Value {
    let mut schema = json!({
        "type": "object",
        "properties": {
            "stdout": {"type": "string"},
            "stderr": {"type": "string"},
            "exitCode": {
                "type": "integer",
                "description": "0 means that it worked; one that was ended by a signal has 128 and the signal's number."
            },
            "durationMs": {"type": "integer"},
            "truncated": {"type": "boolean", "description": "Whether some of the output was not kept."},
            "result": {"description": "What it said on stdout, where that is one JSON document."},
            "leftOut": {
                "type": "array",
                "items": {"type": "string"},
                "description": "What it made and nobody can commit, such as sockets, and what it could not change."
            },
            "hint": {"type": "string", "description": "What may help where it failed."}
        },
        "required": ["stdout", "stderr", "exitCode", "durationMs", "truncated"]
    });
    if let Some(result) = result {
        schema["properties"]["result"] = result.clone();
    }
    schema
}

/// The result of a command that came to its end. An answer that does not fit `schema` is left in its text alone, so that
/// nobody who reads by the schema is misled.
pub(super) fn output(done: &CommandResult, schema: Option<&Value>) -> ToolOutput {
    let exit_code = done.exit_code();
    let stdout = &*done.said.stdout;
    let mut structured = json!({
        "stdout": stdout,
        "stderr": &*done.said.stderr,
        "exitCode": exit_code,
        "durationMs": u64::try_from(done.took.as_millis()).unwrap_or(u64::MAX),
        "truncated": done.said.is_truncated,
    });
    let misfit = match (serde_json::from_str::<Value>(stdout), schema) {
        (Ok(result), None) => {
            structured["result"] = result;
            None
        }
        (Ok(result), Some(schema)) => match Shape::new(schema).map_or_else(Some, |shape| shape.fault(&result)) {
            Some(why) => Some(format!("its answer does not fit the `output_schema` of its manifest: {why}")),
            None => {
                structured["result"] = result;
                None
            }
        },
        (Err(_), Some(_)) if exit_code == 0 => {
            Some("it did not print one JSON document, which its manifest has an `output_schema` for".to_owned())
        }
        (Err(_), _) => None,
    };
    if !done.left_out.is_empty() {
        structured["leftOut"] = json!(done.left_out_words());
    }
    let both = &*done.said.both;
    let newline = if both.is_empty() || both.ends_with('\n') { "" } else { "\n" };
    let hint = misfit.or_else(|| done.hint("set `network = true` in its manifest"));
    let told = hint.as_ref().map_or_else(String::new, |hint| format!("\n[{hint}]"));
    if let Some(hint) = hint {
        structured["hint"] = hint.into();
    }
    ToolOutput {
        content: format!("{both}{newline}[exit {exit_code}]{told}"),
        structured: structured.into(),
        metadata: Map::from_iter([("exit_code".to_owned(), exit_code.into())]),
        ..ToolOutput::default()
    }
}
