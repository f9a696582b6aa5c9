//! A form that a tool puts to whoever is behind its call, and what was filled in.

mod field;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

pub use field::{Choice, Field, FieldKind};

use crate::{ErrorCode, ToolError, issues, registry};

/// What a form is called where its tool does not say.
const NAME: &str = "answer";

/// What a tool wants to know in the middle of its work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Form {
    /// What the answer is known by.
    pub name: String,
    /// What is asked, for people.
    pub message: String,
    /// What fits: a flat object, whose fields are texts, numbers, yes or no, and choices.
    schema: Value,
}

impl Form {
    /// A form for the fields of a flat JSON Schema object, as MCP's elicitation allows them.
    pub fn new(message: impl Into<String>, schema: Value) -> Result<Self, ToolError> {
        let unusable = |why: String| ToolError::new(ErrorCode::InvalidArgs, format!("the form cannot be shown: {why}"));
        if schema["type"] != "object" || !schema["properties"].is_object() {
            return Err(unusable("its schema must be an object with `properties`".to_owned()));
        }
        field::all(&schema).map_err(unusable)?;
        registry::compile_form(&schema).map_err(unusable)?;
        Ok(Self { name: NAME.to_owned(), message: message.into(), schema })
    }

    /// The same form, known by another name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// What fits, as JSON Schema.
    pub fn schema(&self) -> &Value {
        &self.schema
    }

    /// The fields in their order.
    pub fn fields(&self) -> Vec<Field> {
        // They were read once already.
        field::all(&self.schema).unwrap_or_default()
    }

    /// Why a value does not fit its field, where it does not.
    pub fn fits(&self, field: &str, value: &Value) -> Result<(), ToolError> {
        let broken = |why| ToolError::new(ErrorCode::Internal, why);
        let schema = &self.schema["properties"][field];
        let validator = registry::compile_form(schema).map_err(broken)?;
        if validator.is_valid(value) { Ok(()) } else { Err(issues::told(&validator, schema, field, value)) }
    }

    /// The values with the defaults of what was left out, or why they do not fit.
    pub fn filled(&self, mut values: Map<String, Value>) -> Result<FormValues, ToolError> {
        for field in self.fields() {
            if let Some(default) = field.default {
                values.entry(field.name).or_insert(default);
            }
        }
        let values = Value::Object(values);
        let mut schema = self.schema.clone();
        // A misspelled field is told, not dropped.
        schema["additionalProperties"] = json!(false);
        let broken = |why| ToolError::new(ErrorCode::Internal, why);
        let validator = registry::compile_form(&schema).map_err(broken)?;
        match (validator.is_valid(&values), values) {
            (true, Value::Object(values)) => Ok(FormValues(values)),
            (_, values) => Err(issues::told(&validator, &schema, &self.name, &values)),
        }
    }
}

/// Values that fit the form they were given for. Only [`Form::filled`] makes new ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FormValues(Map<String, Value>);

impl FormValues {
    /// The values by the names of their fields.
    pub fn values(&self) -> &Map<String, Value> {
        &self.0
    }
}

/// What came of a form.
#[derive(Clone, Debug, PartialEq)]
pub enum FormAnswer {
    /// It was filled in.
    Accepted(FormValues),
    /// The person does not want to say.
    Declined {
        /// In the person's own words.
        message: Option<String>,
    },
    /// It was put away without an answer.
    Cancelled,
}
