//! `edit_file`

use std::fs::File;

use haft_runtime::{ErrorCode, Workbench};
use serde_json::{Value, json};

use crate::place::{Place, scope};

fn refused(place: &Place, input: Value) -> (ErrorCode, String) {
    let refused = place.stage("edit_file", input).unwrap_err();
    (refused.code, refused.message)
}

#[test]
fn one_replacement() {
    let place = Place::new();
    place.put("src/a.txt", "one\ntwo\n");
    let input = json!({ "path": "src/a.txt", "old": "two", "new": "three" });
    let output = place.change("edit_file", input).unwrap();
    assert_eq!(place.text("src/a.txt"), "one\nthree\n");
    let found = output.structured;
    assert_eq!(
        (&found["replacements"], &found["size"], &found["firstChangedLine"]),
        (&json!(1), &json!(10), &json!(2))
    );
    assert!(found["diff"].as_str().unwrap().contains("\n-two\n+three\n"), "{found}");
    assert_eq!(output.content, "Edited src/a.txt: 1 replacement, first changed line 2");
}

#[test]
fn line_ends_and_a_missing_last_newline_stay() {
    let place = Place::new();
    place.put("a", "\u{feff}one\r\ntwo\r\nthree");
    place.change("edit_file", json!({ "path": "a", "old": "two", "new": "2" })).unwrap();
    assert_eq!(place.text("a"), "\u{feff}one\r\n2\r\nthree");
}

#[test]
fn several_matches_need_a_word() {
    let place = Place::new();
    place.put("a", "x\ny\nx\n");
    let (code, message) = refused(&place, json!({ "path": "a", "old": "x", "new": "z" }));
    assert_eq!(code, ErrorCode::AmbiguousMatch);
    assert!(message.contains("occurs 2 times (lines 1, 3)"), "{message}");
    let (code, message) = refused(&place, json!({ "path": "a", "old": "x", "new": "z", "expectedReplacements": 3 }));
    assert_eq!(code, ErrorCode::AmbiguousMatch);
    assert!(message.ends_with("`expectedReplacements` says 3"), "{message}");
    place.change("edit_file", json!({ "path": "a", "old": "x", "new": "z", "expectedReplacements": 2 })).unwrap();
    assert_eq!(place.text("a"), "z\ny\nz\n");
    let output = place.change("edit_file", json!({ "path": "a", "old": "z", "new": "x", "replaceAll": true })).unwrap();
    assert_eq!((place.text("a").as_str(), &output.structured["replacements"]), ("x\ny\nx\n", &json!(2)));
}

#[test]
fn several_edits_are_made_in_order_or_not_at_all() {
    let place = Place::new();
    place.put("a", "one two\n");
    let edits = json!([{ "old": "one", "new": "two" }, { "old": "two", "new": "2", "replaceAll": true }]);
    let output = place.change("edit_file", json!({ "path": "a", "edits": edits })).unwrap();
    assert_eq!((place.text("a").as_str(), &output.structured["replacements"]), ("2 2\n", &json!(3)));
    let edits = json!([{ "old": "2 2", "new": "1" }, { "old": "gone", "new": "x" }]);
    let (code, message) = refused(&place, json!({ "path": "a", "edits": edits }));
    assert_eq!(code, ErrorCode::NoMatch);
    assert!(message.contains("edit 2: `old` does not occur"), "{message}");
    assert_eq!(place.text("a"), "2 2\n");
    assert_eq!(
        refused(&place, json!({ "path": "a", "edits": edits_that_cancel_out(), "old": "1", "new": "2" })).0,
        ErrorCode::InvalidArgs
    );
    let staged = place.stage("edit_file", json!({ "path": "a", "edits": edits_that_cancel_out() })).unwrap();
    assert_eq!((staged.changes.0.len(), staged.output.structured.get("firstChangedLine")), (0, None));
}

fn edits_that_cancel_out() -> Value {
    json!([{ "old": "2 2", "new": "1" }, { "old": "1", "new": "2 2" }])
}

#[test]
fn what_makes_no_sense_is_told() {
    let place = Place::new();
    place.put("a", "x\n");
    let inputs = [
        json!({ "path": "a" }),
        json!({ "path": "a", "old": "x" }),
        json!({ "path": "a", "new": "x" }),
        json!({ "path": "a", "old": "", "new": "x" }),
        json!({ "path": "a", "old": "x", "new": "x" }),
        json!({ "path": "a", "edits": [] }),
        json!({ "path": "a", "edits": [{ "old": "", "new": "" }] }),
        json!({ "path": "a", "edits": [{ "old": "x", "new": "y" }], "replaceAll": true }),
        json!({ "path": "a", "edits": [{ "old": "x", "new": "y" }], "new": "z" }),
    ];
    for input in inputs {
        assert_eq!(refused(&place, input.clone()).0, ErrorCode::InvalidArgs, "{input}");
    }
    assert!(place.holds_nothing_aside());
}

#[test]
fn no_match_shows_what_was_probably_meant() {
    let place = Place::new();
    place.put("a.rs", "fn main() {\n\tlet total = 1;\n}\n");
    let (code, message) = refused(&place, json!({ "path": "a.rs", "old": "    let total = 1;", "new": "" }));
    assert_eq!(code, ErrorCode::NoMatch);
    assert_eq!(
        message,
        "cannot edit `a.rs`: `old` does not occur in it; only the spacing differs: the file has tabs; \
         the nearest lines:\n     2→\tlet total = 1;"
    );
    let (_, message) = refused(&place, json!({ "path": "a.rs", "old": "let totals = 2;", "new": "" }));
    assert!(message.contains("read the file") && message.ends_with("     2→\tlet total = 1;"), "{message}");
}

#[test]
fn not_every_file_can_be_edited() {
    let place = Place::new();
    place.put("bin", b"x\0");
    place.put("late", [vec![b'a'; 9000], b"x\xff\0".to_vec()].concat());
    File::create(place.path("big")).unwrap().set_len((64 << 20) + 1).unwrap();
    std::fs::create_dir(place.path("folder")).unwrap();
    let code = |path: &str| refused(&place, json!({ "path": path, "old": "x", "new": "y" })).0;
    assert_eq!(code("bin"), ErrorCode::BinaryFile);
    assert_eq!(code("late"), ErrorCode::BinaryFile);
    assert_eq!(code("big"), ErrorCode::TooLarge);
    assert_eq!(code("folder"), ErrorCode::IsADirectory);
    assert_eq!(code("absent"), ErrorCode::FileNotFound);
}

#[test]
fn an_edit_in_between_is_a_conflict() {
    let place = Place::new();
    place.put("a", "one\n");
    let staged = place.stage("edit_file", json!({ "path": "a", "old": "one", "new": "two" })).unwrap();
    place.put("a", "one and mine\n");
    let refused = place.wait(place.workbench.take(&scope(), &staged.turn)).unwrap_err();
    assert_eq!(refused.code, ErrorCode::Conflict);
    assert_eq!(place.text("a"), "one and mine\n");
}

#[test]
fn an_edit_goes_through_a_link_to_the_file() {
    let place = Place::new();
    place.put("real/a", "one\n");
    std::os::unix::fs::symlink("real/a", place.path("link")).unwrap();
    let output = place.change("edit_file", json!({ "path": "link", "old": "one", "new": "two" })).unwrap();
    assert_eq!(place.text("real/a"), "two\n");
    assert!(place.path("link").is_symlink() && output.structured["diff"].as_str().unwrap().contains("+two"));
}
