//! What a grant or a rule covers: which paths, kinds, counts and sizes of change, and which inputs.

use globset::{GlobBuilder, GlobMatcher};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Change, ChangeKind, ChangeList};

/// Limits on what a call does. A bound that is absent limits nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// Globs; every changed path must match one. `*` stays within a folder, `**` does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<Vec<String>>,
    /// The kinds of change that may occur.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kinds: Option<Vec<ChangeKind>>,
    /// How many paths may change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_files: Option<usize>,
    /// How many bytes may be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
    /// Whether executable files may be made or changed; `false` when absent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub executables: bool,
    /// The one input that is covered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
}

/// Which bound a call did not keep, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Miss(pub String);

impl Bounds {
    /// Whether a staged call lies within. The error says which bound failed first.
    pub fn contain_changes(&self, input: &Value, changes: &ChangeList) -> Result<(), Miss> {
        self.contain_input(input)?;
        let list = &changes.0;
        if let Some(most) = self.max_files
            && list.len() > most
        {
            return Err(Miss(format!("max_files = {most}, but {} paths change", list.len())));
        }
        if let Some(most) = self.max_bytes
            && changes.bytes() > most
        {
            return Err(Miss(format!("max_bytes = {most}, but {} bytes are written", changes.bytes())));
        }
        let globs = self.paths.as_deref().map(compiled).transpose()?;
        list.iter().try_for_each(|change| self.contain_change(change, globs.as_deref()))
    }

    /// Whether a call that could not be staged lies within: only a bound to its exact input can say so.
    pub fn contain_unstaged(&self, input: &Value) -> Result<(), Miss> {
        if self.input.is_none() {
            return Err(Miss(
                "its effect could not be seen before, so only a grant for this very input covers it".into(),
            ));
        }
        self.contain_input(input)
    }

    fn contain_input(&self, input: &Value) -> Result<(), Miss> {
        match &self.input {
            Some(only) if only != input => Err(Miss("input: it covers another input".into())),
            Some(_) | None => Ok(()),
        }
    }

    fn contain_change(&self, change: &Change, globs: Option<&[GlobMatcher]>) -> Result<(), Miss> {
        let path = &change.path;
        if let Some(kinds) = &self.kinds
            && !kinds.contains(&change.kind)
        {
            return Err(Miss(format!("kinds: `{path}` would be {}", kind_word(change.kind))));
        }
        if change.executable && !self.executables {
            return Err(Miss(format!("executables: `{path}` is executable")));
        }
        if let Some(globs) = globs
            && !globs.iter().any(|glob| glob.is_match(path))
        {
            return Err(Miss(format!("paths: `{path}` lies outside them")));
        }
        // A flagged change is never contained unless the bounds name that very path.
        let named = self.paths.as_ref().is_some_and(|paths| paths.contains(path));
        if !change.flags.is_empty() && !named {
            return Err(Miss(format!("`{path}` is flagged and not named by its very path")));
        }
        Ok(())
    }
}

fn compiled(globs: &[String]) -> Result<Vec<GlobMatcher>, Miss> {
    let compile = |glob: &String| {
        let built = GlobBuilder::new(glob).literal_separator(true).build();
        built.map(|glob| glob.compile_matcher()).map_err(|err| Miss(format!("paths: {err}")))
    };
    globs.iter().map(compile).collect()
}

fn kind_word(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Created => "created",
        ChangeKind::Changed => "changed",
        ChangeKind::Deleted => "deleted",
        ChangeKind::Mode => "given another mode",
        ChangeKind::Link => "linked",
        ChangeKind::Renamed => "renamed",
    }
}
