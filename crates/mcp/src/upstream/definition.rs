//! What an upstream server says of one of its tools, and what of it fits our own list.

use haft_runtime::{Effect, Shape, faults_of_input};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// More than any tool needs to describe itself.
const LARGEST: usize = 64 << 10;
/// The longest name that a server may give.
const LONGEST_NAME: usize = 256;
/// The longest name that clients take.
const LONGEST_OWN_NAME: usize = 64;
/// Words of a schema that hold values and no schemas.
const VALUES: &[&str] = &["const", "default", "enum", "examples"];
/// How much of a hash tells two names apart.
const HASH_DIGITS: usize = 6;

/// A tool as its server describes it: everything that a model reads or that the call is judged by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolDefinition {
    /// What the server calls it.
    pub name: String,
    /// The name people read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// When to use it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What goes in.
    pub input_schema: Value,
    /// What comes out, where the server says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// What the server says of its effects; believed only where the user trusts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Value>,
}

/// A definition that no tool could be made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    /// What the server calls it, as far as it says.
    pub name: String,
    /// Why not.
    pub why: String,
}

impl ToolDefinition {
    pub(super) fn read(value: &Value) -> Result<Self, Dropped> {
        let name = value["name"].as_str().unwrap_or("a tool without a name").to_owned();
        let dropped = |why: String| Dropped { name: name.chars().take(LONGEST_NAME).collect(), why };
        let definition = Self::deserialize(value).map_err(|err| dropped(format!("its definition is broken: {err}")))?;
        if name.is_empty() || name.len() > LONGEST_NAME {
            return Err(dropped(format!("its name has {} bytes, and may have 1 to {LONGEST_NAME}", name.len())));
        }
        if value.to_string().len() > LARGEST {
            return Err(dropped(format!("its definition is larger than {} KiB", LARGEST >> 10)));
        }
        if !definition.input_schema.is_object() {
            return Err(dropped("its input schema is no object".to_owned()));
        }
        Ok(definition)
    }

    /// Why no tool can be made of it.
    pub(super) fn fault(&self) -> Option<String> {
        let input = self.fitting_input();
        let said = self.output().and_then(|schema| fault_of("output", &schema));
        let broken = fault_of("input", &input).or(said).or_else(|| fault_of("output", &self.fitting_output()));
        broken.or_else(|| faults_of_input(&input).into_iter().next())
    }

    /// How far it reaches, as far as its server is believed: one can always say that it reaches further.
    pub fn effect(&self, trusted: bool) -> Effect {
        if trusted && self.hints("readOnlyHint") {
            return Effect::Read;
        }
        if self.hints("destructiveHint") { Effect::Destroy } else { Effect::Write }
    }

    /// What tells it from any other definition.
    pub fn digest(&self) -> String {
        digest(self)
    }

    /// Whether an annotation is set to `true`.
    pub(super) fn hints(&self, annotation: &str) -> bool {
        self.annotations.as_ref().is_some_and(|all| all[annotation] == Value::Bool(true))
    }

    /// Its input schema in the form that every client takes. Where that says less, the server still has the last word.
    pub(super) fn fitting_input(&self) -> Value {
        let mut schema = understood(self.input_schema.clone());
        close_open_objects(&mut schema);
        if let Value::Object(root) = &mut schema {
            for word in ["$schema", "oneOf", "anyOf", "allOf"] {
                root.remove(word);
            }
            root.insert("type".to_owned(), json!("object"));
            if !root.get("properties").is_some_and(Value::is_object) {
                root.insert("properties".to_owned(), json!({}));
            }
            open_properties(root);
        }
        schema
    }

    /// What it says comes out, as far as it is understood here.
    pub(super) fn output(&self) -> Option<Value> {
        self.output_schema.clone().map(understood)
    }

    /// Its output schema in the form that every client takes; what comes out is held against what the server says. Where
    /// that says nothing, anything may come out, also no value at all.
    pub(super) fn fitting_output(&self) -> Value {
        let Some(mut schema) = self.output() else { return json!({}) };
        match schema.as_object_mut().filter(|root| root.get("type") == Some(&json!("object"))) {
            Some(root) => open_properties(root),
            None => return json!({"type": "object", "properties": {}}),
        }
        schema
    }
}

/// What tells a value from any other, as hex digits.
pub(super) fn digest(value: &impl Serialize) -> String {
    let bytes = serde_json::to_vec(value).unwrap_or_default();
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn fault_of(which: &str, schema: &Value) -> Option<String> {
    let why = Shape::new(schema).err()?;
    Some(match place_elsewhere(schema) {
        Some(place) => {
            format!("its {which} schema refers to `{place}`, and haft fetches no part of a schema from elsewhere")
        }
        None => format!("what it says of its {which} is of no use: {why}"),
    })
}

/// What a schema refers to outside itself.
fn place_elsewhere(schema: &Value) -> Option<&str> {
    match schema {
        Value::Object(map) => {
            let named = ["$ref", "$dynamicRef"].iter().find_map(|word| map.get(*word)?.as_str());
            let leaves = named.filter(|place| !place.starts_with('#'));
            leaves.or_else(|| map.values().find_map(place_elsewhere))
        }
        Value::Array(items) => items.iter().find_map(place_elsewhere),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// A schema without what only looks broken here: patterns that look around, which cannot be tried in bounded time, and
/// lists of items as they were written before `prefixItems`. The server still has the last word.
fn understood(mut schema: Value) -> Value {
    understand(&mut schema);
    schema
}

fn understand(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if map.get("pattern").and_then(Value::as_str).is_some_and(is_strange) {
                map.remove("pattern");
            }
            if let Some(Value::Object(patterns)) = map.get_mut("patternProperties") {
                patterns.retain(|pattern, _| !is_strange(pattern));
            }
            if map.get("items").is_some_and(Value::is_array) {
                let first = map.remove("items").unwrap_or_default();
                map.insert("prefixItems".to_owned(), first);
                if let Some(rest) = map.remove("additionalItems") {
                    map.insert("items".to_owned(), rest);
                }
            }
            let is_schema = |(name, _): &(&String, &mut Value)| !VALUES.contains(&name.as_str());
            map.iter_mut().filter(is_schema).for_each(|(_, inner)| understand(inner));
        }
        Value::Array(items) => items.iter_mut().for_each(understand),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn is_strange(pattern: &str) -> bool {
    Shape::new(&json!({ "pattern": pattern })).is_err()
}

/// Some clients refuse a property that is only `true`; `{}` says the same.
fn open_properties(root: &mut Map<String, Value>) {
    if let Some(Value::Object(properties)) = root.get_mut("properties") {
        properties.values_mut().filter(|schema| **schema == json!(true)).for_each(|schema| *schema = json!({}));
    }
}

/// Some clients refuse `additionalProperties: {}`; `true` says the same.
fn close_open_objects(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if map.get("additionalProperties").is_some_and(|more| more.as_object().is_some_and(Map::is_empty)) {
                map.insert("additionalProperties".to_owned(), json!(true));
            }
            map.values_mut().for_each(close_open_objects);
        }
        Value::Array(items) => items.iter_mut().for_each(close_open_objects),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// What a tool of a server is called here. Whatever had to be changed or cut gets a few digits of a hash, so that two
/// names never become one.
pub fn tool_name(server: &str, tool: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let plain: String = tool.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).collect();
    let name = format!("mcp__{server}__{plain}");
    if plain == tool && name.len() <= LONGEST_OWN_NAME {
        return name;
    }
    let hash = Sha256::digest(format!("{server}\n{tool}"));
    let digits: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    let kept: String = name.chars().take(LONGEST_OWN_NAME - 1 - HASH_DIGITS).collect();
    format!("{kept}_{}", &digits[..HASH_DIGITS])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{ToolDefinition, tool_name};

    #[test]
    fn names_fit_every_client_and_stay_apart() {
        assert_eq!(tool_name("git", "git_status"), "mcp__git__git_status");
        let long = tool_name("git", &"x".repeat(80));
        assert_eq!(long.len(), 64);
        assert_ne!(long, tool_name("git", &"x".repeat(81)));
        assert_ne!(tool_name("a", "b.c"), tool_name("a", "b/c"));
        assert!(tool_name("a", "b.c").starts_with("mcp__a__b_c_"));
    }

    #[test]
    fn a_schema_is_made_to_fit() {
        let value = json!({"name": "x", "inputSchema": {"$schema": "http://json-schema.org/draft-07/schema#",
            "anyOf": [{"required": ["a"]}], "properties": {"a": {"type": "object", "additionalProperties": {}}}}});
        let fitting = ToolDefinition::read(&value).unwrap().fitting_input();
        assert_eq!(fitting["properties"]["a"]["additionalProperties"], json!(true));
        assert!(haft_runtime::faults_of_input(&fitting).is_empty(), "{fitting}");
        let empty = ToolDefinition::read(&json!({"name": "x", "inputSchema": {}})).unwrap().fitting_input();
        assert!(haft_runtime::faults_of_input(&empty).is_empty(), "{empty}");
    }

    #[test]
    fn what_comes_out_fits_every_client_whatever_the_server_says() {
        let fitting = |output: serde_json::Value| {
            let value = json!({"name": "x", "inputSchema": {"properties": {"a": true}}, "outputSchema": output});
            let definition = ToolDefinition::read(&value).unwrap();
            assert_eq!(definition.fitting_input()["properties"]["a"], json!({}));
            assert_eq!(definition.fault(), None);
            definition.fitting_output()
        };
        let anything = json!({"type": "object", "properties": {}});
        for odd in [json!(true), json!({}), json!({"type": "array"}), json!({"anyOf": [{"type": "object"}]})] {
            assert_eq!(fitting(odd), anything);
        }
        let plain = json!({"type": "object", "properties": {"b": {"type": "string"}}});
        assert_eq!(fitting(plain.clone()), plain);
        let open = json!({"type": "object", "properties": {"b": true}});
        assert_eq!(fitting(open), json!({"type": "object", "properties": {"b": {}}}));
    }

    #[test]
    fn what_other_engines_and_earlier_drafts_take_costs_no_tool() {
        let input = json!({"$schema": "http://json-schema.org/draft-07/schema#", "properties": {
            "mail": {"type": "string", "pattern": "^(?!\\.)[a-z]+@x$", "default": {"pattern": "(?=a)", "items": [1]}},
            "name": {"type": "string", "pattern": "^[a-z]+$"},
            "point": {"type": "array", "items": [{"type": "number"}], "additionalItems": false}}});
        let output =
            json!({"type": "object", "patternProperties": {"^(?=a)": {"type": "string"}, "^b": {"type": "number"}}});
        let definition =
            ToolDefinition::read(&json!({"name": "x", "inputSchema": input, "outputSchema": output})).unwrap();
        assert_eq!(definition.fault(), None);
        let fitting = definition.fitting_input();
        assert_eq!(
            fitting["properties"]["mail"],
            json!({"type": "string", "default": {"pattern": "(?=a)", "items": [1]}})
        );
        assert_eq!(fitting["properties"]["name"]["pattern"], json!("^[a-z]+$"));
        let point = json!({"type": "array", "prefixItems": [{"type": "number"}], "items": false});
        assert_eq!(fitting["properties"]["point"], point);
        assert_eq!(definition.fitting_output()["patternProperties"], json!({"^b": {"type": "number"}}));
    }

    #[test]
    fn one_that_nobody_can_use_says_why() {
        let fault = |input: serde_json::Value, output: serde_json::Value| {
            ToolDefinition::read(&json!({"name": "x", "inputSchema": input, "outputSchema": output})).unwrap().fault()
        };
        let (fine, local) =
            (json!({"type": "object"}), json!({"$defs": {"a": {}}, "properties": {"b": {"$ref": "#/$defs/a"}}}));
        assert_eq!(fault(local, fine.clone()), None);
        let remote = json!({"properties": {"b": {"anyOf": [{"$ref": "http://x.example/y.json"}]}}});
        let said = fault(remote.clone(), fine.clone()).unwrap();
        assert!(said.starts_with("its input schema refers to `http://x.example/y.json`, and haft fetches"), "{said}");
        assert!(fault(fine.clone(), remote).unwrap().starts_with("its output schema refers to"));
        let said = fault(json!({"properties": {"b": {"type": 5}}}), fine).unwrap();
        assert!(said.starts_with("what it says of its input is of no use: its schema is broken"), "{said}");
    }

    #[test]
    fn what_is_no_definition_says_why() {
        for (value, why) in [
            (json!({"inputSchema": {}}), "missing field `name`"),
            (json!({"name": "x"}), "missing field `inputSchema`"),
            (json!({"name": "", "inputSchema": {}}), "0 bytes"),
            (json!({"name": "x", "inputSchema": []}), "no object"),
            (json!({"name": "x", "inputSchema": {}, "description": "x".repeat(70_000)}), "larger than 64 KiB"),
        ] {
            let dropped = ToolDefinition::read(&value).unwrap_err();
            assert!(dropped.why.contains(why), "{}", dropped.why);
        }
    }
}
