//! What was accepted of a server, beside what it said last. Plain data: whoever builds the house keeps it.

use std::collections::{BTreeMap, BTreeSet};

use haft_sandbox::changes;
use serde::{Deserialize, Serialize};

use super::{
    definition::{Dropped, ToolDefinition, digest},
    http::NEEDS_LOGIN,
    server::{ServerDescription, ServerEvent},
};

/// What is known of one server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerPins {
    /// What was started when the version was heard, or in vain before that.
    pub started: String,
    /// The version of the protocol that it spoke.
    pub version: Option<String>,
    /// What its tools may be; `None` before it was first met.
    pub accepted: Option<BTreeMap<String, ToolDefinition>>,
    /// What it said last.
    pub seen: BTreeMap<String, ToolDefinition>,
    /// What it said last and no tool could be made of.
    pub dropped: Vec<Dropped>,
    /// Why it could not be had, if that was the last that happened.
    pub last_error: Option<String>,
    /// How often somebody wanted it started anew.
    pub restarts: u64,
    /// How often it broke in the middle of its work since then.
    pub breaks: u64,
    /// What tells what a person was last shown from anything else that it may say.
    pub shown: Option<String>,
    /// Whether it has ever wanted to know who asks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wants_login: bool,
}

/// One tool that is not what was accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct PinDifference<'a> {
    /// What the server calls it.
    pub tool: &'a str,
    /// What was accepted; `None` for a new one.
    pub accepted: Option<&'a ToolDefinition>,
    /// What the server says now; `None` for one that is gone.
    pub seen: Option<&'a ToolDefinition>,
}

impl PinDifference<'_> {
    /// Whether it is new, has changed or is gone.
    pub fn kind(&self) -> &'static str {
        match (self.accepted, self.seen) {
            (None, _) => "new",
            (Some(_), None) => "gone",
            (Some(_), Some(_)) => "changed",
        }
    }

    /// Both definitions, line by line, under this name.
    pub fn diff(&self, path: &str) -> String {
        let pretty = |one: Option<&ToolDefinition>| {
            one.and_then(|one| serde_json::to_string_pretty(one).ok()).map(|text| text + "\n")
        };
        let (old, new) = (pretty(self.accepted), pretty(self.seen));
        let [old, new] = [&old, &new].map(|text| text.as_deref().map(str::as_bytes));
        changes::diff(path, old, new).unwrap_or_default()
    }
}

impl ServerPins {
    /// Takes in what became of a server that was started so.
    pub fn hear(&mut self, started: &str, report: ServerEvent) {
        match report {
            ServerEvent::Met(description) => self.met(started, description),
            ServerEvent::Failed(why) => {
                self.wants_login |= why.contains(NEEDS_LOGIN);
                self.last_error = Some(why);
                if self.version.is_none() {
                    started.clone_into(&mut self.started);
                }
            }
            ServerEvent::Broke(why) => {
                self.wants_login |= why.contains(NEEDS_LOGIN);
                (self.last_error, self.breaks) = (Some(why), self.breaks + 1);
            }
        }
    }

    /// Somebody wants it started anew, which every haft that uses it does before the next call.
    pub fn restart(&mut self) {
        (self.restarts, self.breaks) = (self.restarts + 1, 0);
    }

    /// Somebody has added it: what it says next is accepted, whatever was known by its name.
    pub fn begin_anew(&mut self) {
        *self = Self { restarts: self.restarts, ..Self::default() };
        self.restart();
    }

    /// Something else is started by its name, or it is elsewhere: what was accepted stays, and what happened does not.
    pub fn move_to(&mut self, started: &str) {
        if !self.started.is_empty() && self.started != started {
            (self.started, self.version, self.last_error) = (String::new(), None, None);
            self.wants_login = false;
        }
    }

    /// What was kept as JSON, if anything was.
    pub fn parsed(kept: Option<&str>) -> Self {
        let lost =
            |err| Self::lost(format!("what was accepted of it cannot be read ({err}), so all its tools are held"));
        kept.map_or_else(Self::default, |kept| serde_json::from_str(kept).unwrap_or_else(lost))
    }

    /// Whether something else is known of the tools than by another state.
    pub fn has_other_tools(&self, other: &Self) -> bool {
        (&self.accepted, &self.seen, &self.version) != (&other.accepted, &other.seen, &other.version)
    }

    /// What is known of a server whose record cannot be read: nothing is accepted of it.
    pub fn lost(why: String) -> Self {
        Self { accepted: Some(BTreeMap::new()), last_error: Some(why), ..Self::default() }
    }

    /// Takes in what a server said. What it says first is accepted: somebody has just added or trusted it.
    fn met(&mut self, started: &str, description: ServerDescription) {
        self.started = started.to_owned();
        self.version = Some(description.version);
        self.seen = description.tools.into_iter().map(|tool| (tool.name.clone(), tool)).collect();
        self.dropped = description.dropped;
        self.last_error = None;
        self.accepted.get_or_insert_with(|| self.seen.clone());
    }

    /// Whether it has ever said what its tools are, as far as is known.
    pub fn was_met(&self) -> bool {
        self.version.is_some()
    }

    /// The version that this very command spoke.
    pub fn version_of(&self, started: &str) -> Option<String> {
        self.version.clone().filter(|_| self.started == started)
    }

    /// A person was shown how what the server said last differs from what was accepted.
    pub fn note_shown(&mut self) {
        self.shown = Some(self.digest());
    }

    /// Accepts what the server said last, if it ever said anything. Says whether that is what was shown, if something was.
    #[must_use]
    pub fn accept(&mut self) -> bool {
        if self.shown.as_ref().is_some_and(|shown| *shown != self.digest()) {
            return false;
        }
        self.shown = None;
        if let Some(accepted) = &mut self.accepted {
            accepted.clone_from(&self.seen);
        }
        true
    }

    /// Accepts what the server said last of one tool, also that there is none any more.
    pub fn accept_tool(&mut self, tool: &str) {
        let Some(accepted) = &mut self.accepted else { return };
        match self.seen.get(tool) {
            Some(seen) => drop(accepted.insert(tool.to_owned(), seen.clone())),
            None => drop(accepted.remove(tool)),
        }
    }

    /// What tells what the server said last of all its tools from anything else that it may say.
    pub fn digest(&self) -> String {
        digest(&self.seen)
    }

    /// The accepted tools.
    pub fn tools(&self) -> impl Iterator<Item = &ToolDefinition> {
        self.accepted.iter().flat_map(BTreeMap::values)
    }

    /// Whether a tool is not, or is no longer, what was accepted.
    pub fn is_held(&self, tool: &str) -> bool {
        self.accepted.as_ref().and_then(|accepted| accepted.get(tool)) != self.seen.get(tool)
    }

    /// Every tool that is not what was accepted.
    pub fn differences(&self) -> Vec<PinDifference<'_>> {
        let Some(accepted) = &self.accepted else { return Vec::new() };
        let names: BTreeSet<&String> = accepted.keys().chain(self.seen.keys()).collect();
        let held = names.into_iter().filter(|name| self.is_held(name));
        held.map(|tool| PinDifference { tool, accepted: accepted.get(tool), seen: self.seen.get(tool) }).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{ServerDescription, ServerEvent, ServerPins, ToolDefinition};

    fn description(tools: &[(&str, &str)]) -> ServerDescription {
        let one = |(name, does): &(&str, &str)| {
            ToolDefinition::read(&json!({"name": name, "description": does, "inputSchema": {}})).unwrap()
        };
        ServerDescription {
            version: "2025-11-25".to_owned(),
            tools: tools.iter().map(one).collect(),
            dropped: Vec::new(),
        }
    }

    #[test]
    fn the_first_word_is_accepted_and_every_later_one_compared() {
        let mut pins = ServerPins::default();
        pins.met("x", description(&[("a", "1"), ("b", "1")]));
        assert!(pins.differences().is_empty());
        pins.met("x", description(&[("a", "2"), ("c", "1")]));
        let held: Vec<_> = pins.differences().iter().map(|one| one.tool.to_owned()).collect();
        assert_eq!(held, ["a", "b", "c"]);
        assert!(pins.is_held("a") && pins.is_held("b") && pins.is_held("c"));
        assert!(pins.accept());
        assert!(pins.differences().is_empty());
        assert_eq!(pins.tools().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["a", "c"]);
    }

    #[test]
    fn what_was_shown_is_accepted_and_nothing_that_came_after_it() {
        let mut pins = ServerPins::default();
        pins.met("x", description(&[("a", "1")]));
        pins.met("x", description(&[("a", "harmless")]));
        pins.note_shown();
        pins.met("x", description(&[("a", "evil")]));
        assert!(!pins.accept() && pins.is_held("a"));
        pins.note_shown();
        assert!(pins.accept() && !pins.is_held("a"));
        pins.met("x", description(&[("a", "3")]));
        assert!(pins.accept(), "whoever does not look accepts what is there");
    }

    #[test]
    fn one_tool_is_accepted_and_the_others_stay_held() {
        let mut pins = ServerPins::default();
        pins.met("x", description(&[("a", "1"), ("b", "1"), ("c", "1")]));
        pins.met("x", description(&[("a", "2"), ("b", "2"), ("d", "1")]));
        let before = pins.digest();
        for tool in ["a", "c", "d", "never was"] {
            pins.accept_tool(tool);
        }
        assert_eq!(pins.digest(), before);
        let held: Vec<_> = pins.differences().iter().map(|one| (one.tool.to_owned(), one.kind())).collect();
        assert_eq!(held, [("b".to_owned(), "changed")]);
        let diff = pins.differences()[0].diff("x/b");
        assert!(diff.contains("-  \"description\": \"1\"") && diff.contains("+  \"description\": \"2\""), "{diff}");
        assert_eq!(pins.tools().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["a", "b", "d"]);
    }

    #[test]
    fn nothing_is_accepted_of_one_whose_record_is_lost_until_somebody_does_or_adds_it_anew() {
        let mut pins = ServerPins::lost("broken".to_owned());
        pins.met("x", description(&[("a", "1")]));
        assert!(pins.is_held("a"));
        pins.begin_anew();
        pins.met("x", description(&[("a", "2")]));
        assert!(!pins.is_held("a") && pins.restarts == 1);
    }

    #[test]
    fn one_that_breaks_has_failed_until_it_runs_again_and_its_breaks_are_counted() {
        let mut pins = ServerPins::default();
        pins.hear("x", ServerEvent::Met(description(&[("a", "1")])));
        pins.hear("x", ServerEvent::Broke("it ended".to_owned()));
        pins.hear("x", ServerEvent::Broke("it ended again".to_owned()));
        assert_eq!((pins.last_error.as_deref(), pins.breaks), (Some("it ended again"), 2));
        pins.hear("x", ServerEvent::Met(description(&[("a", "1")])));
        assert_eq!((pins.last_error.as_deref(), pins.breaks), (None, 2));
        pins.hear("x", ServerEvent::Failed("it did not start".to_owned()));
        assert_eq!((pins.last_error.as_deref(), pins.breaks), (Some("it did not start"), 2));
        pins.restart();
        assert_eq!((pins.restarts, pins.breaks), (1, 0));
    }

    #[test]
    fn one_that_is_elsewhere_is_met_anew_and_held_to_what_was_accepted() {
        let mut pins = ServerPins::default();
        pins.hear("x", ServerEvent::Failed("nobody is there".to_owned()));
        pins.move_to("x");
        assert!(pins.last_error.is_some());
        pins.move_to("y");
        assert_eq!(pins, ServerPins::default());
        pins.met("y", description(&[("a", "1")]));
        pins.move_to("z");
        assert!(!pins.was_met() && pins.tools().count() == 1);
        pins.met("z", description(&[("a", "2")]));
        assert!(pins.was_met() && pins.is_held("a"));
    }

    #[test]
    fn the_version_belongs_to_the_command() {
        let mut pins = ServerPins::default();
        pins.met("x", description(&[]));
        assert_eq!(pins.version_of("x").as_deref(), Some("2025-11-25"));
        assert_eq!(pins.version_of("y"), None);
    }
}
