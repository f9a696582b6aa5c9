//! `call_tool`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{Effect, Forward, Output, Shown, Tool, ToolFacts};

/// Never runs: resolving a call of it gives a call of the tool that it names.
pub(super) struct CallTool;

/// Call a tool that `find_tools` found, with an input that fits its schema. It is asked about and recorded like any
/// call of that tool. Call tools that are listed to you directly.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only the schema is used: the call is handed on before it would be read")]
#[schemars(example = serde_json::json!({ "tool": "mcp__issues__create", "input": { "title": "A bug" } }))]
pub(super) struct Input {
    /// Its name, as `find_tools` gives it.
    tool: String,
    /// Its input; `{}` if it takes none.
    input: Map<String, Value>,
}

/// Whatever the tool that was called gives.
impl Output for Map<String, Value> {
    fn text(&self) -> String {
        String::new()
    }
}

impl Tool for CallTool {
    type Input = Input;
    type Output = Map<String, Value>;
    const FACTS: ToolFacts = ToolFacts::new("call_tool", "tools", Effect::Destroy);

    fn shown(&self) -> Shown {
        Shown::ForOthers
    }

    /// `None` for every input that the schema refuses too.
    fn forward(&self, input: &Value) -> Option<Forward> {
        let fields = input.as_object()?;
        let is_known = |(name, value): (&String, &Value)| matches!(name.as_str(), "tool" | "input") || value.is_null();
        let tool = fields.get("tool")?.as_str()?.to_owned();
        let input = fields.get("input").filter(|input| input.is_object())?.clone();
        fields.iter().all(is_known).then_some(Forward { tool, input })
    }
}
