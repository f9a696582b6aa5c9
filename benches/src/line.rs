//! What the line itself costs, in process.

use std::{
    fs,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use haft::{
    house::{self, House},
    settings::Settings,
};
use haft_runtime::{AutoApprove, CallRequest, Effect, End, Output, Tool, ToolCtx, ToolError, typed};
use haft_store::{Store, Sync};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{Measured, median};

const LAPS: usize = 4000;

/// A tool that does nothing, so that only the line is measured.
struct Nothing;

/// Does nothing, for measuring what is around it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Empty {}

#[derive(Serialize, JsonSchema)]
struct Done {}

impl Output for Done {
    fn text(&self) -> String {
        String::new()
    }
}

impl Tool for Nothing {
    type Input = Empty;
    type Output = Done;
    const NAME: &'static str = "nothing";
    const CATEGORY: &'static str = "bench";
    const WORST: Effect = Effect::Read;

    async fn run(&self, _ctx: &ToolCtx, _input: Empty) -> Result<Done, ToolError> {
        Ok(Done {})
    }
}

/// The line around an empty tool, and one recorded and undoable edit.
pub(crate) async fn measure() -> Result<Vec<Measured>> {
    let folder = tempfile::tempdir()?;
    let work = folder.path().join("work");
    fs::create_dir(&work)?;
    let settings = Settings::defaults(folder.path().join("data"));
    let store = Store::open(&settings.data, Sync::Normal).await?;
    let house = house::solo(settings, store, &work.canonicalize()?).await?;
    house.registry.register(typed(Nothing))?;
    // Calls come from tasks of the runtime, as they do in a server.
    let (house, empty) = tokio::spawn(async move {
        let empty = laps(&house, |_| ("nothing", json!({}))).await;
        (house, empty)
    })
    .await?;
    let empty = median(empty?);
    fs::write(work.join("a.txt"), "line 0\nsome text\nmore text\n")?;
    let edits = tokio::spawn(async move {
        let edit = |lap: usize| {
            let (old, new) = (format!("line {lap}"), format!("line {}", lap + 1));
            ("edit_file", json!({"path": "a.txt", "old": old, "new": new}))
        };
        let edits = laps(&house, edit).await;
        let _ = house.close().await;
        edits
    })
    .await?;
    let edit = median(edits?);
    Ok(vec![
        Measured::new(
            "the line around an empty read",
            format!("p50 {empty:?}"),
            "p50 < 30 µs",
            empty < Duration::from_micros(30),
        ),
        Measured::new(
            "edit_file, recorded and undoable (NORMAL)",
            format!("p50 {edit:?}"),
            "p50 < 250 µs",
            edit < Duration::from_micros(250),
        ),
    ])
}

async fn laps(house: &House, wish: impl Fn(usize) -> (&'static str, Value)) -> Result<Vec<Duration>> {
    let mut laps = Vec::with_capacity(LAPS);
    for lap in 0..LAPS {
        let (tool, input) = wish(lap);
        let mut request = CallRequest::new(house.caller.clone(), tool, input);
        request.auto_approve = AutoApprove::Everything;
        let begin = Instant::now();
        let outcome = house.pipeline.call(request).await;
        laps.push(begin.elapsed());
        ensure!(matches!(outcome.end, End::Success { .. }), "{outcome:?}");
    }
    Ok(laps)
}
