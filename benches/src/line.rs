//! What the line itself costs, in process.

use std::{
    fs,
    path::Path,
    sync::{Arc, mpsc},
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use haft::{
    house::{self, House},
    settings::Settings,
};
use haft_runtime::{AutoApprove, CallRequest, Effect, End, Output, Ran, Tool, ToolCtx, ToolError, ToolFacts, typed};
use haft_store::{Durability, Store};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{Measured, median, quiet_median};

/// Few enough that the disk's own journal does not fill up and become what is measured.
const LAPS: usize = 600;

/// A tool that does nothing, so that only the line is measured.
struct Nothing;

/// Does nothing, for measuring what is around it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Empty {}

#[derive(Serialize, JsonSchema)]
struct EmptyOutput {}

impl Output for EmptyOutput {
    fn text(&self) -> String {
        String::new()
    }
}

impl Tool for Nothing {
    type Input = Empty;
    type Output = EmptyOutput;
    const FACTS: ToolFacts = ToolFacts::new("nothing", "bench", Effect::Read);

    async fn run(&self, _ctx: &ToolCtx, _input: Empty) -> Result<Ran<EmptyOutput>, ToolError> {
        Ok(Ran::plain(EmptyOutput {}))
    }
}

/// The line around an empty tool, and one recorded and undoable edit on the disk and in memory, beside what the machine
/// itself takes for the same files and for waking a thread.
pub(crate) async fn measure() -> Result<Vec<Measured>> {
    let empty = empty_reads().await?;
    let disk = edits(&std::env::temp_dir()).await?;
    let by_hand = files_by_hand(&std::env::temp_dir())?;
    let shared = Path::new("/dev/shm");
    let memory = if shared.is_dir() { Some((edits(shared).await?, files_by_hand(shared)?)) } else { None };
    let hundred = hundred_at_once().await?;
    let rate = sixty_four_callers().await?;
    let (anew, again) = reads_anew_and_again().await?;
    let wake = median(round_trips()?);
    let mut table = vec![
        Measured::new(
            "the line around an empty read",
            format!("p50 {empty:?}"),
            "p50 <= 40 µs",
            empty <= Duration::from_micros(40),
        ),
        Measured::new(
            "edit_file, recorded and undoable (NORMAL)",
            format!("quiet p50 {disk:.0?} (its files by hand {by_hand:.0?})"),
            "p50 < 250 µs",
            disk < Duration::from_micros(250),
        ),
    ];
    if let Some((memory, by_hand)) = memory {
        table.push(Measured::new(
            "the same in memory",
            format!("quiet p50 {memory:.0?} (its files by hand {by_hand:.0?})"),
            "p50 < 250 µs",
            memory < Duration::from_micros(250),
        ));
    }
    table.push(Measured::new(
        "100 empty reads at once",
        format!("p50 {hundred:.1?}"),
        "< 200 ms",
        hundred < Duration::from_millis(200),
    ));
    table.push(Measured::new(
        "recorded reads of 64 callers (NORMAL)",
        format!("{rate:.0}/s"),
        ">= 60,000/s",
        rate >= 60_000.0,
    ));
    table.push(Measured::new(
        "read_file of 2000 lines, answered again",
        format!("p50 {again:.0?} (read anew {anew:.0?})"),
        "less than anew",
        again < anew,
    ));
    table.push(Measured::new("waking a thread and back, by itself", format!("p50 {wake:.0?}"), "", true));
    Ok(table)
}

pub(crate) async fn house_in(folder: &Path) -> Result<House> {
    let work = folder.join("work");
    fs::create_dir(&work)?;
    fs::write(work.join("a.txt"), "line 0\nsome text\nmore text\n")?;
    let settings = Settings::defaults(folder.join("data"));
    let store = Store::open(&settings.data, Durability::Normal).await?;
    house::open(settings, store, &work.canonicalize()?).await
}

/// Calls come from tasks of the runtime, as they do in a server.
async fn empty_reads() -> Result<Duration> {
    let folder = tempfile::tempdir()?;
    let house = house_in(folder.path()).await?;
    house.registry.register(typed(Nothing))?;
    let taken = tokio::spawn(async move {
        let taken = laps(&house, |_| ("nothing", json!({}))).await;
        let _ = house.close().await;
        taken
    });
    Ok(median(taken.await??))
}

/// A hundred callers at the same time, each with a call of its own.
async fn hundred_at_once() -> Result<Duration> {
    let folder = tempfile::tempdir()?;
    let house = house_in(folder.path()).await?;
    house.registry.register(typed(Nothing))?;
    let mut taken = Vec::new();
    for _ in 0..20 {
        let begin = Instant::now();
        let calls: Vec<_> = (0..100)
            .map(|_| CallRequest::new(house.caller.clone(), "nothing", json!({})))
            .map(|call| tokio::spawn(house.pipeline.call(call)))
            .collect();
        for call in calls {
            let outcome = call.await?;
            ensure!(matches!(outcome.end, End::Success { .. }), "{outcome:?}");
        }
        taken.push(begin.elapsed());
    }
    house.close().await?;
    Ok(median(taken))
}

/// Each caller makes one call after the other, until everything is recorded.
async fn sixty_four_callers() -> Result<f64> {
    const CALLERS: usize = 64;
    const EACH: usize = 500;
    let folder = tempfile::tempdir()?;
    let house = Arc::new(house_in(folder.path()).await?);
    house.registry.register(typed(Nothing))?;
    let begin = Instant::now();
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            let house = Arc::clone(&house);
            tokio::spawn(async move {
                for _ in 0..EACH {
                    let call = CallRequest::new(house.caller.clone(), "nothing", json!({}));
                    ensure!(matches!(house.pipeline.call(call).await.end, End::Success { .. }), "a read failed");
                }
                anyhow::Ok(())
            })
        })
        .collect();
    for caller in callers {
        caller.await??;
    }
    house.close().await?;
    Ok((CALLERS * EACH) as f64 / begin.elapsed().as_secs_f64())
}

/// The same file read with and without the cache.
async fn reads_anew_and_again() -> Result<(Duration, Duration)> {
    let folder = tempfile::tempdir()?;
    let house = house_in(folder.path()).await?;
    fs::write(folder.path().join("work/long.txt"), "some text that fills a line\n".repeat(2000))?;
    let (mut anew, mut again) = (Vec::new(), Vec::new());
    for lap in 0..LAPS {
        let mut call = CallRequest::new(house.caller.clone(), "read_file", json!({"path": "long.txt"}));
        call.fresh = lap % 2 == 0;
        let begin = Instant::now();
        let outcome = house.pipeline.call(call).await;
        ensure!(matches!(outcome.end, End::Success { .. }), "{outcome:?}");
        if outcome.cached { again.push(begin.elapsed()) } else { anew.push(begin.elapsed()) }
    }
    house.close().await?;
    Ok((median(anew), median(again)))
}

async fn edits(place: &Path) -> Result<Duration> {
    let folder = tempfile::tempdir_in(place)?;
    let house = house_in(folder.path()).await?;
    let taken = tokio::spawn(async move {
        let edit = |lap: usize| {
            let (old, new) = (format!("line {lap}"), format!("line {}", lap + 1));
            ("edit_file", json!({"path": "a.txt", "old": old, "new": new}))
        };
        let taken = laps(&house, edit).await;
        let _ = house.close().await;
        taken
    });
    Ok(quiet_median(&taken.await??))
}

/// One folder, two files and a rename: what an edit needs on the disk, made with nothing around it.
pub(crate) fn files_by_hand(place: &Path) -> Result<Duration> {
    let folder = tempfile::tempdir_in(place)?;
    let mut taken = Vec::new();
    for lap in 0..500 {
        let begin = Instant::now();
        let call = folder.path().join(lap.to_string());
        fs::create_dir(&call)?;
        for name in ["slot", "course"] {
            fs::write(call.join(name), "some text\n")?;
        }
        fs::rename(call.join("slot"), folder.path().join("a.txt"))?;
        taken.push(begin.elapsed());
    }
    Ok(quiet_median(&taken))
}

/// What any answer from another thread takes here; SQLite's connection lives on one.
fn round_trips() -> Result<Vec<Duration>> {
    let (ask, asked) = mpsc::channel();
    let (answer, answered) = mpsc::channel();
    let other = std::thread::spawn(move || asked.iter().try_for_each(|()| answer.send(())));
    let mut taken = Vec::new();
    for _ in 0..2000 {
        let begin = Instant::now();
        ask.send(())?;
        answered.recv()?;
        taken.push(begin.elapsed());
    }
    drop(ask);
    let _ = other.join();
    Ok(taken)
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
