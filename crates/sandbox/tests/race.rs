//! Commits against somebody who keeps editing the same files: none of their edits may be lost.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that cannot go on fails")]

mod support;

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use haft_sandbox::changes::{ChangeDirection, ChangesError, Expected, Selection};
use support::World;

const ROUNDS: usize = 200;
const FILES: usize = 4;

#[test]
fn no_edit_is_ever_lost() {
    let world = World::new();
    for file in 0..FILES {
        world.file(&format!("f{file}"), "start\n");
    }
    let done = AtomicBool::new(false);
    let [begun, latest]: [Vec<AtomicUsize>; 2] =
        std::array::from_fn(|_| (0..FILES).map(|_| AtomicUsize::new(0)).collect());
    let (mut committed, mut conflicts) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| edit(&world, &done, (&begun, &latest)));
        let _editing = UntilDropped(&done);
        for round in 0..ROUNDS {
            // An edit that was there before a plan may be replaced by it; later ones may not.
            let before = numbers(&latest);
            let under_way = numbers(&begun);
            let mut draft = world.draft(&format!("round{round}"));
            for file in 0..FILES {
                let content = format!("commit {round}\n");
                draft.write(&world.place(&format!("f{file}")), content.as_bytes(), Expected::Anything).unwrap();
            }
            match draft.seal().unwrap().turn(ChangeDirection::Commit, Selection::All) {
                Ok(_) => committed += 1,
                Err(ChangesError::Conflict { .. }) => {
                    conflicts += 1;
                    let ours = format!("commit {round}\n");
                    assert!((0..FILES).all(|file| world.read(&format!("f{file}")) != ours), "half a commit");
                }
                Err(error) => panic!("{error}"),
            }
            check_edits(&world, round, (&before, &under_way), &latest);
        }
    });
    println!("{committed} commits, {conflicts} conflicts");
    assert_eq!(committed + conflicts, ROUNDS);
}

/// Lets the other thread end, also when this one fails.
struct UntilDropped<'a>(&'a AtomicBool);

impl Drop for UntilDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn numbers(edits: &[AtomicUsize]) -> Vec<usize> {
    edits.iter().map(|edit| edit.load(Ordering::SeqCst)).collect()
}

/// Replaces one file after the other, as editors do: a new file renamed over the old one.
fn edit(world: &World, done: &AtomicBool, (begun, latest): (&[AtomicUsize], &[AtomicUsize])) {
    let mut number = 0;
    while !done.load(Ordering::SeqCst) {
        let file = number % FILES;
        number += 1;
        let fresh = world.data.join("editing");
        fs::write(&fresh, format!("edit {number}\n")).unwrap();
        begun[file].store(number, Ordering::SeqCst);
        fs::rename(&fresh, world.path(&format!("f{file}"))).unwrap();
        latest[file].store(number, Ordering::SeqCst);
        for _ in 0..(number % 7) * 40 {
            std::thread::yield_now();
        }
    }
}

/// Every edit that ended before now must be at its path, replaced by a later one, or kept in a slot by a commit that
/// was planned after it.
fn check_edits(world: &World, round: usize, (before, under_way): (&[usize], &[usize]), latest: &[AtomicUsize]) {
    for file in 0..FILES {
        let edited = latest[file].load(Ordering::SeqCst);
        let now = world.read(&format!("f{file}"));
        let found: Option<usize> = now.strip_prefix("edit ").and_then(|rest| rest.trim().parse().ok());
        let kept = match found {
            Some(number) => number >= edited,
            // A commit that was planned when the edit was already there has put it into its slot.
            None if edited == before[file] || is_kept(world, round, edited) => true,
            // A rename is seen before it has returned: one that was under way may be in the slot of an earlier commit.
            None => edited == under_way[file] && (0..round).any(|earlier| is_kept(world, earlier, edited)),
        };
        assert!(kept, "edit {edited} of f{file} is lost, round {round}: {now}");
    }
}

fn is_kept(world: &World, round: usize, edited: usize) -> bool {
    let slots: PathBuf = world.dir(&format!("round{round}"));
    let wanted = format!("edit {edited}\n");
    fs::read_dir(slots).unwrap().any(|slot| fs::read_to_string(slot.unwrap().path()).is_ok_and(|text| text == wanted))
}
