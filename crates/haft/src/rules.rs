//! Rules: how they are written in settings, and the ones that are shipped.

use std::path::Path;

use anyhow::{Context, Result, bail};
use haft_runtime::{Bounds, ChangeKind, Rule, Tools, Verdict, WrittenBounds};
use toml::{Table, Value};

/// A set of shipped rules; a tighter one is less.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Profile {
    /// Every change is asked for.
    #[default]
    Strict,
    /// New files are made unasked; nothing is overwritten or deleted.
    Dynamic,
}

impl Profile {
    /// `strict` or `dynamic`.
    pub fn parse(text: &str) -> Result<Self> {
        Ok(match text {
            "strict" => Self::Strict,
            "dynamic" => Self::Dynamic,
            other => bail!("`{other}` is not a profile: strict or dynamic"),
        })
    }
}

/// Which shipped rules hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BuiltinRules {
    pub(crate) profile: Profile,
    /// Whether build output and caches come in unasked.
    pub(crate) derived: bool,
}

impl BuiltinRules {
    /// The rules themselves; they are for every tool.
    pub(crate) fn rules(self) -> Vec<Rule> {
        let dynamic = match self.profile {
            Profile::Strict => None,
            Profile::Dynamic => dynamic(),
        };
        let derived = if self.derived { derived() } else { None };
        derived.into_iter().chain(dynamic).collect()
    }
}

/// A test run or a build must not ask. A link is only derived where it leads to what is.
fn derived() -> Option<Rule> {
    let bounds = WrittenBounds { derived: true, executables: true, ..WrittenBounds::default() };
    allowing("derived", bounds, "so that a test run or a build does not ask")
}

fn dynamic() -> Option<Rule> {
    let kinds = Some(vec![ChangeKind::Created, ChangeKind::Renamed]);
    allowing("dynamic", WrittenBounds { kinds, ..WrittenBounds::default() }, "it only adds")
}

fn allowing(name: &str, bounds: WrittenBounds, reason: &str) -> Option<Rule> {
    let bounds = Bounds::try_from(bounds).ok()?;
    let (name, reason) = (format!("the built-in rule `{name}`"), Some(reason.to_owned()));
    Some(Rule { name, tool: None, bounds, verdict: Verdict::Allow, reason })
}

/// The same rules, each with its tool's own name.
pub(crate) fn named(mut rules: Vec<Rule>, tools: &Tools) -> Vec<Rule> {
    for tool in rules.iter_mut().filter_map(|rule| rule.tool.as_mut()) {
        if let Some(found) = tools.get(tool) {
            found.spec().name.clone_into(tool);
        }
    }
    rules
}

/// The rules of a file that is not in force and which shipped ones it wants; whatever else it sets is not looked at.
pub(crate) fn of_file(file: &Path) -> Result<(Vec<Rule>, BuiltinRules)> {
    let shown = file.display();
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {shown}"))?;
    let table: Table = text.parse().with_context(|| format!("{shown} is not TOML"))?;
    let rules = table.get("rule").map(|rules| read(rules, &shown.to_string())).transpose()?.unwrap_or_default();
    let approvals = |key: &str| table.get("approvals").and_then(|section| section.get(key));
    let profile = approvals("profile").and_then(Value::as_str).map(Profile::parse).transpose()?.unwrap_or_default();
    let derived = approvals("derived").and_then(Value::as_bool).unwrap_or(true);
    Ok((rules, BuiltinRules { profile, derived }))
}

/// The `[[rule]]` entries of some settings. `origin` says whose, in words: `your settings`.
pub fn read(value: &Value, origin: &str) -> Result<Vec<Rule>> {
    let Some(entries) = value.as_array() else { bail!("rules are a list: write each under `[[rule]]`") };
    let numbered = entries.iter().zip(1..);
    numbered
        .map(|(entry, number)| {
            let name = format!("rule {number} of {origin}");
            let entry = serde_json::to_value(entry)?;
            Rule::read(&entry, &name).with_context(|| name.clone())
        })
        .collect()
}

#[cfg(test)]
mod tests;
