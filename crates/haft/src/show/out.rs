//! Where a command prints: people's text, or one JSON document.

use std::io::IsTerminal;

use haft_runtime::{ErrorCode, ToolError};
use serde::Serialize;
use serde_json::json;

use crate::{
    exit::CliExit,
    show::{
        safe::safe,
        style::{WARN, WRONG},
        table::{cut, width, wrapped},
    },
};

/// The two ways to print.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Out {
    pub(crate) json: bool,
}

impl Out {
    pub(crate) fn new(json: bool) -> Self {
        Self { json }
    }

    /// One JSON document, laid out for people only when people look at it.
    pub(crate) fn document(self, value: &impl Serialize) {
        let text = if std::io::stdout().is_terminal() {
            serde_json::to_string_pretty(value)
        } else {
            serde_json::to_string(value)
        };
        match text {
            Ok(text) => self.line(&text),
            Err(err) => self.error(Some(ErrorCode::Internal), &format!("cannot write JSON: {err}")),
        }
    }

    /// A line on standard output. A reader that went away (`haft log | head`) is no fault.
    pub(crate) fn line(self, text: &str) {
        use std::io::Write;
        let _ = writeln!(anstream::stdout(), "{text}");
    }

    /// One line of many that come one after the other; `false` means that nobody reads them any more.
    pub(crate) fn next_line(self, text: &str) -> bool {
        use std::io::Write;
        let mut stdout = anstream::stdout();
        writeln!(stdout, "{text}").and_then(|()| stdout.flush()).is_ok()
    }

    /// Text on standard output as it is.
    pub(crate) fn text(self, text: &str) {
        use std::io::Write;
        let mut stdout = anstream::stdout();
        let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    }

    /// A piece of text that has no styles, as much and as often as there is.
    pub(crate) fn piece(self, text: &str) {
        use std::io::Write;
        let mut stdout = std::io::stdout().lock();
        let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    }

    /// A hint beside the result, for people only.
    pub(crate) fn hint(self, text: &str) {
        if !self.json && std::io::stderr().is_terminal() {
            let dim = crate::show::style::DIM;
            anstream::eprintln!("{dim}{text}{dim:#}");
        }
    }

    /// A line that the next one takes the place of, for people only; says whether they see it.
    pub(crate) fn passing(self, text: &str) -> bool {
        if self.json || !std::io::stderr().is_terminal() {
            return false;
        }
        // Padded rather than erased: colours may be off, and terminals may know no more than the return of the carriage.
        let (dim, room) = (crate::show::style::DIM, width().saturating_sub(1));
        anstream::eprint!("\r{dim}{:<room$}{dim:#}\r", cut(text, room));
        true
    }

    /// The last words of a command that could not do its work.
    pub(crate) fn failed(self, err: &anyhow::Error) -> CliExit {
        let error = as_tool_error(err);
        if self.json {
            self.document(&json!({ "error": error }));
        } else {
            self.error(Some(error.code), &error.message);
        }
        CliExit::Failure
    }

    /// What went wrong, on standard error, with the code that can be looked up where there is one.
    pub(crate) fn error(self, code: Option<ErrorCode>, message: &str) {
        let head = code.map_or_else(|| "error:".to_owned(), |code| format!("error[{code}]:"));
        let told = fitting(&format!("{head} {}", safe(message)));
        let told = told.strip_prefix(&head).unwrap_or(&told);
        anstream::eprintln!("{WRONG}{head}{WRONG:#}{told}");
    }

    /// What a command came to, where standard output is taken.
    pub(crate) fn note(message: &str) {
        anstream::eprintln!("{}", fitting(&safe(message)));
    }

    /// Something to know beside the result, on standard error.
    pub(crate) fn warning(message: &str) {
        let told = fitting(&format!("warning: {}", safe(message)));
        let told = told.strip_prefix("warning:").unwrap_or(&told);
        anstream::eprintln!("{WARN}warning:{WARN:#}{told}");
    }
}

/// A message whose long lines are broken between words where a terminal would break them anywhere.
pub(crate) fn fitting(message: &str) -> String {
    if !std::io::stderr().is_terminal() {
        return message.to_owned();
    }
    let line = |line: &str| if line.chars().count() > width() { wrapped(line, width()) } else { line.to_owned() };
    message.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// The error in the one shape that programs read.
pub(crate) fn as_tool_error(err: &anyhow::Error) -> ToolError {
    let Some(told) = err.downcast_ref::<ToolError>() else {
        return ToolError::new(code_of(err), format!("{err:#}"));
    };
    // What it was needed for stands before it.
    let parts = err
        .chain()
        .map(|part| part.downcast_ref::<ToolError>().map_or_else(|| part.to_string(), |told| told.message.clone()));
    ToolError { message: parts.collect::<Vec<_>>().join(": "), ..told.clone() }
}

/// The code of an error that has none of its own: what the system says of a file, else that something did not work.
fn code_of(err: &anyhow::Error) -> ErrorCode {
    let io = err.chain().find_map(|cause| cause.downcast_ref::<std::io::Error>());
    match io.map(std::io::Error::kind) {
        Some(std::io::ErrorKind::NotFound) => ErrorCode::FileNotFound,
        Some(std::io::ErrorKind::PermissionDenied) => ErrorCode::PermissionDenied,
        Some(std::io::ErrorKind::IsADirectory) => ErrorCode::IsADirectory,
        Some(_) | None => ErrorCode::ExecutionError,
    }
}
