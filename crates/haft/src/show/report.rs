//! The outcomes of a batch, one line each, and how it went as a whole.

use std::io::{self, IsTerminal, Write};

use haft_runtime::{End, Outcome};
use serde::Serialize;
use serde_json::Value;

use crate::{
    exit::CliExit,
    show::{
        Out,
        safe::safe,
        style::{ADDED, WARN, WRONG},
        table::{cut, width},
        time::count,
    },
};

/// A line of a batch.
pub(crate) struct ReportedLine<'a> {
    /// Which, from 1.
    pub(crate) number: u64,
    /// What its writer calls it by.
    pub(crate) id: Option<&'a Value>,
    /// Whether it could be read, and so became a call that the journal knows.
    pub(crate) is_a_call: bool,
}

/// An envelope with what its writer calls it by.
#[derive(Serialize)]
struct OutcomeWithId<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a Value>,
    #[serde(flatten)]
    outcome: &'a Outcome,
}

/// Why a line never became a call.
#[derive(Serialize)]
struct RefusedLine<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a Value>,
    #[serde(flatten)]
    end: &'a End,
}

/// What has been printed so far.
pub(crate) struct BatchReport {
    out: Out,
    worst: CliExit,
    /// The last line that was answered.
    line: u64,
    calls: u64,
    /// How many ended so, in the order in which they are told.
    ends: [(&'static str, u64); 5],
    nobody_reads: bool,
}

impl BatchReport {
    pub(crate) fn new(out: Out) -> Self {
        let ends = [("success", 0), ("error", 0), ("rejected", 0), ("pending", 0), ("cancelled", 0)];
        Self { out, worst: CliExit::Success, line: 0, calls: 0, ends, nobody_reads: false }
    }

    /// Prints one outcome. An error means that nobody reads them any more.
    pub(crate) fn take(&mut self, line: &ReportedLine<'_>, outcome: &Outcome) -> io::Result<()> {
        self.line = line.number;
        self.calls += 1;
        self.worst = self.worst.or_worse(CliExit::from(outcome));
        for (status, count) in &mut self.ends {
            *count += u64::from(*status == outcome.end.status());
        }
        if self.nobody_reads {
            return Ok(());
        }
        let printed = if self.out.json { as_json(line, outcome) } else { for_people(line.number, outcome) };
        self.nobody_reads = printed.is_err();
        printed
    }

    /// The input is at its end and everything has been answered.
    pub(crate) fn ended(self) -> CliExit {
        if !self.out.json {
            self.sum_up();
        }
        self.worst
    }

    /// The rest was not begun.
    pub(crate) fn stopped(self) -> CliExit {
        let why = if self.nobody_reads { "nobody reads the outcomes any more" } else { "stopped" };
        let rest = if self.line == 0 {
            "nothing was started".to_owned()
        } else {
            format!("nothing after line {} was started", self.line)
        };
        if !self.out.json && !self.nobody_reads {
            self.sum_up();
        }
        Out::warning(&format!("{why}; {rest}"));
        self.worst.or_worse(CliExit::Cancelled)
    }

    fn sum_up(&self) {
        let ends: Vec<String> = self
            .ends
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|(status, count)| format!("{count} {status}"))
            .collect();
        match self.calls {
            0 => self.out.line("no calls; write one a line, like {\"tool\": \"list_directory\"}"),
            calls => {
                let calls = count(usize::try_from(calls).unwrap_or(usize::MAX), "call");
                self.out.line(&format!("{calls}: {}", ends.join(", ")));
            }
        }
        if self.ends.iter().any(|(status, count)| *status == "pending" && *count > 0) {
            self.out.hint("what waits for an answer: haft approvals");
        }
    }
}

/// One line in one write, so that whoever reads along sees whole lines.
fn as_json(line: &ReportedLine<'_>, outcome: &Outcome) -> io::Result<()> {
    let id = line.id;
    let mut text = match line.is_a_call {
        true => serde_json::to_string(&OutcomeWithId { id, outcome })?,
        false => serde_json::to_string(&RefusedLine { id, end: &outcome.end })?,
    };
    text.push('\n');
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

fn for_people(line: u64, outcome: &Outcome) -> io::Result<()> {
    let (mark, style, told) = match &outcome.end {
        End::Success { .. } => ("✓", ADDED, done(outcome)),
        End::Error { error } => ("✗", WRONG, format!("{} {}", error.code, error.message)),
        End::Rejected { reason, .. } => ("✗", WARN, reason.clone()),
        End::Pending { pending } => ("?", WARN, format!("waits: haft approve {}", pending.pending_tool_call_id)),
        End::Cancelled { error } => ("✗", WARN, error.message.clone()),
    };
    let head = format!(" {line:>4}  {:<14}  ", cut(&safe(&outcome.tool), 30));
    let left = width().saturating_sub(head.chars().count() + 1).max(20);
    let left = if io::stdout().is_terminal() { left } else { usize::MAX };
    let told = cut(&safe(&told), left);
    let mut stdout = anstream::stdout().lock();
    writeln!(stdout, "{style}{mark}{style:#}{head}{told}")?;
    stdout.flush()
}

fn done(outcome: &Outcome) -> String {
    let took = format!("{} ms", outcome.execution_time_ms);
    let paths = outcome.changes.as_ref().map(|changes| changes.paths().join(", ")).unwrap_or_default();
    let cached = if outcome.cached { ", cached" } else { "" };
    if paths.is_empty() { format!("{took}{cached}") } else { format!("{took}  {paths}") }
}
