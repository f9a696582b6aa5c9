//! An event as streams tell it, and the names that each profile has for it.

use haft_platform::{JournalEvent, ToldEvent};
use haft_runtime::Redactor;
use serde_json::{Map, Value, json};

/// Whose names a stream speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventProfile {
    Canonical,
    Spaces,
    Session,
    Agent,
}

/// haft's own name, then those of `spaces`, `session` and `agent`; an empty one is not told there.
const NAMES: &[(&str, [&str; 3])] = &[
    ("tool.call", ["tool.started", "", "tool.call"]),
    ("tool.needs_approval", ["", "tool.needs_approval", ""]),
    ("tool.approved", ["", "tool.approved", ""]),
    ("tool.rejected", ["tool.error", "tool.failed", "tool.result"]),
    ("tool.started", ["", "tool.started", "agent.state"]),
    ("tool.output_appended", ["", "tool.output_appended", "tool.progress"]),
    ("tool.progress", ["", "", "tool.progress"]),
    ("tool.pending", ["", "", "tool.result"]),
    ("tool.completed", ["tool.done", "tool.completed", "tool.result"]),
    ("tool.failed", ["tool.error", "tool.failed", "tool.result"]),
    ("tool.interrupted", ["tool.error", "tool.failed", "tool.result"]),
    ("tool.cancelled", ["tool.error", "tool.cancelled", "tool.result"]),
    ("changes.committed", ["", "", "file.changed"]),
];

impl EventProfile {
    /// The profile that a word means; `canonical` where there is none.
    pub(crate) fn parse(word: Option<&str>) -> Option<Self> {
        match word {
            None | Some("canonical") => Some(Self::Canonical),
            Some("spaces") => Some(Self::Spaces),
            Some("session") => Some(Self::Session),
            Some("agent") => Some(Self::Agent),
            Some(_) => None,
        }
    }

    /// What an event is called here; `None` where it is not told.
    pub(crate) fn name(self, event: &str) -> Option<&str> {
        let column = match self {
            Self::Canonical => return Some(event),
            Self::Spaces => 0,
            Self::Session => 1,
            Self::Agent => 2,
        };
        let (_, names) = NAMES.iter().find(|(name, _)| *name == event)?;
        Some(names[column]).filter(|name| !name.is_empty())
    }
}

/// An event in words, written once for all who listen.
pub(crate) fn told<'a>(event: &'a JournalEvent, redactor: &Redactor) -> &'a ToldEvent {
    event.told.get_or_init(|| {
        let (name, data) = view(event, redactor);
        ToldEvent { name, data: data.to_string() }
    })
}

/// Its own name, and everything that is told of it but secrets.
pub(crate) fn view(event: &JournalEvent, redactor: &Redactor) -> (String, Value) {
    let mut data = Map::new();
    if let Value::Object(own) = json!(event.event) {
        data.extend(own.into_iter().map(|(name, fact)| (camel(&name), fact)));
    }
    let name = data.remove("event").and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default();
    let via = &event.via;
    for (part, fact) in [("agentId", &via.agent), ("spaceId", &via.space), ("sessionId", &via.session)] {
        if let Some(fact) = fact {
            data.insert(part.to_owned(), json!(fact));
        }
    }
    data.insert("runId".to_owned(), via.run.as_ref().map_or_else(|| json!(event.call), |run| json!(run)));
    data.insert("toolCallId".to_owned(), json!(event.call));
    data.insert("ts".to_owned(), json!(event.at));
    (name, redactor.value(&Value::Object(data)))
}

fn camel(name: &str) -> String {
    let mut parts = name.split('_');
    let mut camel = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut letters = part.chars();
        camel.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        camel.push_str(letters.as_str());
    }
    camel
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_profile_has_its_own_names() {
        assert_eq!(EventProfile::Spaces.name("tool.completed"), Some("tool.done"));
        assert_eq!(EventProfile::Session.name("tool.call"), None);
        assert_eq!(EventProfile::Agent.name("tool.started"), Some("agent.state"));
        assert_eq!(EventProfile::Canonical.name("tool.staged"), Some("tool.staged"));
        assert_eq!(EventProfile::parse(Some("nonsense")), None);
        assert_eq!(camel("execution_time_ms"), "executionTimeMs");
    }
}
