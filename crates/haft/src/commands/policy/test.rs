//! `haft policy test`

use std::path::Path;

use anyhow::Result;
use haft_runtime::{DifferingCall, Policy, ReplayReport};

use crate::{
    cli::Everywhere,
    commands::open,
    exit::CliExit,
    rules,
    show::{
        Out,
        safe::safe,
        style::{DIM, PLACE, STRONG},
        table::{width, wrapped},
        time::{ago, count},
    },
};

pub(super) async fn run(everywhere: &Everywhere, out: &Out, last: u32, file: Option<&Path>) -> Result<CliExit> {
    let house = open(everywhere).await?;
    let mut policy = Policy::clone(&*house.pipeline.policy(&house.scope).await?);
    if let Some(file) = file {
        let (own, shipped) = rules::of_file(file)?;
        policy.rules = rules::named(own, &house.tools());
        policy.defaults = shipped.rules();
    }
    let grants = house.store.all_grants(&house.scope, &house.here).await?;
    let past = house.store.last_calls(&house.scope, &house.here, last).await?;
    house.leave().await?;
    let mut report = ReplayReport::default();
    for past in &past {
        let tool = house.tools().get(&past.record.opening.tool);
        report.add(past, tool.as_deref(), &policy, &grants);
    }
    if out.json {
        out.document(&report.document());
    } else {
        print(&report, out, policy.rules.len() + policy.defaults.len());
    }
    Ok(CliExit::Success)
}

fn print(report: &ReplayReport, out: &Out, rules: usize) {
    for differing in &report.differing {
        out.line(&text(differing));
    }
    if !report.differing.is_empty() {
        out.line("");
    }
    let judged = report.same + report.differing.len();
    let rules = count(rules, "rule");
    let sentence = format!("{} checked against {rules} and the grants; nothing ran.", count(judged, "call"));
    out.line(&wrapped(&sentence, width()));
    out.line(&format!("{STRONG}{:>6}{STRONG:#}  as they were", report.same));
    for (word, means) in
        [("yes", "would now run without asking"), ("ask", "would now ask"), ("no", "would now be refused")]
    {
        let number = report.differing.iter().filter(|differing| differing.now.word() == word).count();
        out.line(&format!("{STRONG}{number:>6}{STRONG:#}  {means}"));
    }
    for (why, number) in &report.unjudged {
        out.line(&format!("{DIM}{number:>6}  not decided again: {why}{DIM:#}"));
    }
}

fn text(differing: &DifferingCall) -> String {
    let (was, now) = (differing.was.word(), differing.now.word());
    let because = wrapped(&safe(&differing.now.because()), width().saturating_sub(4)).replace('\n', "\n    ");
    format!(
        "{PLACE}{}{PLACE:#}  {}  {}  {STRONG}{was} → {now}{STRONG:#}\n    {DIM}{because}{DIM:#}",
        differing.call,
        differing.tool,
        ago(differing.at)
    )
}
