//! What the sandbox refuses, as the one error that callers see.

use std::io;

use haft_runtime::{Category, ErrorCode, ToolError};
use haft_sandbox::{
    PathError,
    changes::{ChangesError, FileChangeState},
};
use serde_json::{Value, json};

/// Says what was tried when the sandbox refuses.
pub(crate) trait Trying<T> {
    /// `doing` completes "cannot …": `read`, `write`, `list`.
    fn trying(self, doing: &str) -> Result<T, ToolError>;
}

impl<T> Trying<T> for Result<T, PathError> {
    fn trying(self, doing: &str) -> Result<T, ToolError> {
        self.map_err(|refused| of_path(doing, &refused))
    }
}

impl<T> Trying<T> for Result<T, ChangesError> {
    fn trying(self, doing: &str) -> Result<T, ToolError> {
        self.map_err(|refused| of_changes(doing, &refused))
    }
}

/// Why a tool cannot do something with a path: what was tried, on what, why not, and what to do next.
pub(crate) fn cannot(code: ErrorCode, doing: &str, path: &str, why: &str) -> ToolError {
    ToolError::new(code, format!("cannot {doing} `{path}`: {why}"))
}

/// What the system said while a file was being read.
pub(crate) fn broke_off(doing: &str, path: &str, err: &io::Error) -> ToolError {
    cannot(ErrorCode::ExecutionError, doing, path, &err.to_string())
}

fn of_path(doing: &str, refused: &PathError) -> ToolError {
    let no = |code, path: &str, why: &str| cannot(code, doing, path, why);
    match refused {
        PathError::Outside { path } => {
            no(ErrorCode::InvalidPath, path, "outside the workspace; use a path relative to the workspace folder")
                .in_category(Category::Permission)
        }
        PathError::Malformed { path, why } => no(ErrorCode::InvalidPath, path, why),
        PathError::Sensitive { path } => ToolError::new(
            ErrorCode::PermissionDenied,
            format!(
                "`{path}` usually holds secrets, so tools may not use it. A person can allow it with `sandbox.show`."
            ),
        ),
        PathError::NotFound { path, nearest } => not_found(doing, path, nearest),
        PathError::IsDirectory { path } => {
            no(ErrorCode::IsADirectory, path, "it is a directory; name a file inside it, `list_directory` shows them")
        }
        PathError::NotDirectory { path } => no(
            ErrorCode::NotADirectory,
            path,
            "it, or something on the way to it, is not a directory; check the path with `list_directory`",
        ),
        PathError::NotRegular { path, what } => {
            no(ErrorCode::ExecutionError, path, &format!("it is {what}, not a regular file"))
        }
        PathError::TooManyLinks { path } => no(
            ErrorCode::InvalidPath,
            path,
            "its links lead in a circle, or a link has just appeared; use the path that the links should lead to",
        ),
        PathError::Denied { path, .. } => {
            no(ErrorCode::PermissionDenied, path, "the system denies it; ask a person to change the permissions")
        }
        PathError::ReadOnly { path } => no(ErrorCode::PermissionDenied, path, "its filesystem is read-only"),
        PathError::Full { path } => {
            no(ErrorCode::ResourceLimit, path, "the disk or a quota is full; free some space and call again")
        }
        PathError::Io { path, source } => broke_off(doing, path, source),
    }
}

fn not_found(doing: &str, path: &str, nearest: &[String]) -> ToolError {
    // A name that is there leads nowhere.
    if nearest.iter().any(|name| name == path) {
        let why = "it is a link to something that does not exist; make what it leads to, or replace the link";
        return cannot(ErrorCode::FileNotFound, doing, path, why);
    }
    let next = match nearest {
        [] => "look for it with `glob` or `list_directory`".to_owned(),
        [only] => format!("did you mean `{only}`?"),
        [first, rest @ ..] => format!("did you mean `{first}`, or `{}`?", rest.join("` or `")),
    };
    let refused = cannot(ErrorCode::FileNotFound, doing, path, &format!("it does not exist; {next}"));
    if nearest.is_empty() { refused } else { refused.with("nearest", nearest) }
}

const NO_SWAP: &str = "nothing was changed: the filesystem it lies on cannot swap two files in one step, as many network \
                       and FUSE filesystems cannot; work in a folder on a local disk";

fn of_changes(doing: &str, refused: &ChangesError) -> ToolError {
    let no = |code, path: &str, why: &str| cannot(code, doing, path, why);
    let all = |code, why: &str| ToolError::new(code, format!("cannot {doing}: {why}"));
    match refused {
        ChangesError::Path(refused) => of_path(doing, refused),
        ChangesError::NotEmpty { path } => {
            no(ErrorCode::NotEmpty, path, "the directory has entries; set `recursive` to delete them too")
        }
        ChangesError::AlreadyExists { path } => no(
            ErrorCode::AlreadyExists,
            path,
            "something is there already; choose another path or allow to overwrite it",
        ),
        ChangesError::FolderInTheWay { path } => no(
            ErrorCode::NotEmpty,
            path,
            "a directory with entries is there, and folders are not merged; choose another path or delete it first",
        ),
        ChangesError::IntoItself { path } => {
            no(ErrorCode::InvalidArgs, path, "a directory cannot come into itself; choose a path outside it")
        }
        ChangesError::SameEntry { path } => {
            no(ErrorCode::InvalidArgs, path, "both paths name the same thing; choose another path")
        }
        ChangesError::Unsteady { path } => no(
            ErrorCode::StaleFile,
            path,
            "something else was changing it meanwhile; repeat the call when nothing writes to it",
        ),
        ChangesError::AlreadyPlanned { path } => {
            no(ErrorCode::InvalidArgs, path, "this call already changes it in another way; use one call for each")
        }
        ChangesError::RootItself => all(ErrorCode::InvalidPath, "it is the workspace itself; name something inside it")
            .in_category(Category::Permission),
        ChangesError::Stale { path } => {
            no(ErrorCode::StaleFile, path, "it has changed since it was read; read it again, then repeat the call")
        }
        ChangesError::Conflict { paths } => conflict(doing, paths),
        ChangesError::NotAUnit { path, unit } => {
            no(ErrorCode::InvalidArgs, path, &format!("it can only be chosen together with {}", quoted(unit)))
                .with("unit", unit.as_slice())
        }
        ChangesError::UnknownPath { path, nearest } => unknown_path(doing, path, nearest),
        ChangesError::WrongState { path, state } => wrong_state(doing, path, *state),
        ChangesError::NoSwap { path } => no(ErrorCode::Unavailable, path, NO_SWAP),
        ChangesError::Gone => all(
            ErrorCode::Unavailable,
            "these changes are not kept any more (`retention` in the settings says how long), so they can neither be committed nor undone",
        ),
        ChangesError::OtherWorkspace => all(
            ErrorCode::Unavailable,
            "the workspace folder is missing or is another one than these changes were made for",
        ),
        ChangesError::Stopped => all(ErrorCode::Cancelled, "the call was stopped; nothing was changed"),
        ChangesError::Busy => {
            all(ErrorCode::Busy, "other changes are being committed to this workspace; try again in a moment")
                .having_done_nothing()
        }
        ChangesError::Corrupt { what } => all(ErrorCode::Internal, &format!("what was kept cannot be read ({what})")),
        ChangesError::Io { what, source } => all(ErrorCode::ExecutionError, &format!("could not {what} ({source})")),
    }
}

fn conflict(doing: &str, paths: &[(String, String)]) -> ToolError {
    let why: Vec<String> = paths.iter().take(5).map(|(path, why)| format!("`{path}` ({why})")).collect();
    let more = paths.len().saturating_sub(why.len());
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let facts: Vec<Value> = paths.iter().map(|(path, why)| json!({ "path": path, "why": why })).collect();
    ToolError::new(
        ErrorCode::Conflict,
        format!(
            "cannot {doing}: changed by something else meanwhile: {}{more}; nothing was touched, look again and repeat the call",
            why.join(", ")
        ),
    )
    .with("paths", facts)
}

fn unknown_path(doing: &str, path: &str, nearest: &[String]) -> ToolError {
    let next = if nearest.is_empty() { String::new() } else { format!("; did you mean {}?", quoted(nearest)) };
    cannot(ErrorCode::InvalidArgs, doing, path, &format!("it is not among the changes{next}")).with("nearest", nearest)
}

/// An empty path says that none of the changes can go this way.
fn wrong_state(doing: &str, path: &str, state: FileChangeState) -> ToolError {
    let stands = match state {
        FileChangeState::Staged => "not committed yet",
        FileChangeState::Committed => "committed already",
        FileChangeState::Undone => "undone already",
        FileChangeState::Discarded => "discarded",
    };
    let what = if path.is_empty() { "these changes are" } else { "it is" };
    let refused = match path {
        "" => ToolError::new(ErrorCode::InvalidArgs, format!("cannot {doing}: {what} {stands}")),
        path => cannot(ErrorCode::InvalidArgs, doing, path, &format!("{what} {stands}")),
    };
    refused.with("state", stands)
}

/// The first of them; a folder may have ten thousand.
fn quoted(names: &[String]) -> String {
    let mut quoted: Vec<String> = names.iter().take(5).map(|name| format!("`{name}`")).collect();
    if names.len() > quoted.len() {
        quoted.push(format!("{} more", names.len() - quoted.len()));
    }
    quoted.join(", ")
}
