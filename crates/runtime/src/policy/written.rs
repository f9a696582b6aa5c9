//! Rules as people write them, in settings and over REST alike.

use std::fmt;

use serde_json::{Map, Value, json};

use super::{Rule, Verdict};
use crate::{Bounds, WrittenBounds, nearest};

/// What a rule may say.
const KEYS: &[&str] = &["tool", "bounds", "decision", "reason"];
/// What its bounds may say.
const BOUNDS: &[&str] = &["paths", "kinds", "max_files", "max_bytes", "executables", "derived", "hosts"];

/// Why something is no rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError(String);

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RuleError {}

impl Rule {
    /// Reads what somebody wrote. `name` is what people will know it by.
    pub fn read(written: &Value, name: &str) -> Result<Self, RuleError> {
        let Some(entry) = written.as_object() else { return wrong(format!("a rule has keys: {}", KEYS.join(", "))) };
        refuse_unknown(entry, KEYS)?;
        let text = |key: &str| match entry.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => wrong(format!("`{key}` must be text")),
        };
        let verdict = verdict(text("decision")?.as_deref())?;
        let bounds = entry.get("bounds").filter(|bounds| !bounds.is_null());
        let bounds = bounds.map(|bounds| read_bounds(bounds, verdict)).transpose()?.unwrap_or_default();
        Ok(Self { name: name.to_owned(), tool: text("tool")?, bounds, verdict, reason: text("reason")? })
    }

    /// What it says, as it is written.
    pub fn written(&self) -> Value {
        let mut written = json!({"decision": self.verdict});
        let tool = self.tool.as_ref().map(|tool| ("tool", json!(tool)));
        let bounds = (!self.bounds.are_unlimited()).then(|| ("bounds", json!(self.bounds)));
        let reason = self.reason.as_ref().map(|reason| ("reason", json!(reason)));
        for (key, value) in tool.into_iter().chain(bounds).chain(reason) {
            written[key] = value;
        }
        written
    }
}

fn verdict(text: Option<&str>) -> Result<Verdict, RuleError> {
    Ok(match text {
        Some("allow") => Verdict::Allow,
        Some("ask") => Verdict::Ask,
        Some("deny") => Verdict::Deny,
        Some(other) => return wrong(format!("`{other}` is not a decision: allow, ask or deny")),
        None => return wrong("`decision` is missing: allow, ask or deny"),
    })
}

fn read_bounds(value: &Value, verdict: Verdict) -> Result<Bounds, RuleError> {
    let Some(table) = value.as_object() else { return wrong(format!("`bounds` has keys: {}", BOUNDS.join(", "))) };
    refuse_unknown(table, BOUNDS)?;
    let unreadable = |err: serde_json::Error| RuleError(format!("`bounds` cannot be read: {err}"));
    let written: WrittenBounds = serde_json::from_value(value.clone()).map_err(unreadable)?;
    let counts = written.max_files.is_some() || written.max_bytes.is_some();
    if counts && verdict != Verdict::Allow {
        return wrong(
            "`max_files` and `max_bytes` limit what a rule allows; one that asks or denies goes by single changes",
        );
    }
    written.try_into().map_err(|err: crate::BoundsError| RuleError(err.to_string()))
}

fn refuse_unknown(table: &Map<String, Value>, known: &[&str]) -> Result<(), RuleError> {
    let Some(unknown) = table.keys().find(|key| !known.contains(&key.as_str())) else { return Ok(()) };
    match nearest(unknown, known.iter().copied()).first() {
        Some(near) => wrong(format!("there is no `{unknown}`; did you mean `{near}`?")),
        None => wrong(format!("there is no `{unknown}`; there are {}", known.join(", "))),
    }
}

fn wrong<T>(why: impl Into<String>) -> Result<T, RuleError> {
    Err(RuleError(why.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        for written in [
            json!({"decision": "deny"}),
            json!({"decision": "allow", "tool": "write_file", "bounds": {"paths": ["doc/**"], "max_files": 3}}),
            json!({"decision": "ask", "bounds": {"hosts": ["example.org"]}, "reason": "look first"}),
        ] {
            assert_eq!(Rule::read(&written, "one").unwrap().written(), written);
        }
        let nothing = json!({"decision": "ask", "tool": null, "bounds": null, "reason": null});
        assert_eq!(Rule::read(&nothing, "one").unwrap().written(), json!({"decision": "ask"}));
        Rule::read(&json!("deny"), "one").unwrap_err();
    }
}
