//! Names of commits and branches as callers give them, checked before git sees them.

use haft_runtime::{ErrorCode, ToolError};

/// The longest name that is taken.
const LONGEST: usize = 255;

/// A name for one commit: a branch, a tag, a hash, `HEAD~2`.
pub(super) fn commit(field: &str, name: &str) -> Result<String, ToolError> {
    let refuse = |why: &str| Err(refused(field, name, why));
    if let Some(why) = malformed(name) {
        return refuse(why);
    }
    if name.contains("..") || name.starts_with('^') || name.contains(':') {
        return refuse("name one commit, not a range, a search or a file");
    }
    Ok(format!("{name}^{{commit}}"))
}

/// A name for a branch, as git allows them.
pub(super) fn branch(field: &str, name: &str) -> Result<(), ToolError> {
    let banned = |part: &str| part.is_empty() || part.starts_with('.') || part.ends_with(".lock");
    let letters = [' ', '~', '^', ':', '?', '*', '[', '\\'];
    let wrong = name.contains(letters)
        || name.contains("..")
        || name.contains("@{")
        || name.ends_with('.')
        || name == "@"
        || name == "HEAD"
        || name.split('/').any(banned);
    match malformed(name) {
        Some(why) => Err(refused(field, name, why)),
        None if wrong => Err(refused(field, name, "git does not allow such a name for a branch")),
        None => Ok(()),
    }
}

/// A name for a remote.
pub(super) fn remote(name: &str) -> Result<(), ToolError> {
    let wrong = name.contains([':', '\\', ' ']) || name.contains("..");
    match malformed(name) {
        Some(why) => Err(refused("remote", name, why)),
        None if wrong => Err(refused("remote", name, "name a remote that the repository knows, not an address")),
        None => Ok(()),
    }
}

fn malformed(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        return Some("it is empty");
    }
    if name.len() > LONGEST {
        return Some("it is longer than 255 bytes");
    }
    if name.starts_with('-') {
        return Some("it begins with `-`, which git would take for an option");
    }
    name.contains(char::is_control).then_some("it contains a control character")
}

fn refused(field: &str, name: &str, why: &str) -> ToolError {
    let cut: String = name.chars().take(80).collect();
    ToolError::new(ErrorCode::InvalidArgs, format!("`{field}` cannot be {cut:?}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_be_an_option_or_more_than_one_commit_is_refused() {
        for name in ["main", "v1.0", "HEAD~2", "@{u}", "origin/main", "1a2b3c4", "feature/a-b", "HEAD^2"] {
            assert!(commit("ref", name).is_ok(), "{name}");
        }
        let long = "x".repeat(256);
        for name in
            ["", "-p", "--output=/tmp/x", "a..b", "a...b", "^main", ":/text", "HEAD:file", "a\nb", "a\0b", &long]
        {
            assert_eq!(commit("ref", name).unwrap_err().code, ErrorCode::InvalidArgs, "{name}");
        }
    }

    #[test]
    fn branches_are_named_as_git_allows() {
        for name in ["main", "feature/a-b", "v1.0", "ünïcode", "a@b"] {
            assert!(branch("name", name).is_ok(), "{name}");
        }
        for name in
            ["", "-d", "--delete", "a..b", "a b", "a~1", "a^", "a:b", "a?", "a*", "[a", "a\\b", "/a", "a/", "a//b"]
                .into_iter()
                .chain([".a", "a/.b", "a.lock", "a.", "@", "HEAD", "a@{1}", "a\x7fb"])
        {
            assert_eq!(branch("name", name).unwrap_err().code, ErrorCode::InvalidArgs, "{name}");
        }
    }

    #[test]
    fn remotes_are_names_and_no_addresses() {
        assert!(remote("origin").is_ok() && remote("team/fork").is_ok());
        for name in ["", "-u", "ext::sh -c x", "https://host/x", "host:path", "../elsewhere", "a b"] {
            assert_eq!(remote(name).unwrap_err().code, ErrorCode::InvalidArgs, "{name}");
        }
    }
}
