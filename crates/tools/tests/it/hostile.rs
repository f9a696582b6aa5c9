//! Input and folders that mean harm.

use std::{fs, os::unix::fs::symlink};

use haft_runtime::{Category, ErrorCode, Flag, ToolError};
use serde_json::{Value, json};

use crate::place::Place;

/// Every tool on one path.
fn everywhere(place: &Place, path: &str) -> Vec<(&'static str, Result<(), ToolError>)> {
    place.put("seed", "seed\n");
    let read = |tool: &str, input: Value| place.read(tool, input).map(|_| ());
    let stage = |tool: &str, input: Value| place.stage(tool, input).map(|_| ());
    vec![
        ("read_file", read("read_file", json!({ "path": path }))),
        ("list_directory", read("list_directory", json!({ "path": path }))),
        ("glob", read("glob", json!({ "pattern": "*", "path": path }))),
        ("grep", read("grep", json!({ "pattern": "x", "path": path }))),
        ("write_file", stage("write_file", json!({ "path": path, "content": "x", "createDirs": true }))),
        ("edit_file", stage("edit_file", json!({ "path": path, "old": "x", "new": "y" }))),
        ("delete_file", stage("delete_file", json!({ "path": path, "recursive": true }))),
        ("create_directory", stage("create_directory", json!({ "path": format!("{path}/new") }))),
        ("copy_file from", stage("copy_file", json!({ "source": path, "dest": "fresh", "recursive": true }))),
        ("copy_file to", stage("copy_file", json!({ "source": "seed", "dest": path, "overwrite": true }))),
        ("move_file from", stage("move_file", json!({ "from": path, "to": "fresh" }))),
        ("move_file to", stage("move_file", json!({ "from": "seed", "to": path, "overwrite": true }))),
    ]
}

fn all_refuse(place: &Place, path: &str, codes: &[ErrorCode]) {
    for (tool, outcome) in everywhere(place, path) {
        let refused = outcome.expect_err(tool);
        assert!(codes.contains(&refused.code), "{tool} {path}: {refused}");
    }
    assert!(place.holds_nothing_aside(), "{path}");
}

#[test]
fn nothing_leads_outside() {
    let place = Place::new();
    fs::write(place.outside("secret"), "x").unwrap();
    fs::create_dir(place.path("src")).unwrap();
    symlink("..", place.path("up")).unwrap();
    symlink("../secret", place.path("out")).unwrap();
    symlink("/etc", place.path("etc")).unwrap();
    for path in ["../secret", "..", "/etc/passwd", "src/../../secret", "up/secret", "etc/hostname"] {
        all_refuse(&place, path, &[ErrorCode::InvalidPath]);
    }
    let refused = place.read("read_file", json!({ "path": "../secret" })).unwrap_err();
    assert_eq!(refused.category, Category::Permission);
    assert!(refused.message.starts_with("cannot read `../secret`: outside the workspace"), "{refused}");
    // The link itself may be deleted, copied, moved and replaced; nothing goes through it.
    for (tool, outcome) in everywhere(&place, "out") {
        let on_the_link = tool == "delete_file" || tool.starts_with("copy_file") || tool.starts_with("move_file");
        assert_eq!(outcome.is_ok(), on_the_link, "{tool}");
    }
    let copied = place.stage("copy_file", json!({ "source": "out", "dest": "copy" })).unwrap();
    assert_eq!(copied.changes.0[0].flags, [Flag::LinkOutside]);
    assert_eq!(fs::read_to_string(place.outside("secret")).unwrap(), "x");
}

#[test]
fn malformed_paths_are_told() {
    let place = Place::new();
    for path in ["", "a\0b", &"x".repeat(300), &"x/".repeat(3000)] {
        all_refuse(&place, path, &[ErrorCode::InvalidPath]);
    }
    let refused = place.read("read_file", json!({ "path": "a\0b" })).unwrap_err();
    assert_eq!(refused.category, Category::InvalidParams);
    assert!(refused.message.contains("NUL"), "{refused}");
}

#[test]
fn sensitive_names_are_refused_in_any_spelling() {
    let place = Place::new();
    for path in [".env", ".ENV", ".Env.local", ".ssh/config", "sub/.AWS/x", "id_rsa", "server.PEM", "credentials.json"]
    {
        place.put(path, "x");
        all_refuse(&place, path, &[ErrorCode::PermissionDenied]);
    }
    symlink(".env", place.path("harmless")).unwrap();
    let refused = place.read("read_file", json!({ "path": "harmless" })).unwrap_err();
    assert_eq!(refused.code, ErrorCode::PermissionDenied);
    let refused = place.read("read_file", json!({ "path": ".env" })).unwrap_err();
    assert!(refused.message.starts_with("`.env` usually holds secrets"), "{refused}");
    assert_eq!(refused.category, Category::Permission);
    place.put(".env.example", "x");
    assert!(place.read("read_file", json!({ "path": ".env.example" })).is_ok());
}

#[test]
fn pipes_and_sockets_never_hang() {
    let place = Place::new();
    rustix::fs::mknodat(rustix::fs::CWD, place.path("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(place.path("socket")).unwrap();
    for path in ["pipe", "socket"] {
        for (tool, outcome) in everywhere(&place, path) {
            match tool {
                "delete_file" | "copy_file to" | "move_file from" | "move_file to" => {
                    assert!(outcome.is_ok(), "{tool} {path}: {outcome:?}");
                }
                "copy_file from" => assert_eq!(outcome.is_ok(), path == "pipe", "{path}: {outcome:?}"),
                "list_directory" | "create_directory" | "glob" => {
                    assert_eq!(outcome.unwrap_err().code, ErrorCode::NotADirectory, "{path}")
                }
                _ => assert_eq!(outcome.unwrap_err().code, ErrorCode::ExecutionError, "{tool} {path}"),
            }
        }
    }
}

#[test]
fn links_in_a_circle_end() {
    let place = Place::new();
    symlink("b", place.path("a")).unwrap();
    symlink("a", place.path("b")).unwrap();
    for (tool, outcome) in everywhere(&place, "a/x") {
        assert_eq!(outcome.unwrap_err().code, ErrorCode::InvalidPath, "{tool}");
    }
    assert_eq!(place.read("read_file", json!({ "path": "a" })).unwrap_err().code, ErrorCode::InvalidPath);
}

#[test]
fn what_the_system_denies_is_told() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let path = place.put("locked", "x");
    fs::set_permissions(&path, PermissionsExt::from_mode(0o000)).unwrap();
    // The owner of everything may read it all the same.
    if fs::File::open(&path).is_err() {
        let refused = place.read("read_file", json!({ "path": "locked" })).unwrap_err();
        assert_eq!(refused.code, ErrorCode::PermissionDenied);
    }
}

#[test]
fn the_data_folder_is_out_of_reach_even_inside_the_workspace() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    fs::create_dir(&data).unwrap();
    fs::write(data.join("store"), "x").unwrap();
    let workspace = std::sync::Arc::new(haft_tools::Workspace::open(dir.path(), &data).unwrap());
    assert_eq!(workspace.path(), dir.path().canonicalize().unwrap());
    let tools = haft_tools::all(&crate::place::only(&workspace, &data), haft_runtime::Shown::Never);
    let tool = tools.into_iter().find(|tool| tool.spec().name == "read_file").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let input = json!({ "path": "data/store" });
    let refused = runtime.block_on(tool.run(&crate::place::ctx(), &input)).unwrap_err();
    assert_eq!(refused.code, ErrorCode::PermissionDenied);
}
