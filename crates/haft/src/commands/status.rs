//! Bare `haft`: where am I.

use anyhow::Result;
use haft_sandbox::fence::Rung;
use jiff::Timestamp;
use serde_json::json;

use crate::{
    cli::Everywhere,
    commands::{open_in, read_settings},
    exit::CliExit,
    house,
    show::{
        Out,
        safe::safe,
        style::{PLACE, STRONG, WARN},
        time::count,
        trust::{SHORT, diff},
    },
    trust::{self, TrustStatus, WorkspaceTrust},
    workspace,
};

pub(crate) async fn run(everywhere: &Everywhere, out: &Out) -> Result<CliExit> {
    let folder = workspace::find(everywhere.workspace.as_deref())?;
    let settings = read_settings(&folder)?;
    let looked = trust::look(&settings.data, &folder)?;
    let house = open_in(settings, &folder).await?;
    let rung = house::workspace(&house.settings, &folder)?.fences()?.rung;
    let tools = house.tools().specs().len();
    let waiting = house.open_questions(&house.here).await?;
    let used = house.store.tools_used(&house.scope, &house.here, Some(Timestamp::now())).await?;
    let today: i64 = used.iter().map(|tool| tool.calls).sum();
    let last = house
        .store
        .calls(&house.scope, &house.here, &haft_store::CallFilter { limit: 1, ..Default::default() })
        .await?;
    house.leave().await?;
    let workspace = house.scope.workspace().map(ToString::to_string).unwrap_or_default();
    if out.json {
        out.document(&json!({"workspace": workspace, "tools": tools, "openQuestions": waiting.len(),
            "callsToday": today, "trust": looked.standing.word(), "rung": rung, "version": env!("CARGO_PKG_VERSION")}));
        return Ok(CliExit::Success);
    }
    let version = env!("CARGO_PKG_VERSION");
    out.line(&format!("{STRONG}haft {version}{STRONG:#}  in {PLACE}{workspace}{PLACE:#}"));
    out.line(&format!("  {}, {} today", count(tools, "tool"), count(usize::try_from(today).unwrap_or(0), "call")));
    out.line(&commands(rung));
    match looked.standing {
        TrustStatus::BringsNothing | TrustStatus::Trusted(_) => out.line(&format!("  {}", looked.words())),
        TrustStatus::NotTrusted | TrustStatus::Doubtful(_) => {
            out.line(&format!("  {WARN}{}{WARN:#}", safe(&looked.words())));
        }
        TrustStatus::Held(_) => {
            out.line(&format!("  {WARN}{}{WARN:#}", looked.words()));
            out.text(&diff(&looked, SHORT));
        }
    }
    if waiting.is_empty() {
        out.line("  nothing waits for an answer");
    } else {
        let wait = if waiting.len() == 1 { "waits" } else { "wait" };
        out.line(&format!("  {WARN}{} {wait} for an answer{WARN:#}", count(waiting.len(), "call")));
    }
    out.line("");
    out.line("Try next:");
    for (command, what) in
        next_steps(&looked, waiting.first().map(|q| q.call.to_string()), last.first().map(|c| c.id.to_string()))
    {
        out.line(&format!("  {STRONG}{command:<51}{STRONG:#} {what}"));
    }
    Ok(CliExit::Success)
}

/// How well commands are fenced here.
fn commands(rung: Option<Rung>) -> String {
    match rung {
        Some(Rung::Namespaces) => "  commands run in a sandbox first (isolation: namespaces)".to_owned(),
        Some(Rung::Landlock) => {
            format!("  {WARN}commands cannot be previewed (isolation: landlock); haft doctor says why{WARN:#}")
        }
        None => format!("  {WARN}commands cannot run here (no isolation); haft doctor says why{WARN:#}"),
    }
}

/// The three commands that make most sense now.
fn next_steps(looked: &WorkspaceTrust, waiting: Option<String>, last: Option<String>) -> Vec<(String, &'static str)> {
    let mut steps = Vec::new();
    if looked.note().is_some() {
        steps.push(("haft trust".to_owned(), "see what it brings"));
    }
    if let Some(call) = waiting {
        steps.push(("haft approvals".to_owned(), "see what waits"));
        steps.push((format!("haft approve {call}"), "say yes"));
    }
    if let Some(call) = last {
        steps.push((format!("haft log show {call}"), "the last call"));
    }
    steps.push(("haft call list_directory".to_owned(), "look around"));
    steps.push(("haft tools".to_owned(), "list the tools"));
    steps.push(("haft doctor".to_owned(), "check what works"));
    steps.truncate(3);
    steps
}
