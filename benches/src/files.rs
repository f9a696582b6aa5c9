//! Deleting, copying and moving a thousand small files, recorded and undoable, beside `rm -rf`, `cp -a` and `mv`.
#![expect(clippy::disallowed_methods, reason = "a benchmark starts the programs that it measures")]

use std::{
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use haft::house::House;
use haft_runtime::{AutoApprove, CallRequest, End};
use serde_json::{Value, json};

use crate::{
    Measured,
    line::{files_by_hand, house_in},
    median,
};

const FILES: usize = 1000;
const LAPS: usize = 15;

/// One tool and its peer, which both find the folder `many` and may leave `other`.
struct FileComparison {
    what: &'static str,
    tool: &'static str,
    input: Value,
    peer: &'static [&'static str],
}

/// Each tool beside its peer, in turns so that a busy moment hits both.
pub(crate) async fn measure() -> Result<Vec<Measured>> {
    let races = [
        FileComparison {
            what: "delete_file of 1000 files",
            tool: "delete_file",
            input: json!({"path": "many", "recursive": true}),
            peer: &["rm", "-rf", "many"],
        },
        FileComparison {
            what: "copy_file of 1000 files",
            tool: "copy_file",
            input: json!({"source": "many", "dest": "other", "recursive": true}),
            peer: &["cp", "-a", "many", "other"],
        },
        FileComparison {
            what: "move_file of 1000 files",
            tool: "move_file",
            input: json!({"from": "many", "to": "other"}),
            peer: &["mv", "many", "other"],
        },
    ];
    // What any call keeps on the disk so that it can be undone, made with nothing around it.
    let kept = files_by_hand(&std::env::temp_dir())?;
    let mut table = Vec::new();
    for race in races {
        let what = race.what;
        // From a task of the runtime, as a server's calls come.
        let (ours, peer) = tokio::spawn(run(race)).await??;
        let found = format!("p50 {ours:.1?} (the peer {peer:.1?}, its own files {kept:.1?})");
        table.push(Measured::new(what, found, "≤ 2 × the peer + files", ours <= peer * 2 + kept));
    }
    Ok(table)
}

async fn run(race: FileComparison) -> Result<(Duration, Duration)> {
    let folder = tempfile::tempdir()?;
    let house = house_in(folder.path()).await?;
    let work = folder.path().join("work");
    let (mut ours, mut peers) = (Vec::new(), Vec::new());
    for _ in 0..LAPS {
        fill(&work)?;
        ours.push(call(&house, &race).await?);
        fill(&work)?;
        let begin = Instant::now();
        let ended = Command::new(race.peer[0]).args(&race.peer[1..]).current_dir(&work).status()?;
        peers.push(begin.elapsed());
        ensure!(ended.success(), "{} failed", race.peer[0]);
    }
    house.close().await?;
    Ok((median(ours), median(peers)))
}

async fn call(house: &House, race: &FileComparison) -> Result<Duration> {
    let mut request = CallRequest::new(house.caller.clone(), race.tool, race.input.clone());
    request.auto_approve = AutoApprove::Everything;
    let begin = Instant::now();
    let outcome = house.pipeline.call(request).await;
    let took = begin.elapsed();
    ensure!(matches!(outcome.end, End::Success { .. }), "{outcome:?}");
    Ok(took)
}

/// A thousand small files in ten folders, and nothing that an earlier lap left.
fn fill(work: &Path) -> Result<()> {
    for name in ["many", "other"] {
        if work.join(name).exists() {
            fs::remove_dir_all(work.join(name))?;
        }
    }
    for number in 0..FILES {
        let within = work.join(format!("many/{}", number % 10));
        fs::create_dir_all(&within)?;
        fs::write(within.join(format!("file{number}")), format!("some text of file {number}\n"))?;
    }
    Ok(())
}
