//! Which tools there are for somebody: what a model is shown of them, and how it finds the rest.

use std::sync::{Arc, OnceLock};

use crate::{RegisteredTool, Shown, ToolMatch, search::Index};

/// The most that the definitions of tools which may be deferred may cost together before they are, in tokens. What is
/// always shown does not count: it costs the same either way.
pub const MOST_TOKENS: usize = 10_000;

/// The tools that somebody may use, sorted by name. It never changes: a change of the catalogue makes a new one.
#[derive(Default)]
pub struct ToolListing {
    all: Vec<Arc<RegisteredTool>>,
    offered: Vec<Arc<RegisteredTool>>,
    deferred: Vec<Arc<RegisteredTool>>,
    /// Made when somebody searches first.
    index: OnceLock<Index>,
}

impl ToolListing {
    /// Of tools that are sorted by name.
    pub fn of<'a>(tools: impl IntoIterator<Item = &'a Arc<RegisteredTool>>, pins: &PinnedTools) -> Self {
        let there = tools.into_iter().filter(|tool| tool.shown() != Shown::Never);
        let mut all: Vec<Arc<RegisteredTool>> = there.cloned().collect();
        let needs_room = |tool: &&Arc<RegisteredTool>| tool.shown() == Shown::WhileThereIsRoom;
        let is_too_much = all.iter().filter(needs_room).map(|tool| tool.tokens()).sum::<usize>() > MOST_TOKENS;
        let waits = |tool: &Arc<RegisteredTool>| is_too_much && needs_room(&tool) && !pins.name(&tool.spec().name);
        let (deferred, mut offered): (Vec<_>, Vec<_>) = all.iter().cloned().partition(waits);
        if deferred.is_empty() {
            all.retain(|tool| tool.shown() != Shown::ForOthers);
            offered.clone_from(&all);
        }
        Self { all, offered, deferred, index: OnceLock::new() }
    }

    /// What a model is shown: everything, or, where that costs too much, all but what it can find.
    pub fn offered(&self) -> &[Arc<RegisteredTool>] {
        &self.offered
    }

    /// What is not shown because it would cost too much; a search finds it.
    pub fn deferred(&self) -> &[Arc<RegisteredTool>] {
        &self.deferred
    }

    /// Everything, sorted by name.
    pub fn tools(&self) -> &[Arc<RegisteredTool>] {
        &self.all
    }

    /// The tools that fit best, best first: the one of that very name, then by words.
    pub fn find(&self, query: &str, limit: usize) -> Vec<ToolMatch> {
        let index = self.index.get_or_init(|| {
            let found = self.tools().iter().filter(|tool| tool.shown() != Shown::ForOthers);
            Index::of(found.cloned().collect())
        });
        index.find(query, limit)
    }
}

/// Names of tools that are always shown; a `*` stands for any letters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PinnedTools(pub Vec<String>);

impl PinnedTools {
    /// Whether one of them names this tool.
    pub fn name(&self, tool: &str) -> bool {
        self.0.iter().any(|pin| fits(pin, tool))
    }

    /// Those that name none of these tools.
    pub fn idle<'a>(&'a self, tools: &[Arc<RegisteredTool>]) -> Vec<&'a str> {
        let names_none = |pin: &&String| !tools.iter().any(|tool| fits(pin, &tool.spec().name));
        self.0.iter().filter(names_none).map(String::as_str).collect()
    }
}

fn fits(pin: &str, name: &str) -> bool {
    let Some((start, rest)) = pin.split_once('*') else { return pin == name };
    let Some(left) = name.strip_prefix(start) else { return false };
    // The first star may stand for any beginning of what is left.
    left.char_indices().map(|(at, _)| at).chain([left.len()]).any(|at| fits(rest, &left[at..]))
}

#[cfg(test)]
mod tests {
    use super::PinnedTools;

    #[test]
    fn a_star_stands_for_any_letters() {
        let pins = |pin: &str| PinnedTools(vec![pin.to_owned()]);
        for (pin, name, fits) in [
            ("mcp__a__b", "mcp__a__b", true),
            ("mcp__a__b", "mcp__a__bc", false),
            ("mcp__a__*", "mcp__a__b", true),
            ("mcp__a__*", "mcp__ab__b", false),
            ("*_issue", "mcp__a__create_issue", true),
            ("*_issue", "mcp__a__create_issues", false),
            ("mcp__*__get_*", "mcp__a__get_b", true),
            ("*", "anything", true),
            ("", "anything", false),
        ] {
            assert_eq!(pins(pin).name(name), fits, "{pin} {name}");
        }
    }
}
