//! What a project tool gives back.

use haft_runtime::ToolOutput;
use serde_json::{Map, Value, json};

use crate::fenced::CommandResult;

/// The schema of every project tool's result.
pub(super) fn schema() -> Value {
    json!({
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
    })
}

/// The result of a command that came to its end.
pub(super) fn output(done: &CommandResult) -> ToolOutput {
    let exit_code = done.exit_code();
    let stdout = &*done.said.stdout;
    let mut structured = json!({
        "stdout": stdout,
        "stderr": &*done.said.stderr,
        "exitCode": exit_code,
        "durationMs": u64::try_from(done.took.as_millis()).unwrap_or(u64::MAX),
        "truncated": done.said.is_truncated,
    });
    if let Ok(result) = serde_json::from_str::<Value>(stdout) {
        structured["result"] = result;
    }
    if !done.left_out.is_empty() {
        structured["leftOut"] = json!(done.left_out_words());
    }
    let both = &*done.said.both;
    let newline = if both.is_empty() || both.ends_with('\n') { "" } else { "\n" };
    let hint = done.hint("`network = true` in its manifest");
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
