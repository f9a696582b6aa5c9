//! `haft log show`

use anyhow::Result;
use serde_json::{Value, json};

use crate::{
    cli::Everywhere,
    commands::{
        changes::status,
        which::{DefaultCall, open_call},
    },
    exit::CliExit,
    show::{
        Out,
        timeline::{Story, timeline},
    },
};

/// One call's whole story.
pub(super) async fn run(everywhere: &Everywhere, out: &Out, call: Option<&str>) -> Result<CliExit> {
    let (backend, record) = open_call(everywhere, out, call, DefaultCall::Last).await?;
    let story = backend.story(record).await?;
    let kept = backend.keeps_changes_of(&story.record);
    backend.leave().await?;
    if out.json {
        out.document(&backend.redactor().value(&document(&story)));
        return Ok(CliExit::Success);
    }
    out.text(&timeline(&story, backend.redactor()));
    if kept && story.record.outcome.as_ref().is_some_and(|outcome| outcome.undoable) {
        out.hint(&format!("undo with: haft undo {}", story.record.call));
    }
    Ok(CliExit::Success)
}

fn document(story: &Story) -> Value {
    let Story { record, events, question, answer, relatives } = story;
    let events: Vec<_> =
        events.iter().map(|(cursor, at, event)| json!({"cursor": cursor, "at": at, "data": event})).collect();
    json!({
        "callId": record.call, "tool": record.opening.tool, "input": record.opening.input,
        "caller": record.opening.caller.who.name, "callerId": record.opening.caller.who.id,
        "source": record.opening.caller.source, "via": record.opening.caller.via, "parent": record.opening.parent,
        "workspace": record.scope.workspace(), "status": status(record), "startedAt": record.opening.at, "turn": record.turn,
        "isolation": record.outcome.as_ref().map(|outcome| outcome.isolation),
        "question": question, "answer": answer, "outcome": record.outcome, "children": relatives, "events": events})
}
