//! One parameter of a project tool.

use serde_json::{Map, Value, json};

use super::table::{ManifestTable, texts};

/// What a parameter may say.
const KEYS: &[&str] = &["type", "description", "required", "default", "enum", "minimum", "maximum"];
const LONGEST_NAME: usize = 64;

/// One parameter of a project tool.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) kind: ParameterKind,
    description: String,
    pub(super) required: bool,
    pub(super) default: Option<Value>,
    choices: Vec<Value>,
    /// The least that a number may be.
    minimum: Option<Value>,
    /// The most that a number may be.
    maximum: Option<Value>,
}

/// What its value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParameterKind {
    Text,
    Number,
    Integer,
    Boolean,
    Texts,
}

impl ParameterKind {
    fn named(word: &str) -> Option<Self> {
        Some(match word {
            "string" => Self::Text,
            "number" => Self::Number,
            "integer" => Self::Integer,
            "boolean" => Self::Boolean,
            "array" => Self::Texts,
            _ => return None,
        })
    }

    fn fits(self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Number => value.is_number(),
            Self::Integer => value.is_i64() || value.is_u64(),
            Self::Boolean => value.is_boolean(),
            Self::Texts => texts(value).is_some(),
        }
    }

    fn schema(self) -> Value {
        match self {
            Self::Text => json!({"type": "string"}),
            Self::Number => json!({"type": "number"}),
            Self::Integer => json!({"type": "integer"}),
            Self::Boolean => json!({"type": "boolean"}),
            Self::Texts => json!({"type": "array", "items": {"type": "string"}}),
        }
    }
}

impl Parameter {
    /// Reads what a manifest says of it.
    pub(super) fn read(name: &str, value: &Value) -> Result<Self, String> {
        let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        if !plain || name.len() > LONGEST_NAME || !name.starts_with(|first: char| first.is_ascii_alphabetic()) {
            return Err(format!(
                "{name:?} is no name for a parameter: at most {LONGEST_NAME} letters, digits, _ and -, a letter first"
            ));
        }
        let at = format!("the parameter `{name}`");
        let table = ManifestTable::of(value, &at, KEYS)?;
        let word = table.text("type")?.ok_or_else(|| format!("{at} has no `type`"))?;
        let kind = ParameterKind::named(word).ok_or_else(|| {
            format!("{word:?} is no type of {at}: string, number, integer, boolean, or array (of strings)")
        })?;
        let choices = match table.get("enum") {
            None => Vec::new(),
            Some(Value::Array(choices)) if !choices.is_empty() => choices.clone(),
            Some(_) => return Err(format!("`enum` of {at} must be an array with something in it")),
        };
        let parameter = Self {
            name: name.to_owned(),
            kind,
            description: table.text("description")?.unwrap_or_default().to_owned(),
            required: table.switch("required")?,
            default: table.get("default").cloned(),
            choices,
            minimum: table.get("minimum").cloned(),
            maximum: table.get("maximum").cloned(),
        };
        parameter.check(word)?;
        Ok(parameter)
    }

    /// What it says of its values must be such values.
    fn check(&self, word: &str) -> Result<(), String> {
        let one = if self.kind == ParameterKind::Texts { ParameterKind::Text } else { self.kind };
        if let Some(odd) = self.choices.iter().find(|choice| !one.fits(choice)) {
            return Err(format!("`enum` of the parameter `{}` has {odd}, which is not of its type", self.name));
        }
        self.check_bounds(word)?;
        let Some(default) = &self.default else { return Ok(()) };
        if !self.kind.fits(default) {
            return Err(format!("`default` of the parameter `{}` is {default}, which is no {word}", self.name));
        }
        let mut values = default.as_array().map_or_else(|| std::slice::from_ref(default), Vec::as_slice).iter();
        match values.find(|value| !self.choices.is_empty() && !self.choices.contains(value)) {
            Some(odd) => {
                Err(format!("`default` of the parameter `{}` is {odd}, which is not in its `enum`", self.name))
            }
            None => Ok(()),
        }
    }

    /// Bounds are numbers of its own type, the least first, with the default between them.
    fn check_bounds(&self, word: &str) -> Result<(), String> {
        let name = &self.name;
        for (key, bound) in [("minimum", &self.minimum), ("maximum", &self.maximum)] {
            let Some(bound) = bound else { continue };
            if !matches!(self.kind, ParameterKind::Number | ParameterKind::Integer) {
                return Err(format!("the parameter `{name}` is no number, so it has no `{key}`"));
            }
            if !self.kind.fits(bound) {
                return Err(format!("`{key}` of the parameter `{name}` is {bound}, which is no {word}"));
            }
        }
        let number = |value: &Option<Value>| value.as_ref().and_then(Value::as_f64);
        let (least, most) = (number(&self.minimum), number(&self.maximum));
        if least.zip(most).is_some_and(|(least, most)| least > most) {
            return Err(format!("`minimum` of the parameter `{name}` is larger than its `maximum`"));
        }
        let is_outside = |value: f64| least.is_some_and(|least| value < least) || most.is_some_and(|most| value > most);
        match self.default.as_ref().filter(|default| default.as_f64().is_some_and(is_outside)) {
            Some(odd) => Err(format!("`default` of the parameter `{name}` is {odd}, which is beyond its bounds")),
            None => Ok(()),
        }
    }

    /// Its part of the tool's input schema.
    fn schema(&self) -> Value {
        let mut schema = self.kind.schema();
        if !self.choices.is_empty() {
            let place = if self.kind == ParameterKind::Texts { &mut schema["items"] } else { &mut schema };
            place["enum"] = self.choices.clone().into();
        }
        for (key, bound) in [("minimum", &self.minimum), ("maximum", &self.maximum)] {
            if let Some(bound) = bound {
                schema[key] = bound.clone();
            }
        }
        if let Some(default) = &self.default {
            schema["default"] = default.clone();
        }
        if !self.description.is_empty() {
            schema["description"] = self.description.clone().into();
        }
        schema
    }
}

/// The input schema of a tool with these parameters.
pub(super) fn input_schema(parameters: &[Parameter]) -> Value {
    let properties: Map<String, Value> = parameters.iter().map(|one| (one.name.clone(), one.schema())).collect();
    let required: Vec<&str> = parameters.iter().filter(|one| one.required).map(|one| one.name.as_str()).collect();
    let mut schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}
