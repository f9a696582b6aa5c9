//! `glob` and `grep` on trees that mean no good.

use std::{
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt, fs::symlink},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use haft_runtime::ErrorCode;
use serde_json::{Value, json};

use crate::place::{Place, ctx};

fn files(found: &Value) -> Vec<&str> {
    found["files"].as_array().unwrap().iter().map(|file| file.as_str().unwrap()).collect()
}

/// `path:line:text` of every match.
fn matches(found: &Value) -> Vec<String> {
    let part = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let all = found["matches"].as_array().unwrap().iter();
    all.map(|one| ["path", "line", "text"].map(|name| part(&one[name])).join(":")).collect()
}

#[test]
fn a_name_that_becomes_a_link_leads_nowhere() {
    let place = Place::new();
    fs::create_dir(place.outside("secret")).unwrap();
    for name in 0..50 {
        fs::write(place.outside(&format!("secret/f{name}")), "the secret needle\n").unwrap();
        place.put(&format!("a/folder/f{name}"), "needle\n");
        place.put(&format!("a/files/f{name}"), "needle\n");
    }
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                fs::rename(place.path("a/folder"), place.path("a/moved")).unwrap();
                symlink(place.outside("secret"), place.path("a/folder")).unwrap();
                fs::remove_file(place.path("a/folder")).unwrap();
                fs::rename(place.path("a/moved"), place.path("a/folder")).unwrap();
                fs::remove_file(place.path("a/files/f0")).unwrap();
                symlink(place.outside("secret/f0"), place.path("a/files/f0")).unwrap();
                fs::remove_file(place.path("a/files/f0")).unwrap();
                fs::write(place.path("a/files/f0"), "needle\n").unwrap();
            }
        });
        for _ in 0..150 {
            let found = place.read("grep", json!({ "pattern": "needle", "maxResults": 1000 })).unwrap().structured;
            assert!(found["count"].as_u64().unwrap() >= 49, "{found}");
            assert!(matches(&found).iter().all(|one| !one.contains("secret")), "{found}");
            let found = place.read("grep", json!({ "pattern": "secret" })).unwrap().structured;
            assert_eq!(found["count"], 0, "{found}");
        }
        over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn folders_that_vanish_are_no_fault() {
    let place = Place::new();
    let over = AtomicBool::new(false);
    place.put("stays/a.txt", "needle\n");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                for name in 0..20 {
                    place.put(&format!("goes/d{name}/e/a.txt"), "needle\n");
                }
                fs::remove_dir_all(place.path("goes")).unwrap();
            }
        });
        for _ in 0..100 {
            let found = place.read("grep", json!({ "pattern": "needle" })).unwrap().structured;
            assert!(matches(&found).iter().any(|one| one.starts_with("stays/")), "{found}");
            let found = place.read("glob", json!({ "pattern": "*.txt" })).unwrap().structured;
            assert!(files(&found).contains(&"stays/a.txt"), "{found}");
            place.read("list_directory", json!({ "recursive": true, "respectIgnore": true })).unwrap();
        }
        over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn links_are_given_and_not_followed() {
    let place = Place::new();
    place.put("real/a.txt", "needle\n");
    symlink("real", place.path("folder")).unwrap();
    symlink("real/a.txt", place.path("file.txt")).unwrap();
    symlink("/etc", place.path("out.txt")).unwrap();
    symlink(".", place.path("real/loop")).unwrap();
    let found = place.read("glob", json!({ "pattern": "**" })).unwrap().structured;
    assert_eq!(files(&found), ["file.txt", "folder", "out.txt", "real/a.txt", "real/loop"]);
    let found = place.read("grep", json!({ "pattern": "needle" })).unwrap().structured;
    assert_eq!(matches(&found), ["real/a.txt:1:needle"]);
    // A link that was named is followed as long as it stays inside.
    let found = place.read("grep", json!({ "pattern": "needle", "path": "folder" })).unwrap().structured;
    assert_eq!(matches(&found), ["real/a.txt:1:needle"]);
    let refused = place.read("grep", json!({ "pattern": "root", "path": "out.txt" })).unwrap_err();
    assert_eq!(refused.code, ErrorCode::InvalidPath);
}

#[test]
fn secrets_are_not_searched_by_any_name() {
    let place = Place::new();
    place.put(".env", "TOKEN\n");
    place.put("sub/id_rsa", "TOKEN\n");
    place.put("sub/.aws/x", "TOKEN\n");
    fs::hard_link(place.path(".env"), place.path("sub/twin.txt")).unwrap();
    place.put("sub/linked.txt", "TOKEN\n");
    fs::hard_link(place.path("sub/linked.txt"), place.path("other.txt")).unwrap();
    let found = place.read("grep", json!({ "pattern": "TOKEN", "includeHidden": true })).unwrap().structured;
    assert_eq!(matches(&found), ["other.txt:1:TOKEN", "sub/linked.txt:1:TOKEN"]);
    assert_eq!(found["skipped"]["sensitive"], 4, "{found}");
    let found = place.read("glob", json!({ "pattern": "**", "includeHidden": true })).unwrap().structured;
    assert_eq!(files(&found), [".env", "other.txt", "sub/id_rsa", "sub/linked.txt", "sub/twin.txt"]);
}

#[test]
fn odd_names_and_contents() {
    let place = Place::new();
    fs::write(place.path("").join(OsStr::from_bytes(b"caf\xe9")), b"na\xefve needle\xff\n").unwrap();
    place.put("new\nline", "needle\r\n");
    place.put("long", format!("{}needle{}", "x".repeat(5000), "y".repeat(5000)));
    place.put(
        "utf16",
        [0xff, 0xfe].into_iter().chain("a needle\n".encode_utf16().flat_map(u16::to_le_bytes)).collect::<Vec<u8>>(),
    );
    place.put("binary", b"needle\0\nneedle\n");
    place.put("late", [vec![b'a'; 200_000], b"\nneedle\n\0".to_vec()].concat());
    rustix::fs::mknodat(rustix::fs::CWD, place.path("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let output = place.read("grep", json!({ "pattern": "needle" })).unwrap();
    let found = output.structured;
    let long = found["matches"][1]["text"].as_str().unwrap();
    assert!(long.chars().count() <= 500 && long.contains("needle"), "{long}");
    assert_eq!((&found["matches"][1]["path"], &found["matches"][1]["column"]), (&json!("long"), &json!(5001)));
    let others: Vec<String> = matches(&found).into_iter().filter(|one| !one.starts_with("long")).collect();
    assert_eq!(others, ["caf%E9:1:naïve needleÿ", "new%0Aline:1:needle", "utf16:1:a needle"]);
    assert_eq!(output.content.lines().count(), 4, "{}", output.content);
    assert_eq!(found["skipped"], json!({ "binary": 2, "sensitive": 0, "unreadable": 0 }));
    // As `read_file` shows them, wherever in a file that can be told.
    place.put("latin", [vec![b'a'; 200_000], b"\ncaf\xe9\n".to_vec()].concat());
    for pattern in ["naïve", "na.ve", "café", "caf"] {
        let found = matches(&place.read("grep", json!({ "pattern": pattern })).unwrap().structured);
        let expected = if pattern.starts_with('n') { "caf%E9:1:naïve needleÿ" } else { "latin:2:café" };
        assert_eq!(found, [expected], "{pattern}");
    }
    let found = place.read("glob", json!({ "pattern": "{caf,new}*" })).unwrap();
    assert_eq!(found.content, "caf%E9\nnew%0Aline");
}

#[test]
fn the_value_is_little_longer_than_the_text() {
    let place = Place::new();
    for name in 0..20 {
        place.put(
            &format!("crates/some/source/file_{name}.rs"),
            "    let needle = find(&haystack, position)?;\n".repeat(5),
        );
    }
    let found = place.read("grep", json!({ "pattern": "needle" })).unwrap();
    assert_eq!(found.structured["matches"][0].as_object().unwrap().len(), 3, "path, line and text");
    let (value, text) = (found.structured.to_string().len(), found.content.len());
    assert!(value * 2 < text * 3, "{value} bytes of value for {text} of text");
}

#[test]
fn a_line_without_an_end_takes_little_memory() {
    let place = Place::new();
    place.put("endless", vec![b'a'; 40 << 20]);
    place.put("short", "aaa\n");
    let found = place.read("grep", json!({ "pattern": "a" })).unwrap().structured;
    assert_eq!(matches(&found), ["short:1:aaa"]);
    assert_eq!(found["skipped"]["unreadable"], 1);
}

#[test]
fn patterns_that_hang_other_engines_do_not() {
    let place = Place::new();
    place.put("a.txt", format!("{}!\n", "a".repeat(100_000)));
    let begin = Instant::now();
    for pattern in ["(a+)+$", "(a|a)*b", "(.*)(.*)(.*)(.*)x", "((((a*)*)*)*)*c"] {
        let found = place.read("grep", json!({ "pattern": pattern })).unwrap().structured;
        assert_eq!(found["filesSearched"], 1, "{pattern}");
    }
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    let refused = place.read("grep", json!({ "pattern": "x(?=y)" })).unwrap_err();
    assert_eq!((refused.code, &refused.details["position"]), (ErrorCode::InvalidArgs, &json!(2)));
    let refused = place.read("grep", json!({ "pattern": "(".repeat(5000) })).unwrap_err();
    assert_eq!(refused.code, ErrorCode::InvalidArgs);
}

/// Enough that a search of it does not end before it is stopped.
fn put_much(place: &Place) {
    let text = "some text that fills a line, again and again\n".repeat(20_000);
    for name in 0..60 {
        place.put(&format!("d{}/f{name}", name % 7), &text);
    }
}

#[test]
fn a_stopped_search_ends_at_once() {
    let place = Place::new();
    put_much(&place);
    let ctx = ctx();
    ctx.cancel.cancel();
    let begin = Instant::now();
    let input = json!({ "pattern": "(again|and)+ (x|y)" });
    let stopped = place.wait(place.tool("grep").run(&ctx, &input)).unwrap_err();
    assert_eq!(stopped.code, ErrorCode::Cancelled);
    let stopped_after = begin.elapsed();
    let begin = Instant::now();
    place.read("grep", input).unwrap();
    assert!(stopped_after < begin.elapsed() / 2, "{stopped_after:?} of {:?}", begin.elapsed());
}

#[test]
fn when_time_runs_out_what_was_found_is_given() {
    let place = Place::new();
    put_much(&place);
    let mut ctx = ctx();
    ctx.deadline = Instant::now();
    let input = json!({ "pattern": "(again|and)+ (x|y)" });
    let output = place.wait(place.tool("grep").run(&ctx, &input)).unwrap().into_output().unwrap();
    assert_eq!((&output.structured["truncated"], &output.metadata["timed_out"]), (&json!(true), &json!(true)));
    assert!(output.structured["filesSearched"].as_u64().unwrap() < 60);
    assert!(output.content.contains("time ran out"), "{}", output.content);
}

#[test]
fn the_first_in_order_are_kept_and_all_are_counted() {
    let place = Place::new();
    for name in 0..500 {
        place.put(&format!("d{}/f{name:03}", name % 13), "needle\nneedle\n");
    }
    let all = place.read("grep", json!({ "pattern": "needle", "maxResults": 10_000 })).unwrap().structured;
    assert_eq!((&all["count"], &all["truncated"]), (&json!(1000), &json!(false)));
    let whole = matches(&all);
    for most in [1, 7, 999] {
        let some = place.read("grep", json!({ "pattern": "needle", "maxResults": most })).unwrap().structured;
        assert_eq!((&some["count"], &some["truncated"]), (&json!(1000), &json!(true)));
        assert_eq!(matches(&some), whole[..most]);
    }
    let paths = place.read("glob", json!({ "pattern": "f*", "limit": 3 })).unwrap().structured;
    assert_eq!((&paths["count"], &paths["truncated"]), (&json!(500), &json!(true)));
    assert_eq!(files(&paths), ["d0/f000", "d0/f013", "d0/f026"]);
}

#[test]
fn the_last_changed_first() {
    let place = Place::new();
    for (name, seconds) in [("a", 10), ("b", 30), ("c", 20), ("d", 30)] {
        let file = fs::File::create(place.path(name)).unwrap();
        fs::write(place.path(name), "x\n").unwrap();
        file.set_modified(std::time::UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
    }
    let found = place.read("glob", json!({ "pattern": "*", "sort": "modified" })).unwrap().structured;
    assert_eq!(files(&found), ["b", "d", "c", "a"]);
    let found = place.read("grep", json!({ "pattern": "x", "sort": "modified", "maxResults": 3 })).unwrap().structured;
    assert_eq!(matches(&found), ["b:1:x", "d:1:x", "c:1:x"]);
}

#[test]
fn a_deep_tree_is_searched_to_its_end() {
    let place = Place::new();
    let mut folder = rustix::fs::open(place.path(""), rustix::fs::OFlags::DIRECTORY, 0.into()).unwrap();
    for _ in 0..3000 {
        rustix::fs::mkdirat(&folder, "d", 0o755.into()).unwrap();
        folder = rustix::fs::openat(&folder, "d", rustix::fs::OFlags::DIRECTORY, 0.into()).unwrap();
    }
    let flags = rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY;
    let file = rustix::fs::openat(&folder, "x", flags, 0o644.into()).unwrap();
    std::io::Write::write_all(&mut fs::File::from(file), b"needle\n").unwrap();
    let found = place.read("grep", json!({ "pattern": "needle" })).unwrap().structured;
    assert_eq!((&found["count"], found.get("skipped")), (&json!(1), None));
    assert_eq!(found["matches"][0]["path"].as_str().unwrap().len(), 6001);
}

#[test]
fn ignore_files_above_a_folder_count_and_those_above_the_workspace_do_not() {
    let place = Place::new();
    fs::write(place.outside(".ignore"), "*.rs\n").unwrap();
    place.put(".gitignore", "*.log\n/src/gen\n");
    for name in ["src/a.log", "src/a.rs", "src/gen/b.rs", "src/deep/c.log"] {
        place.put(name, "needle\n");
    }
    let found = place.read("glob", json!({ "pattern": "*", "path": "src" })).unwrap().structured;
    assert_eq!(files(&found), ["src/a.rs"]);
    let found =
        place.read("list_directory", json!({ "path": "src", "recursive": true, "respectIgnore": true })).unwrap();
    assert_eq!(found.content, "deep/\na.rs\n2 entries in src");
    // What is ignored can be searched by naming it.
    let found = place.read("grep", json!({ "pattern": "needle", "path": "src/gen" })).unwrap().structured;
    assert_eq!(matches(&found), ["src/gen/b.rs:1:needle"]);
}

#[test]
fn a_folder_of_any_size_is_listed_in_little_memory() {
    let place = Place::new();
    for name in 0..5000 {
        place.put(&format!("many/f{name:05}"), "");
    }
    fs::create_dir(place.path("many/z")).unwrap();
    let found = place.read("list_directory", json!({ "path": "many", "limit": 3 })).unwrap().structured;
    assert_eq!((&found["total"], &found["truncated"]), (&json!(5001), &json!(true)));
    let names: Vec<&str> =
        found["entries"].as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["z", "f00000", "f00001"]);
    // More names than are read at once, with an ignore file somewhere among them.
    place.put("many/.ignore", "f0000*\n");
    let found = place.read("glob", json!({ "pattern": "f*", "limit": 1 })).unwrap().structured;
    assert_eq!((files(&found), &found["count"]), (vec!["many/f00010"], &json!(4990)));
}
