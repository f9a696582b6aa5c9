//! Reading a manifest key by key, with one sentence for whatever is wrong.

use haft_runtime::nearest;
use serde_json::{Map, Value};

/// Some keys of a manifest. `at` names them in a sentence.
pub(super) struct ManifestTable<'a> {
    keys: &'a Map<String, Value>,
    at: String,
}

impl<'a> ManifestTable<'a> {
    /// The keys of a value that must have some, all of them known.
    pub(super) fn of(value: &'a Value, at: &str, known: &[&str]) -> Result<Self, String> {
        let Value::Object(keys) = value else { return Err(format!("{at} must have keys: {}", known.join(", "))) };
        if let Some(unknown) = keys.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(match nearest(unknown, known.iter().copied()).first() {
                Some(near) => format!("{at} has no key `{unknown}`; did you mean `{near}`?"),
                None => format!("{at} has no key `{unknown}`; there are {}", known.join(", ")),
            });
        }
        Ok(Self { keys, at: at.to_owned() })
    }

    pub(super) fn get(&self, key: &str) -> Option<&'a Value> {
        self.keys.get(key)
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<&'a str>, String> {
        self.read(key, "text", Value::as_str)
    }

    pub(super) fn switch(&self, key: &str) -> Result<bool, String> {
        Ok(self.read(key, "true or false", Value::as_bool)?.unwrap_or_default())
    }

    pub(super) fn texts(&self, key: &str) -> Result<Option<Vec<String>>, String> {
        self.read(key, "an array of text", texts)
    }

    fn read<T>(&self, key: &str, kind: &str, read: impl Fn(&'a Value) -> Option<T>) -> Result<Option<T>, String> {
        let Some(value) = self.keys.get(key) else { return Ok(None) };
        read(value).map(Some).ok_or_else(|| format!("`{key}` of {} must be {kind}", self.at))
    }
}

/// An array in which everything is text.
pub(super) fn texts(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}
