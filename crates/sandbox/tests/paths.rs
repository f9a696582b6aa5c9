//! Hostile names, links and races: nothing leads out of the workspace and nothing hangs.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that cannot go on fails")]

mod support;

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use haft_sandbox::{EntryKind, PathError, Root, is_sensitive};
use proptest::prelude::*;
use support::{World, set_mode};

fn open(world: &World, typed: &str) -> Result<String, PathError> {
    let mut text = String::new();
    world.root.open_file(&world.root.place(typed)?)?.file.read_to_string(&mut text).unwrap();
    Ok(text)
}

#[test]
fn ways_out_are_refused() {
    let world = World::new();
    world.file("a/b", "inside");
    fs::write(world.data.join("secret"), "outside").unwrap();
    let absolute = world.path("a/../a/b");
    assert_eq!(open(&world, absolute.to_str().unwrap()).unwrap(), "inside");
    assert_eq!(open(&world, "./a//x/../b").unwrap(), "inside");
    let beside = format!("{}-beside/x", world.root.path().display());
    for typed in ["..", "../x", "a/../../x", "/", "/etc/passwd", "/proc/self/environ", "a/b/../../../x", &beside] {
        assert!(matches!(open(&world, typed), Err(PathError::Outside { .. })), "{typed}");
    }
    let long = format!("a/{}", "x".repeat(300));
    let endless = "a/".repeat(3000);
    for typed in ["", "a\0b", &long, &endless] {
        assert!(matches!(open(&world, typed), Err(PathError::Malformed { .. })), "{typed}");
    }
    for typed in ["%2e%2e/x", "~/x", "$HOME", "a%00b", "..%2fx", "\u{ff0e}\u{ff0e}/x"] {
        assert!(matches!(open(&world, typed), Err(PathError::NotFound { .. })), "{typed}");
    }
}

#[test]
fn links_may_stay_inside_but_not_leave() {
    let world = World::new();
    world.file("real/file", "inside");
    symlink("real/file", world.path("in")).unwrap();
    symlink("../real", world.path("real/up")).unwrap();
    symlink(&world.data, world.path("out")).unwrap();
    symlink("../../../../../../etc/passwd", world.path("far")).unwrap();
    symlink("/proc/self/root/etc/passwd", world.path("magic")).unwrap();
    symlink("loop2", world.path("loop1")).unwrap();
    symlink("loop1", world.path("loop2")).unwrap();
    let opened = world.root.open_file(&world.place("in")).unwrap();
    assert_eq!(opened.place.to_string(), "real/file");
    assert_eq!(open(&world, "real/up/up/file").unwrap(), "inside");
    for typed in ["out/x", "out", "far", "magic"] {
        assert!(matches!(open(&world, typed), Err(PathError::Outside { .. })), "{typed}");
    }
    assert!(matches!(open(&world, "loop1"), Err(PathError::TooManyLinks { .. })));
    assert!(matches!(world.root.open_folder(&world.place("out")), Err(PathError::Outside { .. })));
    assert_eq!(world.root.meta(&world.place("out")).unwrap().unwrap().kind, EntryKind::Link);
    assert_eq!(world.root.resolve(&world.place("real/up/new/x")).unwrap().to_string(), "real/new/x");
}

#[test]
fn nothing_but_files_is_opened_and_nothing_hangs() {
    let world = World::new();
    let fifo = world.path("fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    let _listener = UnixListener::bind(world.path("socket")).unwrap();
    world.file("folder/x", "x");
    assert!(matches!(open(&world, "fifo"), Err(PathError::NotRegular { what: "a FIFO", .. })));
    assert!(matches!(open(&world, "socket"), Err(PathError::NotRegular { .. })));
    assert!(matches!(open(&world, "folder"), Err(PathError::IsDirectory { .. })));
    assert!(matches!(open(&world, "folder/x/y"), Err(PathError::NotDirectory { .. })));
    let devices = Root::open(Path::new("/dev"), &[]).unwrap();
    let null = devices.open_file(&devices.place("null").unwrap());
    assert!(matches!(null, Err(PathError::NotRegular { what: "a device", .. })));
    let kinds = |name: &str| world.root.meta(&world.place(name)).unwrap().map(|meta| meta.kind);
    assert_eq!((kinds("fifo"), kinds("socket")), (Some(EntryKind::Fifo), Some(EntryKind::Socket)));
    assert_eq!(kinds("nothing/here"), None);
}

#[test]
fn names_that_hold_secrets_are_refused_however_they_are_spelled() {
    let world = World::new();
    for name in [".env", "conf/.ENV.production", ".Ssh/config", "id_rsa.pub", "x.PEM", "server.key", ".aws/credentials"]
    {
        world.file(name, "secret");
        let error = open(&world, name).unwrap_err();
        assert_eq!(error.to_string(), format!("access to sensitive path `{name}` denied"));
    }
    for name in [".env.example", ".ENV.Template", "environment", "keys.md", ".envrc"] {
        world.file(name, "public");
        assert_eq!(open(&world, name).unwrap(), "public");
    }
    symlink(".env", world.path("innocent")).unwrap();
    symlink(".Ssh", world.path("folder")).unwrap();
    fs::hard_link(world.path(".env"), world.path("twin")).unwrap();
    fs::hard_link(world.path(".env"), world.path("conf/twin")).unwrap();
    for name in ["innocent", "folder/config", "twin", "conf/twin"] {
        assert!(matches!(open(&world, name), Err(PathError::Sensitive { .. })), "{name}");
    }
    let mut names = Vec::new();
    world.root.open_folder(&world.place(".")).unwrap().read_on(|name, _| names.push(name.to_owned())).unwrap();
    assert!(names.iter().any(|name| name == ".env"));
    assert!(matches!(world.root.open_folder(&world.place("folder")), Err(PathError::Sensitive { .. })));
    // `é` as one character and as two is the same name.
    assert!(is_sensitive(&world.place("e\u{301}.pem")) && is_sensitive(&world.place("\u{e9}.KEY")));
}

#[test]
fn protected_folders_are_out_of_reach() {
    let world = World::new();
    world.file("state/haft/store", "ours");
    symlink("state/haft", world.path("way")).unwrap();
    let root = Root::open(world.root.path(), &[world.path("state/haft")]).unwrap();
    for typed in ["state/haft/store", "way/store"] {
        let opened = root.open_file(&root.place(typed).unwrap());
        assert!(matches!(opened, Err(PathError::Sensitive { .. })), "{typed}");
    }
    assert!(matches!(root.open_folder(&root.place("way").unwrap()), Err(PathError::Sensitive { .. })));
    assert!(matches!(root.resolve(&root.place("way/new").unwrap()), Err(PathError::Sensitive { .. })));
    fs::rename(world.path("state/haft"), world.path("renamed")).unwrap();
    assert!(matches!(root.open_file(&root.place("renamed/store").unwrap()), Err(PathError::Sensitive { .. })));
}

#[test]
fn a_missing_name_brings_similar_ones() {
    let world = World::new();
    world.file("src/main.rs", "x");
    world.file("src/other.rs", "x");
    match open(&world, "src/mian.rs") {
        Err(PathError::NotFound { nearest, .. }) => assert_eq!(nearest, ["src/main.rs"]),
        other => panic!("{other:?}"),
    }
    assert!(open(&world, "src/mian.rs").unwrap_err().to_string().ends_with("similar: `src/main.rs`"));
}

#[test]
fn a_link_swapped_in_never_leads_out() {
    let world = World::new();
    world.file("inner/file", "inside");
    fs::create_dir(world.data.join("inner")).unwrap();
    fs::write(world.data.join("inner/file"), "outside").unwrap();
    symlink(world.data.join("inner"), world.path("link")).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let exchange = rustix::fs::RenameFlags::EXCHANGE;
                let (one, other) = (world.path("inner"), world.path("link"));
                rustix::fs::renameat_with(rustix::fs::CWD, one, rustix::fs::CWD, other, exchange).unwrap();
            }
        });
        for _ in 0..2000 {
            match open(&world, "inner/file") {
                Ok(text) => assert_eq!(text, "inside"),
                Err(PathError::Outside { .. } | PathError::TooManyLinks { .. } | PathError::Io { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn what_may_not_be_read_is_denied() {
    if rustix::process::geteuid().is_root() {
        return;
    }
    let world = World::new();
    world.file("shut", "x");
    set_mode(&world.path("shut"), 0);
    assert!(matches!(open(&world, "shut"), Err(PathError::Denied { .. })));
}

#[test]
fn what_is_shown_can_be_given_back() {
    let world = World::new();
    let long = "\n".repeat(255);
    for name in ["a%20b", "nl\nname", "d\nir/in%41side", "\u{202e}x", "100%.txt", &long] {
        world.file(name, name);
        let shown = world.root.place_called(name).unwrap().to_string();
        for typed in [name.to_owned(), shown.clone(), format!("./{shown}"), world.path(&shown).display().to_string()] {
            assert_eq!(open(&world, &typed).unwrap(), name, "{typed}");
        }
    }
    let odd = OsStr::from_bytes(b"\xff\x01");
    fs::write(world.root.path().join(odd), "odd").unwrap();
    assert_eq!(open(&world, "%FF%01").unwrap(), "odd");
    assert_eq!(world.place("d%0Air/new%0A").as_path(), Path::new("d\nir/new%0A"), "what is new is called as typed");
    // Whatever has that very name comes first.
    world.file("nl%0Aname", "literal");
    world.file("d%0Air/other", "x");
    assert_eq!(open(&world, "nl%0Aname").unwrap(), "literal");
    assert_eq!(open(&world, "d%0Air/in%2541side").unwrap(), "d\nir/in%41side");
    assert_eq!(world.place("d%0Air/new").as_path(), Path::new("d%0Air/new"));
    for typed in ["100%25.txt", "%41", "a%2520c", "%0a"] {
        assert_eq!(world.place(typed).as_path(), Path::new(typed), "nothing else is meant by it");
    }
}

#[test]
fn what_is_shown_leads_nowhere_that_a_name_does_not() {
    let world = World::new();
    world.file("folder/file", "x");
    world.file(".env", "x");
    world.file("a.key\n/file", "x");
    world.file("a\n.key", "x");
    symlink(&world.data, world.path("out\n")).unwrap();
    symlink(".env", world.path("in\n")).unwrap();
    fs::write(world.data.join("file"), "outside").unwrap();
    for typed in
        ["%2e%2e%2f", "%2E%2E/x", "%2E%2E%2Fetc", "folder%2Ffile", "%66older/file", "a%00b", "%2Eenv", "%2eenv"]
    {
        assert_eq!(world.place(typed).as_path(), Path::new(typed), "{typed}");
        assert!(matches!(open(&world, typed), Err(PathError::NotFound { .. })), "{typed}");
    }
    assert!(matches!(world.root.place("a\0b"), Err(PathError::Malformed { .. })));
    assert!(matches!(world.root.place("x%0A/../../y"), Err(PathError::Outside { .. })));
    assert!(matches!(open(&world, "out%0A/file"), Err(PathError::Outside { .. })));
    assert!(matches!(open(&world, "in%0A"), Err(PathError::Sensitive { .. })));
    assert!(matches!(open(&world, "a%0A.key"), Err(PathError::Sensitive { .. })));
    assert!(matches!(world.root.resolve(&world.place("out%0A/new")), Err(PathError::Outside { .. })));
    for long in ["%0A".repeat(256), "%41".repeat(86)] {
        assert!(matches!(world.root.place(&long), Err(PathError::Malformed { .. })), "{long}");
    }
    assert!(open(&world, &"%0A".repeat(86)).is_err());
}

proptest! {
    #[test]
    fn any_name_is_found_by_what_it_is_shown_as(name in "[ab%0-9A-F\\n\u{1}\u{202e}é]{1,8}") {
        let world = World::new();
        fs::write(world.root.path().join(&name), "x").unwrap();
        let shown = world.root.place_called(&name).unwrap().to_string();
        let place = world.place(&shown);
        prop_assert_eq!(place.as_path(), Path::new(&name));
    }

    #[test]
    fn a_place_never_escapes_and_is_normal(typed in "([a-c.%]{0,3}/{0,2}){0,8}") {
        let world = World::new();
        if let Ok(place) = world.root.place(&typed) {
            let text = place.as_path().to_str().unwrap();
            prop_assert!(!text.starts_with('/') && !text.split('/').any(|part| part == ".." || part == "."));
            if !place.is_root() {
                prop_assert_eq!(world.root.place(text).unwrap(), place.clone());
            }
            let inside = world.root.path().join(place.as_path());
            prop_assert_eq!(world.root.place(inside.to_str().unwrap()).unwrap(), place);
        }
    }

    #[test]
    fn a_shown_place_is_unambiguous(one in "[a%0-9\\n\u{202e}é]{1,6}", other in "[a%0-9\\n\u{202e}é]{1,6}") {
        let world = World::new();
        let (one_place, other_place) = (world.place(&one), world.place(&other));
        prop_assert_eq!(one_place == other_place, one_place.to_string() == other_place.to_string());
        prop_assert!(!one_place.to_string().contains('\n'));
    }
}

#[test]
fn what_the_kernel_makes_up_is_not_near() {
    let world = World::new();
    assert!(world.root.is_near(), "the tests need a disk or memory");
    assert!(!Root::open(Path::new("/proc"), &[]).unwrap().is_near());
}
