//! A shell command, read: what can be said of it before it runs, and what is refused of it.

mod args;
mod danger;
mod explain;
mod inner;
mod programs;
mod read;
mod simple;
mod target;
#[cfg(test)]
mod tests;
mod word;

pub(crate) use explain::CommandExplanation;
use read::{ParsedCommands, read};
pub(crate) use target::Places;

/// What of a shell command to look at twice, in words, and what of it cannot be read.
pub fn worries(command: &str) -> Vec<String> {
    let command = CommandLine::read(command);
    let worried = command.explained().into_iter().filter(|line| line.worry.is_some());
    worried.map(|line| line.to_string()).chain(command.unclear()).collect()
}

/// A command line as far as it could be read. Advice and friction, no boundary: the fence is the boundary.
#[derive(Debug)]
pub(crate) struct CommandLine(ParsedCommands);

impl CommandLine {
    /// Reads it; what cannot be read is marked as unclear.
    pub(crate) fn read(text: &str) -> Self {
        Self(read(text))
    }

    /// One line for each simple command, in the order in which a shell comes to them, wherever it stands: in `$(…)`, in a
    /// string that a shell is given, behind `sudo`, `xargs` or `find -exec`.
    pub(crate) fn explained(&self) -> Vec<CommandExplanation> {
        self.0.commands.iter().filter_map(explain::line).collect()
    }

    /// What only a shell would know: the first thing that could not be read literally.
    pub(crate) fn unclear(&self) -> Option<String> {
        self.0.unclear.clone()
    }

    /// Why it is refused in every mode.
    pub(crate) fn refusal(&self, places: &Places<'_>) -> Option<String> {
        let why = if self.0.bomb {
            Some("a function that starts itself twice in a pipe fills the machine with processes".to_owned())
        } else {
            self.0.commands.iter().find_map(|command| danger::of(command, places))
        };
        why.map(|why| format!("Dangerous command blocked: {why}"))
    }

    /// Why a person must be asked when it cannot run aside first.
    pub(crate) fn forced_ask(&self) -> Option<String> {
        let worried = self.explained().into_iter().find(|line| line.worry.is_some());
        let told = worried.map(|line| format!("`{}` {}", line.program, line.words));
        told.or_else(|| self.unclear().map(|what| format!("it cannot be read whole: {what}")))
    }

    /// Whether a program of it runs others or what a file says, so that the same words may do something else tomorrow.
    pub(crate) fn runs_others(&self) -> bool {
        self.0.commands.iter().any(|command| command.words.first().is_some_and(programs::runs_others))
    }
}
