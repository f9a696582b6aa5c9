//! `write_file`

use std::fs;

use haft_runtime::{ChangeKind, ErrorCode, Workbench};
use serde_json::json;

use crate::place::{Place, mode, scope};

#[test]
fn a_new_file_with_its_folder() {
    let place = Place::new();
    let input = json!({ "path": "src/a.txt", "content": "one\ntwo\n", "createDirs": true });
    let staged = place.stage("write_file", input).unwrap();
    assert!(!place.path("src").exists(), "nothing is there before the yes");
    let kinds: Vec<_> = staged.changes.0.iter().map(|change| (change.path.as_str(), change.kind)).collect();
    assert_eq!(kinds, [("src", ChangeKind::Created), ("src/a.txt", ChangeKind::Created)]);
    assert!(staged.changes.0[1].diff.as_deref().unwrap().contains("+two"));
    assert_eq!(
        *staged.output.structured,
        json!({ "path": "src/a.txt", "size": 8, "created": true, "bytes_written": 8 })
    );
    assert_eq!(staged.output.content, "Wrote 8 bytes to src/a.txt (created)");
    assert_eq!(serde_json::Value::Object(staged.output.metadata), json!({ "bytes_written": 8, "path": "src/a.txt" }));
}

#[test]
fn overwriting_keeps_the_mode_and_tells_the_old_size() {
    let place = Place::new();
    let path = place.put("a", "old content\n");
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o751)).unwrap();
    let output = place.change("write_file", json!({ "path": "a", "content": "z\n" })).unwrap();
    assert_eq!((&output.structured["created"], &output.structured["previousSize"]), (&json!(false), &json!(12)));
    assert_eq!(output.content, "Wrote 2 bytes to a (overwritten)");
    assert_eq!((place.text("a").as_str(), mode(&path)), ("z\n", 0o751));
}

#[test]
fn base64_content() {
    let place = Place::new();
    let output = place.change("write_file", json!({ "path": "a", "content": "AP8=", "encoding": "base64" })).unwrap();
    assert_eq!(output.structured["size"], 2);
    assert_eq!(fs::read(place.path("a")).unwrap(), b"\0\xff");
    let refused = place.stage("write_file", json!({ "path": "b", "content": "?", "encoding": "base64" })).unwrap_err();
    assert_eq!(refused.code, ErrorCode::InvalidArgs);
}

#[test]
fn a_missing_folder_is_made_unless_that_is_not_wanted() {
    let place = Place::new();
    let unwanted = json!({ "path": "no/where/a", "content": "", "createDirs": false });
    let refused = place.stage("write_file", unwanted).unwrap_err();
    assert_eq!(refused.code, ErrorCode::FileNotFound);
    assert!(refused.message.contains("`no/where`") && refused.message.contains("createDirs"), "{}", refused.message);
    assert!(place.holds_nothing_aside());
    place.stage("write_file", json!({ "path": "no/where/a", "content": "" })).unwrap();
    place.put("a", "");
    let refused = place.stage("write_file", json!({ "path": "a/b", "content": "" })).unwrap_err();
    assert_eq!(refused.code, ErrorCode::NotADirectory);
}

#[test]
fn what_is_there_may_have_to_be_something() {
    let place = Place::new();
    place.put("a", "old\n");
    fs::create_dir(place.path("folder")).unwrap();
    let code = |input| place.stage("write_file", input).map(|_| ()).map_err(|refused| refused.code);
    let old = "3c0bd5f72ad30a1cc1c2ce7ee5dff8e2fdde2d9e2fb1e5c5d2ce0a4e3ee3a2f1";
    assert_eq!(code(json!({ "path": "folder", "content": "" })), Err(ErrorCode::IsADirectory));
    assert_eq!(code(json!({ "path": ".", "content": "" })), Err(ErrorCode::IsADirectory));
    assert_eq!(code(json!({ "path": "a", "content": "", "ifExists": "fail" })), Err(ErrorCode::AlreadyExists));
    assert_eq!(code(json!({ "path": "b", "content": "", "ifExists": "fail" })), Ok(()));
    assert_eq!(code(json!({ "path": "a", "content": "", "expectedHash": old })), Err(ErrorCode::StaleFile));
    assert_eq!(code(json!({ "path": "b", "content": "", "expectedHash": old })), Err(ErrorCode::StaleFile));
    assert_eq!(
        code(json!({ "path": "a", "content": "", "expectedHash": old, "ifExists": "fail" })),
        Err(ErrorCode::InvalidArgs)
    );
    let hash = place.read("read_file", json!({ "path": "a" })).unwrap().metadata["sha256"].clone();
    assert_eq!(code(json!({ "path": "a", "content": "", "expectedHash": hash })), Ok(()));
}

#[test]
fn writing_what_is_there_changes_nothing() {
    let place = Place::new();
    place.put("a", "same\n");
    let staged = place.stage("write_file", json!({ "path": "a", "content": "same\n" })).unwrap();
    assert_eq!(staged.changes.0, []);
    assert_eq!(place.wait(place.workbench.take(&scope(), &staged.turn)).unwrap().0, []);
}

#[test]
fn a_change_underneath_is_a_conflict() {
    let place = Place::new();
    place.put("a", "old\n");
    let staged = place.stage("write_file", json!({ "path": "a", "content": "mine\n" })).unwrap();
    place.put("a", "yours\n");
    let refused = place.wait(place.workbench.take(&scope(), &staged.turn)).unwrap_err();
    assert_eq!(refused.code, ErrorCode::Conflict);
    assert_eq!(refused.details["paths"][0]["path"], "a");
    assert_eq!(place.text("a"), "yours\n");
}
