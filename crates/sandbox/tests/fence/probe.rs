//! Finding out which fences can be built here.

use std::fs;

use haft_sandbox::fence::{Fence, Rung};

use crate::world::{Who, World};

#[test]
fn a_probe_is_remembered_until_something_changes() {
    let world = World::new(Who::all()[0]);
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("fences.json");
    let probe = world.fence().probe(&cache);
    assert_eq!(probe.rung, Some(Rung::Namespaces), "{probe:?}");
    assert_eq!((&probe.namespaces, &probe.landlock), (&Ok(()), &Ok(())));
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["fences.json"], "nothing else is left");
    // What is remembered is believed, so another content shows that it was not found out again.
    let remembered = fs::read_to_string(&cache).unwrap();
    fs::write(&cache, remembered.replace("\"rung\":\"namespaces\"", "\"rung\":\"landlock\"")).unwrap();
    assert_eq!(world.fence().probe(&cache).rung, Some(Rung::Landlock));
    let times = rustix::fs::Timestamps {
        last_access: rustix::fs::Timespec { tv_sec: 0, tv_nsec: 0 },
        last_modification: rustix::fs::Timespec { tv_sec: 0, tv_nsec: 0 },
    };
    rustix::fs::utimensat(rustix::fs::CWD, world.helper(), &times, rustix::fs::AtFlags::empty()).unwrap();
    assert_eq!(world.fence().probe(&cache).rung, Some(Rung::Namespaces));
}

#[test]
fn what_is_missing_is_told_and_not_remembered() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("fences.json");
    for program in ["/nowhere/at/all", "/bin/false"] {
        let probe = Fence::new(program).probe(&cache);
        assert_eq!(probe.rung, None);
        let missing = probe.namespaces.unwrap_err();
        assert!(!missing.step.is_empty() && !missing.why.is_empty() && !missing.fix.is_empty(), "{missing:?}");
        assert!(!cache.exists());
    }
    let nowhere = Fence::new("/bin/false").probe(&folder.path().join("absent\0/x"));
    assert_eq!(nowhere.rung, None);
}
