//! Long help, a screen at a time.

use std::{
    io::{IsTerminal, Write},
    process::{Command, Stdio},
};

use crate::{settings, show::Out};

/// Prints a text; at a terminal that it does not fit, through the user's pager.
pub(crate) fn page(out: Out, text: &str) {
    let rows = terminal_size::terminal_size().map_or(24, |(_, terminal_size::Height(rows))| usize::from(rows));
    let is_read_by_a_person = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    if !is_read_by_a_person || text.lines().count() < rows || !paged(text) {
        out.text(text);
    }
}

/// Whether a pager took it.
#[expect(clippy::disallowed_methods, reason = "the pager is the user's own, and is given nothing but haft's help")]
fn paged(text: &str) -> bool {
    let pager = settings::pager();
    let mut words = pager.split_whitespace();
    let Some(program) = words.next() else { return false };
    let mut command = Command::new(program);
    // Colours as they are, and gone again when all of it fits.
    command.args(words).env("LESS", "FRX").stdin(Stdio::piped());
    let Ok(mut child) = command.spawn() else { return false };
    let has_colours = anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never;
    let text = if has_colours { text.to_owned() } else { anstream::adapter::strip_str(text).to_string() };
    if let Some(mut stdin) = child.stdin.take() {
        // Whoever has read enough ends the pager.
        let _ = stdin.write_all(text.as_bytes());
    }
    child.wait().is_ok()
}
