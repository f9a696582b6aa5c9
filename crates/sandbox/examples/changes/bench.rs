//! How long a small edit, and the deletion, move and copy of a folder take.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft_sandbox::Root;
use haft_sandbox::changes::{ChangeDirection, CommitDurability, Draft, Expected, Folders, Selection};

const EDITS: usize = 2000;
const DELETES: usize = 15;
const FILES: usize = 1000;

/// Prints the medians for a workspace and data in `folder`.
pub(crate) fn run(folder: &Path) -> Result<(), Box<dyn Error>> {
    let home = tempfile::tempdir_in(folder)?;
    let workspace = home.path().join("workspace");
    fs::create_dir(&workspace)?;
    let root = Arc::new(Root::open(&workspace, &[])?);
    bare(home.path())?;
    edits(&root, home.path(), CommitDurability::Process, EDITS)?;
    edits(&root, home.path(), CommitDurability::Disk, EDITS / 20)?;
    deletes(&root, home.path())?;
    moves_and_copies(&root, home.path())
}

fn moves_and_copies(root: &Arc<Root>, home: &Path) -> Result<(), Box<dyn Error>> {
    let (from, to) = (root.place("many")?, root.place("other")?);
    fill(&root.path().join("many"))?;
    for what in ["move", "copy"] {
        let (mut plans, mut turns) = (Vec::new(), Vec::new());
        for number in 0..DELETES {
            let started = Instant::now();
            let mut draft = Draft::new(root, &home.join(format!("data/changes/{what}{number}")))?;
            if what == "move" {
                draft.rename(&from, &to, Expected::Nothing)?;
            } else {
                draft.copy(&from, &to, Folders::Whole, Expected::Nothing)?;
            }
            let mut changes = draft.seal()?;
            plans.push(started.elapsed());
            let planned = Instant::now();
            changes.turn(ChangeDirection::Commit, Selection::All)?;
            turns.push(planned.elapsed());
            changes.turn(ChangeDirection::Undo, Selection::All)?;
        }
        println!("{what} of {FILES} files: p50 plan {:?}, commit {:?}", median(&mut plans), median(&mut turns));
    }
    Ok(())
}

fn edits(root: &Arc<Root>, home: &Path, sync: CommitDurability, count: usize) -> Result<(), Box<dyn Error>> {
    let text = "a line of text like any other\n".repeat(40);
    fs::create_dir_all(root.path().join("src"))?;
    fs::write(root.path().join("src/small.rs"), &text)?;
    let place = root.place("src/small.rs")?;
    let (mut plans, mut turns, mut lives) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..count {
        let content = format!("{text}edit {number}\n");
        let dir = home.join(format!("data/changes/{sync:?}{number}"));
        let started = Instant::now();
        let mut draft = Draft::new(root, &dir)?.surviving(sync);
        draft.write(&place, content.as_bytes(), Expected::Anything)?;
        let mut changes = draft.seal()?;
        let planned = started.elapsed();
        changes.turn(ChangeDirection::Commit, Selection::All)?;
        let life = started.elapsed();
        plans.push(planned);
        turns.push(life - planned);
        lives.push(life);
    }
    let (plan, turn, life) = (median(&mut plans), median(&mut turns), median(&mut lives));
    println!("small edit, {sync:?}: p50 {life:?} (plan {plan:?}, commit {turn:?}), {count} edits");
    Ok(())
}

/// The least that any such life costs on this filesystem: two folders, three files, three renames.
fn bare(home: &Path) -> Result<(), Box<dyn Error>> {
    let text = "a line of text like any other\n".repeat(40);
    let mut times = Vec::new();
    for number in 0..EDITS {
        let dir = home.join(format!("bare{number}"));
        let started = Instant::now();
        fs::create_dir(&dir)?;
        fs::create_dir(dir.join("slots"))?;
        for name in ["slots/1", "plan", "state"] {
            fs::write(dir.join(name), &text)?;
            fs::rename(dir.join(name), dir.join("renamed").with_extension(name.trim_start_matches("slots/")))?;
        }
        times.push(started.elapsed());
    }
    println!("two folders, three files, three renames alone: p50 {:?}", median(&mut times));
    Ok(())
}

fn deletes(root: &Arc<Root>, home: &Path) -> Result<(), Box<dyn Error>> {
    let (mut ours, mut commits, mut plain) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..DELETES {
        fill(&root.path().join("many"))?;
        let started = Instant::now();
        let mut draft = Draft::new(root, &home.join(format!("data/changes/delete{number}")))?;
        draft.delete(&root.place("many")?, true)?;
        let mut changes = draft.seal()?;
        let planned = started.elapsed();
        changes.turn(ChangeDirection::Commit, Selection::All)?;
        ours.push(started.elapsed());
        commits.push(started.elapsed() - planned);
        fill(&root.path().join("many"))?;
        let started = Instant::now();
        fs::remove_dir_all(root.path().join("many"))?;
        plain.push(started.elapsed());
    }
    let (ours, commit, plain) = (median(&mut ours), median(&mut commits), median(&mut plain));
    println!("delete of {FILES} files: p50 {ours:?} (commit {commit:?}); remove_dir_all {plain:?}");
    Ok(())
}

fn fill(folder: &Path) -> Result<(), Box<dyn Error>> {
    for number in 0..FILES {
        let within = folder.join(format!("d{}", number % 10));
        fs::create_dir_all(&within)?;
        fs::write(within.join(format!("file{number}")), "some text\n")?;
    }
    Ok(())
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
