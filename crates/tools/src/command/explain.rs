//! One simple command in words: what a person should know before a yes.

use std::fmt;

use super::{
    args::{Args, operands_of},
    programs,
    simple::{SimpleCommand, StdinSource, WriteMode, short},
    word::Word,
};

/// How many operands a line names.
const NAMED: usize = 4;

/// One simple command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommandExplanation {
    /// The program, as it was written where only a shell knows it.
    pub(crate) program: String,
    /// What it does; where that is not known, the words it is given.
    pub(crate) words: String,
    /// Why to look twice.
    pub(crate) worry: Option<Worry>,
}

impl fmt::Display for CommandExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.program, self.words)
    }
}

/// Why to look twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Worry {
    /// Something is gone afterwards.
    Deletes,
    /// Something stands elsewhere, and may have taken another's place.
    Moves,
    /// Bytes go straight to where they are told.
    WritesRaw,
    /// Who may do what is another thing, in a whole tree.
    ChangesRights,
    /// Others lose what they had pushed.
    ForcePushes,
    /// What was fetched is run unseen.
    RunsFetched,
    /// It has the rights of the system.
    RunsAsRoot,
    /// The program is known only when it runs.
    Unreadable,
}

/// The line of a command; none for one that only says how another runs, or whose output goes nowhere.
pub(super) fn line(simple: &SimpleCommand) -> Option<CommandExplanation> {
    let Some(first) = simple.words.first() else {
        let writes = writes(simple);
        return (!writes.is_empty()).then(|| CommandExplanation {
            program: ">".to_owned(),
            words: short(&writes.join(", ")),
            worry: None,
        });
    };
    let Some(program) = simple.program() else {
        let words = "is known only when it runs".to_owned();
        return Some(CommandExplanation { program: short(first.source()), words, worry: Some(Worry::Unreadable) });
    };
    if programs::is_only_a_way(&program) && simple.rest().iter().any(|word| !word.source().starts_with('-')) {
        return None;
    }
    let (meaning, worry) = meaning(&program, simple);
    let all: Vec<String> = Some(meaning).filter(|words| !words.is_empty()).into_iter().chain(writes(simple)).collect();
    let path = first.literal().filter(|path| !programs::is_of_the_system(path));
    Some(CommandExplanation { program: short(&path.unwrap_or(program)), words: short(&all.join(", ")), worry })
}

/// What becomes of the files that the output goes to.
fn writes(simple: &SimpleCommand) -> Vec<String> {
    let writes = simple.writes.iter().filter(|write| write.to.literal().as_deref() != Some("/dev/null"));
    let told = writes.map(|write| match write.way {
        WriteMode::Overwrites => format!("writes over {}", write.to.source()),
        WriteMode::Appends => format!("adds to {}", write.to.source()),
    });
    told.collect()
}

fn meaning(program: &str, simple: &SimpleCommand) -> (String, Option<Worry>) {
    let rest = simple.rest();
    if let Some(known) = runs_unseen(program, simple) {
        return known;
    }
    match program {
        "rm" | "rmdir" | "unlink" | "shred" | "truncate" => removal(program, rest),
        "mv" => (format!("moves {}", named(&Args::read(rest, "tS").operands)), Some(Worry::Moves)),
        "dd" => (format!("copies bytes: {}", sources(rest)), Some(Worry::WritesRaw)),
        "chmod" | "chown" | "chgrp" => rights(program, rest),
        "git" => git(rest),
        "sudo" | "doas" | "pkexec" | "su" => {
            ("runs what follows as another user, root by default".to_owned(), Some(Worry::RunsAsRoot))
        }
        "find" if rest.iter().any(|word| word.literal().as_deref() == Some("-delete")) => {
            (format!("deletes what it finds: {}", sources(rest)), Some(Worry::Deletes))
        }
        "wipefs" | "blkdiscard" | "fdisk" | "parted" | "mkswap" => {
            (format!("changes a disk: {}", sources(rest)), Some(Worry::WritesRaw))
        }
        format if format.starts_with("mkfs") => {
            (format!("makes a file system: {}", sources(rest)), Some(Worry::WritesRaw))
        }
        other => (plain_meaning(other, rest), None),
    }
}

/// Programs that are no worry, in a few words.
fn plain_meaning(program: &str, rest: &[Word]) -> String {
    let operands = || named(&Args::read(rest, "").operands);
    match program {
        "curl" | "wget" | "aria2c" => format!("fetches {}", sources(rest)),
        "scp" | "rsync" | "sftp" => format!("copies between machines: {}", sources(rest)),
        "ssh" => format!("runs on another machine: {}", sources(rest)),
        "cp" => format!("copies {}", operands()),
        "ln" => format!("links {}", operands()),
        "mkdir" => format!("makes the folder {}", operands()),
        "touch" => format!("makes or touches {}", operands()),
        "tee" => format!("writes {}", operands()),
        "kill" | "pkill" | "killall" => format!("ends processes: {}", sources(rest)),
        "xargs" => "runs the next one with the words it reads".to_owned(),
        "source" | "." => format!("runs the script {}", sources(rest)),
        "eval" => "runs its words as a command".to_owned(),
        "trap" => "runs the next one later, on a signal or at the end".to_owned(),
        "cd" | "pushd" => {
            format!("goes to {}", if rest.is_empty() { "the home folder".to_owned() } else { sources(rest) })
        }
        _ => sources(rest),
    }
}

/// A shell or an interpreter that runs what it is given by another program.
fn runs_unseen(program: &str, simple: &SimpleCommand) -> Option<(String, Option<Worry>)> {
    let shell = programs::SHELLS.contains(&program);
    if !shell && !programs::is_interpreter(program) && !["eval", "source", "."].contains(&program) {
        return None;
    }
    if simple.fetched {
        return Some(("runs what was fetched from the network".to_owned(), Some(Worry::RunsFetched)));
    }
    let script_given = simple.rest().iter().any(|word| !matches!(word.literal().as_deref(), Some("-" | "-s")));
    match &simple.feed {
        Some(StdinSource::Pipe { fetched: true, from }) if !script_given || reads_input(simple) => {
            Some((format!("runs what {from} prints, fetched from the network"), Some(Worry::RunsFetched)))
        }
        Some(StdinSource::Pipe { from, .. }) if !script_given => {
            Some((format!("runs what {from} prints"), Some(Worry::Unreadable)))
        }
        Some(StdinSource::Pipe { .. } | StdinSource::Text(_)) | None if shell && !simple.rest().is_empty() => {
            Some((format!("runs a script: {}", sources(simple.rest())), None))
        }
        Some(StdinSource::Pipe { .. } | StdinSource::Text(_)) | None => None,
    }
}

/// `sh -s -- x`, `bash -e`: options, but no script of its own.
fn reads_input(simple: &SimpleCommand) -> bool {
    let words: Vec<String> = simple.rest().iter().map(|word| word.literal().unwrap_or_default()).collect();
    words.iter().any(|word| word == "-s") || words.iter().all(|word| word.starts_with('-') && !word.contains('c'))
}

fn removal(program: &str, rest: &[Word]) -> (String, Option<Worry>) {
    let args = Args::read(rest, if program == "truncate" { "sr" } else { "" });
    let what = named(&args.operands);
    let words = match program {
        "truncate" => format!("cuts {what}"),
        "shred" => format!("overwrites {what}"),
        "rm" if args.has('r', "recursive") || args.has('R', "recursive") => {
            format!("deletes {what} with everything inside")
        }
        _ => format!("deletes {what}"),
    };
    (words, Some(Worry::Deletes))
}

fn rights(program: &str, rest: &[Word]) -> (String, Option<Worry>) {
    let args = Args::read(rest, "");
    let what = if program == "chmod" { "who may read, write or run" } else { "who owns" };
    let operands = args.operands.get(1..).unwrap_or_default();
    if args.has('R', "recursive") {
        return (format!("changes {what} {} with everything inside", named(operands)), Some(Worry::ChangesRights));
    }
    (format!("changes {what} {}", named(operands)), None)
}

fn git(rest: &[Word]) -> (String, Option<Worry>) {
    let words = operands_of(rest, "Cc", &["git-dir", "work-tree", "namespace"]);
    let Some(command) = words.first().and_then(Word::literal) else { return (sources(rest), None) };
    let args = Args::read(&words[1..], "o");
    let forced = |word: &&Word| word.source().starts_with('+');
    match command.as_str() {
        "push"
            if args.has('f', "force")
                || args.has_long("force-with-lease")
                || args.has_long("mirror")
                || args.operands.iter().any(forced) =>
        {
            (format!("replaces what others may have: {}", sources(words)), Some(Worry::ForcePushes))
        }
        "push" if args.has('d', "delete") || args.operands.iter().any(|word| word.source().starts_with(':')) => {
            (format!("deletes on the other side: {}", sources(words)), Some(Worry::Deletes))
        }
        "reset" if args.has_long("hard") => ("throws uncommitted changes away".to_owned(), Some(Worry::Deletes)),
        "clean" if args.has('f', "force") => ("deletes files that git does not know".to_owned(), Some(Worry::Deletes)),
        "restore" if !args.has('S', "staged") => ("throws uncommitted changes away".to_owned(), Some(Worry::Deletes)),
        "checkout" if words.iter().any(|word| [".", "--"].contains(&word.source())) => {
            ("throws uncommitted changes away".to_owned(), Some(Worry::Deletes))
        }
        "stash" if matches!(words.get(1).map(Word::source), Some("drop" | "clear")) => {
            ("throws stashed changes away".to_owned(), Some(Worry::Deletes))
        }
        "branch" if args.has('D', "delete") => (format!("deletes a branch: {}", sources(words)), Some(Worry::Deletes)),
        "rm" => (format!("deletes {}", named(&args.operands)), Some(Worry::Deletes)),
        "mv" => (format!("moves {}", named(&args.operands)), Some(Worry::Moves)),
        _ => (sources(rest), None),
    }
}

/// The operands, the first few by name.
fn named(words: &[&Word]) -> String {
    let names: Vec<&str> = words.iter().take(NAMED).map(|word| word.source()).collect();
    match words.len().saturating_sub(NAMED) {
        0 if names.is_empty() => "what it is given".to_owned(),
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// The words as they were written.
fn sources(words: &[Word]) -> String {
    words.iter().map(Word::source).collect::<Vec<_>>().join(" ")
}
