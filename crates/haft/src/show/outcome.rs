//! An outcome as people read it.

use haft_runtime::{Body, ChangeList, ChangeState, End, ErrorCode, Outcome, ToolError, ToolOutput};
use serde_json::json;

use crate::{
    exit::CliExit,
    show::{
        Out,
        changes::{DetailLevel, changes_text, taken_back},
        ran::CommandSummary,
        safe::safe,
        style::{DIM, PLACE, WARN},
    },
};

/// What the reader has seen of the output by now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DisplayedOutput {
    /// Nothing.
    Nothing,
    /// All of it, as it came.
    Output,
}

/// Prints why something never became a call. The journal does not know it, so that it has no id.
pub(crate) fn print_refused(out: Out, tool: &str, error: &ToolError) -> CliExit {
    if out.json {
        out.document(&json!({"status": "error", "tool": tool, "error": error}));
    } else {
        out.error(Some(error.code), &error.message);
    }
    CliExit::Failure
}

/// Prints the envelope, or what a person wants to know of it, and gives the exit code.
pub(crate) fn print(out: Out, outcome: &Outcome) -> CliExit {
    print_rest(out, outcome, DisplayedOutput::Nothing)
}

/// The same for somebody who may have seen the output as it came.
pub(crate) fn print_rest(out: Out, outcome: &Outcome, seen: DisplayedOutput) -> CliExit {
    if out.json {
        out.document(outcome);
        return CliExit::from(outcome);
    }
    let call = &outcome.tool_call_id;
    match &outcome.end {
        End::Success { result } => {
            // What changed is shown below, as people read it.
            let text = result.content.strip_suffix(&outcome.change_note()).unwrap_or(&result.content);
            match (seen, CommandSummary::of(result)) {
                (DisplayedOutput::Output, Some(ended)) => {
                    if ended.exit_code != Some(0) {
                        anstream::eprintln!("{}", ended.words());
                    }
                    anstream::eprint!("{}", ended.beside_it());
                }
                (DisplayedOutput::Output | DisplayedOutput::Nothing, _) if text.is_empty() => {}
                (DisplayedOutput::Output | DisplayedOutput::Nothing, _) => out.text(&with_newline(&safe(text))),
            }
            beside_text(out, result);
            changed(out, outcome);
        }
        End::Error { error } => {
            out.error(Some(error.code), told(outcome, &error.message));
            if error.recoverable && !error.message.contains("again") {
                out.hint("try again later: the same call may succeed then");
            }
            left_staged(outcome);
        }
        End::Rejected { error, .. } if error.code == ErrorCode::ApprovalExpired => {
            anstream::eprintln!("{WARN}expired:{WARN:#} nobody answered in time");
        }
        End::Rejected { user_message, .. } => {
            anstream::eprintln!("{WARN}rejected:{WARN:#} A person said no.");
            if let Some(message) = user_message {
                anstream::eprintln!("  “{}”", safe(message));
            }
        }
        End::Pending { pending } => {
            let waiting = &pending.pending_tool_call_id;
            out.line(&format!("{WARN}waits for an answer{WARN:#}  {PLACE}{waiting}{PLACE:#}"));
            out.line(&format!("  haft changes {waiting}   what it would do"));
            out.line(&format!("  haft approve {waiting}   yes"));
            out.line(&format!("  haft reject {waiting}    no"));
        }
        End::Cancelled { error } => {
            anstream::eprintln!("{WARN}cancelled{WARN:#} {}  {DIM}{call}{DIM:#}", safe(told(outcome, &error.message)));
            left_staged(outcome);
        }
    }
    CliExit::from(outcome)
}

/// Names what a result has beside its text, and shows what of that is text.
fn beside_text(out: Out, result: &ToolOutput) {
    for image in &result.images {
        out.line(&format!("{DIM}[{}; --json prints it]{DIM:#}", safe(&image.mime_type)));
    }
    for audio in &result.audio {
        out.line(&format!("{DIM}[{}; --json prints it]{DIM:#}", safe(&audio.mime_type)));
    }
    for resource in &result.resources {
        out.line(&format!("{DIM}[{}; --json prints it]{DIM:#}", safe(&resource.words())));
        if let Body::Text(text) = &resource.body {
            out.text(&with_newline(&safe(text)));
        }
    }
}

/// The message; what it says to models about what is left staged, people see as a list.
fn told<'a>(outcome: &Outcome, message: &'a str) -> &'a str {
    match message.split_once("; Not applied yet: ") {
        Some((what, _)) if outcome.changes.is_some() => what,
        Some(_) | None => message,
    }
}

/// What a call that was stopped leaves behind, and what can be done with it.
fn left_staged(outcome: &Outcome) {
    let call = &outcome.tool_call_id;
    let Some(changes) = outcome.changes.as_ref().filter(|changes| !changes.0.is_empty()) else { return };
    anstream::eprint!("{}", changes_text(changes, DetailLevel::Names));
    anstream::eprintln!("  haft changes {call}   what is left staged");
    anstream::eprintln!("  haft commit {call}    commit it");
    anstream::eprintln!("  haft discard {call}   drop it");
}

fn changed(out: Out, outcome: &Outcome) {
    let Some(changes) = &outcome.changes else { return };
    let is_undo = !changes.0.is_empty() && changes.0.iter().all(|change| change.state == ChangeState::Undone);
    if is_undo {
        out.text(&changes_text(&ChangeList(changes.0.iter().map(taken_back).collect()), DetailLevel::Names));
    } else {
        out.text(&changes_text(changes, DetailLevel::Names));
    }
    if outcome.undoable {
        let again = if is_undo { "redo" } else { "undo" };
        out.hint(&format!("{again} with: haft {again} {}", outcome.tool_call_id));
    }
}

fn with_newline(text: &str) -> String {
    if text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") }
}
