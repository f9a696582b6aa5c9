//! Schemas of strangers: comparing a value with one must end soon, and must need no more stack than there is.

use std::{
    cell::Cell,
    collections::HashMap,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};

use jsonschema::{Keyword, ValidationError, ValidationOptions, Validator};
use serde_json::{Map, Value};

/// How many references are followed for one value. A schema whose parts refer to each other twice would double the work with
/// each of them.
const MOST_REFERENCES: u32 = 200_000;
/// How many while what does not fit is written down.
const MOST_FOR_ERRORS: u32 = 50_000;
/// How many parts of a schema may speak of one value, each inside the one before. A value is no more than 128 deep, so that
/// this bounds how deep the comparison goes.
const DEEPEST: usize = 16;
/// How much of a schema may be compared with how much of a value: parts with parts, and patterns with letters.
const MOST_COMPARED: usize = 200_000_000;
/// A schema so small is compared with anything.
const SMALL: usize = 1000;
/// Stands beside each reference and counts.
const COUNTED: &str = "x-haft-counted";

/// What refers to another part of a schema.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
/// What has a schema, or a list of them, for the same value.
const SAME_VALUE: [&str; 7] = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];
/// What has schemas by name for the same value.
const SAME_VALUE_BY_NAME: [&str; 2] = ["dependentSchemas", "dependencies"];
/// What has a schema, or a list of them, for a part of the value.
const PART_OF_VALUE: [&str; 9] = [
    "additionalProperties",
    "propertyNames",
    "unevaluatedProperties",
    "items",
    "prefixItems",
    "additionalItems",
    "contains",
    "unevaluatedItems",
    "contentSchema",
];
/// What has schemas by name for a part of the value, or only keeps them.
const PART_OF_VALUE_BY_NAME: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];

/// A schema that values are compared with.
pub(crate) struct BoundedSchema {
    validator: Validator,
    /// How large it is.
    size: SchemaSize,
}

impl BoundedSchema {
    /// Compiles a schema; an error says what is wrong with it.
    pub(crate) fn new(options: ValidationOptions<'_>, schema: &Value) -> Result<Self, String> {
        let built = if has_references(schema) {
            let schema = SchemaParts::of(schema)?.counted();
            options.with_keyword(COUNTED, |_, _, _| Ok(Box::new(ReferenceCount))).build(&schema)
        } else {
            options.build(schema)
        };
        let validator = built.map_err(|err| err.to_string())?;
        Ok(Self { validator, size: SchemaSize::of(schema) })
    }

    /// Whether a value fits. One that takes too long to compare does not.
    pub(crate) fn is_valid(&self, value: &Value) -> bool {
        self.size.allows(value) && bounded(MOST_REFERENCES, || self.validator.is_valid(value)).unwrap_or(false)
    }

    /// The first things about a value that do not fit; `None` if it takes too long to find out.
    pub(crate) fn errors<'a>(&'a self, value: &'a Value, most: usize) -> Option<Vec<ValidationError<'a>>> {
        if !self.size.allows(value) {
            return None;
        }
        bounded(MOST_FOR_ERRORS, || self.validator.iter_errors(value).take(most).collect())
    }
}

/// How much of a schema there is to be compared.
#[derive(Default)]
struct SchemaSize {
    parts: usize,
    patterns: usize,
}

impl SchemaSize {
    fn of(schema: &Value) -> Self {
        let mut size = Self::default();
        size.add(schema);
        size
    }

    fn add(&mut self, schema: &Value) {
        self.parts += 1;
        match schema {
            Value::Object(fields) => {
                self.patterns += usize::from(fields.contains_key("pattern"));
                self.patterns += fields.get("patternProperties").and_then(Value::as_object).map_or(0, Map::len);
                fields.values().for_each(|inner| self.add(inner));
            }
            Value::Array(items) => items.iter().for_each(|inner| self.add(inner)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Whether a value is small enough for it.
    fn allows(&self, value: &Value) -> bool {
        if self.parts <= SMALL {
            return true;
        }
        let (parts, letters) = measured(value);
        self.parts.saturating_mul(parts).saturating_add(self.patterns.saturating_mul(letters)) <= MOST_COMPARED
    }
}

/// How many parts a value has, and how many letters.
fn measured(value: &Value) -> (usize, usize) {
    let add = |(parts, letters): (usize, usize), (more, longer): (usize, usize)| (parts + more, letters + longer);
    match value {
        Value::Object(fields) => {
            let each = fields.iter().map(|(name, inner)| add(measured(inner), (0, name.len())));
            each.fold((1, 0), add)
        }
        Value::Array(items) => items.iter().map(measured).fold((1, 0), add),
        Value::String(text) => (1, text.len()),
        Value::Null | Value::Bool(_) | Value::Number(_) => (1, 0),
    }
}

thread_local! {
    /// How many references may still be followed by the comparison that this thread is at.
    static LEFT: Cell<u32> = const { Cell::new(0) };
}

/// What ends a comparison that takes too long.
struct TooManyReferences;

/// Does what compares, unless it takes too long.
fn bounded<T>(most: u32, compare: impl FnOnce() -> T) -> Option<T> {
    LEFT.set(most);
    match catch_unwind(AssertUnwindSafe(compare)) {
        Ok(compared) => Some(compared),
        Err(payload) if payload.is::<TooManyReferences>() => None,
        Err(payload) => resume_unwind(payload),
    }
}

/// Counts each time that a reference is followed. Nothing else can end a comparison before its end.
struct ReferenceCount;

impl<'i> Keyword<'i> for ReferenceCount {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        self.is_valid(instance);
        Ok(())
    }

    fn is_valid(&self, _instance: &'i Value) -> bool {
        match LEFT.get().checked_sub(1) {
            Some(left) => LEFT.set(left),
            None => resume_unwind(Box::new(TooManyReferences)),
        }
        true
    }
}

fn has_references(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => {
            REFERENCES.iter().any(|word| fields.contains_key(*word)) || fields.values().any(has_references)
        }
        Value::Array(items) => items.iter().any(has_references),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// The parts of a schema by where they are, each with the parts that speak of the same value.
struct SchemaParts<'a> {
    root: &'a Value,
    anchors: HashMap<&'a str, String>,
    same_value: HashMap<String, Vec<String>>,
}

impl<'a> SchemaParts<'a> {
    /// Everything that can be reached, if nothing is deeper than it may be.
    fn of(root: &'a Value) -> Result<Self, String> {
        let mut anchors = HashMap::new();
        find_anchors(root, &mut String::new(), &mut anchors);
        let mut parts = Self { root, anchors, same_value: HashMap::new() };
        let mut to_do = vec![String::new()];
        while let Some(at) = to_do.pop() {
            let Some(fields) = root.pointer(&at).and_then(Value::as_object) else { continue };
            if parts.same_value.contains_key(&at) {
                continue;
            }
            if !at.is_empty() && fields.get("$id").is_some_and(Value::is_string) {
                return Err(format!("`$id` at `#{at}`: only the whole schema has one"));
            }
            let mut same = listed(fields, &at, &SAME_VALUE);
            same.extend(named(fields, &at, &SAME_VALUE_BY_NAME));
            for reference in REFERENCES.iter().filter_map(|word| fields.get(*word)?.as_str()) {
                same.push(parts.target(reference)?);
            }
            to_do.extend(listed(fields, &at, &PART_OF_VALUE));
            to_do.extend(named(fields, &at, &PART_OF_VALUE_BY_NAME));
            to_do.extend(same.iter().cloned());
            parts.same_value.insert(at, same);
        }
        let mut known = HashMap::new();
        for at in parts.same_value.keys() {
            parts.depth(at, 0, &mut known)?;
        }
        Ok(parts)
    }

    /// Where a reference leads.
    fn target(&self, reference: &str) -> Result<String, String> {
        let nowhere =
            || format!("`{reference}` leads nowhere in this schema; refer to a part of it, like `#/$defs/name`");
        let place = reference.strip_prefix('#').and_then(decoded).ok_or_else(nowhere)?;
        let place = match place.as_str() {
            "" => place,
            // Two ways to write one place are one place.
            path if path.starts_with('/') => {
                let steps = path.split('/').map(|step| escaped(&step.replace("~1", "/").replace("~0", "~")));
                steps.collect::<Vec<_>>().join("/")
            }
            anchor => self.anchors.get(anchor).cloned().ok_or_else(nowhere)?,
        };
        self.root.pointer(&place).map(|_| place).ok_or_else(nowhere)
    }

    /// How many parts speak of the same value below this one, each inside the one before.
    fn depth<'p>(&'p self, at: &'p str, level: usize, known: &mut HashMap<&'p str, usize>) -> Result<usize, String> {
        let too_deep = || format!("more than {DEEPEST} parts of it speak of one value, each inside the one before");
        if level > DEEPEST {
            return Err(too_deep());
        }
        if let Some(depth) = known.get(at) {
            return Ok(*depth);
        }
        let mut deepest = 0;
        for inner in self.same_value.get(at).into_iter().flatten() {
            deepest = deepest.max(self.depth(inner, level + 1, known)?);
        }
        if level + deepest > DEEPEST {
            return Err(too_deep());
        }
        known.insert(at, deepest + 1);
        Ok(deepest + 1)
    }

    /// The same schema, in which each reference is counted.
    fn counted(&self) -> Value {
        let mut schema = self.root.clone();
        for at in self.same_value.keys() {
            let Some(fields) = schema.pointer_mut(at).and_then(Value::as_object_mut) else { continue };
            // By an older draft nothing beside a reference would count.
            if fields.get("$schema").is_some_and(Value::is_string) {
                fields.remove("$schema");
            }
            if REFERENCES.iter().any(|word| fields.get(*word).is_some_and(Value::is_string)) {
                fields.insert(COUNTED.to_owned(), Value::Bool(true));
            }
        }
        schema
    }
}

/// Where the schemas are that some fields of a schema have, alone or in a list.
fn listed(fields: &Map<String, Value>, at: &str, words: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for word in words {
        match fields.get(*word) {
            Some(Value::Array(items)) => found.extend((0..items.len()).map(|index| format!("{at}/{word}/{index}"))),
            Some(_) => found.push(format!("{at}/{word}")),
            None => {}
        }
    }
    found
}

/// The same for those that have them by name.
fn named(fields: &Map<String, Value>, at: &str, words: &[&str]) -> Vec<String> {
    let by_name = words.iter().filter_map(|word| Some((word, fields.get(*word)?.as_object()?)));
    by_name.flat_map(|(word, named)| named.keys().map(move |name| format!("{at}/{word}/{}", escaped(name)))).collect()
}

/// A name as a step of a JSON Pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// A text without its percent signs.
fn decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).ok()
}

fn find_anchors<'a>(schema: &'a Value, at: &mut String, anchors: &mut HashMap<&'a str, String>) {
    let length = at.len();
    let mut look = |step: &str, inner: &'a Value, at: &mut String| {
        at.push('/');
        at.push_str(&escaped(step));
        find_anchors(inner, at, anchors);
        at.truncate(length);
    };
    match schema {
        Value::Object(fields) => fields.iter().for_each(|(name, inner)| look(name, inner, at)),
        Value::Array(items) => items.iter().enumerate().for_each(|(index, inner)| look(&index.to_string(), inner, at)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    for word in ["$anchor", "$dynamicAnchor"] {
        if let Some(name) = schema.get(word).and_then(Value::as_str) {
            anchors.insert(name, at.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn compiled(schema: &Value) -> Result<BoundedSchema, String> {
        BoundedSchema::new(jsonschema::options().with_draft(jsonschema::Draft::Draft202012), schema)
    }

    /// Parts that refer to the next one twenty times: the work grows so with each.
    fn growing(word: &str, more: &Value) -> Value {
        let parts = 6;
        let mut schema = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/p0"}}, "$defs": {}});
        for part in 0..parts {
            let next = json!({"$ref": format!("#/$defs/p{}", part + 1)});
            schema["$defs"][format!("p{part}")] = json!({word: vec![next; 20]});
        }
        schema["$defs"][format!("p{parts}")] = json!({"type": "string"});
        for (name, value) in more.as_object().unwrap() {
            schema[name] = value.clone();
        }
        schema
    }

    #[test]
    fn a_comparison_that_would_never_end_is_ended() {
        let old = json!({"$schema": "http://json-schema.org/draft-07/schema#"});
        for (word, more) in [("allOf", json!({})), ("anyOf", json!({})), ("oneOf", json!({})), ("allOf", old)] {
            let schema = compiled(&growing(word, &more)).unwrap();
            for value in [json!({"a": "text"}), json!({"a": 1})] {
                assert!(word == "anyOf" || !schema.is_valid(&value), "{word} {value}");
                assert!(value["a"] == "text" || schema.errors(&value, 20).is_none(), "{word} {value}");
            }
        }
        // Each level of the value doubles the work.
        let twice = json!({"properties": {"a": {"$ref": "#"}}});
        let schema = compiled(&json!({"type": "object", "anyOf": [twice, twice], "required": ["b"]})).unwrap();
        let mut deep = json!(1);
        for _ in 0..100 {
            deep = json!({"a": deep});
        }
        assert!(!schema.is_valid(&deep));
        assert!(schema.errors(&deep, 20).is_none());
    }

    #[test]
    fn a_large_schema_is_not_compared_with_a_large_value() {
        let patterns: Map<String, Value> =
            (0..5000).map(|n| (format!("^x{n}y*z"), json!({"type": "string"}))).collect();
        let schema = compiled(&json!({"type": "object", "patternProperties": patterns})).unwrap();
        assert!(schema.is_valid(&json!({"x1yz": "a"})) && !schema.is_valid(&json!({"x1yz": 1})));
        let many: Map<String, Value> = (0..50_000).map(|n| (format!("x{n}yz"), json!("a"))).collect();
        assert!(!schema.is_valid(&Value::Object(many.clone())) && schema.errors(&Value::Object(many), 1).is_none());
        let long = json!({"a": "x".repeat(1 << 20)});
        assert!(schema.errors(&long, 1).is_none());
    }

    #[test]
    fn a_schema_that_is_too_deep_is_refused() {
        let mut long = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/p0"}}, "$defs": {"p50": {}}});
        for part in 0..50 {
            long["$defs"][format!("p{part}")] = json!({"$ref": format!("#/$defs/p{}", part + 1)});
        }
        let round = json!({"properties": {"a": {"$ref": "#/$defs/x"}},
            "$defs": {"x": {"$ref": "#/$defs/y"}, "y": {"allOf": [{"$ref": "#/$defs/x"}]}}});
        let hidden =
            json!({"properties": {"a": {"$ref": "#/hidden/x"}}, "hidden": {"x": {"not": {"$ref": "#/hidden/x"}}}});
        let anchored =
            json!({"properties": {"a": {"$ref": "#x"}}, "$defs": {"x": {"$anchor": "x", "if": {"$ref": "#x"}}}});
        let encoded =
            json!({"properties": {"a": {"$ref": "#/%24defs/a~1b"}}, "$defs": {"a/b": {"$ref": "#/$defs/a~1b"}}});
        for schema in [long, round, hidden, anchored, encoded] {
            let why = compiled(&schema).err().unwrap_or_default();
            assert!(why.starts_with("more than 16 parts"), "{schema}: {why}");
        }
    }

    #[test]
    fn what_leads_out_of_the_schema_is_refused() {
        for reference in ["http://example.org/x", "file:///etc/passwd", "other", "#/$defs/none", "#none", "#/%zz"] {
            let why = compiled(&json!({"properties": {"a": {"$ref": reference}}})).err().unwrap_or_default();
            assert!(why.contains("leads nowhere"), "{reference}: {why}");
        }
        let inner =
            json!({"properties": {"a": {"$id": "x", "$defs": {"y": {}}, "$ref": "#/$defs/y"}}, "$defs": {"y": {}}});
        assert!(compiled(&inner).is_err_and(|why| why.contains("$id")));
    }

    #[test]
    fn schemas_that_refer_to_themselves_as_people_write_them_work() {
        let tree = json!({"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#"}}}});
        let schema = compiled(&tree).unwrap();
        assert!(schema.is_valid(&json!({"name": "a", "children": [{"name": "b", "children": []}]})));
        assert!(!schema.is_valid(&json!({"name": "a", "children": [{"children": []}]})));
        let any = json!({"type": "object", "properties": {"v": {"$ref": "#/$defs/json"}}, "$defs": {"json": {"anyOf": [
            {"type": ["string", "number", "boolean", "null"]},
            {"type": "array", "items": {"$ref": "#/$defs/json"}},
            {"type": "object", "additionalProperties": {"$ref": "#/$defs/json"}}]}}});
        let schema = compiled(&any).unwrap();
        let mut deep = json!([1, "x", null]);
        for _ in 0..60 {
            deep = json!({"a": [deep, 1], "b": "x"});
        }
        assert!(schema.is_valid(&json!({"v": deep})));
        let filter = json!({"type": "object", "properties": {"filter": {"$ref": "#/$defs/filter"}}, "$defs": {"filter": {
            "oneOf": [
                {"type": "object", "required": ["not"], "properties": {"not": {"$ref": "#/$defs/filter"}}},
                {"type": "object", "required": ["allOf"], "properties": {"allOf": {"items": {"$ref": "#/$defs/filter"}}}},
                {"type": "object", "required": ["field"], "properties": {"$ref": {"type": "string"}}}]}}});
        let schema = compiled(&filter).unwrap();
        assert!(schema.is_valid(&json!({"filter": {"not": {"allOf": [{"field": "a"}, {"field": "b", "$ref": "x"}]}}})));
        assert!(!schema.is_valid(&json!({"filter": {"not": {"field": 1, "$ref": 2}}})));
    }

    #[test]
    fn the_largest_schema_that_is_taken_fits_the_stack() {
        let mut schema = json!({"properties": {"a": {"$ref": "#/$defs/p0"}}, "$defs": {}});
        for part in 0..14 {
            schema["$defs"][format!("p{part}")] = json!({"$ref": format!("#/$defs/p{}", part + 1)});
        }
        schema["$defs"]["p14"] = json!({"properties": {"a": {"$ref": "#/$defs/p0"}}, "required": ["b"]});
        let schema = compiled(&schema).unwrap();
        let mut deep = json!({"b": 1});
        for _ in 0..125 {
            deep = json!({"a": deep, "b": 1});
        }
        let compared = std::thread::Builder::new()
            .stack_size(2 << 20)
            .spawn(move || (schema.is_valid(&deep), schema.errors(&deep, 20).map(|errors| errors.len())));
        assert_eq!(compared.unwrap().join().unwrap(), (true, Some(0)));
    }
}
