//! Names that a tool had before: understood until a date, and never listed to models.

use std::{borrow::Cow, collections::BTreeMap};

use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{ErrorCode, ToolError, ToolSpec};

/// Another name of a parameter, which is never listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ParameterAlias {
    /// What may be written.
    pub name: Cow<'static, str>,
    /// The parameter that it means.
    pub of: Cow<'static, str>,
    /// It is in seconds, the parameter in milliseconds.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_seconds: bool,
}

impl ParameterAlias {
    /// Another name for the same.
    pub const fn new(name: &'static str, of: &'static str) -> Self {
        Self { name: Cow::Borrowed(name), of: Cow::Borrowed(of), in_seconds: false }
    }

    /// Another name for the same in seconds.
    pub const fn in_seconds(name: &'static str, of: &'static str) -> Self {
        Self { name: Cow::Borrowed(name), of: Cow::Borrowed(of), in_seconds: true }
    }

    /// What a value under this name is under the parameter's own. What is no number is left for the schema to refuse.
    pub(crate) fn translated(&self, value: Value) -> Value {
        match value.as_u64().filter(|_| self.in_seconds) {
            Some(seconds) => seconds.saturating_mul(1000).into(),
            None => value,
        }
    }
}

/// A name that a tool had before, and what its parameters were called then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeprecatedAlias {
    /// The old name.
    pub name: String,
    /// The last day on which it is understood, in UTC.
    pub remove_by: Date,
    /// What parameters were called, and what they are called now.
    #[serde(rename = "paramMap", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
}

impl DeprecatedAlias {
    /// An old name that is understood up to and including a day.
    pub fn until(remove_by: Date, name: impl Into<String>) -> Self {
        Self { name: name.into(), remove_by, parameters: BTreeMap::new() }
    }

    /// The same, with one parameter that has another name now.
    #[must_use]
    pub fn renaming(mut self, old: impl Into<String>, now: impl Into<String>) -> Self {
        self.parameters.insert(old.into(), now.into());
        self
    }

    /// Whether its last day is over.
    pub fn is_removed(&self, today: Date) -> bool {
        today > self.remove_by
    }

    /// What a caller learns once the name is no more.
    pub(crate) fn refusal(&self, now: &str) -> ToolError {
        let Self { name, remove_by, .. } = self;
        let message = format!("`{name}` was the name of `{now}` until {remove_by}; call `{now}` instead");
        ToolError::new(ErrorCode::ToolNotFound, message).with("nearest", vec![now.to_owned()])
    }
}

/// The other name by which a call was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CalledAs {
    /// The name.
    pub name: String,
    /// The last day on which it is understood; absent when it always will be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remove_by: Option<Date>,
}

impl CalledAs {
    /// `None` when the tool was called by its own name.
    pub(crate) fn of(spec: &ToolSpec, name: &str) -> Option<Self> {
        let remove_by = spec.deprecated_alias(name).map(|alias| alias.remove_by);
        (spec.name != name).then(|| Self { name: name.to_owned(), remove_by })
    }

    /// What programs learn about a name that goes; nothing about one that stays.
    pub(crate) fn deprecation(&self, now: &str) -> Option<Value> {
        self.remove_by.map(|remove_by| json!({"use": now, "removeBy": remove_by}))
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::DeprecatedAlias;

    #[test]
    fn the_last_day_still_counts() {
        let alias = DeprecatedAlias::until(date(2027, 3, 31), "old");
        assert!(!alias.is_removed(date(2027, 3, 31)));
        assert!(alias.is_removed(date(2027, 4, 1)));
        assert!(alias.refusal("new").message.contains("call `new` instead"));
    }
}
