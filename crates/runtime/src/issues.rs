//! Why an input does not fit: every issue with its JSON Pointer, what was expected and what came.

use jsonschema::{
    ValidationError,
    error::{TypeKind, ValidationErrorKind},
};
use serde_json::{Value, json};

use crate::{ErrorCode, ToolError, ToolSpec, bounded_schema::BoundedSchema, nearest::nearest, registry::TOO_LONG};

const MOST_ISSUES: usize = 20;
const LONGEST_VALUE: usize = 80;

/// The error for an input that does not fit its schema.
pub(crate) fn issues_of(spec: &ToolSpec, validator: &BoundedSchema, input: &Value) -> ToolError {
    told(validator, &spec.input_schema, &spec.name, input)
}

/// Everything about a value that does not fit, told of what has this name.
pub(crate) fn told(validator: &BoundedSchema, schema: &Value, name: &str, value: &Value) -> ToolError {
    let Some(errors) = validator.errors(value, MOST_ISSUES) else {
        return ToolError::new(ErrorCode::InvalidArgs, format!("`{name}` cannot be checked: {TOO_LONG}"));
    };
    let mut issues = Vec::new();
    for error in &errors {
        collect(error, schema, &mut issues);
    }
    issues.truncate(MOST_ISSUES);
    let lines: Vec<String> = issues.iter().map(|issue| issue.sentence(name)).collect();
    let details: Vec<Value> = issues.iter().map(Issue::to_json).collect();
    ToolError::new(ErrorCode::InvalidArgs, lines.join("; ")).with("issues", details)
}

struct Issue {
    path: String,
    code: String,
    expected: String,
    got: String,
    hint: Option<String>,
}

impl Issue {
    fn sentence(&self, tool: &str) -> String {
        let field = self.path.replace('/', ".");
        let hint = self.hint.as_ref().map_or_else(String::new, |hint| format!("; did you mean `{hint}`?"));
        format!("`{tool}{field}` {} (got {}){hint}", self.expected, self.got)
    }

    fn to_json(&self) -> Value {
        let mut issue = json!({"path": self.path, "code": self.code, "expected": self.expected, "got": self.got,
            "message": format!("`{}` {}", self.path, self.expected)});
        if let Some(hint) = &self.hint {
            issue["didYouMean"] = json!(hint);
        }
        issue
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the library's kinds are many and most are told alike")]
fn collect(error: &ValidationError<'_>, schema: &Value, issues: &mut Vec<Issue>) {
    let path = error.instance_path().to_string();
    let code = error.kind().keyword().to_owned();
    let value = shortened(error.instance());
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            for name in unexpected.iter().take(MOST_ISSUES) {
                let known = properties_at(schema, &path);
                let hint = nearest(name, known.iter().map(String::as_str)).into_iter().next();
                let expected = match known.as_slice() {
                    [] => "is unknown: this tool takes no arguments".to_owned(),
                    known => format!("is unknown: known are {}", known.join(", ")),
                };
                let got = shortened(error.instance().get(name).unwrap_or(&Value::Null));
                let path = format!("{path}/{}", cut(name));
                issues.push(Issue { path, code: code.clone(), expected, got, hint });
            }
        }
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            let hint = misspelled(error.instance(), &properties_at(schema, &path), name);
            let path = format!("{path}/{name}");
            issues.push(Issue { path, code, expected: "is required".to_owned(), got: "nothing".to_owned(), hint });
        }
        ValidationErrorKind::OneOfNotValid { context } | ValidationErrorKind::AnyOf { context } => {
            // The branch that failed least is the one that was meant.
            for inner in context.iter().min_by_key(|branch| branch.len()).into_iter().flatten() {
                collect(inner, schema, issues);
            }
        }
        kind => issues.push(Issue { path, code, expected: expectation(kind, error), got: value, hint: None }),
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the library's kinds are many and its own words serve for the rest")]
fn expectation(kind: &ValidationErrorKind, error: &ValidationError<'_>) -> String {
    match kind {
        ValidationErrorKind::Type { kind: TypeKind::Single(kind) } => format!("must be of type {kind}"),
        ValidationErrorKind::Type { kind: TypeKind::Multiple(kinds) } => {
            let kinds: Vec<String> = kinds.iter().map(|kind| kind.to_string()).collect();
            format!("must be of type {}", kinds.join(" or "))
        }
        ValidationErrorKind::Minimum { limit } => format!("must be ≥ {limit}"),
        ValidationErrorKind::Maximum { limit } => format!("must be ≤ {limit}"),
        ValidationErrorKind::Enum { options } => format!("must be one of {options}"),
        ValidationErrorKind::MinLength { limit } => format!("must have at least {limit} characters"),
        ValidationErrorKind::MinItems { limit } => format!("must have at least {limit} items"),
        _ => format!("is wrong: {}", error.masked()),
    }
}

/// A required name is missing and an unknown one is close to it.
fn misspelled(instance: &Value, known: &[String], missing: &str) -> Option<String> {
    let fields = instance.as_object()?;
    let unknown: Vec<&str> =
        fields.keys().map(String::as_str).filter(|name| !known.iter().any(|k| k == name)).collect();
    nearest(missing, unknown).first().map(|_| missing.to_owned())
}

/// The property names of the schema that describes the value at a pointer.
fn properties_at(schema: &Value, pointer: &str) -> Vec<String> {
    let mut here = schema;
    for part in pointer.split('/').skip(1) {
        let next = here.get("properties").and_then(|properties| properties.get(part)).or_else(|| here.get("items"));
        let Some(next) = next else { return Vec::new() };
        here = next;
    }
    let properties = here.get("properties").and_then(Value::as_object);
    properties.map(|properties| properties.keys().cloned().collect()).unwrap_or_default()
}

fn shortened(value: &Value) -> String {
    let text = match value {
        Value::Array(items) => format!("an array of {}", items.len()),
        Value::Object(_) => "an object".to_owned(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    };
    cut(&text)
}

/// What was given, as much of it as is said back.
pub(crate) fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST_VALUE) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}
