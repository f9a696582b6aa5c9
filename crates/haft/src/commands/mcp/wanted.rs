//! The tools that `--tools` names.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Context, Result};
use globset::{Glob, GlobMatcher};
use haft_runtime::{Only, nearest};

/// What follows the calls of other tools. Answers name them, so they are wanted beside whatever is.
const FOLLOWING: [&str; 2] = ["result_query", "wait_call"];

/// Names and patterns, and the tools that they were compared with.
pub(super) struct ToolPatterns {
    patterns: Vec<GlobMatcher>,
    seen: Mutex<BTreeSet<String>>,
}

impl ToolPatterns {
    /// `None` when all tools are wanted.
    pub(super) fn read(typed: &[String]) -> Result<Option<Arc<Self>>> {
        let mut patterns = Vec::new();
        for pattern in typed {
            let glob = Glob::new(pattern).with_context(|| format!("`--tools {pattern}` is no name and no pattern"))?;
            patterns.push(glob.compile_matcher());
        }
        let wanted = Self { patterns, seen: Mutex::default() };
        Ok((!wanted.patterns.is_empty()).then(|| Arc::new(wanted)))
    }

    /// Says of each tool whether it is wanted.
    pub(super) fn only(self: &Arc<Self>) -> Only {
        let us = Arc::clone(self);
        Arc::new(move |name: &str| {
            us.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
            FOLLOWING.contains(&name) || us.patterns.iter().any(|pattern| pattern.is_match(name))
        })
    }

    /// One sentence for each pattern that no tool fits. `later` are those whose tools may come only later.
    pub(super) fn unmatched(&self, later: impl Fn(&str) -> bool) -> Vec<String> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let fits_none = |pattern: &&GlobMatcher| !seen.iter().any(|name| pattern.is_match(name));
        let patterns = self.patterns.iter().filter(fits_none).map(|pattern| pattern.glob().glob());
        let told = |pattern: &str| {
            let near = nearest(pattern, seen.iter().map(String::as_str));
            let hint = near
                .first()
                .map_or_else(|| "`haft tools` lists them".to_owned(), |near| format!("did you mean `{near}`?"));
            format!("no tool fits `--tools {pattern}`; {hint}")
        };
        patterns.filter(|pattern| !later(pattern)).map(told).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::ToolPatterns;

    #[test]
    fn what_fits_nothing_is_told_with_the_nearest() {
        let typed = ["reed_file", "git_*", "mcp__x__*", "zzz"].map(str::to_owned);
        let wanted = ToolPatterns::read(&typed).unwrap().unwrap();
        let only = wanted.only();
        assert!(!only("read_file") && only("git_log") && only("wait_call") && only("result_query"));
        let told = wanted.unmatched(|pattern| pattern.starts_with("mcp__"));
        let expected = [
            "no tool fits `--tools reed_file`; did you mean `read_file`?",
            "no tool fits `--tools zzz`; `haft tools` lists them",
        ];
        assert_eq!(told, expected);
        assert!(ToolPatterns::read(&[]).unwrap().is_none());
        assert!(ToolPatterns::read(&["[".to_owned()]).is_err());
    }
}
