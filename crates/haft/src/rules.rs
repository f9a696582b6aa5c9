//! Rules: how they are written in settings, and the ones that are shipped.

use std::path::Path;

use anyhow::{Context, Result, bail};
use haft_runtime::{Bounds, ChangeKind, Rule, Tools, Verdict, WrittenBounds, nearest};
use toml::{Table, Value};

/// What a rule may say.
const KEYS: &[&str] = &["tool", "bounds", "decision", "reason"];
/// What its bounds may say.
const BOUNDS: &[&str] = &["paths", "kinds", "max_files", "max_bytes", "executables", "derived", "hosts"];

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
    fn rules(self) -> impl Iterator<Item = Rule> {
        let dynamic = match self.profile {
            Profile::Strict => None,
            Profile::Dynamic => dynamic(),
        };
        let derived = if self.derived { derived() } else { None };
        derived.into_iter().chain(dynamic)
    }
}

/// A test run or a build must not ask. A link is only derived where it leads to what is.
fn derived() -> Option<Rule> {
    let bounds = WrittenBounds { derived: true, executables: true, ..WrittenBounds::default() };
    allowing("derived", bounds, "build output and caches only")
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

/// Somebody's rules before the shipped ones.
pub(crate) fn in_force(own: &[Rule], shipped: BuiltinRules, tools: &Tools) -> Vec<Rule> {
    named(own.iter().cloned().chain(shipped.rules()).collect(), tools)
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
            one(entry, &name).with_context(|| name.clone())
        })
        .collect()
}

fn one(entry: &Value, name: &str) -> Result<Rule> {
    let Some(entry) = entry.as_table() else { bail!("a rule has keys: {}", KEYS.join(", ")) };
    refuse_unknown(entry, KEYS)?;
    let text = |key: &str| -> Result<Option<String>> {
        let Some(value) = entry.get(key) else { return Ok(None) };
        value.as_str().map(|text| Some(text.to_owned())).with_context(|| format!("`{key}` must be text"))
    };
    let verdict = verdict(text("decision")?.as_deref())?;
    let bounds = entry.get("bounds").map(|bounds| read_bounds(bounds, verdict)).transpose()?.unwrap_or_default();
    Ok(Rule { name: name.to_owned(), tool: text("tool")?, bounds, verdict, reason: text("reason")? })
}

fn verdict(text: Option<&str>) -> Result<Verdict> {
    Ok(match text {
        Some("allow") => Verdict::Allow,
        Some("ask") => Verdict::Ask,
        Some("deny") => Verdict::Deny,
        Some(other) => bail!("`{other}` is not a decision: allow, ask or deny"),
        None => bail!("`decision` is missing: allow, ask or deny"),
    })
}

fn read_bounds(value: &Value, verdict: Verdict) -> Result<Bounds> {
    let Some(table) = value.as_table() else { bail!("`bounds` has keys: {}", BOUNDS.join(", ")) };
    refuse_unknown(table, BOUNDS)?;
    let written: WrittenBounds = value.clone().try_into().context("`bounds` cannot be read")?;
    let counts = written.max_files.is_some() || written.max_bytes.is_some();
    if counts && verdict != Verdict::Allow {
        bail!("`max_files` and `max_bytes` limit what a rule allows; one that asks or denies goes by single changes");
    }
    Ok(written.try_into()?)
}

fn refuse_unknown(table: &Table, known: &[&str]) -> Result<()> {
    let Some(unknown) = table.keys().find(|key| !known.contains(&key.as_str())) else { return Ok(()) };
    match nearest(unknown, known.iter().copied()).first() {
        Some(near) => bail!("there is no `{unknown}`; did you mean `{near}`?"),
        None => bail!("there is no `{unknown}`; there are {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests;
