//! Made-up scripts leave the same over a workspace as on a plain copy, whatever they do.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::overlay::{Run, on_a_copy};
use crate::support::{World, commit, picture, undo};

/// Paths that clash with one another in every way.
const PATHS: &[&str] = &["a", "b", "d", "d/a", "d/e", "d/e/a", "d/e/b", "f", "f/g", "f/g/h", "n", "n/m"];

fn step() -> impl Strategy<Value = String> {
    let commands = &[
        "echo @ > X",
        "echo more >> X",
        "rm -f X",
        "rm -rf X",
        "rm -rf X; mkdir X",
        "mkdir -p X",
        "mv X Y",
        "mv -T X Y",
        "cp -a X Y",
        "ln X Y",
        "ln -sfn Y X",
        "chmod 700 X",
        "chmod 555 X",
        "chmod 755 X",
        "touch X",
        "rm -rf X; mv Y X",
    ];
    // Into a read-only folder nobody but root can commit.
    let is_root = rustix::process::geteuid().is_root();
    let commands: Vec<&str> = commands.iter().copied().filter(|command| is_root || !command.contains("555")).collect();
    (select(commands), select(PATHS), select(PATHS), 0..100_u32).prop_map(|(command, one, other, number)| {
        // What fails here fails there as well.
        let command = command.replace('@', &number.to_string()).replace('X', one).replace('Y', other);
        format!("{{ {command}; }} 2>/dev/null || :\n")
    })
}

fn furnished() -> World {
    let world = World::in_memory();
    for name in ["a", "b", "d/a", "d/e/a", "d/e/b", "f/g/h"] {
        world.file(name, &format!("this is {name}\n"));
    }
    world
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_script_over_a_workspace_ends_as_on_a_copy(steps in vec(step(), 1..12)) {
        let world = furnished();
        let script = steps.concat();
        let before = world.picture();
        let after = picture(on_a_copy(&world, &script).path());
        let run = Run::new(&world, "made-up", &script);
        let (mut changes, taken) = run.take();
        prop_assert_eq!(taken.left_out, vec![]);
        prop_assert_eq!(&world.picture(), &before);
        if changes.list().is_empty() {
            prop_assert_eq!(&before, &after);
            return Ok(());
        }
        for _ in 0..2 {
            commit(&mut changes);
            prop_assert_eq!(&world.picture(), &after);
            undo(&mut changes);
            prop_assert_eq!(&world.picture(), &before);
        }
    }
}
