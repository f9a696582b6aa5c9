//! What a decision costs with many rules and grants, and that grants of other tools cost nothing.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use haft_runtime::{
    Asks, AutoApprove, Bounds, CallId, CallerId, Case, Change, ChangeKind, ChangeList, Decision, Effect, Evidence,
    Grant, Isolation, Policy, Questions, Rule, Scope, ToolOutput, ToolSpec, Turn, Verdict, WrittenBounds, decide,
};
use haft_store::{Durability, Store};
use jiff::Timestamp;
use serde_json::json;

use crate::{Measured, median};

const RULES: usize = 200;
const GRANTS: usize = 1000;
const LAPS: usize = 500;
/// How many grants of the tool itself there are among those of others.
const OWN: usize = 10;

/// The decision itself, and the way to the grants of one tool among few and many of others.
pub(crate) async fn measure() -> Result<Vec<Measured>> {
    let decision = decisions()?;
    let (few, many) = (lookups(GRANTS).await?, lookups(50 * GRANTS).await?);
    // What is measured is mostly the way to another thread and back, which is never quite the same twice.
    let grows = many > few.mul_f64(1.5);
    Ok(vec![
        Measured::new(
            "a decision by 200 rules and 1,000 grants",
            format!("p50 {decision:.1?}"),
            "p50 < 100 µs",
            decision < Duration::from_micros(100),
        ),
        Measured::new(
            "10 grants of a tool among others",
            format!("p50 {few:.0?} among 1,000, {many:.0?} among 50,000"),
            "does not grow",
            !grows,
        ),
    ])
}

fn bounds(number: usize) -> Result<Bounds> {
    let glob = if number.is_multiple_of(4) { format!("src/**/*.x{number}") } else { format!("folder{number}/**") };
    Ok(Bounds::try_from(WrittenBounds { paths: Some(vec![glob]), max_files: Some(20), ..WrittenBounds::default() })?)
}

fn grants(count: usize) -> Result<Vec<Grant>> {
    (0..count).map(|number| Ok(Grant::new("write_file", bounds(number)?))).collect()
}

fn rules() -> Result<Vec<Rule>> {
    let rule = |number: usize| {
        let verdict = if number.is_multiple_of(2) { Verdict::Allow } else { Verdict::Deny };
        Ok(Rule { name: format!("rule {number}"), tool: None, bounds: bounds(number)?, verdict, reason: None })
    };
    (0..RULES).map(rule).collect()
}

fn evidence() -> Evidence {
    let change = |number: usize| Change {
        diff: Some("+text\n".repeat(100)),
        size: 600,
        added: 100,
        ..Change::staged(format!("src/deep/file{number}.rs"), ChangeKind::Changed)
    };
    let (output, changes) = (ToolOutput::default(), ChangeList((0..5).map(change).collect()));
    Evidence::Staged { output, changes, turn: Turn::commit(CallId::new()), isolation: None }
}

/// Nothing matches, so that everything is looked at.
fn decisions() -> Result<Duration> {
    let policy = Policy { rules: rules()?, ..Policy::without_rules(Isolation::Namespaces) };
    let (grants, evidence, input) = (grants(GRANTS)?, evidence(), json!({"path": "src/deep/file0.rs"}));
    let spec = spec();
    let case = Case {
        spec: &spec,
        input: &input,
        effect: Effect::Write,
        evidence: &evidence,
        mode: AutoApprove::Reads,
        caller: &CallerId::owner(),
        own_form: None,
        grants: &grants,
        now: Timestamp::now(),
    };
    let mut laps = Vec::with_capacity(LAPS);
    for _ in 0..LAPS {
        let begin = Instant::now();
        let decision = decide(&policy, &case);
        laps.push(begin.elapsed());
        ensure!(matches!(decision, Decision::Ask { nearly: Some(_), .. }), "{decision:?}");
    }
    Ok(median(laps))
}

fn spec() -> ToolSpec {
    ToolSpec {
        permission: Effect::Write.workspace_permission().to_owned(),
        deprecated_aliases: Vec::new(),
        idempotent: false,
        open_world: false,
        name: "write_file".to_owned(),
        title: "Write file".to_owned(),
        description: "Writes.".to_owned(),
        category: "filesystem".to_owned(),
        input_schema: json!({}),
        output_schema: json!({}),
        example: None,
        effect: Effect::Write,
        aliases: Vec::new(),
        parameter_aliases: Vec::new(),
        timeout: Duration::from_secs(30),
        asks: Asks::ByEffect,
    }
}

/// From a task of the runtime, as a call would look for them.
async fn lookups(others: usize) -> Result<Duration> {
    let folder = tempfile::tempdir()?;
    let store = Store::open(folder.path(), Durability::Normal).await?;
    let scope = Scope::local("bench");
    let own = grants(OWN)?;
    let other = grants(others)?.into_iter().enumerate();
    let other = other.map(|(number, grant)| Grant { tool: format!("tool{}", number % 100), ..grant });
    let remembering = own.into_iter().chain(other).collect::<Vec<_>>();
    for batch in remembering.chunks(256) {
        let written = batch.iter().map(|grant| store.remember(&scope, grant));
        futures_util::future::try_join_all(written).await?;
    }
    let taken = tokio::spawn(async move {
        let mut laps = Vec::with_capacity(LAPS);
        for _ in 0..LAPS {
            let begin = Instant::now();
            let found = store.grants(&scope, "write_file").await?;
            laps.push(begin.elapsed());
            ensure!(found.len() == OWN, "{} grants", found.len());
        }
        store.close().await?;
        Ok(median(laps))
    });
    taken.await?
}
