//! A store that is broken, cut off, foreign, read-only or on a full disk: refused in a sentence, and left as it is.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that cannot go on fails")]
#![expect(clippy::disallowed_methods, reason = "these tests mount small disks")]

mod support;

use std::{fs, path::Path, process::Command};

use serde_json::json;
use support::{ALL, Fixture, Ran, id, picture};

const PAGE: usize = 4096;

/// A store with some calls in it, at rest: everything is in the database itself.
fn filled() -> (Fixture, String, Vec<u8>) {
    let fixture = Fixture::new();
    fixture.put("a.txt", "a\n");
    let mut last = String::new();
    for number in 0..12 {
        let input = json!({"path": format!("{number}.txt"), "content": "some text\n".repeat(60)});
        last = id(&fixture.call("write_file", &input, ALL).1);
        fixture.call("read_file", &json!({"path": "nothing"}), &[]);
    }
    fixture.pending("write_file", &json!({"path": "w", "content": "w"}));
    // The doctor closes the store, which brings the write-ahead log into the database.
    fixture.run(&["doctor"]);
    let bytes = fs::read(fixture.data.join("haft.db")).unwrap();
    assert!(!fixture.data.join("haft.db-wal").exists() && bytes.len() > 10 * PAGE);
    (fixture, last, bytes)
}

/// Puts these bytes in the place of the store.
fn put_store(fixture: &Fixture, bytes: &[u8]) {
    for left in ["haft.db-wal", "haft.db-shm"] {
        let _ = fs::remove_file(fixture.data.join(left));
    }
    fs::write(fixture.data.join("haft.db"), bytes).unwrap();
}

fn is_refused(ran: &Ran) -> bool {
    assert!(ran.code == Some(0) || ran.code == Some(1), "{ran:?}");
    if ran.code == Some(1) {
        assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
        let says_what_to_do = ["restore a copy", "damaged"].iter().any(|words| ran.stderr.contains(words));
        assert!(says_what_to_do, "{ran:?}");
    }
    ran.code == Some(1)
}

fn garbage(length: usize) -> Vec<u8> {
    (0..length as u64).map(|at| (at.wrapping_mul(6_364_136_223_846_793_005) >> 56) as u8).collect()
}

#[test]
fn a_broken_beginning_and_a_cut_file_are_refused() {
    let (fixture, last, whole) = filled();
    let header = [garbage(100), whole[100..].to_vec()].concat();
    let zeroed = [vec![0; 100], whole[100..].to_vec()].concat();
    // The last connection to close brings everything into the file itself.
    rusqlite::Connection::open(fixture.data.join("haft.db")).unwrap().execute_batch("delete from meta").unwrap();
    let versionless = fs::read(fixture.data.join("haft.db")).unwrap();
    let cut = whole[..whole.len() / 2].to_vec();
    let odd = whole[..whole.len() / 3 + 77].to_vec();
    for (what, bytes) in
        [("header", header), ("zeroed", zeroed), ("no version", versionless), ("cut", cut), ("odd", odd)]
    {
        put_store(&fixture, &bytes);
        let mut refused = 0;
        for view in [&["log"][..], &["log", "show", &last], &["stats"], &["approvals"], &[], &["gc", "--dry-run"]] {
            refused += usize::from(is_refused(&fixture.run(view)));
            assert!(fs::read(fixture.data.join("haft.db")).unwrap() == bytes, "{what}: rewritten by {view:?}");
        }
        assert!(refused >= 5, "{what}: only {refused} views refused");
        assert_eq!(fixture.run(&["doctor"]).code, Some(1), "{what}");
        assert!(fs::read(fixture.data.join("haft.db")).unwrap() == bytes, "{what}: rewritten by the doctor");
    }
}

#[test]
fn a_store_with_other_columns_than_its_version_says_is_refused() {
    let (fixture, _, mut bytes) = filled();
    let column = b" day ";
    let mut found = 0;
    for at in 0..bytes.len() - column.len() {
        if bytes[at..].starts_with(column) || bytes[at..].starts_with(b" day,") {
            bytes[at + 1..at + 4].copy_from_slice(b"dag");
            found += 1;
        }
    }
    assert!(found >= 2, "the column is called otherwise now");
    put_store(&fixture, &bytes);
    for view in [&[][..], &["stats"]] {
        let ran = fixture.run(view);
        assert!(is_refused(&ran), "{view:?}: {ran:?}");
        assert_eq!(ran.stderr.matches("no such column").count(), 1, "{ran:?}");
    }
    assert_eq!(fs::read(fixture.data.join("haft.db")).unwrap(), bytes);
}

#[test]
fn one_broken_page_never_crashes_a_view_and_is_never_rewritten() {
    let (fixture, last, whole) = filled();
    let mut refused = 0;
    for page in 1..whole.len() / PAGE {
        let mut bytes = whole.clone();
        bytes[page * PAGE..(page + 1) * PAGE].copy_from_slice(&garbage(PAGE));
        put_store(&fixture, &bytes);
        for view in [&["log"][..], &["log", "show", &last], &["stats"]] {
            refused += usize::from(is_refused(&fixture.run(view)));
            assert!(fs::read(fixture.data.join("haft.db")).unwrap() == bytes, "page {page}: rewritten by {view:?}");
        }
    }
    assert!(refused > 3, "some page was needed by some view");
}

/// A small disk for the data folder; `None` where it cannot be made.
struct Disk(tempfile::TempDir);

impl Disk {
    fn new(size: &str) -> Option<Self> {
        let disk = Self(tempfile::tempdir().unwrap());
        let is_root = rustix::process::geteuid().is_root();
        let made = is_root && disk.mount(&["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]);
        if !made {
            println!("skipped: a small disk cannot be mounted here");
        }
        made.then_some(disk)
    }

    fn mount(&self, arguments: &[&str]) -> bool {
        let mounted = Command::new("/bin/mount").args(arguments).arg(self.0.path()).status();
        mounted.is_ok_and(|status| status.success())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("/bin/umount").arg("-l").arg(self.path()).status();
    }
}

#[test]
fn a_read_only_data_folder_is_told_and_left_alone() {
    let Some(disk) = Disk::new("4m") else { return };
    let mut fixture = Fixture::new();
    fixture.data = disk.path().canonicalize().unwrap().join("data");
    let (_, made) = fixture.call("write_file", &json!({"path": "a.txt", "content": "a\n"}), ALL);
    assert!(disk.mount(&["-o", "remount,ro"]));
    let before = (fixture.picture(), picture(&fixture.data));
    let made = id(&made);
    for view in [&["log"][..], &["log", "show", &made], &["stats"], &["gc", "--dry-run"]] {
        let ran = fixture.run(view);
        assert!(ran.code == Some(0) || ran.stderr.contains("cannot be written"), "{view:?}: {ran:?}");
    }
    let write = [&["call", "write_file", r#"{"path":"b.txt","content":"b"}"#][..], ALL].concat();
    for act in [&["gc"][..], &["undo", &made, "--yes"], &write] {
        let ran = fixture.run(act);
        assert_eq!((ran.code, ran.stderr.lines().count()), (Some(1), 1), "{act:?}: {ran:?}");
        let is_told =
            ["cannot be written", "check that it can be written"].iter().any(|words| ran.stderr.contains(words));
        assert!(is_told, "{act:?}: {ran:?}");
    }
    assert!((fixture.picture(), picture(&fixture.data)) == before);
}

#[test]
fn gc_frees_a_full_disk() {
    let Some(disk) = Disk::new("6m") else { return };
    let mut fixture = Fixture::new();
    fixture.data = disk.path().canonicalize().unwrap().join("data");
    fixture.put("large.txt", "a line of text\n".repeat(200_000));
    let (code, outcome) = fixture.call("delete_file", &json!({"path": "large.txt"}), ALL);
    assert_eq!(code, 0, "{outcome}");
    let mut filler = fs::File::create(disk.path().join("filler")).unwrap();
    while std::io::Write::write_all(&mut filler, &[b'f'; 4096]).is_ok() {}
    let again = json!({"path": "b.txt", "content": "b\n".repeat(20_000)});
    assert_eq!(fixture.call("write_file", &again, ALL).0, 1, "the disk is full");
    let mut gc = fixture.haft(&["gc", "--json"]);
    gc.env("HAFT_RETENTION_CHANGES", "0s").env("HAFT_RETENTION_UNASKED", "0s");
    let ran = support::Running::start(gc).finish();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.json()["removed"]["changes"]["bytes"].as_u64() > Some(2_000_000), "{ran:?}");
    let (code, outcome) = fixture.call("write_file", &again, ALL);
    assert_eq!(code, 0, "{outcome}");
}

#[test]
fn a_call_that_cannot_be_recorded_says_why() {
    let fixture = Fixture::new();
    fixture.call("read_file", &json!({"path": "a.txt"}), ALL);
    let lose = "alter table open_calls rename to lost";
    rusqlite::Connection::open(fixture.data.join("haft.db")).unwrap().execute_batch(lose).unwrap();
    let before = fixture.picture();
    let (code, outcome) = fixture.call("write_file", &json!({"path": "b.txt", "content": "b\n"}), ALL);
    assert_eq!((code, &outcome["error"]["code"]), (1, &json!("STORE_UNAVAILABLE")), "{outcome}");
    assert!(outcome["error"]["message"].as_str().unwrap().contains("the database is damaged"), "{outcome}");
    assert_eq!(fixture.picture(), before);
}
