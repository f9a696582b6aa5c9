//! One simple command: a program, its words, and what reaches it.

use super::word::Word;

/// How many characters a line tells.
const LONGEST: usize = 200;

/// A program with its words, found anywhere in the text.
#[derive(Clone, Debug)]
pub(super) struct SimpleCommand {
    /// The program first; none where there are only redirections.
    pub(super) words: Vec<Word>,
    /// The files that its output goes to.
    pub(super) writes: Vec<RedirectWrite>,
    /// Each `cd` before it, from the folder in which the call starts.
    pub(super) folder: Vec<Word>,
    /// What it finds on its standard input.
    pub(super) feed: Option<StdinSource>,
    /// One of its words is made of what was fetched from the network.
    pub(super) fetched: bool,
}

/// Where a redirection writes.
#[derive(Clone, Debug)]
pub(super) struct RedirectWrite {
    pub(super) to: Word,
    pub(super) way: WriteMode,
}

/// What becomes of what is in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteMode {
    Overwrites,
    Appends,
}

/// What stands on standard input.
#[derive(Clone, Debug)]
pub(super) enum StdinSource {
    /// These very words: a here-document, a here-string, or what `echo` prints.
    Text(Word),
    /// What another program prints.
    Pipe { from: String, fetched: bool },
}

impl SimpleCommand {
    /// The program's name without its folders, if it is literal.
    pub(super) fn program(&self) -> Option<String> {
        self.words.first()?.literal().map(|name| base_name(&name).to_owned())
    }

    /// The words after the program.
    pub(super) fn rest(&self) -> &[Word] {
        self.words.get(1..).unwrap_or_default()
    }

    /// What it certainly prints, for `echo` of literal words.
    pub(super) fn says(&self) -> Option<Word> {
        let (program, rest) = (self.program()?, self.rest());
        let said = match (program.as_str(), rest.first().and_then(Word::literal).as_deref()) {
            ("echo", Some("-n" | "-e" | "-ne" | "-en")) => rest.get(1..)?,
            ("echo" | "printf", _) => rest,
            _ => return None,
        };
        let words: Option<Vec<String>> = said.iter().map(Word::literal).collect();
        Some(Word::quoted(&words?.join(" ")))
    }
}

/// The text on one line, cut where it is long: whoever reads it has the whole command beside it.
pub(super) fn short(text: &str) -> String {
    let line = text.replace('\n', " ↵ ");
    match line.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

/// The last component of a path.
pub(super) fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
