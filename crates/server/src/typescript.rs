//! The types of every route for TypeScript, from `openapi.json`: `sdk/typescript/src/api.ts`.

use std::fmt::Write;

use serde_json::{Map, Value};

const HEAD: &str = "// Written by `make docs` from the routes of the server. Do not edit.\n";
/// Where the document keeps the schemas that have a name.
const NAMED: &str = "#/components/schemas/";

/// Every named schema as a type, and every route with what it takes and gives.
fn types(document: &Value) -> String {
    let mut text = HEAD.to_owned();
    let mut named: Vec<_> = fields(&document["components"]["schemas"]).collect();
    named.sort_by_key(|(name, _)| *name);
    for (name, schema) in named {
        let _ = write!(text, "\n{}export type {name} = {};\n", comment(schema, ""), type_of(schema, ""));
    }
    text.push_str("\n/** Every route, by its method and path. */\nexport interface Routes {\n");
    for (path, methods) in fields(&document["paths"]) {
        for (method, operation) in fields(methods) {
            text.push_str(&route(&format!("{} {path}", method.to_uppercase()), operation));
        }
    }
    text.push_str("}\n");
    text
}

/// What a route takes and gives; `undefined` where it takes nothing, `unknown` where it gives no JSON.
fn route(name: &str, operation: &Value) -> String {
    let content = |of: &Value| of["content"]["application/json"].get("schema").map(|schema| type_of(schema, "    "));
    let nothing = || "undefined".to_owned();
    let summary = operation["summary"].as_str().unwrap_or_default();
    format!(
        "  /** {summary} */\n  \"{name}\": {{\n    path: {};\n    query: {};\n    body: {};\n    reply: {};\n  }};\n",
        parameters(operation, "path").unwrap_or_else(nothing),
        parameters(operation, "query").unwrap_or_else(nothing),
        content(&operation["requestBody"]).unwrap_or_else(nothing),
        content(&operation["responses"]["200"]).unwrap_or_else(|| "unknown".to_owned()),
    )
}

/// The parameters of one place as an object; `None` where there are none.
fn parameters(operation: &Value, place: &str) -> Option<String> {
    let all = operation["parameters"].as_array()?.iter().filter(|parameter| parameter["in"] == place);
    let mut text = String::new();
    for parameter in all {
        let optional = if parameter["required"] == true { "" } else { "?" };
        // What is absent from an address is not there at all.
        let kind = type_of(&parameter["schema"], "      ").replace(" | null", "");
        let (about, name) = (comment(parameter, "      "), property(parameter["name"].as_str()?));
        let _ = writeln!(text, "{about}      {name}{optional}: {kind};");
    }
    (!text.is_empty()).then(|| format!("{{\n{text}    }}"))
}

/// The type that a schema describes, for a line that begins behind `indent`.
fn type_of(schema: &Value, indent: &str) -> String {
    let Some(words) = schema.as_object() else {
        return if *schema == Value::Bool(false) { "never" } else { "unknown" }.to_owned();
    };
    let list = |name: &str| words.get(name).and_then(Value::as_array);
    let mut parts: Vec<String> = Vec::new();
    if let Some(name) = words.get("$ref").and_then(Value::as_str) {
        parts.push(name.trim_start_matches(NAMED).to_owned());
    }
    if let Some(only) = words.get("const") {
        parts.push(only.to_string());
    }
    if let Some(values) = list("enum") {
        parts.push(any_of(values.iter().map(Value::to_string)));
    }
    for choices in [list("anyOf"), list("oneOf")].into_iter().flatten() {
        parts.push(any_of(choices.iter().map(|choice| type_of(choice, indent))));
    }
    parts.extend(list("allOf").into_iter().flatten().map(|part| type_of(part, indent)));
    if parts.is_empty() || words.contains_key("properties") {
        parts.insert(0, plain(words, indent));
    }
    match &parts[..] {
        [only] => only.clone(),
        several => several.iter().map(|part| format!("({part})")).collect::<Vec<_>>().join(" & "),
    }
}

/// The type of a schema that is no choice between others.
fn plain(words: &Map<String, Value>, indent: &str) -> String {
    match words.get("type") {
        Some(Value::Array(kinds)) => any_of(kinds.iter().map(|kind| of_kind(kind, words, indent))),
        Some(kind) => of_kind(kind, words, indent),
        None if words.contains_key("properties") => object(words, indent),
        None => "unknown".to_owned(),
    }
}

fn of_kind(kind: &Value, words: &Map<String, Value>, indent: &str) -> String {
    match kind.as_str().unwrap_or_default() {
        "integer" | "number" => "number".to_owned(),
        "object" => object(words, indent),
        "array" => match words.get("prefixItems").and_then(Value::as_array) {
            Some(items) => {
                let items: Vec<String> = items.iter().map(|item| type_of(item, indent)).collect();
                format!("[{}]", items.join(", "))
            }
            None => format!("Array<{}>", words.get("items").map_or("unknown".to_owned(), |item| type_of(item, indent))),
        },
        other => other.to_owned(),
    }
}

fn object(words: &Map<String, Value>, indent: &str) -> String {
    let inner = format!("{indent}  ");
    let required = words.get("required").and_then(Value::as_array);
    let mut text = String::new();
    for (name, schema) in words.get("properties").map(fields).into_iter().flatten() {
        let is_required = required.is_some_and(|required| required.iter().any(|one| one == name));
        let (optional, about) = (if is_required { "" } else { "?" }, comment(schema, &inner));
        let _ = writeln!(text, "{about}{inner}{}{optional}: {};", property(name), type_of(schema, &inner));
    }
    match (text.is_empty(), words.get("additionalProperties")) {
        (true, Some(Value::Bool(false))) => "Record<string, never>".to_owned(),
        (true, others) => {
            format!("Record<string, {}>", others.map_or("unknown".to_owned(), |other| type_of(other, indent)))
        }
        (false, None | Some(Value::Bool(_))) => format!("{{\n{text}{indent}}}"),
        // A field with a name of its own is one of the others, too.
        (false, Some(_)) => format!("{{\n{text}{inner}[name: string]: unknown;\n{indent}}}"),
    }
}

/// One of these, each named once.
fn any_of(choices: impl Iterator<Item = String>) -> String {
    let mut different: Vec<String> = Vec::new();
    for choice in choices {
        if !different.contains(&choice) {
            different.push(choice);
        }
    }
    different.join(" | ")
}

fn property(name: &str) -> String {
    let is_plain = name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    if is_plain && !name.starts_with(|first: char| first.is_ascii_digit()) {
        name.to_owned()
    } else {
        format!("{name:?}")
    }
}

fn comment(schema: &Value, indent: &str) -> String {
    let Some(text) = schema.get("description").and_then(Value::as_str) else { return String::new() };
    let text = text.replace("*/", "* /").replace('\n', " ");
    format!("{indent}/** {text} */\n")
}

fn fields(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use std::{path::PathBuf, process::Command};

    use serde_json::json;

    use super::*;

    fn sdk() -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../sdk/typescript")
    }

    #[test]
    fn the_types_of_the_routes_are_up_to_date() {
        let (file, types) = (sdk().join("src/api.ts"), types(&crate::openapi::document(&crate::routes::all())));
        #[expect(clippy::disallowed_methods, reason = "the switch of this test")]
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&file, &types).unwrap();
        }
        let written = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(written == types, "sdk/typescript/src/api.ts is stale: `make docs` writes it");
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the compiler is run where scripts/setup has put it")]
    fn the_types_say_what_fits_and_what_does_not() {
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
        let compiler = cache.unwrap_or_default().join("haft/tools/bin/tsc");
        if !compiler.exists() {
            println!("skipped: tsc is missing: run scripts/setup tests");
            return;
        }
        let flags = ["--noEmit", "--strict", "--noUncheckedIndexedAccess", "--target", "es2022", "--types", ""];
        let checked = Command::new(compiler).args(flags).arg("test/api.ts").current_dir(sdk()).output().unwrap();
        assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
    }

    #[test]
    fn a_schema_becomes_the_type_that_it_describes() {
        let known = [
            (json!(true), "unknown"),
            (json!({"$ref": "#/components/schemas/CallView"}), "CallView"),
            (json!({"type": ["string", "null"]}), "string | null"),
            (json!({"anyOf": [{"$ref": "#/components/schemas/Via"}, {"type": "null"}]}), "Via | null"),
            (json!({"oneOf": [{"const": "a"}, {"enum": ["b", 3]}]}), "\"a\" | \"b\" | 3"),
            (json!({"type": "array", "items": {"type": ["integer", "number"]}}), "Array<number>"),
            (json!({"type": "array", "prefixItems": [{"type": "string"}, {"type": "boolean"}]}), "[string, boolean]"),
            (json!({"type": "object"}), "Record<string, unknown>"),
            (json!({"type": "object", "additionalProperties": {"type": "string"}}), "Record<string, string>"),
            (json!({"type": "object", "additionalProperties": false}), "Record<string, never>"),
            (json!({"allOf": [{"type": "string"}, {"enum": ["a", "b"]}]}), "(string) & (\"a\" | \"b\")"),
        ];
        for (schema, wanted) in known {
            assert_eq!(type_of(&schema, ""), wanted, "{schema}");
        }
        let object = json!({
            "type": "object",
            "required": ["status"],
            "properties": {"status": {"type": "string", "description": "Where it stands."}, "x-y": {"type": "null"}},
            "oneOf": [{"type": "object", "required": ["a"], "properties": {"a": {"type": "number"}}}],
        });
        let wanted = "({\n  /** Where it stands. */\n  status: string;\n  \"x-y\"?: null;\n}) & ({\n  a: number;\n})";
        assert_eq!(type_of(&object, ""), wanted);
    }
}
