//! An outcome as people read it.

use haft_runtime::{ChangeState, End, Outcome};

use crate::{
    exit::Exit,
    show::{
        Out,
        card::change_line,
        safe::safe,
        style::{ADDED, DIM, PLACE, WARN, WRONG},
    },
};

/// Prints the envelope, or what a person wants to know of it, and gives the exit code.
pub(crate) fn print(out: Out, outcome: &Outcome) -> Exit {
    if out.json {
        out.document(outcome);
        return Exit::from(outcome);
    }
    let call = &outcome.tool_call_id;
    match &outcome.end {
        End::Success { result } => {
            let text = result.display_content.as_ref().unwrap_or(&result.content);
            if !text.is_empty() {
                out.text(&with_newline(&safe(text)));
            }
            for image in &result.images {
                out.line(&format!("{DIM}[{}; --json prints it]{DIM:#}", image.mime_type));
            }
            changed(out, outcome);
        }
        End::Error { error } => {
            anstream::eprintln!("{WRONG}{}{WRONG:#} {}", error.code, safe(&error.message));
            if error.recoverable {
                out.hint("the same call may succeed later");
            }
        }
        End::Rejected { reason, user_message, .. } => {
            anstream::eprintln!("{WARN}rejected{WARN:#} {}", safe(reason));
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
            anstream::eprintln!("{WARN}cancelled{WARN:#} {}  {DIM}{call}{DIM:#}", safe(&error.message))
        }
    }
    Exit::from(outcome)
}

fn changed(out: Out, outcome: &Outcome) {
    let Some(changes) = &outcome.changes else { return };
    for change in changes.0.iter().take(20) {
        let (mark, style) = match change.state {
            ChangeState::Committed => ("✓", ADDED),
            ChangeState::Undone => ("↶", ADDED),
            ChangeState::Staged => ("·", WARN),
            ChangeState::Discarded => ("x", DIM),
        };
        out.text(&format!("{style}{mark}{style:#} {}", change_line(change)));
    }
    if changes.0.len() > 20 {
        out.line(&format!("{DIM}… {} more{DIM:#}", changes.0.len() - 20));
    }
    if outcome.undoable {
        out.hint(&format!("take it back with: haft undo {}", outcome.tool_call_id));
    }
}

fn with_newline(text: &str) -> String {
    if text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") }
}
