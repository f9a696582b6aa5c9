//! The globs of bounds, compiled.

use std::collections::HashSet;

use globset::{GlobBuilder, GlobMatcher};

use super::BoundsError;

/// The most globs that bounds may have, and the longest of them in bytes.
const MOST: usize = 1000;
const LONGEST: usize = 4096;
/// What means something else than itself in a glob.
const MARKS: &[char] = &['\\', '*', '?', '[', ']', '{', '}'];

/// Globs by how they are asked. Most grants name paths or a folder, which needs no pattern to be compiled.
#[derive(Clone, Debug, Default)]
pub(super) struct Paths {
    exact: HashSet<String>,
    /// Folders, each with a slash at its end; an empty one is the workspace.
    beneath: Vec<String>,
    patterns: Vec<PathGlob>,
    /// Of the patterns that end in `/**`, what stands before that.
    deep: Vec<GlobMatcher>,
}

/// A glob with the plain text at both its ends, which rules most paths out without asking the pattern.
#[derive(Clone, Debug)]
struct PathGlob {
    head: String,
    tail: String,
    glob: GlobMatcher,
}

impl Paths {
    pub(super) fn new(globs: &[String]) -> Result<Self, BoundsError> {
        if globs.len() > MOST {
            return Err(BoundsError(format!("{} paths are too many; {MOST} can be named", globs.len())));
        }
        let mut paths = Self::default();
        for glob in globs {
            paths.add(glob)?;
        }
        Ok(paths)
    }

    fn add(&mut self, glob: &str) -> Result<(), BoundsError> {
        refuse(glob)?;
        if let Some(path) = literal(glob) {
            self.exact.insert(path);
        } else if glob == "**" {
            self.beneath.push(String::new());
        } else if let Some(folder) = glob.strip_suffix("/**").and_then(literal) {
            self.beneath.push(format!("{folder}/"));
        } else {
            let built = GlobBuilder::new(glob).literal_separator(true).build();
            let built = built.map_err(|err| BoundsError(format!("the path `{glob}` is no glob: {}", err.kind())))?;
            self.patterns.push(PathGlob::new(glob, built.compile_matcher()));
            let folder =
                glob.strip_suffix("/**").map(|folder| GlobBuilder::new(folder).literal_separator(true).build());
            self.deep.extend(folder.and_then(Result::ok).map(|built| built.compile_matcher()));
        }
        Ok(())
    }

    /// Whether one of the globs matches.
    pub(super) fn hold(&self, path: &str) -> bool {
        self.exact.contains(path)
            || self.beneath.iter().any(|folder| path.starts_with(folder.as_str()))
            || self.patterns.iter().any(|pattern| pattern.matches(path))
    }

    /// Whether one of them covers everything beneath a folder, so that the folder itself may be made.
    pub(super) fn hold_all_beneath(&self, folder: &str) -> bool {
        self.beneath.iter().any(|beneath| beneath.strip_suffix('/') == Some(folder))
            || self.deep.iter().any(|pattern| pattern.is_match(folder))
    }

    /// Whether one of them is this very path.
    pub(super) fn name(&self, path: &str) -> bool {
        self.exact.contains(path)
    }
}

impl PathGlob {
    fn new(text: &str, glob: GlobMatcher) -> Self {
        let head = text.split(MARKS).next().unwrap_or_default().to_owned();
        // `**/a` also matches `a`, so that a slash after a mark may have nothing before it.
        let tail = text.rsplit(MARKS).next().unwrap_or_default().trim_start_matches('/').to_owned();
        Self { head, tail, glob }
    }

    fn matches(&self, path: &str) -> bool {
        path.starts_with(&self.head) && path.ends_with(&self.tail) && self.glob.is_match(path)
    }
}

/// Changed paths are relative and straight; a glob that is not would cover nothing, which nobody can mean.
fn refuse(glob: &str) -> Result<(), BoundsError> {
    let crooked = |part: &str| part.is_empty() || part == "." || part == "..";
    if glob.len() > LONGEST {
        return Err(BoundsError(format!("a path of {} bytes is too long; {LONGEST} are enough", glob.len())));
    }
    if glob.split('/').any(crooked) {
        let sentence = "paths are relative to the workspace, without `.`, `..`, or a slash at either end";
        return Err(BoundsError(format!("the path `{glob}` can match nothing: {sentence}; write `src/**`")));
    }
    Ok(())
}

/// The path that a glob is, when it can match no other.
fn literal(glob: &str) -> Option<String> {
    let mut path = String::with_capacity(glob.len());
    let mut letters = glob.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => path.push(letters.next()?),
            mark if MARKS.contains(&mark) => return None,
            plain => path.push(plain),
        }
    }
    Some(path)
}

/// The glob that matches this path and no other.
pub(crate) fn escaped(path: &str) -> String {
    let mut glob = String::with_capacity(path.len());
    for letter in path.chars() {
        if MARKS.contains(&letter) {
            glob.push('\\');
        }
        glob.push(letter);
    }
    glob
}
