//! Runs aside, in process: one change in small and large trees beside an overlay by hand, and a thousand committed.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use haft::{
    house::{self, House},
    settings::Settings,
};
use haft_runtime::{CallId, CallRequest, End, Turn};
use haft_store::{Durability, Store};
use serde_json::json;

use super::{ratio, timed};
use crate::{Measured, program::program};

const LAPS: usize = 30;
/// How many files the trees have.
const TREES: [usize; 2] = [1_000, 50_000];
/// How many files one command changes, and how often that is measured.
const CHANGED: usize = 1_000;
const COMMITS: usize = 7;
/// What a person would write who wants the same: namespaces, an overlay, a shell, a look at what it left.
const BY_HAND: &str = "rm -rf upper work && mkdir upper work && unshare $0 --fork bash -c 'mount -t overlay overlay \
    -o lowerdir=work0,upperdir=upper,workdir=work work0 && cd work0 && bash -c \"echo more >> file0\"' && \
    find upper -printf '%p %y %s %m %T@\\n'";

/// The best of many laps of each.
pub(super) async fn measure() -> Result<Vec<Measured>> {
    let mut best = [(Duration::MAX, Duration::MAX); 2];
    for (best, files) in best.iter_mut().zip(TREES) {
        *best = one_change(files).await?;
    }
    let [(small, by_hand), (large, _)] = best;
    let growth = ratio(large, small);
    let (commit, copy) = a_thousand().await?;
    Ok(vec![
        Measured::new(
            "shell_exec of one change, with its list",
            format!("{small:.1?}, an overlay by hand {by_hand:.1?} ({:.2} ×)", ratio(small, by_hand)),
            "≤ 2 × by hand",
            small <= by_hand * 2,
        ),
        Measured::new(
            "the same among 50,000 files",
            format!("{large:.1?}, among 1,000 {small:.1?} ({growth:.2} ×)"),
            "≤ 1.25 ×",
            growth <= 1.25,
        ),
        Measured::new(
            "committing 1,000 changed files",
            format!("{commit:.1?}, `cp -a` {copy:.1?} ({:.2} ×)", ratio(commit, copy)),
            "≤ 2 × `cp -a`",
            commit <= copy * 2,
        ),
    ])
}

async fn one_change(files: usize) -> Result<(Duration, Duration)> {
    let folder = tempfile::tempdir()?;
    let house = house_among(folder.path(), files).await?;
    let is_root = fs::metadata("/proc/self")?.uid() == 0;
    let rights = if is_root { "-mp" } else { "-Urmp" };
    let (mut ours, mut by_hand) = (Duration::MAX, Duration::MAX);
    for _ in 0..LAPS {
        let begin = Instant::now();
        let call = waiting(&house, "echo more >> file0").await?;
        ours = ours.min(begin.elapsed());
        house.workbench.discard(&house.scope, &call).await?;
        let mut peer = Command::new("bash");
        by_hand = by_hand.min(timed(peer.args(["-c", BY_HAND, rights]).current_dir(folder.path()))?);
    }
    house.close().await?;
    Ok((ours, by_hand))
}

/// From the yes to the end of the commit, beside a copy of the same files.
async fn a_thousand() -> Result<(Duration, Duration)> {
    let folder = tempfile::tempdir()?;
    let house = house_among(folder.path(), CHANGED).await?;
    let (mut commit, mut copy) = (Duration::MAX, Duration::MAX);
    for _ in 0..COMMITS {
        let call = waiting(&house, "find . -type f | while read -r file; do echo more >> \"$file\"; done").await?;
        let begin = Instant::now();
        house.workbench.take(&house.scope, &Turn::commit(call)).await?;
        commit = commit.min(begin.elapsed());
        let mut peer = Command::new("cp");
        copy = copy.min(timed(peer.args(["-a", "work0", "copy"]).current_dir(folder.path()))?);
        fs::remove_dir_all(folder.path().join("copy"))?;
    }
    house.close().await?;
    Ok((commit, copy))
}

/// Runs a command aside and leaves it at its question.
async fn waiting(house: &House, command: &str) -> Result<CallId> {
    let request = CallRequest::new(house.caller.clone(), "shell_exec", json!({ "command": command }));
    let call = request.id.clone();
    let outcome = house.pipeline.call(request).await;
    ensure!(matches!(outcome.end, End::Pending { .. }), "`{command}` was not asked for: {outcome:?}");
    Ok(call)
}

/// A house over a tree of small files, a hundred in each folder.
async fn house_among(folder: &Path, files: usize) -> Result<House> {
    let work = folder.join("work0");
    fs::create_dir(&work)?;
    fs::write(work.join("file0"), "some text\n")?;
    for number in 1..files {
        let within = work.join(format!("{}", number / 100));
        fs::create_dir_all(&within)?;
        fs::write(within.join(format!("file{number}")), format!("some text of file {number}\n"))?;
    }
    let settings = Settings { program: program()?, ..Settings::defaults(folder.join("data")) };
    let store = Store::open(&settings.data, Durability::Normal).await?;
    house::open(settings, store, &work.canonicalize()?).await
}
