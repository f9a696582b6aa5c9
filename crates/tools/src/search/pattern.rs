//! Which files a pattern of names means.

use std::{ffi::OsStr, path::Path};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use haft_runtime::{ErrorCode, ToolError};

/// The longest pattern that is taken.
const LONGEST: usize = 4096;

/// A pattern such as `*.rs` or `src/**/*.{ts,tsx}`.
pub(crate) struct GlobPattern {
    set: GlobSet,
    /// Without a `/`, a pattern is about the name alone, at any depth.
    on_name: bool,
    /// With a leading `!`, all other files are meant.
    others: bool,
}

impl GlobPattern {
    /// `field` is the parameter it came in by.
    pub(super) fn new(field: &str, typed: &str) -> Result<Self, ToolError> {
        let wrong = |why: &str| {
            let message = format!("`{field}` {typed:?} is no usable pattern: {why}");
            Err(ToolError::new(ErrorCode::InvalidArgs, message))
        };
        if typed.len() > LONGEST {
            let message = format!("`{field}` is longer than {LONGEST} bytes; use a shorter pattern");
            return Err(ToolError::new(ErrorCode::InvalidArgs, message));
        }
        let (others, pattern) = typed.strip_prefix('!').map_or((false, typed), |rest| (true, rest));
        let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
        if pattern.is_empty() {
            return wrong("it is empty; `**` means every file");
        }
        if pattern.starts_with('/') {
            return wrong("it begins with `/`; patterns are relative to `path`, so leave that out");
        }
        if pattern.ends_with('/') {
            return wrong("it ends with `/`, but only files are found; add `**` for everything in that folder");
        }
        if pattern.split('/').any(|part| part == "..") {
            return wrong("it goes up with `..`; set `path` to the folder to search");
        }
        match compile(pattern) {
            Ok(set) => Ok(Self { set, on_name: !pattern.contains('/'), others }),
            Err(err) => wrong(&err.kind().to_string()),
        }
    }

    /// Whether it means this file; `path` is relative to the folder that is searched.
    pub(super) fn means(&self, path: &Path, name: &OsStr) -> bool {
        let subject = if self.on_name { Path::new(name) } else { path };
        self.set.is_match(subject) != self.others
    }
}

/// A set of one is quicker than a single glob: it knows the common forms.
fn compile(pattern: &str) -> Result<GlobSet, globset::Error> {
    let glob = GlobBuilder::new(pattern).literal_separator(true).empty_alternates(true).build()?;
    GlobSetBuilder::new().add(glob).build()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::GlobPattern;

    fn means(pattern: &str, path: &str) -> bool {
        let path = Path::new(path);
        GlobPattern::new("pattern", pattern).unwrap().means(path, path.file_name().unwrap())
    }

    #[test]
    fn what_patterns_mean() {
        assert!(means("*.rs", "a.rs") && means("*.rs", "deep/down/a.rs") && !means("*.rs", "a.rs.bak"));
        assert!(means("src/*.rs", "src/a.rs") && !means("src/*.rs", "src/b/a.rs") && !means("src/*.rs", "x/src/a.rs"));
        assert!(means("**/a.rs", "a.rs") && means("**/a.rs", "x/y/a.rs") && means("src/**", "src/x/y"));
        assert!(means("*.{ts,tsx}", "a.tsx") && means("[a-c]?.md", "b1.md") && !means("[!a]*", "abc"));
        assert!(means("./src/**/*.rs", "src/a.rs") && means("!*.rs", "a.md") && !means("!*.rs", "x/a.rs"));
        assert!(means("A", "A") && !means("A", "a") && means("\\*", "*") && !means("\\*", "x"));
    }

    #[test]
    fn what_is_no_pattern() {
        for pattern in ["", "!", "/etc/*", "a/", "../*", "a/../b", "[", "{a", "a\\", &"x".repeat(5000)] {
            assert!(GlobPattern::new("pattern", pattern).is_err(), "{pattern}");
        }
    }
}
