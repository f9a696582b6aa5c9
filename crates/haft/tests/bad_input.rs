//! Everything that can be wrong from outside: it is refused in clear words, and nothing breaks or hangs.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that cannot go on fails")]
#![expect(clippy::disallowed_methods, reason = "mounting a tiny disk needs `mount`")]

mod support;

use std::{
    ffi::{OsStr, OsString},
    fs,
    io::{self, Write},
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        fs::{PermissionsExt, chown, symlink},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use rustix::fs::{CWD, FileType, Mode, RenameFlags, makedev, mknodat, renameat_with};
use serde_json::{Value, json};
use support::{ALL, Fixture, Ran, Running, text};

/// An ordinary user that exists nowhere.
const NOBODY: u32 = 65534;

/// Asserts a refusal with one of these codes.
fn refused(fixture: &Fixture, tool: &str, input: &Value, codes: &[&str]) -> Value {
    let (code, outcome) = fixture.call(tool, input, ALL);
    let found = outcome["error"]["code"].as_str().unwrap_or_default();
    let shown = outcome.to_string().chars().take(600).collect::<String>();
    assert!(code == 1 && codes.contains(&found), "{tool}: {code} {shown}, expected one of {codes:?}");
    outcome
}

/// Asserts that the program ended with one clear sentence for people.
fn one_sentence(ran: &Ran, words: &[&str]) {
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stdout.is_empty() && ran.stderr.lines().count() == 1, "more than a sentence: {ran:?}");
    assert!(!ran.stderr.contains(" { ") && !ran.stderr.contains("(code: "), "not for people: {ran:?}");
    for word in words {
        assert!(ran.stderr.contains(word), "`{word}` is missing: {ran:?}");
    }
}

#[test]
fn malformed_json_is_told() {
    let fixture = Fixture::new();
    for bad in ["{bad", "{", "", "{\"path\":}", "nul", "{\"path\":\"a\"} x", "\u{feff}{}", "{\"path\":\"\\ud800\"}"] {
        let ran = fixture.run(&["call", "read_file", bad, "--json"]);
        assert_eq!((ran.code, &ran.json()["error"]["code"]), (Some(1), &json!("INVALID_ARGS")), "{bad:?}: {ran:?}");
    }
    for wrong in ["5", "null", "\"text\"", "[]", "true"] {
        let ran = fixture.run(&["call", "read_file", wrong, "--json"]);
        assert_eq!((ran.code, &ran.json()["error"]["code"]), (Some(1), &json!("INVALID_ARGS")), "{wrong}: {ran:?}");
        let ran = fixture.run(&["call", "read_file", wrong, "--path", "a", "--json"]);
        assert_eq!((ran.code, &ran.json()["error"]["code"]), (Some(1), &json!("INVALID_ARGS")), "{wrong}: {ran:?}");
    }
    let ran = fixture.run_with_input(&["call", "read_file", "-", "--json"], b"{\"path\":\"\xff\"}".to_vec());
    assert_eq!((ran.code, &ran.json()["error"]["code"]), (Some(1), &json!("INVALID_ARGS")), "{ran:?}");
}

#[test]
fn deep_nesting_is_refused() {
    let fixture = Fixture::new();
    for depth in [100, 500, 100_000] {
        let deep = format!("{{\"path\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        let ran = fixture.run_with_input(&["call", "read_file", "-", "--json"], deep.into_bytes());
        assert_eq!((ran.code, &ran.json()["error"]["code"]), (Some(1), &json!("INVALID_ARGS")), "{depth}");
    }
}

#[test]
fn too_large_an_input_is_refused() {
    let fixture = Fixture::new();
    let large = format!("{{\"path\":\"a\",\"content\":\"{}\"}}", "x".repeat(17 << 20));
    let ran = fixture.run_with_input(&["call", "write_file", "-", "--json"], large.clone().into_bytes());
    assert_eq!((ran.code, &ran.json()["error"]["code"]), (Some(1), &json!("TOO_LARGE")), "{ran:?}");
    fs::write(fixture.home.join("large.json"), large).unwrap();
    let file = format!("@{}", fixture.home.join("large.json").display());
    let ran = fixture.run(&["call", "write_file", &file, "--json"]);
    assert_eq!((ran.code, &ran.json()["error"]["code"]), (Some(1), &json!("TOO_LARGE")), "{ran:?}");
    let ran = fixture.run(&["call", "write_file", "@/dev/zero", "--json"]);
    assert_eq!((ran.code, &ran.json()["error"]["code"]), (Some(1), &json!("TOO_LARGE")), "{ran:?}");
    assert_eq!(fs::read_dir(&fixture.workspace).unwrap().count(), 0);
}

#[test]
fn an_endless_input_is_not_read_to_its_end() {
    let fixture = Fixture::new();
    let mut command = fixture.haft(&["call", "write_file", "-", "--json"]);
    command.stdin(Stdio::piped());
    let mut running = Running::start(command);
    let mut stdin = running.stdin();
    let writer = std::thread::spawn(move || {
        let chunk = [b'x'; 1 << 16];
        let mut fed = 0_usize;
        let most = 1 << 30;
        while fed < most && stdin.write_all(&chunk).is_ok() {
            fed += chunk.len();
        }
        fed
    });
    let ran = running.finish();
    assert_eq!((ran.code, &ran.json()["error"]["code"]), (Some(1), &json!("TOO_LARGE")), "{ran:?}");
    let fed = writer.join().unwrap();
    assert!(fed <= (16 << 20) + (2 << 20), "{fed} bytes were read");
}

#[test]
fn an_unknown_tool_names_the_nearest() {
    let fixture = Fixture::new();
    for (typed, meant) in [("read_fil", "read_file"), ("writefile", "write_file"), ("undo", "undo_call")] {
        let outcome = refused(&fixture, typed, &json!({}), &["TOOL_NOT_FOUND"]);
        assert!(text(&outcome["error"]["message"]).contains(meant), "{outcome}");
    }
    for odd in ["", "\u{1b}[2J", "../read_file", "read_file\n", &"x".repeat(5000)] {
        let ran = fixture.run(&["call", odd, "{}", "--json"]);
        assert_eq!((ran.code, &ran.json()["error"]["code"]), (Some(1), &json!("TOOL_NOT_FOUND")), "{odd:?}: {ran:?}");
        let ran = fixture.run(&["call", odd, "{}"]);
        assert!(!ran.said().contains('\u{1b}'), "{ran:?}");
    }
}

#[test]
fn wrong_types_are_all_named() {
    let fixture = Fixture::new();
    let outcome = refused(&fixture, "read_file", &json!({"path": 5, "offset": 0, "nonsense": 1}), &["INVALID_ARGS"]);
    for name in ["/path", "/offset", "nonsense"] {
        assert!(outcome["error"].to_string().contains(name), "{name}: {outcome}");
    }
    for input in [
        json!({}),
        json!({"path": null, "content": "x"}),
        json!({"path": ["a"], "content": "x"}),
        json!({"path": "a", "content": 5}),
        json!({"path": "a", "content": "x", "createDirs": "yes"}),
        json!({"path": "a", "content": "x", "encoding": "latin1"}),
        json!({"path": "a", "content": "x", "expectedHash": "short"}),
        json!({"path": "a", "content": "%%%", "encoding": "base64"}),
        json!({"path": "a", "content": "x", "PATH": "b"}),
    ] {
        refused(&fixture, "write_file", &input, &["INVALID_ARGS"]);
    }
    for odd in [json!(-1), json!(1.5), json!(1e300), json!(u64::MAX), json!("1")] {
        let input = json!({"path": "a", "offset": odd});
        let (code, outcome) = fixture.call("read_file", &input, &[]);
        assert_eq!(code, 1, "{outcome}");
    }
    let ran = fixture.run(&["call", "read_file", "--path", "a", "--offset", "many", "--json"]);
    assert_eq!((ran.code, &ran.json()["error"]["code"]), (Some(1), &json!("INVALID_ARGS")), "{ran:?}");
    for id in ["", "tc_", "../../etc", "tc_ZZ", &"t".repeat(9999)] {
        refused(&fixture, "undo_call", &json!({"callId": id}), &["INVALID_ARGS"]);
        let ran = fixture.run(&["approve", id]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
    }
    assert_eq!(fs::read_dir(&fixture.workspace).unwrap().count(), 0);
}

#[test]
fn no_path_leads_out() {
    let fixture = Fixture::new();
    fixture.put("inside/file", "inside\n");
    let secret = fixture.home.join("secret");
    fs::write(&secret, "outside\n").unwrap();
    symlink(&fixture.home, fixture.path("out")).unwrap();
    symlink("../../home/secret", fixture.path("inside/leak")).unwrap();
    let absolute = secret.to_string_lossy().into_owned();
    let odd = [
        "..",
        "../home/secret",
        "inside/../../home/secret",
        "/etc/passwd",
        &absolute,
        "out/secret",
        "inside/leak",
        "/",
        "",
        "a\0b",
        "\0",
        "./../home/secret",
        "inside/./../../home/secret",
        "~/secret",
        "/proc/self/root/etc/passwd",
    ];
    let codes = ["INVALID_PATH", "INVALID_ARGS", "PERMISSION_DENIED", "FILE_NOT_FOUND", "IS_A_DIRECTORY"];
    for path in odd {
        let outcome = refused(&fixture, "read_file", &json!({"path": path}), &codes);
        assert!(!outcome.to_string().contains("outside\\n"), "{outcome}");
        let write = json!({"path": path, "content": "mine\n", "createDirs": false});
        refused(&fixture, "write_file", &write, &codes);
        refused(&fixture, "edit_file", &json!({"path": path, "old": "outside", "new": "mine"}), &codes);
        if !["out/secret", "inside/leak"].contains(&path) {
            refused(&fixture, "delete_file", &json!({"path": path, "recursive": true}), &codes);
        }
    }
    refused(&fixture, "delete_file", &json!({"path": "out/secret"}), &codes);
    refused(&fixture, "list_directory", &json!({"path": "out"}), &codes);
    assert_eq!(fs::read_to_string(&secret).unwrap(), "outside\n");
    assert_eq!(fs::read_dir(&fixture.home).unwrap().count(), 1);
}

#[test]
fn long_paths_are_refused() {
    let fixture = Fixture::new();
    let codes = ["INVALID_PATH", "INVALID_ARGS", "FILE_NOT_FOUND"];
    let long = "x/".repeat(2500);
    for path in ["x".repeat(300), "x".repeat(5000), long, format!("{}/f", "y".repeat(256))] {
        refused(&fixture, "read_file", &json!({"path": path}), &codes);
        refused(&fixture, "write_file", &json!({"path": path, "content": "x", "createDirs": true}), &codes);
        refused(&fixture, "delete_file", &json!({"path": path}), &codes);
        refused(&fixture, "list_directory", &json!({"path": path}), &codes);
    }
    assert_eq!(fs::read_dir(&fixture.workspace).unwrap().count(), 0);
}

#[test]
fn what_is_no_file_is_never_opened() {
    let fixture = Fixture::new();
    mknodat(CWD, fixture.path("fifo"), FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(fixture.path("socket")).unwrap();
    symlink("loop2", fixture.path("loop1")).unwrap();
    symlink("loop1", fixture.path("loop2")).unwrap();
    symlink("/dev/zero", fixture.path("zero")).unwrap();
    symlink("/proc/self/fd/0", fixture.path("stdin")).unwrap();
    let mut odd = vec!["fifo", "socket", "loop1", "loop1/x", "zero", "stdin"];
    let mode = Mode::from_raw_mode(0o666);
    match mknodat(CWD, fixture.path("device"), FileType::CharacterDevice, mode, makedev(1, 5)) {
        Ok(()) => odd.push("device"),
        Err(errno) => println!("skipped: the device cannot be made here ({errno})"),
    }
    let codes = ["INVALID_PATH", "EXECUTION_ERROR", "PERMISSION_DENIED", "NOT_A_DIRECTORY"];
    for path in odd {
        refused(&fixture, "read_file", &json!({"path": path}), &codes);
        refused(&fixture, "edit_file", &json!({"path": path, "old": "a", "new": "b"}), &codes);
        refused(&fixture, "list_directory", &json!({"path": path}), &codes);
        refused(&fixture, "write_file", &json!({"path": path, "content": "x"}), &codes);
    }
    assert_eq!(fixture.call("list_directory", &json!({}), &[]).0, 0);
}

#[test]
fn a_link_swapped_in_between_never_leads_out() {
    let fixture = Fixture::new();
    let outside = fixture.home.join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "outside\n").unwrap();
    fixture.put("spot/file", "inside\n");
    symlink(&outside, fixture.path("link")).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let swapper = {
        let (stop, spot, link) = (Arc::clone(&stop), fixture.path("spot"), fixture.path("link"));
        std::thread::spawn(move || {
            let mut swaps = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                renameat_with(CWD, &spot, CWD, &link, RenameFlags::EXCHANGE).unwrap();
                swaps += 1;
            }
            swaps
        })
    };
    let mut ends = std::collections::BTreeMap::new();
    for turn in 0..200 {
        let (tool, input) = match turn % 5 {
            0 => ("read_file", json!({"path": "spot/file"})),
            1 => ("write_file", json!({"path": "spot/file", "content": "inside\n"})),
            2 => ("edit_file", json!({"path": "spot/file", "old": "inside", "new": "inside!"})),
            3 => ("list_directory", json!({"path": "spot"})),
            _ => ("write_file", json!({"path": format!("spot/new{turn}"), "content": "inside\n"})),
        };
        let (code, outcome) = fixture.call(tool, &input, ALL);
        assert!(!outcome.to_string().contains("outside\\n"), "{outcome}");
        assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "outside\n", "{outcome}");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1, "{outcome}");
        *ends.entry((code, outcome["error"]["code"].as_str().unwrap_or("").to_owned())).or_insert(0) += 1;
    }
    stop.store(true, Ordering::Relaxed);
    println!("{} swaps, {ends:?}", swapper.join().unwrap());
    assert!(ends.keys().all(|(code, _)| *code <= 1), "{ends:?}");
    assert!(ends.contains_key(&(0, String::new())), "none came through: {ends:?}");
}

/// The fixture given to an ordinary user, with a copy of the program that the user can run; nothing changes without
/// root.
struct Ordinary {
    fixture: Fixture,
    program: PathBuf,
    root: bool,
}

impl Ordinary {
    fn new() -> Self {
        let fixture = Fixture::new();
        let root = rustix::process::geteuid().is_root();
        let top = fixture.home.parent().unwrap().to_owned();
        let program = top.join("haft");
        support::copy_program(support::HAFT.as_ref(), &program);
        let ordinary = Self { fixture, program, root };
        ordinary.give(&top);
        ordinary.give(&ordinary.fixture.workspace);
        ordinary.give(&ordinary.fixture.home);
        ordinary
    }

    fn give(&self, path: &Path) {
        if self.root {
            chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }

    fn put(&self, path: &str, content: &str, mode: u32) {
        self.fixture.put(path, content);
        let path = self.fixture.path(path);
        self.give(&path);
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn run(&self, args: &[&str]) -> Ran {
        let mut command = self.fixture.program(&self.program.to_string_lossy());
        command.args(args);
        if self.root {
            command.uid(NOBODY).gid(NOBODY);
        }
        Running::start(command).finish()
    }

    fn call(&self, tool: &str, input: &Value) -> (Option<i32>, Value) {
        let ran = self.run(&[&["call", tool, &input.to_string(), "--json"], ALL].concat());
        (ran.code, ran.json())
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn what_the_system_denies_is_told() {
    let ordinary = Ordinary::new();
    ordinary.put("closed.txt", "closed\n", 0o000);
    ordinary.put("open.txt", "open\n", 0o644);
    let (code, outcome) = ordinary.call("read_file", &json!({"path": "closed.txt"}));
    assert_eq!((code, &outcome["error"]["code"]), (Some(1), &json!("PERMISSION_DENIED")), "{outcome}");
    set_mode(&ordinary.fixture.workspace, 0o555);
    for (tool, input) in [
        ("write_file", json!({"path": "new.txt", "content": "new\n"})),
        ("write_file", json!({"path": "open.txt", "content": "new\n"})),
        ("edit_file", json!({"path": "open.txt", "old": "open", "new": "new"})),
        ("delete_file", json!({"path": "open.txt"})),
        ("write_file", json!({"path": "a/b.txt", "content": "new\n", "createDirs": true})),
    ] {
        let (code, outcome) = ordinary.call(tool, &input);
        assert_eq!((code, &outcome["error"]["code"]), (Some(1), &json!("PERMISSION_DENIED")), "{outcome}");
    }
    let (code, outcome) = ordinary.call("read_file", &json!({"path": "open.txt"}));
    assert_eq!(code, Some(0), "{outcome}");
    let doctor = ordinary.run(&["doctor"]);
    assert_eq!(doctor.code, Some(1), "{doctor:?}");
    assert!(doctor.stdout.contains("cannot be written"), "{doctor:?}");
    assert_eq!(ordinary.fixture.text("open.txt").as_deref(), Some("open\n"));
    assert_eq!(fs::read_dir(&ordinary.fixture.workspace).unwrap().count(), 2);
    set_mode(&ordinary.fixture.workspace, 0o755);
}

#[test]
fn a_store_that_cannot_be_written_is_refused() {
    let ordinary = Ordinary::new();
    let data = &ordinary.fixture.data;
    assert_eq!(ordinary.call("write_file", &json!({"path": "a.txt", "content": "a\n"})).0, Some(0));
    let before = fs::read(data.join("haft.db")).unwrap();
    set_mode(&data.join("haft.db"), 0o444);
    set_mode(data, 0o555);
    let ran = ordinary.run(&[&["call", "write_file", r#"{"path":"b.txt","content":"b"}"#], ALL].concat());
    one_sentence(&ran, &["cannot be written"]);
    let ran = ordinary.run(&[&["call", "write_file", r#"{"path":"b.txt","content":"b"}"#, "--json"], ALL].concat());
    assert_eq!((ran.code, ran.json()["error"].is_object()), (Some(1), true), "{ran:?}");
    assert!(!ordinary.fixture.path("b.txt").exists());
    set_mode(data, 0o755);
    set_mode(&data.join("haft.db"), 0o644);
    assert!(fs::read(data.join("haft.db")).unwrap() == before);
    // A folder that cannot be made.
    let ran = {
        let mut command = ordinary.fixture.program(&ordinary.program.to_string_lossy());
        command.args(["call", "list_directory"]).env("HAFT_DATA_DIR", "/proc/haft-data");
        Running::start(command).finish()
    };
    one_sentence(&ran, &["folder"]);
}

#[test]
fn a_newer_or_damaged_store_is_left_as_it_is() {
    let fixture = Fixture::new();
    assert_eq!(fixture.call("write_file", &json!({"path": "a.txt", "content": "a\n"}), ALL).0, 0);
    let store = fixture.data.join("haft.db");
    // The last connection to close brings everything into the file itself.
    let with = |sql: &str| {
        rusqlite::Connection::open(&store).unwrap().execute_batch(sql).unwrap();
        fs::read(&store).unwrap()
    };
    let good = with("select 1");
    let newer = with("update meta set number = 9000 where name = 'oldest_reader'");
    let garbage: Vec<u8> = (0..8192_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let mut broken = good;
    // Only the header is left.
    broken[100..].fill(0x55);
    for (what, bytes, word) in [
        ("newer", newer, "newer haft"),
        ("garbage", garbage, "damaged"),
        ("broken", broken, "damaged"),
        ("text", b"this is not a database, but a letter to my mother\n".repeat(40), "damaged"),
    ] {
        for left in ["haft.db-wal", "haft.db-shm"] {
            let _ = fs::remove_file(fixture.data.join(left));
        }
        fs::write(&store, &bytes).unwrap();
        let input = r#"{"path":"b.txt","content":"b\n"}"#;
        for args in [&[&["call", "write_file", input][..], ALL].concat()[..], &["log"], &[], &["approvals"]] {
            let ran = fixture.run(args);
            one_sentence(&ran, &[word]);
            assert!(fs::read(&store).unwrap() == bytes, "{what}: the store was changed by {args:?}");
        }
        let doctor = fixture.run(&["doctor"]);
        assert_eq!(doctor.code, Some(1), "{what}: {doctor:?}");
        assert!(doctor.stdout.contains(word), "{what}: {doctor:?}");
        assert!(fs::read(&store).unwrap() == bytes, "{what}: the store was changed by the doctor");
        assert!(!fixture.path("b.txt").exists());
    }
}

/// A small disk of its own; `None` where it cannot be made.
struct Disk {
    folder: tempfile::TempDir,
}

impl Disk {
    fn of(size: &str) -> Option<Disk> {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: only root can mount a small disk");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let mut mount = Command::new("/bin/mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(folder.path());
        if !mount.status().is_ok_and(|status| status.success()) {
            println!("skipped: a small disk cannot be mounted here");
            return None;
        }
        Some(Disk { folder })
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Fills it to the last byte.
    fn fill(&self) -> PathBuf {
        let path = self.path().join("filler");
        let mut filler = fs::File::create(&path).unwrap();
        for size in [1 << 16, 1 << 12, 1 << 8, 1] {
            let chunk = vec![b'f'; size];
            let written = (0..1 << 20).find_map(|_| filler.write_all(&chunk).err());
            assert_eq!(written.map(|err| err.kind()), Some(io::ErrorKind::StorageFull));
        }
        path
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("/bin/umount").arg("-l").arg(self.folder.path()).status();
    }
}

#[test]
fn a_full_workspace_keeps_the_old_file() {
    let Some(disk) = Disk::of("256k") else { return };
    let mut fixture = Fixture::new();
    fixture.workspace = disk.path().canonicalize().unwrap();
    let old = "old\n".repeat(5000);
    fixture.put("a.txt", &old);
    fixture.put("folder/b.txt", "b\n");
    let before = fixture.picture();
    let large = "new\n".repeat(100_000);
    fs::write(fixture.home.join("input"), json!({"path": "a.txt", "content": large}).to_string()).unwrap();
    let input = format!("@{}", fixture.home.join("input").display());
    let ran = fixture.run(&[&["call", "write_file", &input, "--json"], ALL].concat());
    assert_eq!((ran.code, &ran.json()["error"]["code"]), (Some(1), &json!("RESOURCE_LIMIT")), "{ran:?}");
    assert!(fixture.picture() == before, "something was left behind");
    let filler = disk.fill();
    let before = fixture.picture();
    let (code, outcome) = fixture.call("edit_file", &json!({"path": "folder/b.txt", "old": "b", "new": "c"}), ALL);
    assert_eq!((code, &outcome["error"]["code"]), (1, &json!("RESOURCE_LIMIT")), "{outcome}");
    assert!(fixture.picture() == before, "something was left behind");
    fs::remove_file(filler).unwrap();
    assert_eq!(fixture.call("edit_file", &json!({"path": "folder/b.txt", "old": "b", "new": "c"}), ALL).0, 0);
    assert_eq!(fixture.text("folder/b.txt").as_deref(), Some("c\n"));
}

#[test]
fn a_full_data_folder_changes_nothing() {
    let Some(disk) = Disk::of("1m") else { return };
    let mut fixture = Fixture::new();
    fixture.data = disk.path().canonicalize().unwrap().join("data");
    fixture.put("a.txt", "old\n");
    assert_eq!(fixture.call("read_file", &json!({"path": "a.txt"}), &[]).0, 0);
    let before = fixture.picture();
    let filler = disk.fill();
    for (tool, input) in [
        ("write_file", json!({"path": "a.txt", "content": "new\n".repeat(10_000)})),
        ("write_file", json!({"path": "b.txt", "content": "new\n"})),
        ("edit_file", json!({"path": "a.txt", "old": "old", "new": "new"})),
        ("delete_file", json!({"path": "a.txt"})),
    ] {
        let ran = fixture.run(&[&["call", tool, &input.to_string(), "--json"], ALL].concat());
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let code = text(&ran.json()["error"]["code"]);
        assert!(["STORE_UNAVAILABLE", "RESOURCE_LIMIT"].contains(&code.as_str()), "{tool}: {ran:?}");
        assert!(fixture.picture() == before, "{tool} changed something: {ran:?}");
    }
    fs::remove_file(filler).unwrap();
    let (code, outcome) = fixture.call("edit_file", &json!({"path": "a.txt", "old": "old", "new": "new"}), ALL);
    assert_eq!((code, fixture.text("a.txt").as_deref()), (0, Some("new\n")), "{outcome}");
}

#[test]
fn a_data_folder_without_any_space_is_told() {
    let Some(disk) = Disk::of("8k") else { return };
    let mut fixture = Fixture::new();
    fixture.data = disk.path().canonicalize().unwrap().join("data");
    disk.fill();
    let ran = fixture.run(&[&["call", "write_file", r#"{"path":"a","content":"a"}"#], ALL].concat());
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
    assert!(ran.stderr.contains("space") || ran.stderr.contains("full"), "{ran:?}");
    assert!(!fixture.path("a").exists());
}

#[test]
fn wrong_settings_are_named() {
    let fixture = Fixture::new();
    for (variable, value) in [
        ("HAFT_APPROVALS_MODE", "everything"),
        ("HAFT_APPROVALS_EXPIRE", "soon"),
        ("HAFT_LIMITS_WORK", "-1s"),
        ("HAFT_LIMITS_WORK", "1parsec"),
        ("HAFT_LIMITS_IDLE", "nan"),
        ("HAFT_STORE_SYNC", "maybe"),
        ("HAFT_APROVALS_MODE", "none"),
        ("HAFT_WEB_ANYTHING", "1"),
        ("HAFT_SANDBOX_READ", "/srv"),
    ] {
        let mut command = fixture.haft(&["call", "list_directory"]);
        command.env(variable, value);
        one_sentence(&Running::start(command).finish(), &[variable]);
    }
    let file = fixture.home.join(".config/haft/haft.toml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    for (toml, word) in [
        ("[approvals]\nmod = \"all\"\n", "approvals.mode"),
        ("[aprovals]\nmode = \"all\"\n", "approvals.mode"),
        ("approvals = 3\n", "`approvals`"),
        ("[approvals]\nmode = 3\n", "is not a mode"),
        ("[store]\nsink = \"full\"\n", "store.sync"),
        ("[limits]\nwork = \"long\"\n", "length of time"),
    ] {
        fs::write(&file, toml).unwrap();
        one_sentence(&fixture.run(&["call", "list_directory"]), &[word, "haft.toml"]);
        let ran = fixture.run(&["call", "list_directory", "--json"]);
        assert_eq!((ran.code, ran.json()["error"].is_object()), (Some(1), true), "{ran:?}");
    }
    for toml in [&b"this is = = not TOML"[..], b"\xff\xfe", b"[approvals\n"] {
        fs::write(&file, toml).unwrap();
        let ran = fixture.run(&["call", "list_directory"]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.stderr.contains("haft.toml"), "{ran:?}");
    }
    fs::write(&file, "[approvals]\nmode = \"none\"\n").unwrap();
    assert_eq!(fixture.run(&["call", "list_directory"]).code, Some(4));
}

#[test]
fn a_variable_of_another_program_is_named_and_ignored() {
    let fixture = Fixture::new();
    for arguments in [&["call", "list_directory", "--json"][..], &["log", "--json"]] {
        let mut command = fixture.haft(arguments);
        command.env("HAFT_FOO", "1");
        let ran = Running::start(command).finish();
        assert_eq!((ran.code, ran.stderr.matches("`HAFT_FOO`").count()), (Some(0), 1), "{ran:?}");
        ran.json();
    }
}

#[test]
fn arguments_that_are_no_text_are_refused() {
    let fixture = Fixture::new();
    let odd = OsStr::from_bytes(b"\xff\xfe");
    for args in [
        vec![odd],
        vec![OsStr::new("call"), odd],
        vec![OsStr::new("call"), OsStr::new("read_file"), odd],
        vec![OsStr::new("call"), OsStr::new("read_file"), OsStr::new("--path"), odd],
        vec![OsStr::new("approve"), odd],
        vec![OsStr::new("--workspace"), odd],
        vec![OsStr::new("tools"), OsStr::new("--search"), odd],
    ] {
        let ran = fixture.run(&args);
        assert!(matches!(ran.code, Some(1 | 2)), "{args:?}: {ran:?}");
    }
}

#[test]
fn a_workspace_whose_name_is_no_text_works_or_is_refused() {
    let mut fixture = Fixture::new();
    fixture.workspace = fixture.home.join(OsString::from_vec(b"odd\xffname".to_vec()));
    fs::create_dir(&fixture.workspace).unwrap();
    let ran = fixture.run(&["call", "write_file", r#"{"path":"a.txt","content":"a\n"}"#, "--json"]);
    if ran.code == Some(1) {
        return;
    }
    assert_eq!(ran.code, Some(4), "{ran:?}");
    let approved = fixture.run(&["approve", &support::id(&ran.json()), "--json"]);
    assert_eq!((approved.code, fixture.path("a.txt").exists()), (Some(0), true), "{approved:?}");
}

#[test]
fn the_data_folder_is_closed_to_tools_whatever_its_name() {
    let mut fixture = Fixture::new();
    let real = fixture.path("store");
    fs::create_dir(&real).unwrap();
    fixture.data = fixture.home.join("link");
    symlink(&real, &fixture.data).unwrap();
    fixture.put("a.txt", "a\n");
    let (code, outcome) = fixture.call("write_file", &json!({"path": "a.txt", "content": "b\n"}), ALL);
    assert_eq!(code, 0, "{outcome}");
    assert!(real.join("haft.db").exists());
    let codes = ["PERMISSION_DENIED", "INVALID_PATH"];
    refused(&fixture, "read_file", &json!({"path": "store/haft.db"}), &codes);
    refused(&fixture, "write_file", &json!({"path": "store/haft.db", "content": ""}), &codes);
    refused(&fixture, "write_file", &json!({"path": "store/new", "content": ""}), &codes);
    refused(&fixture, "delete_file", &json!({"path": "store", "recursive": true}), &codes);
    assert_eq!(fixture.run(&["undo", &support::id(&outcome), "--yes"]).code, Some(0));
    assert_eq!(fixture.text("a.txt").as_deref(), Some("a\n"));
}

#[test]
fn a_home_is_not_needed_but_a_data_folder_is() {
    let fixture = Fixture::new();
    let without = |variables: &[&str], args: &[&str]| {
        let mut command = fixture.haft(args);
        for variable in variables {
            command.env_remove(variable);
        }
        Running::start(command).finish()
    };
    assert_eq!(without(&["HOME"], &["log"]).code, Some(0));
    one_sentence(&without(&["HOME", "HAFT_DATA_DIR"], &["log"]), &["HAFT_DATA_DIR"]);
    assert_eq!(without(&["HAFT_DATA_DIR"], &["log"]).code, Some(0));
    assert!(fixture.home.join(".local/share/haft/haft.db").exists());
    assert_eq!(fixture.home.join(".local/share/haft").metadata().unwrap().permissions().mode() & 0o777, 0o700);
    let file = fixture.home.join("file");
    fs::write(&file, "a file\n").unwrap();
    let mut command = fixture.haft(&["log"]);
    command.env("HAFT_DATA_DIR", &file);
    one_sentence(&Running::start(command).finish(), &["folder"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "a file\n");
    let ran = fixture.run(&["--workspace", "/no/such/folder", "log"]);
    one_sentence(&ran, &["/no/such/folder"]);
}
