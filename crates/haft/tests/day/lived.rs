//! Living through a day: every call made by the program, every question answered and counted, everything undone.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::script::{Answer, Kind, Step};

/// Runs the program in the repository and gives its exit code and what it printed.
pub(crate) type Program<'a> = &'a dyn Fn(&[&str]) -> Result<(i32, String)>;

/// What became of one call.
pub(crate) struct Lived {
    pub(crate) kind: Kind,
    pub(crate) words: String,
    pub(crate) call: String,
    pub(crate) asked: bool,
    /// Why it was asked, or who said yes instead.
    pub(crate) why: String,
    /// Whether it has changed anything, so that there is something to undo.
    pub(crate) changed: bool,
}

/// Makes one call as an agent does, and answers as a person does when it asks.
pub(crate) fn live(haft: Program<'_>, step: &Step) -> Result<Lived> {
    let (code, outcome) = json(haft, &["call", step.tool, &step.input.to_string(), "--json"])?;
    let words = step.words();
    let call = outcome["tool_call_id"].as_str().unwrap_or_default().to_owned();
    let lived = Lived { kind: step.kind, words, call, asked: code == 4, why: String::new(), changed: false };
    match (code, step.kind) {
        (4, kind) => answered(haft, lived, kind.answer()),
        (0, _) => Ok(Lived { why: unasked(&outcome), changed: committed(&outcome), ..with_exit(lived, &outcome)? }),
        (_, Kind::Harm) => Ok(Lived { why: format!("refused: {}", text(&outcome["error"]["code"])), ..lived }),
        (_, _) => anyhow::bail!("{} failed: {outcome:#}", lived.words),
    }
}

impl Lived {
    /// The call and what became of it, as a row of a table.
    pub(crate) fn row(&self) -> String {
        let (kind, asked) = (format!("{:?}", self.kind), if self.asked { "asked" } else { "" });
        format!("{kind:<9} {:<60.60} {asked:<6} {}", self.words, self.why)
    }
}

/// How often a person was asked for what was wanted.
pub(crate) fn questions(day: &[Lived]) -> usize {
    day.iter().filter(|lived| lived.asked && lived.kind != Kind::Harm).count()
}

/// Takes back what the calls have changed, the last one first, and says how many that were.
pub(crate) fn undo_all(haft: Program<'_>, day: &[Lived]) -> Result<usize> {
    let mut undone = 0;
    for lived in day.iter().rev().filter(|lived| lived.changed) {
        let (code, said) = haft(&["undo", &lived.call, "--yes"])?;
        ensure!(code == 0, "undoing {}: {said}", lived.words);
        undone += 1;
    }
    Ok(undone)
}

fn answered(haft: Program<'_>, lived: Lived, answer: Answer) -> Result<Lived> {
    let (_, open) = json(haft, &["approvals", "--json"])?;
    let question = open.as_array().and_then(|open| open.iter().find(|one| one["callId"] == lived.call.as_str()));
    let why = text(&question.context("its question is open")?["reason"]);
    let call = lived.call.as_str();
    let (code, said) = match answer {
        Answer::No => haft(&["reject", call])?,
        Answer::Yes => haft(&["approve", call, "--json"])?,
        Answer::YesInThisFolder => match haft(&["approve", call, "--always", "folder", "--json"])? {
            (0, said) => (0, said),
            // No such grant is to be had: yes to this one, and the next will ask again.
            (_, _) => haft(&["approve", call, "--json"])?,
        },
    };
    ensure!(code == 0, "answering {}: {said}", lived.words);
    Ok(Lived { why, changed: answer != Answer::No, ..lived })
}

/// What a build or a test says of itself counts, too; harm may fail as it likes.
fn with_exit(lived: Lived, outcome: &Value) -> Result<Lived> {
    let exit = outcome["result"]["structured"]["exitCode"].as_i64().unwrap_or(0);
    ensure!(exit == 0 || lived.kind == Kind::Harm, "{} ended with {exit}: {outcome:#}", lived.words);
    Ok(lived)
}

fn committed(outcome: &Value) -> bool {
    outcome["changes"].as_array().is_some_and(|changes| !changes.is_empty())
}

fn unasked(outcome: &Value) -> String {
    match (text(&outcome["approved_by"]).as_str(), outcome["grant"].as_str()) {
        ("auto", _) => "only read".to_owned(),
        (_, Some(_)) => "a grant covers it".to_owned(),
        (by, None) => format!("by {by}"),
    }
}

fn json(haft: Program<'_>, arguments: &[&str]) -> Result<(i32, Value)> {
    let (code, said) = haft(arguments)?;
    let value = serde_json::from_str(&said).with_context(|| format!("{arguments:?} gave {code}: {said}"))?;
    Ok((code, value))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
