//! The few colours there are, each with one meaning.

use anstyle::{AnsiColor, Style};

/// What is there now and was not before; a yes.
pub(crate) const ADDED: Style = AnsiColor::Green.on_default();
/// What goes; a no.
pub(crate) const REMOVED: Style = AnsiColor::Red.on_default();
/// Where in a file; a call's id.
pub(crate) const PLACE: Style = AnsiColor::Cyan.on_default();
/// Look twice.
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default();
/// It failed.
pub(crate) const WRONG: Style = AnsiColor::Red.on_default().bold();
/// What a line is about.
pub(crate) const STRONG: Style = Style::new().bold();
/// What may be skipped.
pub(crate) const DIM: Style = Style::new().dimmed();
