//! `haft policy explain`

use anyhow::Result;
use haft_runtime::{Decision, Evidence, Past, PastDecision, Replay, Step};
use serde_json::{Value, json};

use crate::{
    cli::Everywhere,
    commands::{
        answer::told,
        mistake,
        which::{DefaultCall, open_call},
    },
    exit::CliExit,
    house::House,
    show::{
        Out,
        changes::change_line,
        safe::safe,
        style::{ADDED, DIM, PLACE, STRONG},
        table::{width, wrapped},
        time::{ago, count},
    },
};

/// How many changes are shown before the rest is counted.
const SHOWN: usize = 10;

pub(super) async fn run(everywhere: &Everywhere, out: &Out, call: Option<&str>) -> Result<CliExit> {
    let (backend, record) = open_call(everywhere, out, call, DefaultCall::Last).await?;
    let house = backend.into_house()?;
    let call = &record.call;
    let Some(past) = house.store.past(&house.scope, call).await? else {
        return Err(mistake(format!("there is no call {call}; `haft log` lists the latest")));
    };
    let grants = house.store.all_grants(&house.scope, &house.here).await?;
    let answer = answer(&house, &past).await?;
    house.leave().await?;
    let tool = house.tools().get(&past.record.opening.tool);
    let replay = match past.replay(tool.as_deref()) {
        Ok(replay) => replay,
        Err(why) => {
            return Err(mistake(format!(
                "{call} cannot be explained: {why}; `haft log show {call}` tells what happened"
            )));
        }
    };
    let (now, steps) = replay.decide(&*house.pipeline.policy(&house.scope).await?, &grants);
    if out.json {
        out.document(&document(&past, &replay, &now, &steps));
        return Ok(CliExit::Success);
    }
    head(out, &past, &replay, answer.as_deref());
    print(out, &steps);
    end(out, &replay, &now);
    Ok(CliExit::Success)
}

async fn answer(house: &House, past: &Past) -> Result<Option<String>> {
    let question = house.question(&past.record.call).await?;
    Ok(question.and_then(|(_, answered)| answered).map(|answered| told(&answered)))
}

fn document(past: &Past, replay: &Replay<'_>, now: &Decision, steps: &[Step]) -> Value {
    let last = steps.len().saturating_sub(1);
    let step = |(number, step): (usize, &Step)| json!({"lookedAt": step.looked_at, "found": step.found, "decided": number == last});
    let steps: Vec<Value> = steps.iter().enumerate().map(step).collect();
    json!({"callId": past.record.call, "tool": past.record.opening.tool, "was": replay.was().word(),
        "now": now.word(), "because": now.because(), "steps": steps})
}

fn head(out: &Out, past: &Past, replay: &Replay<'_>, answer: Option<&str>) {
    let record = &past.record;
    let was = then(replay.was());
    out.line(&format!(
        "{STRONG}{}{STRONG:#}  {PLACE}{}{PLACE:#}  {was}, {}",
        record.opening.tool,
        record.call,
        ago(record.opening.at)
    ));
    if let Some(answer) = answer {
        out.line(&format!("answered {}", safe(answer)));
    }
    match replay.evidence() {
        Evidence::Plain(_) => out.line("what it does cannot be seen before"),
        Evidence::Staged { changes, .. } => {
            for change in changes.0.iter().take(SHOWN) {
                out.text(&change_line(change));
            }
            if changes.0.len() > SHOWN {
                out.line(&format!("{DIM}… {}{DIM:#}", count(changes.0.len() - SHOWN, "more path")));
            }
        }
    }
    out.line("");
}

/// The last step is the one that decided.
fn print(out: &Out, steps: &[Step]) {
    for (number, step) in steps.iter().enumerate() {
        let decided = number + 1 == steps.len();
        let (mark, style) = if decided { ("→", ADDED) } else { ("·", DIM) };
        let colon = if step.looked_at.ends_with('?') { "" } else { ":" };
        let text = safe(&format!("{}{colon} {}", step.looked_at, step.found));
        let text = wrapped(&text, width().saturating_sub(4)).replace('\n', "\n    ");
        out.line(&format!("  {style}{mark}{style:#} {text}"));
    }
}

/// What a decision comes to, after "Today it would".
fn today(now: &Decision) -> &'static str {
    match now {
        Decision::Yes { .. } => "run without asking",
        Decision::Ask { .. } => "ask",
        Decision::No(_) => "be refused",
    }
}

/// What one came to, after "Then it".
fn then(was: PastDecision) -> &'static str {
    match was {
        PastDecision::Yes => "ran without asking",
        PastDecision::Ask => "asked",
        PastDecision::No => "was refused",
    }
}

fn end(out: &Out, replay: &Replay<'_>, now: &Decision) {
    let (was, now_word) = (replay.was().word(), now.word());
    let nearly = match now {
        Decision::Ask { nearly: Some(nearly), .. } => format!("; {nearly}"),
        Decision::Ask { nearly: None, .. } | Decision::Yes { .. } | Decision::No(_) => String::new(),
    };
    let mut sentence = format!("Today it would {}{nearly}.", today(now));
    if was != now_word {
        sentence.push_str(&format!(" Then it {}; rules or grants have changed since.", then(replay.was())));
    }
    out.line("");
    out.line(&wrapped(&safe(&sentence), width()));
}
