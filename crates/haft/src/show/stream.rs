//! A call as it goes on: its output as it comes, and how far it is on a line that gives way to whatever comes next.

use std::sync::{Mutex, PoisonError};

use haft_runtime::{self as runtime, CallEvent};

use crate::show::{
    Out,
    outcome::DisplayedOutput,
    safe::{safe, safe_piece},
    style::WARN,
};

/// What a call has said so far, to people; with `--json` nothing is said before the end.
pub(crate) struct LiveOutput {
    out: Out,
    now: Mutex<Now>,
}

/// How the terminal stands.
struct Now {
    seen: DisplayedOutput,
    at: At,
}

/// Where the next words would begin.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    LineStart,
    /// Behind words of the call.
    Within,
    /// Upon a line that tells how far it is.
    Progress,
}

impl LiveOutput {
    pub(crate) fn new(out: Out) -> Self {
        Self { out, now: Mutex::new(Now { seen: DisplayedOutput::Nothing, at: At::LineStart }) }
    }

    /// What was shown of the output.
    pub(crate) fn seen(&self) -> DisplayedOutput {
        self.now.lock().unwrap_or_else(PoisonError::into_inner).seen
    }

    /// Shows an event.
    pub(crate) fn hear(&self, event: &CallEvent) {
        if self.out.json {
            return;
        }
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        if let CallEvent::Progress { progress, message, .. } = event {
            self.progress(&mut now, *progress, message);
        } else if let CallEvent::OutputAppended { stream, chunk, .. } = event {
            self.clear(&mut now);
            self.say(&mut now, *stream, chunk);
        } else {
            self.begin_a_line(&mut now);
            if let Some(warning) = old_name(event) {
                anstream::eprintln!("{WARN}warning:{WARN:#} {warning}");
            }
        }
    }

    fn say(&self, now: &mut Now, stream: runtime::Stream, chunk: &str) {
        match stream {
            runtime::Stream::Stdout | runtime::Stream::Text => self.out.piece(&safe_piece(chunk)),
            runtime::Stream::Stderr => anstream::eprint!("{}", safe(chunk)),
        }
        now.seen = DisplayedOutput::Output;
        now.at = if chunk.ends_with('\n') { At::LineStart } else { At::Within };
    }

    /// Half a line of output is not written over.
    fn progress(&self, now: &mut Now, progress: Option<u8>, message: &str) {
        if now.at == At::Within {
            return;
        }
        let percent = progress.map_or_else(String::new, |percent| format!("{percent:>3}% "));
        let visible = self.out.passing(&format!("{percent}{}", safe(message)));
        now.at = if visible { At::Progress } else { At::LineStart };
    }

    fn clear(&self, now: &mut Now) {
        if now.at == At::Progress {
            self.out.passing("");
            now.at = At::LineStart;
        }
    }

    /// haft's own words begin on a line of their own.
    fn begin_a_line(&self, now: &mut Now) {
        self.clear(now);
        if now.at == At::Within {
            self.out.text("\n");
            now.at = At::LineStart;
        }
    }
}

/// What to tell somebody who used a name that goes.
pub(crate) fn old_name(event: &CallEvent) -> Option<String> {
    let CallEvent::Called { tool, called_as: Some(alias), remove_by: Some(until), .. } = event else { return None };
    Some(format!("`{alias}` is now called `{tool}`; the old name is understood until {until}"))
}
