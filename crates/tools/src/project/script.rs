//! The files of the workspace that a command names. They are run only as they were trusted.

use std::{
    collections::BTreeSet,
    io::Read,
    path::{Component, Path, PathBuf},
};

use haft_runtime::{ErrorCode, ToolError};
use haft_sandbox::{EntryKind, PathError, Root, is_sensitive_name};

/// One file that a command names, and what was trusted of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// Where it lies in the workspace.
    pub path: String,
    /// What was trusted.
    pub trusted: Trusted,
}

/// What was trusted of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trusted {
    /// These bytes.
    Bytes(Vec<u8>),
    /// That nothing was there.
    Absent,
    /// Nothing: it could not be looked at, and why.
    LeftOut(String),
}

/// The files of a workspace that some words of a command name, as seen from a folder of it. What follows a `=` counts as
/// a word of its own.
pub fn scripts(words: &[&str], folder: &str, workspace: &Path) -> Vec<String> {
    let start = workspace.join(folder);
    let after_equals = words.iter().filter_map(|word| word.split_once('=').map(|(_, value)| value));
    let paths = words.iter().copied().chain(after_equals).filter(|word| !word.is_empty() && !word.contains('\0'));
    let within = paths.filter_map(|word| within(&start.join(word), workspace));
    within.collect::<BTreeSet<_>>().into_iter().collect()
}

/// A path as it lies in the workspace; `None` for what lies elsewhere, and for the workspace itself.
fn within(path: &Path, workspace: &Path) -> Option<String> {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(normal.pop()),
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => normal.push(part),
        }
    }
    let inside = normal.strip_prefix(workspace).ok()?;
    // No command sees those, so none runs them.
    let is_hidden = inside.iter().any(is_sensitive_name);
    inside.to_str().filter(|inside| !inside.is_empty() && !is_hidden).map(str::to_owned)
}

impl Script {
    /// The bytes that it may be run with; refused when the workspace has something else there.
    pub(crate) fn checked(&self, root: &Root, tool: &str) -> Result<Option<&[u8]>, ToolError> {
        let refused = |why: &str| {
            let message = format!(
                "`{tool}` was not run: `{}`, which its command names, {why}; look at it with `haft trust`",
                self.path
            );
            Err(ToolError::new(ErrorCode::NotTrusted, message).with("path", self.path.as_str()))
        };
        match (&self.trusted, self.found(root)) {
            (Trusted::LeftOut(why), _) => refused(&format!("could not be trusted, because {why}")),
            (Trusted::Absent, ScriptContent::Nothing) => Ok(None),
            (Trusted::Absent, ScriptContent::Bytes(_) | ScriptContent::Odd) => {
                refused("was not there when this workspace was trusted")
            }
            (Trusted::Bytes(_), ScriptContent::Nothing) => refused("is gone since this workspace was trusted"),
            (Trusted::Bytes(trusted), ScriptContent::Bytes(found)) if *trusted == found => Ok(Some(trusted)),
            (Trusted::Bytes(_), ScriptContent::Bytes(_) | ScriptContent::Odd) => {
                refused("has changed since this workspace was trusted")
            }
        }
    }

    fn found(&self, root: &Root) -> ScriptContent {
        // What is no path is not the name of a file either.
        let Ok(place) = root.place_called(&self.path) else { return ScriptContent::Nothing };
        match root.meta(&place).map(|meta| meta.map(|meta| meta.kind)) {
            Ok(Some(EntryKind::File)) if root.resolve(&place).is_ok_and(|resolved| resolved == place) => {}
            // A folder runs nothing.
            Ok(None | Some(EntryKind::Directory)) => return ScriptContent::Nothing,
            Err(PathError::NotFound { .. } | PathError::NotDirectory { .. }) => return ScriptContent::Nothing,
            Ok(Some(_)) | Err(_) => return ScriptContent::Odd,
        }
        let most = match &self.trusted {
            Trusted::Bytes(bytes) => bytes.len() as u64 + 1,
            Trusted::Absent | Trusted::LeftOut(_) => 0,
        };
        let mut bytes = Vec::new();
        let read = root.open_file(&place).map(|open| open.file.take(most).read_to_end(&mut bytes));
        if matches!(read, Ok(Ok(_))) { ScriptContent::Bytes(bytes) } else { ScriptContent::Odd }
    }
}

/// What lies there now.
enum ScriptContent {
    Nothing,
    /// A plain file; no more of it than is needed to tell it from the trusted one.
    Bytes(Vec<u8>),
    /// A link, or something that cannot be read.
    Odd,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_files_as_seen_from_the_folder_of_the_command() {
        let words = ["./run.sh", "python3", "tools/x.py", "--config=conf.toml", "../up.sh", "../../out", "/etc/passwd"];
        let found = scripts(&words, "sub", Path::new("/w"));
        let expected =
            ["sub/--config=conf.toml", "sub/conf.toml", "sub/python3", "sub/run.sh", "sub/tools/x.py", "up.sh"];
        assert_eq!(found, expected);
        assert_eq!(scripts(&["/w/a", "/w", ".", "", "a\0"], ".", Path::new("/w")), ["a"]);
    }
}
