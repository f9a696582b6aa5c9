//! One field of a form, as JSON Schema describes it and as a person fills it in.

use serde_json::Value;

/// One field of a form.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// The name of its value.
    pub name: String,
    /// The name people read.
    pub title: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// What it is where nothing is filled in.
    pub default: Option<Value>,
    /// Whether it must be filled in.
    pub required: bool,
    /// What can be filled in.
    pub kind: FieldKind,
}

/// What can be filled in.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldKind {
    /// A text.
    Text,
    /// A number.
    Number,
    /// A whole number.
    Integer,
    /// Yes or no.
    YesOrNo,
    /// One of these.
    One(Vec<Choice>),
    /// Any of these.
    Any(Vec<Choice>),
}

/// One of several values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The value.
    pub value: String,
    /// The name people read, where it differs.
    pub title: Option<String>,
}

/// The fields of a flat object, or why it is none.
pub(super) fn all(schema: &Value) -> Result<Vec<Field>, String> {
    let required = |name: &str| schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
    let fields = schema["properties"].as_object().into_iter().flatten();
    fields.map(|(name, field)| read(name, field, required(name))).collect()
}

fn read(name: &str, field: &Value, required: bool) -> Result<Field, String> {
    let text = |key: &str| field[key].as_str().map(str::to_owned);
    let kind = match field["type"].as_str() {
        Some("string") => choices(field).map_or(FieldKind::Text, FieldKind::One),
        Some("number") => FieldKind::Number,
        Some("integer") => FieldKind::Integer,
        Some("boolean") => FieldKind::YesOrNo,
        Some("array") => match choices(&field["items"]) {
            Some(choices) => FieldKind::Any(choices),
            None => return Err(format!("`{name}` is a list of what is no choice")),
        },
        Some(_) | None => return Err(format!("`{name}` is neither a text, a number, yes or no, nor a choice")),
    };
    let default = field.get("default").cloned();
    let (title, description) = (text("title"), text("description"));
    Ok(Field { name: name.to_owned(), title, description, default, required, kind })
}

/// The values that a schema lets choose from: with titles, with titles beside them as was usual before, or without.
fn choices(schema: &Value) -> Option<Vec<Choice>> {
    if let Some(titled) = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array()) {
        let read = |one: &Value| Some(Choice { value: one["const"].as_str()?.to_owned(), title: title(&one["title"]) });
        return titled.iter().map(read).collect();
    }
    let (values, titles) = (schema["enum"].as_array()?, &schema["enumNames"]);
    let read =
        |(at, value): (usize, &Value)| Some(Choice { value: value.as_str()?.to_owned(), title: title(&titles[at]) });
    values.iter().enumerate().map(read).collect()
}

fn title(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}
