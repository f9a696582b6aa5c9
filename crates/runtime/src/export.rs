//! The catalogue in the words of each model interface. Sorted by name, so that the same tools give the same bytes.

use serde_json::{Value, json};

use crate::{Effect, ToolSpec};

/// `[{name, description, parameters}]`, wrapped as OpenAI's function tools.
pub fn to_openai(specs: &[ToolSpec]) -> Value {
    export(specs, |spec| {
        json!({"type": "function", "function": {
            "name": spec.name, "description": spec.description, "parameters": spec.input_schema}})
    })
}

/// `[{name, description, input_schema}]`.
pub fn to_anthropic(specs: &[ToolSpec]) -> Value {
    export(specs, |spec| json!({"name": spec.name, "description": spec.description, "input_schema": spec.input_schema}))
}

/// MCP's tool list entries, with both schemas and the annotations that follow from the effect.
pub fn to_mcp(specs: &[ToolSpec]) -> Value {
    export(specs, |spec| {
        let mut tool = json!({"name": spec.name, "title": spec.title, "description": spec.description,
            "inputSchema": spec.input_schema, "outputSchema": spec.output_schema,
            "annotations": annotations(spec)});
        // Clients want a value of every tool that says something of it.
        if spec.output_schema == json!({})
            && let Some(tool) = tool.as_object_mut()
        {
            tool.shift_remove("outputSchema");
        }
        tool
    })
}

/// Behaviour hints. They steer a client's look, never the decision.
pub fn annotations(spec: &ToolSpec) -> Value {
    let reads = spec.effect == Effect::Read;
    // Not destructive would mean that it only ever adds something.
    json!({"readOnlyHint": reads, "destructiveHint": !reads,
        "idempotentHint": reads || spec.idempotent, "openWorldHint": spec.open_world})
}

fn export(specs: &[ToolSpec], shape: impl Fn(&ToolSpec) -> Value) -> Value {
    let mut sorted: Vec<&ToolSpec> = specs.iter().collect();
    sorted.sort_by(|a, b| a.name.cmp(&b.name));
    Value::Array(sorted.into_iter().map(shape).collect())
}
