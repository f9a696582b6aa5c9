//! `haft changes`

use anyhow::Result;
use haft_runtime::{CallRecord, CallState, ChangeList, ChangeState, End, Evidence, Isolation, Question};
use serde::Serialize;

use crate::{
    backend::Backend,
    cli::{Everywhere, ServerFlag},
    commands::{
        mistake,
        which::{DefaultCall, names_a_call, open_call},
    },
    exit::CliExit,
    show::{
        Out,
        card::card,
        changes::{DetailLevel, changes_text},
        ran::{CommandSummary, Run, ViewOptions},
        style::{DIM, STRONG},
    },
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The call, or the beginning of its id; the last one with changes when left out
    call: Option<String>,
    /// Only this path, with its whole diff
    path: Option<String>,
    /// Everything: the whole output, all paths, whole diffs
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    pub(crate) server: ServerFlag,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallChanges {
    call_id: String,
    status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<String>,
    changes: ChangeList,
}

pub(crate) async fn run(everywhere: &Everywhere, out: &Out, args: &Args) -> Result<CliExit> {
    let (call, path) = match (&args.call, &args.path) {
        (Some(path), None) if !names_a_call(path) => (None, Some(path)),
        (call, path) => (call.as_deref(), path.as_ref()),
    };
    let (backend, record) = open_call(everywhere, out, call, DefaultCall::WithChanges).await?;
    let question = backend.question(&record.call).await?.filter(|(_, answer)| answer.is_none()).map(|(asked, _)| asked);
    let ended = ended(&backend, &record, question.as_ref()).await?;
    let mut changes = backend.changes(&record).await?;
    if let Some(path) = path {
        changes.0.retain(|change| change.path == *path || change.from.as_ref() == Some(path));
        if changes.0.is_empty() {
            let sentence =
                format!("{} does not touch `{path}`; without a path, all that it touches is shown", record.call);
            return Err(mistake(sentence));
        }
    }
    backend.leave().await?;
    if out.json {
        let (exit_code, output) = ended.map_or((None, None), |ended| (ended.exit_code, Some(ended.output)));
        let (call_id, status) = (record.call.to_string(), status(&record));
        out.document(&CallChanges { call_id, status, exit_code, output, changes });
        return Ok(CliExit::Success);
    }
    let depth = if args.all || path.is_some() { DetailLevel::Whole } else { DetailLevel::Short };
    match (question, path) {
        (Some(question), None) => {
            out.text(&card(&question, depth, backend.redactor()));
            out.line(&format!("{DIM}yes  haft approve {0}\nno   haft reject {0}{DIM:#}", record.call));
        }
        (_, Some(_)) => out.text(&format!("{}{}", head(&record), changes_text(&changes, depth))),
        (None, None) => {
            let view =
                ViewOptions { depth, redactor: backend.redactor(), all: format!("haft changes {} --all", record.call) };
            out.text(&story(&record, ended.as_ref(), &changes, &view));
        }
    }
    Ok(CliExit::Success)
}

fn head(record: &CallRecord) -> String {
    format!("{STRONG}{}{STRONG:#} {DIM}{}{DIM:#}  {}\n", record.opening.tool, record.call, status(record))
}

/// What a call that no longer asks has done, and what can still be done about it.
fn story(record: &CallRecord, ended: Option<&CommandSummary>, changes: &ChangeList, view: &ViewOptions<'_>) -> String {
    let mut text = head(record);
    let outcome = record.outcome.as_ref();
    let rung = outcome.map(|outcome| outcome.isolation).filter(|rung| *rung > Isolation::None).map(Isolation::word);
    if let Some(run) = Run::of(&record.opening.input).filter(|_| rung.is_some()) {
        text.push_str(&run.shown(&[], view.depth));
    }
    if let Some(ended) = ended {
        text.push_str(&ended.shown(rung, view));
    }
    if changes.0.is_empty() {
        text.push_str("It changed no files.\n");
    }
    text.push_str(&changes_text(changes, view.depth));
    let staged = changes.0.iter().any(|change| change.state == ChangeState::Staged);
    if staged && record.state == CallState::Ended {
        text.push_str(&format!(
            "{DIM}what is staged: haft commit {0}\n                haft discard {0}{DIM:#}\n",
            record.call
        ));
    }
    if outcome.is_some_and(|outcome| outcome.undoable) {
        text.push_str(&format!("{DIM}undo with: haft undo {}{DIM:#}\n", record.call));
    }
    text
}

/// How the process of a call ended: as its evidence says while it waits, as its outcome says after.
async fn ended(backend: &Backend, record: &CallRecord, question: Option<&Question>) -> Result<Option<CommandSummary>> {
    if let Some(question) = question {
        return Ok(match question.evidence() {
            Some(Evidence::Staged { output, .. }) => CommandSummary::of(output),
            Some(Evidence::Plain(_)) | None => None,
        });
    }
    let outcome = match record.outcome.clone() {
        Some(outcome) => Some(backend.whole(outcome).await),
        None => None,
    };
    Ok(match outcome.as_ref().map(|outcome| &outcome.end) {
        Some(End::Success { result }) => CommandSummary::of(result),
        Some(End::Error { error } | End::Cancelled { error }) => CommandSummary::stopped(error),
        Some(End::Rejected { .. } | End::Pending { .. }) | None => None,
    })
}

/// Where a call stands, in the words of the envelope.
pub(crate) fn status(record: &CallRecord) -> String {
    match (&record.state, &record.outcome) {
        (CallState::Ended, Some(outcome)) => outcome.end.status().to_owned(),
        (CallState::Waiting, _) => "pending".to_owned(),
        (CallState::Preparing, _) => "preparing".to_owned(),
        (CallState::Executing, _) => "executing".to_owned(),
        (CallState::Ended, None) => "ended".to_owned(),
    }
}
