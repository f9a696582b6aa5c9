//! JSON Schema 2020-12 from Rust types, in the small form that every model and client accepts.

use schemars::{
    JsonSchema,
    generate::{Contract, SchemaSettings},
};
use serde_json::{Map, Value, json};

/// The schema of what goes in: what callers may leave out is optional.
pub(crate) fn of_input<T: JsonSchema>() -> Value {
    of::<T>(Contract::Deserialize)
}

/// The schema of what comes out: what is always there is required, and may be null where its type says so.
pub(crate) fn of_output<T: JsonSchema>() -> Value {
    of::<T>(Contract::Serialize)
}

/// Everything inline, root always an object with `properties`.
fn of<T: JsonSchema>(contract: Contract) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
        settings.contract = contract;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    tidy(&mut schema, Null::Needless);
    if let Value::Object(root) = &mut schema
        && root.get("type").is_some_and(|kind| kind == "object")
    {
        root.entry("properties").or_insert_with(|| json!({}));
    }
    schema
}

/// Takes the description out of the root: a tool shows it beside the schema, not in it.
pub(crate) fn take_description(schema: &mut Value) -> String {
    let description = schema.as_object_mut().and_then(|root| root.remove("description"));
    // A doc comment is wrapped for people who read code; a model gets plain paragraphs.
    let text = description.as_ref().and_then(Value::as_str).unwrap_or_default();
    text.split("\n\n")
        .map(|part| part.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect::<Vec<_>>()
        .join("\n\n")
}

/// Takes the example out of the root, where its type gives one: people are shown it, models need not pay for it.
pub(crate) fn take_example(schema: &mut Value) -> Option<Value> {
    let examples = schema.as_object_mut()?.remove("examples")?;
    examples.get(0).cloned()
}

/// Why a schema cannot be used as the input of a tool; empty when it can.
pub fn faults_of_input(schema: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    if schema.get("type") != Some(&json!("object")) {
        faults.push("the root must have `type: object`".to_owned());
    }
    if !schema.get("properties").is_some_and(Value::is_object) {
        faults.push("the root must have `properties`".to_owned());
    }
    for word in ["oneOf", "anyOf", "allOf"] {
        if schema.get(word).is_some() {
            faults.push(format!("the root must not have `{word}`"));
        }
    }
    open_objects(schema, "", &mut faults);
    faults
}

fn open_objects(schema: &Value, at: &str, faults: &mut Vec<String>) {
    let Value::Object(map) = schema else { return };
    if map.get("additionalProperties").is_some_and(|more| more.as_object().is_some_and(Map::is_empty)) {
        faults.push(format!("`additionalProperties: {{}}` at `{at}/`"));
    }
    for (key, inner) in map {
        match inner {
            Value::Object(_) => open_objects(inner, &format!("{at}/{key}"), faults),
            Value::Array(items) => items.iter().for_each(|item| open_objects(item, &format!("{at}/{key}"), faults)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

/// What a `null` beside a type tells.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Null {
    /// Nothing: an optional field may be left out; the line takes an explicit `null` for that too.
    Needless,
    /// That a field which is always there may have no value.
    Meant,
}

/// Drops what costs tokens and tells nothing: titles, integer formats, defaults that are nothing, `null` beside the type of
/// an optional field.
fn tidy(schema: &mut Value, null: Null) {
    match schema {
        Value::Object(map) => {
            if map.get("title").is_some_and(Value::is_string) {
                map.remove("title");
            }
            if map.get("format").and_then(Value::as_str).is_some_and(|format| format.contains("int")) {
                map.remove("format");
            }
            if null == Null::Needless {
                drop_null(map);
            }
            drop_what_is_understood(map);
            let required = map.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
            for (key, inner) in map {
                let Some(fields) = inner.as_object_mut().filter(|_| key == "properties") else {
                    tidy(inner, Null::Needless);
                    continue;
                };
                for (name, field) in fields {
                    let is_required = required.iter().any(|known| known == name);
                    tidy(field, if is_required { Null::Meant } else { Null::Needless });
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| tidy(item, Null::Needless)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// What is not set is off, empty or the first of its choices, and a number is not below zero.
fn drop_what_is_understood(map: &mut Map<String, Value>) {
    let is_nothing = |value: &Value| match value {
        Value::Bool(is) => !is,
        Value::String(text) => text.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Null => true,
    };
    let is_first = |value: &Value| map.get("enum").and_then(|all| all.get(0)) == Some(value);
    if map.contains_key("type") && map.get("default").is_some_and(|value| is_nothing(value) || is_first(value)) {
        map.remove("default");
    }
    if map.get("type").is_some_and(|kind| kind == "integer") && map.get("minimum") == Some(&json!(0)) {
        map.remove("minimum");
    }
}

fn drop_null(map: &mut Map<String, Value>) {
    if map.get("default").is_some_and(Value::is_null) {
        map.remove("default");
    }
    if let Some(Value::Array(kinds)) = map.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [only] = kinds.as_slice() {
            let only = only.clone();
            map.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(branches)) = map.get_mut("anyOf") {
        branches.retain(|branch| branch.get("type") != Some(&json!("null")));
        if branches.len() == 1
            && let Some(Value::Object(only)) = branches.pop()
        {
            map.remove("anyOf");
            for (key, value) in only {
                map.entry(key).or_insert(value);
            }
        }
    }
    if let Some(Value::Array(values)) = map.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
}
