//! One command to run, and how it ended.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use haft_runtime::{ChangeList, ErrorCode, Isolation, PartialWork, Prepared, Ran, Redactor, ToolCtx, ToolError, Turn};
use haft_sandbox::{
    WorkspacePath,
    fence::{Bound, CommandExit},
};

use super::output::CommandOutput;

/// One command to run.
#[derive(Clone, Debug)]
pub(crate) struct CommandSpec {
    /// The program and its arguments.
    pub(crate) command: Vec<String>,
    /// Where it starts.
    pub(crate) folder: WorkspacePath,
    /// What its caller adds to its variables.
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) stdin: String,
    pub(crate) network: bool,
    /// Folders outside that it may write.
    pub(crate) writable: Vec<PathBuf>,
    /// Files of the workspace that it sees with these bytes and no others, whoever writes to them meanwhile.
    pub(crate) pinned: Vec<PinnedFile>,
    /// Takes the secrets that it is given out of what it says, before anybody hears or keeps that.
    pub(crate) secrets: Redactor,
    /// How long it may run.
    pub(crate) limit: Duration,
}

/// What the kernel takes at most for one argument or variable, with the zero at its end.
const LONGEST_WORD: usize = 128 << 10;
/// What it takes at least for all of them together, less what haft adds.
const LONGEST_WORDS: usize = 1 << 20;

impl CommandSpec {
    /// Refuses arguments and variables that no program could be given.
    pub(crate) fn checked(self) -> Result<Self, ToolError> {
        let refused = |why: String| Err(ToolError::new(ErrorCode::InvalidArgs, why));
        let variables = self.environment.iter().map(|(name, value)| name.len() + 1 + value.len());
        let lengths: Vec<usize> = self.command.iter().map(String::len).chain(variables).collect();
        if self.command.iter().any(|word| word.contains('\0')) {
            return refused("a command or argument has a zero byte, which no program could be given".to_owned());
        }
        if lengths.iter().any(|length| *length >= LONGEST_WORD) {
            return refused(format!(
                "an argument or variable has {LONGEST_WORD} bytes or more; put it into `stdin` or a file"
            ));
        }
        if lengths.iter().map(|length| length + 9).sum::<usize>() > LONGEST_WORDS {
            return refused(format!(
                "the arguments and variables have more than {LONGEST_WORDS} bytes; put them into `stdin` or a file"
            ));
        }
        Ok(self)
    }
}

/// A file of the workspace with the bytes that it must have.
#[derive(Clone, Debug)]
pub(crate) struct PinnedFile {
    pub(crate) place: WorkspacePath,
    pub(crate) bytes: Vec<u8>,
}

/// How a command ended, and what it left.
#[derive(Debug)]
pub(crate) struct CommandResult {
    pub(crate) said: CommandOutput,
    pub(crate) exit: CommandExit,
    pub(crate) took: Duration,
    /// What it changed, held aside; `None` when it wrote into the workspace itself.
    pub(crate) changes: Option<ChangeList>,
    /// What it made and nobody can commit, and what it could not change: the path, and why.
    pub(crate) left_out: Vec<(String, String)>,
    pub(crate) isolation: Isolation,
    /// Whether it could reach others.
    pub(crate) network: bool,
    /// Whether it failed because the repository of a linked worktree lies outside, where it only reads.
    pub(crate) read_only_repository: bool,
    pub(crate) cut: Option<Interruption>,
}

/// Why a command did not come to its own end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interruption {
    TimeOut(Duration),
    Cancel,
    Output,
    Bound(Bound),
}

impl Interruption {
    /// The limit's name on the wire, where it is one.
    pub(crate) fn limit(self) -> Option<&'static str> {
        match self {
            Self::TimeOut(_) => Some("time"),
            Self::Cancel => None,
            Self::Output => Some("output"),
            Self::Bound(Bound::Cpu) => Some("cpu"),
            Self::Bound(Bound::Memory) => Some("memory"),
            Self::Bound(Bound::Processes) => Some("processes"),
            Self::Bound(Bound::Disk) => Some("disk"),
        }
    }

    fn error(self) -> ToolError {
        match self {
            Self::TimeOut(limit) => {
                ToolError::new(ErrorCode::Timeout, format!("Tool timed out after {}ms", limit.as_millis()))
            }
            Self::Cancel => ToolError::new(ErrorCode::Cancelled, "the call was cancelled"),
            Self::Output | Self::Bound(_) => {
                let what = match self.limit() {
                    Some("cpu") => "used more processor time",
                    Some("memory") => "took more memory",
                    Some("processes") => "started more processes",
                    Some("disk") => "wrote more files or bytes",
                    _ => "said more",
                };
                let message = format!(
                    "the command {what} than it may and was ended; do less at once, or raise `sandbox.*` in the settings"
                );
                ToolError::new(ErrorCode::ResourceLimit, message)
            }
        }
    }
}

impl CommandResult {
    /// The exit code that a shell would tell.
    pub(crate) fn exit_code(&self) -> i32 {
        match self.exit {
            CommandExit::Code(code) => code,
            CommandExit::Signal(signal) => 128 + signal,
            CommandExit::Stopped => 128 + 9,
        }
    }

    /// What nobody can commit and what it could not change, a sentence each.
    pub(crate) fn left_out_words(&self) -> Vec<String> {
        let words = |(path, why): &(String, String)| match why.strip_prefix("it exists") {
            Some(but) => format!("`{path}` exists{but}"),
            None => format!("{path}: {why}"),
        };
        self.left_out.iter().map(words).collect()
    }

    /// What to do about a failure that the fence may be the reason of; `ask` is how the network is asked for.
    pub(crate) fn hint(&self, ask: &str) -> Option<String> {
        if self.read_only_repository {
            let hint =
                "the repository of this linked worktree can only be read here; `git_commit` stages and commits files";
            return Some(hint.to_owned());
        }
        self.wants_network().then(|| format!("It had no network. If it needs one, {ask}."))
    }

    /// What a tool says after it ran aside: `output` makes its result.
    pub(crate) fn prepared<O>(self, ctx: &ToolCtx, output: impl FnOnce(&Self) -> O) -> Prepared<O> {
        let turn = Turn::commit(ctx.call_id.clone());
        let isolation = Some(self.isolation);
        if let Some(cut) = self.cut {
            return Prepared::CutShort(self.cut_short(cut, turn));
        }
        let output = output(&self);
        Prepared::Staged { output, changes: self.changes.unwrap_or_default(), turn, isolation }
    }

    /// What a tool says after it ran because of a yes.
    pub(crate) fn ran<O>(self, ctx: &ToolCtx, output: impl FnOnce(&Self) -> O) -> Ran<O> {
        let turn = Turn::commit(ctx.call_id.clone());
        if let Some(cut) = self.cut {
            return Ran::CutShort(self.cut_short(cut, turn));
        }
        let output = output(&self);
        let staged = self.changes.map(|changes| (changes, turn));
        Ran::Done { output, isolation: Some(self.isolation), staged }
    }

    /// A command that was ended, with what it had said until then.
    fn cut_short(self, cut: Interruption, turn: Turn) -> PartialWork {
        let mut error = cut.error();
        if self.network {
            const SENT: &str = "what it sent until then may have arrived: check before you call again";
            // Why it was cancelled is said by whoever did so.
            let message = match cut {
                Interruption::Cancel => SENT.to_owned(),
                Interruption::TimeOut(_) | Interruption::Output | Interruption::Bound(_) => {
                    format!("{}; {SENT}", error.message)
                }
            };
            error = ToolError::new(ErrorCode::OutcomeUnknown, message);
        }
        let error = error.with("stdout", &*self.said.stdout).with("stderr", &*self.said.stderr);
        let error = match cut.limit() {
            Some(limit) => error.with("limitHit", limit),
            None => error,
        };
        PartialWork { error, changes: self.changes.unwrap_or_default(), turn, isolation: Some(self.isolation) }
    }
}
