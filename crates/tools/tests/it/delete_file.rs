//! `delete_file`

use std::fs;

use haft_runtime::{Effect, ErrorCode, Turn, Workbench};
use serde_json::json;

use crate::place::{Place, scope};

#[test]
fn a_file_goes_and_comes_back() {
    let place = Place::new();
    place.put("a", "one\n");
    let staged = place.stage("delete_file", json!({ "path": "a" })).unwrap();
    assert_eq!(staged.changes.effect(), Effect::Destroy);
    assert_eq!(*staged.output.structured, json!({ "deleted": ["a"], "deletedCount": 1 }));
    assert_eq!(staged.output.content, "Deleted a");
    place.wait(place.workbench.take(&scope(), &staged.turn)).unwrap();
    assert!(!place.path("a").exists());
    let undo = Turn { direction: staged.turn.direction.reversed(), ..staged.turn };
    place.wait(place.workbench.take(&scope(), &undo)).unwrap();
    assert_eq!(place.text("a"), "one\n");
}

#[test]
fn a_full_folder_needs_recursive() {
    let place = Place::new();
    place.put("d/e/f", "f\n");
    let refused = place.stage("delete_file", json!({ "path": "d" })).unwrap_err();
    assert_eq!(refused.code, ErrorCode::NotEmpty);
    assert!(refused.message.contains("recursive"), "{}", refused.message);
    let output = place.change("delete_file", json!({ "path": "d", "recursive": true })).unwrap();
    assert_eq!(*output.structured, json!({ "deleted": ["d", "d/e", "d/e/f"], "deletedCount": 3 }));
    assert_eq!(output.content, "Deleted d with everything inside (3 paths)");
    assert!(!place.path("d").exists());
    fs::create_dir(place.path("empty")).unwrap();
    place.change("delete_file", json!({ "path": "empty" })).unwrap();
    assert!(!place.path("empty").exists());
}

#[test]
fn a_thousand_paths_are_named_and_all_are_counted() {
    let place = Place::new();
    for number in 0..1001 {
        place.put(&format!("d/{number}"), "");
    }
    let output = place.change("delete_file", json!({ "path": "d", "recursive": true })).unwrap();
    assert_eq!(output.structured["deleted"].as_array().unwrap().len(), 1000);
    assert_eq!(output.structured["deletedCount"], 1002);
}

#[test]
fn of_a_link_only_the_link_goes() {
    let place = Place::new();
    place.put("real/a", "one\n");
    std::os::unix::fs::symlink("real", place.path("link")).unwrap();
    let output = place.change("delete_file", json!({ "path": "link", "recursive": true })).unwrap();
    assert_eq!(output.structured["deletedCount"], 1);
    assert!(!place.path("link").is_symlink());
    assert_eq!(place.text("real/a"), "one\n");
}

#[test]
fn the_workspace_itself_stays() {
    let place = Place::new();
    for path in [".", "a/..", place.path("").to_str().unwrap()] {
        let refused = place.stage("delete_file", json!({ "path": path, "recursive": true })).unwrap_err();
        assert_eq!(refused.code, ErrorCode::InvalidPath, "{path}");
    }
    let refused = place.stage("delete_file", json!({ "path": "absent" })).unwrap_err();
    assert_eq!(refused.code, ErrorCode::FileNotFound);
}
