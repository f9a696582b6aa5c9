//! What git refuses, as the one error that callers see.

use haft_runtime::{ErrorCode, ToolError};
use haft_sandbox::{Root, WorkspacePath};

use super::repository::no_repository;

/// How much of git's own words is told.
const TOLD: usize = 600;

/// What git complained about.
pub(super) fn refused(complaints: &str, root: &Root) -> ToolError {
    let says = |words: &[&str]| words.iter().any(|word| complaints.contains(word));
    let because = |code, why: &str| ToolError::new(code, format!("git refused: {why}"));
    if says(&["not a git repository"]) {
        return no_repository(&WorkspacePath::root());
    }
    if says(&["dubious ownership"]) {
        let why = "somebody else owns this repository, and what it says could be meant to harm you; if you trust it, \
                   say so yourself with `git config --global --add safe.directory` and its path";
        return because(ErrorCode::PermissionDenied, why);
    }
    if says(&["unable to access"]) && says(&["Permission denied"]) {
        let why = "it leads to a file outside the workspace, or to one that you may not read";
        return because(ErrorCode::PermissionDenied, why).with("said", told(complaints, root));
    }
    if says(&["unknown revision", "bad revision", "Not a valid object name", "not a valid object name", "bad object"]) {
        let why = "there is no such commit; `git_branch` lists the branches and `git_log` the commits";
        return because(ErrorCode::InvalidArgs, why).with("said", told(complaints, root));
    }
    if says(&["must be run in a work tree"]) {
        return because(ErrorCode::InvalidPath, "this repository is bare and has no files");
    }
    if says(&["index.lock': File exists", ".lock': File exists"]) {
        let why = "another git holds the repository (a `.lock` file is there); try again when it is done, or delete the \
                   file if its git has crashed";
        return because(ErrorCode::Busy, why).with("said", told(complaints, root));
    }
    if says(&["Please tell me who you are", "empty ident name", "unable to auto-detect email"]) {
        let why = "nobody has told git who you are; run `git config --global user.name NAME` and \
                   `git config --global user.email ADDRESS` yourself, or set them for this repository";
        return because(ErrorCode::ExecutionError, why);
    }
    because(ErrorCode::ExecutionError, &told(complaints, root))
}

/// The end of git's own words, in which the reason stands, without where the workspace lies.
pub(super) fn told(complaints: &str, root: &Root) -> String {
    let here = root.path().to_string_lossy();
    let plain = complaints.replace(&format!("{here}/"), "").replace(&*here, ".");
    let lines: Vec<&str> = plain.lines().filter(|line| !line.trim().is_empty()).collect();
    let text = lines.join("; ");
    let from = text.ceil_char_boundary(text.len().saturating_sub(TOLD));
    if text.is_empty() { "it gave no reason".to_owned() } else { text[from..].to_owned() }
}
