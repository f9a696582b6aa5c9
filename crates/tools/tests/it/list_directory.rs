//! `list_directory`

use std::{ffi::OsStr, fs, os::unix::ffi::OsStrExt};

use haft_runtime::ErrorCode;
use serde_json::{Value, json};

use crate::place::Place;

fn names(found: &Value) -> Vec<&str> {
    found["entries"].as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap()).collect()
}

#[test]
fn folders_first_hidden_left_out() {
    let place = Place::new();
    place.put("src/a.txt", "12345678");
    place.put("zoo/b", "");
    place.put("README.md", "12");
    place.put(".hidden", "");
    std::os::unix::fs::symlink("src/a.txt", place.path("link")).unwrap();
    let lean = place.read("list_directory", json!({})).unwrap();
    assert_eq!(lean.content, "src/\nzoo/\nREADME.md\nlink -> src/a.txt\n4 entries in .");
    assert_eq!(lean.structured["entries"][0], json!({"name": "src", "type": "directory"}));
    assert_eq!(lean.structured["entries"][2], json!({"name": "README.md", "type": "file"}));
    let output = place.read("list_directory", json!({ "details": true })).unwrap();
    let found = output.structured;
    assert_eq!(names(&found), ["src", "zoo", "README.md", "link"]);
    assert_eq!((&found["path"], &found["total"], &found["truncated"]), (&json!("."), &json!(4), &json!(false)));
    let kinds: Vec<&str> =
        found["entries"].as_array().unwrap().iter().map(|entry| entry["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["directory", "directory", "file", "symlink"]);
    assert_eq!((&found["entries"][2]["size"], &found["entries"][3]["target"]), (&json!(2), &json!("src/a.txt")));
    assert!(found["entries"][0]["modified"].as_str().unwrap().ends_with('Z'));
    let modified: jiff::Timestamp = found["entries"][2]["modified"].as_str().unwrap().parse().unwrap();
    assert!(output.content.contains(&format!("README.md (2 bytes, {modified:.0})\n")), "{}", output.content);
    let found = place.read("list_directory", json!({ "path": "src", "includeHidden": true })).unwrap().structured;
    assert_eq!((names(&found), &found["path"]), (vec!["a.txt"], &json!("src")));
    let found = place.read("list_directory", json!({ "includeHidden": true })).unwrap().structured;
    assert!(names(&found).contains(&".hidden"));
}

#[test]
fn recursive_to_a_depth_and_a_limit() {
    let place = Place::new();
    place.put("a/b/c/d", "");
    place.put("a/x", "");
    place.put(".git/config", "");
    std::os::unix::fs::symlink("..", place.path("a/up")).unwrap();
    let found = |input: Value| place.read("list_directory", input).unwrap().structured;
    assert_eq!(names(&found(json!({ "recursive": true }))), ["a", "a/b", "a/b/c", "a/b/c/d", "a/up", "a/x"]);
    assert_eq!(names(&found(json!({ "path": "a", "recursive": true, "maxDepth": 2 }))), ["b", "b/c", "up", "x"]);
    let cut = found(json!({ "recursive": true, "limit": 2 }));
    assert_eq!((names(&cut), &cut["total"], &cut["truncated"]), (vec!["a", "a/b"], &json!(6), &json!(true)));
    let refused = place.read("list_directory", json!({ "maxDepth": 2 })).unwrap_err();
    assert_eq!(refused.code, ErrorCode::InvalidArgs);
}

#[test]
fn what_cannot_be_listed_is_told() {
    let place = Place::new();
    place.put("a", "");
    place.put("b/.ssh/id", "");
    let code = |path: &str| place.read("list_directory", json!({ "path": path })).unwrap_err().code;
    assert_eq!(code("a"), ErrorCode::NotADirectory);
    assert_eq!(code("absent"), ErrorCode::FileNotFound);
    assert_eq!(code("b/.ssh"), ErrorCode::PermissionDenied);
    let output = place.read("list_directory", json!({ "recursive": true, "includeHidden": true })).unwrap();
    assert_eq!(names(&output.structured), ["b", "b/.ssh", "a"]);
    assert_eq!(output.structured["unread"][0]["name"], "b/.ssh");
    assert!(output.content.ends_with("3 entries in .; 1 folder could not be listed"), "{}", output.content);
}

#[test]
fn odd_names_and_kinds_are_shown() {
    let place = Place::new();
    fs::write(place.path("").join(OsStr::from_bytes(b"caf\xe9")), "").unwrap();
    fs::write(place.path("new\nline"), "").unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, place.path("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let found = place.read("list_directory", json!({})).unwrap();
    assert_eq!(names(&found.structured), ["caf%E9", "new%0Aline", "pipe"]);
    assert_eq!(found.structured["entries"][2]["type"], "other");
    assert!(found.content.contains("pipe (not a regular file)"));
    std::os::unix::fs::symlink("no\nwhere", place.path("link")).unwrap();
    let found = place.read("list_directory", json!({})).unwrap();
    assert!(found.content.contains("link -> no\u{fffd}where\n"), "{}", found.content);
}

#[test]
fn an_empty_folder() {
    let place = Place::new();
    let output = place.read("list_directory", json!({ "path": "." })).unwrap();
    assert_eq!((names(&output.structured), &output.structured["total"]), (vec![], &json!(0)));
}

#[test]
fn a_deep_tree_exhausts_nothing() {
    let place = Place::new();
    let mut folder = rustix::fs::open(place.path(""), rustix::fs::OFlags::DIRECTORY, 0.into()).unwrap();
    for _ in 0..6000 {
        rustix::fs::mkdirat(&folder, "d", 0o755.into()).unwrap();
        folder = rustix::fs::openat(&folder, "d", rustix::fs::OFlags::DIRECTORY, 0.into()).unwrap();
    }
    // All of them would be 36 MB of names.
    let found = place.read("list_directory", json!({ "recursive": true, "limit": 100_000 })).unwrap().structured;
    assert_eq!((&found["total"], &found["truncated"]), (&json!(6000), &json!(true)));
    assert_eq!(found["entries"][9]["name"], ["d"; 10].join("/"));
}
