//! New files have what the umask leaves. The umask is the whole process's, so this test is alone in it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use rustix::fs::Mode;
use support::{World, commit, mode, set_mode};

#[test]
fn the_umask_counts_for_new_files_only() {
    let world = World::new();
    for mask in [0o077, 0o027, 0o002, 0o000] {
        rustix::process::umask(Mode::from_raw_mode(mask));
        let (new, old) = (format!("new{mask:o}"), format!("old{mask:o}"));
        world.file(&old, "old\n");
        set_mode(&world.path(&old), 0o664);
        for name in [&new, &old] {
            commit(&mut world.written(name, name, "new\n"));
        }
        assert_eq!((mode(&world.path(&new)), mode(&world.path(&old))), (0o666 & !mask, 0o664));
        assert_eq!(mode(&world.dir(&new)), 0o700 & !mask);
        assert_eq!(mode(&world.dir(&new).join("log.jsonl")), 0o600 & !mask);
    }
}
