//! The variables that a manifest gives its command: text that stands there, or the name of a secret of the user's.

use std::{collections::BTreeMap, sync::Arc};

use haft_runtime::{Redactor, secret_forms};
use haft_sandbox::fence::refused_variable;
use serde_json::{Map, Value};

/// Finds a secret of the user's by its name; an error says what is missing, and never a value.
pub type FindSecret = Arc<dyn Fn(&str) -> Result<String, String> + Send + Sync>;

/// What stands before the name of a secret.
const SECRET: &str = "secret:";
const MOST_VARIABLES: usize = 64;

/// The variables of a manifest, by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ManifestVariables(BTreeMap<String, VariableValue>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum VariableValue {
    Text(String),
    /// The secret of this name.
    Secret(String),
}

impl ManifestVariables {
    /// Reads the key `env` of a manifest.
    pub(super) fn read(value: Option<&Value>) -> Result<Self, String> {
        let written = match value {
            None => return Ok(Self::default()),
            Some(Value::Object(written)) => written,
            Some(_) => return Err("`env` must have one text for each variable, such as { MODE = \"fast\" }".to_owned()),
        };
        if written.len() > MOST_VARIABLES {
            return Err(format!("its `env` has {} variables; at most {MOST_VARIABLES}", written.len()));
        }
        let read = |(name, value): (&String, &Value)| Ok((variable_name(name)?, VariableValue::read(name, value)?));
        written.iter().map(read).collect::<Result<_, String>>().map(Self)
    }

    /// What each is given, and what takes the secrets among that out of a text.
    pub(super) fn resolved(&self, find: &FindSecret) -> Result<(BTreeMap<String, String>, Redactor), String> {
        let (mut values, mut secrets) = (BTreeMap::new(), Vec::new());
        for (name, value) in &self.0 {
            let value = match value {
                VariableValue::Text(text) => text.clone(),
                VariableValue::Secret(secret) => {
                    let found = find(secret).map_err(|why| format!("its variable `{name}`: {why}"))?;
                    if found.contains('\0') {
                        return Err(format!("its variable `{name}`: the secret `{secret}` has a zero byte in it"));
                    }
                    secrets.extend(secret_forms(&found));
                    found
                }
            };
            values.insert(name.clone(), value);
        }
        Ok((values, Redactor::knowing(Vec::new(), secrets)))
    }

    /// The variables as the manifest has them: secrets by their names.
    pub(super) fn shown(&self) -> Map<String, Value> {
        let shown = |value: &VariableValue| match value {
            VariableValue::Text(text) => text.clone(),
            VariableValue::Secret(secret) => format!("{SECRET}{secret}"),
        };
        self.0.iter().map(|(name, value)| (name.clone(), shown(value).into())).collect()
    }

    /// The secrets among them, in words.
    pub(super) fn secrets(&self) -> impl Iterator<Item = String> {
        self.0.iter().filter_map(|(name, value)| match value {
            VariableValue::Text(_) => None,
            VariableValue::Secret(secret) => Some(format!("your secret `{secret}` as `{name}`")),
        })
    }
}

impl VariableValue {
    fn read(name: &str, value: &Value) -> Result<Self, String> {
        let text = value.as_str().ok_or_else(|| format!("`{name}` in its `env` must be text"))?;
        if text.contains('\0') {
            return Err(format!("`{name}` in its `env` has a NUL character, which no program can be given"));
        }
        let Some(secret) = text.strip_prefix(SECRET) else { return Ok(Self::Text(text.to_owned())) };
        let plain = secret.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        if secret.is_empty() || !plain {
            return Err(format!(
                "`{name}` in its `env` is {text:?}; write \"secret:NAME\", where NAME has only letters, digits, _ and -"
            ));
        }
        Ok(Self::Secret(secret.to_owned()))
    }
}

fn variable_name(name: &str) -> Result<String, String> {
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if name.is_empty() || !plain || name.starts_with(|first: char| first.is_ascii_digit()) {
        return Err(format!("{name:?} in its `env` is no name for a variable: letters, digits and _, no digit first"));
    }
    if refused_variable(name) {
        return Err(format!("its `env` may not set `{name}`: it makes programs load or run something else"));
    }
    Ok(name.to_owned())
}
