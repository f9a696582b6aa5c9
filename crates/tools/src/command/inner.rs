//! Programs that run other programs: what they run.

use super::{
    args::operands_of,
    programs,
    simple::{SimpleCommand, StdinSource},
    word::Word,
};

/// What a command runs in turn.
#[derive(Debug)]
pub(super) enum InnerCommand {
    /// The command that these words are.
    Words(Vec<Word>),
    /// A script for a shell.
    Script { word: Word, shell: Shell },
    /// Something that cannot be read here.
    Unread(String),
}

/// Which shell reads a script; a `cd` in one of its own changes nothing outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shell {
    Own,
    Same,
}

/// How a program finds the command among its words.
struct Prefix {
    program: &'static str,
    /// Short options that take the next word for their value.
    valued: &'static str,
    long_valued: &'static [&'static str],
    /// How many operands come before the command.
    operands: usize,
}

const fn prefix(program: &'static str, valued: &'static str, operands: usize) -> Prefix {
    Prefix { program, valued, long_valued: &[], operands }
}

const PREFIXES: &[Prefix] = &[
    Prefix {
        program: "sudo",
        valued: "ughpCrtTUDR",
        long_valued: &["user", "group", "host", "prompt", "chdir", "chroot", "role", "type"],
        operands: 0,
    },
    Prefix { program: "env", valued: "uC", long_valued: &["unset", "chdir"], operands: 0 },
    Prefix { program: "nice", valued: "n", long_valued: &["adjustment"], operands: 0 },
    Prefix { program: "timeout", valued: "ks", long_valued: &["kill-after", "signal"], operands: 1 },
    Prefix {
        program: "xargs",
        valued: "IEnPLsda",
        long_valued: &["max-args", "max-procs", "max-lines", "max-chars", "delimiter", "arg-file", "replace"],
        operands: 0,
    },
    prefix("doas", "uC", 0),
    prefix("pkexec", "", 0),
    prefix("ionice", "cn", 0),
    prefix("time", "fo", 0),
    prefix("nohup", "", 0),
    prefix("setsid", "", 0),
    prefix("stdbuf", "ioe", 0),
    prefix("exec", "a", 0),
    prefix("builtin", "", 0),
    prefix("coproc", "", 0),
    prefix("busybox", "", 0),
    prefix("toybox", "", 0),
    prefix("chroot", "", 1),
    prefix("flock", "wE", 1),
    prefix("strace", "oeps", 0),
];

/// What it runs, as far as its words say.
pub(super) fn inner(simple: &SimpleCommand) -> Vec<InnerCommand> {
    let Some(program) = simple.program() else { return Vec::new() };
    let rest = simple.rest();
    if let Some(prefix) = PREFIXES.iter().find(|prefix| prefix.program == program) {
        return prefixed(prefix, simple);
    }
    match program.as_str() {
        shell if programs::SHELLS.contains(&shell) => shell_script(shell, simple),
        "command" if rest.first().and_then(Word::literal).is_none_or(|option| option.to_lowercase() != "-v") => {
            words(operands_of(rest, "", &[]))
        }
        "eval" => script(joined(rest), Shell::Same),
        "trap" => script(rest.first().cloned(), Shell::Same),
        "su" => {
            let mut after =
                rest.iter().skip_while(|word| !matches!(word.literal().as_deref(), Some("-c" | "--command")));
            script(after.nth(1).cloned(), Shell::Own)
        }
        "watch" => script(joined(operands_of(rest, "n", &["interval"])), Shell::Own),
        "find" => executed(rest),
        interpreter if programs::is_interpreter(interpreter) => fed(interpreter, simple),
        _ => Vec::new(),
    }
}

fn words(words: &[Word]) -> Vec<InnerCommand> {
    if words.is_empty() { Vec::new() } else { vec![InnerCommand::Words(words.to_vec())] }
}

fn script(word: Option<Word>, shell: Shell) -> Vec<InnerCommand> {
    word.map(|word| InnerCommand::Script { word, shell }).into_iter().collect()
}

fn prefixed(prefix: &Prefix, simple: &SimpleCommand) -> Vec<InnerCommand> {
    let command = operands_of(simple.rest(), prefix.valued, prefix.long_valued);
    let command = command.get(prefix.operands..).unwrap_or_default();
    // `sudo A=1 make`, `env A=1 make`.
    let assigned = command.iter().take_while(|word| word.source().find('=').is_some_and(|at| at > 0)).count();
    let mut command = command[assigned..].to_vec();
    if prefix.program == "xargs"
        && let Some(StdinSource::Text(text)) = &simple.feed
        && let Some(text) = text.literal()
    {
        command.extend(text.split_whitespace().map(Word::quoted));
    }
    words(&command)
}

/// `sh -c 'script'`, a script on standard input, or one in a file.
fn shell_script(shell: &str, simple: &SimpleCommand) -> Vec<InnerCommand> {
    let is_option = |text: &String| text.len() > 1 && text.starts_with(['-', '+']);
    let options: Vec<String> = simple.rest().iter().map_while(|word| word.literal().filter(is_option)).collect();
    let gives_script = |option: &String| !option.starts_with("--") && option.starts_with('-') && option.contains('c');
    let operands = operands_of(simple.rest(), "oO", &["rcfile", "init-file"]);
    if options.iter().any(gives_script) {
        return script(operands.first().cloned(), Shell::Own);
    }
    if !operands.is_empty() && !options.iter().any(|option| option == "-s") {
        return Vec::new();
    }
    match &simple.feed {
        Some(StdinSource::Text(text)) => script(Some(text.clone()), Shell::Own),
        Some(StdinSource::Pipe { from, .. }) => {
            vec![InnerCommand::Unread(format!("`{shell}` runs what `{from}` prints"))]
        }
        None => Vec::new(),
    }
}

/// An interpreter whose program comes on standard input.
fn fed(interpreter: &str, simple: &SimpleCommand) -> Vec<InnerCommand> {
    let takes_input = simple.rest().iter().all(|word| word.literal().as_deref() == Some("-"));
    match &simple.feed {
        Some(StdinSource::Text(_)) if takes_input => {
            vec![InnerCommand::Unread(format!("`{interpreter}` runs the text that it is given"))]
        }
        Some(StdinSource::Pipe { from, .. }) if takes_input => {
            vec![InnerCommand::Unread(format!("`{interpreter}` runs what `{from}` prints"))]
        }
        Some(StdinSource::Text(_) | StdinSource::Pipe { .. }) | None => Vec::new(),
    }
}

/// Each `-exec … ;` of a `find`.
fn executed(rest: &[Word]) -> Vec<InnerCommand> {
    let is = |word: &Word, names: &[&str]| word.literal().is_some_and(|text| names.contains(&text.as_str()));
    let mut found = Vec::new();
    let mut left = rest;
    while let Some(at) = left.iter().position(|word| is(word, &["-exec", "-execdir", "-ok", "-okdir"])) {
        let command = &left[at + 1..];
        let end = command.iter().position(|word| is(word, &[";", "+"])).unwrap_or(command.len());
        found.extend(words(&command[..end]));
        left = &command[end..];
    }
    found
}

/// The words as `eval` puts them together.
fn joined(words: &[Word]) -> Option<Word> {
    if words.is_empty() {
        return None;
    }
    let text = words.iter().map(Word::script).collect::<Vec<_>>().join(" ");
    Some(if words.iter().all(Word::is_known) { Word::quoted(&text) } else { Word::unknown(&text) })
}
