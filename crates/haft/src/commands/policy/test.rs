//! `haft policy test`

use std::{collections::BTreeMap, path::Path};

use anyhow::Result;
use haft_runtime::{CallId, Decision, Grant, Past, PastDecision, Policy};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{because, was_word, word};
use crate::{
    cli::Everywhere,
    commands::open,
    exit::CliExit,
    house::House,
    rules,
    show::{
        Out,
        safe::safe,
        style::{DIM, PLACE, STRONG},
        table::{width, wrapped},
        time::{ago, count},
    },
};

/// A call that would be decided otherwise now.
struct Differing {
    call: CallId,
    tool: String,
    at: Timestamp,
    was: PastDecision,
    now: Decision,
}

/// What became of the calls that were decided again.
#[derive(Default)]
struct Replayed {
    same: usize,
    differing: Vec<Differing>,
    unjudged: BTreeMap<String, usize>,
}

pub(super) async fn run(everywhere: &Everywhere, out: &Out, last: u32, file: Option<&Path>) -> Result<CliExit> {
    let house = open(everywhere).await?;
    let mut policy = Policy::clone(&*house.pipeline.policy(&house.scope).await?);
    if let Some(file) = file {
        let (own, shipped) = rules::of_file(file)?;
        policy.rules = rules::in_force(&own, shipped, &house.tools());
    }
    let grants = house.store.all_grants(&house.scope, &house.here).await?;
    let past = house.store.last_calls(&house.scope, &house.here, last).await?;
    house.leave().await?;
    let mut replayed = Replayed::default();
    for past in &past {
        replayed.add(&house, past, &policy, &grants);
    }
    if out.json {
        out.document(&replayed.document());
    } else {
        replayed.print(out, policy.rules.len());
    }
    Ok(CliExit::Success)
}

impl Replayed {
    fn add(&mut self, house: &House, past: &Past, policy: &Policy, grants: &[Grant]) {
        let opening = &past.record.opening;
        let tool = house.tools().get(&opening.tool);
        match past.replay(tool.as_deref()) {
            Err(why) => *self.unjudged.entry(why.to_string()).or_default() += 1,
            Ok(replay) => {
                let (now, _) = replay.decide(policy, grants);
                if word(&now) == was_word(replay.was()) {
                    self.same += 1;
                    return;
                }
                let (call, tool, at) = (past.record.call.clone(), opening.tool.clone(), opening.at);
                self.differing.push(Differing { call, tool, at, was: replay.was(), now });
            }
        }
    }

    fn document(&self) -> Value {
        let differing: Vec<Value> = self.differing.iter().map(Differing::document).collect();
        let unjudged: Vec<Value> =
            self.unjudged.iter().map(|(why, count)| json!({"why": why, "count": count})).collect();
        json!({"same": self.same, "differing": differing, "unjudged": unjudged})
    }

    fn print(&self, out: &Out, rules: usize) {
        for differing in &self.differing {
            out.line(&differing.text());
        }
        if !self.differing.is_empty() {
            out.line("");
        }
        let judged = self.same + self.differing.len();
        let rules = count(rules, "rule");
        let sentence = format!("{} decided again by {rules} and the grants; nothing was run", count(judged, "call"));
        out.line(&wrapped(&sentence, width()));
        out.line(&format!("{STRONG}{:>6}{STRONG:#}  as they were", self.same));
        for (word, means) in [("yes", "would run without asking"), ("ask", "would ask"), ("no", "would be refused")] {
            let number = self.differing.iter().filter(|differing| self::word(&differing.now) == word).count();
            out.line(&format!("{STRONG}{number:>6}{STRONG:#}  {means}, and were not"));
        }
        for (why, number) in &self.unjudged {
            out.line(&format!("{DIM}{number:>6}  not decided again: {why}{DIM:#}"));
        }
    }
}

impl Differing {
    fn document(&self) -> Value {
        json!({"callId": self.call, "tool": self.tool, "at": self.at, "was": was_word(self.was),
            "now": word(&self.now), "because": because(&self.now)})
    }

    fn text(&self) -> String {
        let (was, now) = (was_word(self.was), word(&self.now));
        let because = wrapped(&safe(&because(&self.now)), width().saturating_sub(4)).replace('\n', "\n    ");
        format!(
            "{PLACE}{}{PLACE:#}  {}  {}  {STRONG}{was} → {now}{STRONG:#}\n    {DIM}{because}{DIM:#}",
            self.call,
            self.tool,
            ago(self.at)
        )
    }
}
