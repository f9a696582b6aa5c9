//! Names that are not plain: a path that one tool gives can be given to any other.

use std::{ffi::OsStr, fs, os::unix::ffi::OsStrExt};

use serde_json::{Value, json};

use crate::{
    fenced::Person,
    repo::{does, git, looks, refused, with_repository},
};

const ODD: [&[u8]; 4] = [b"a%20b.html", b"nl\nname", b"\xff latin", b"fold\ner/in%41side"];

fn with_odd_names() -> Person {
    let person = with_repository(Person::us());
    for name in ODD {
        let file = person.fixture.workspace.join(OsStr::from_bytes(name));
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "one\n").unwrap();
    }
    person
}

fn told(list: &Value) -> Vec<String> {
    let paths = list.as_array().unwrap().iter().map(|entry| entry["path"].as_str().unwrap().to_owned());
    paths.filter(|path| path.contains('%')).collect()
}

#[test]
fn a_path_that_git_tells_is_committed_compared_and_told_by() {
    let person = with_odd_names();
    let status = looks(&person, "git_status", &json!({}));
    let paths = told(&status["entries"]);
    assert_eq!(paths, ["a%2520b.html", "fold%0Aer/", "nl%0Aname", "%FF latin"], "{status:#}");
    for path in &paths {
        let made = does(&person, "git_commit", &json!({"message": path, "files": [path]}));
        assert_eq!(made["filesChanged"], 1, "{path}: {made:#}");
        let log = looks(&person, "git_log", &json!({"path": path}));
        assert_eq!(log["commits"].as_array().unwrap().len(), 1, "{path}: {log:#}");
    }
    assert_eq!(git(&person, &["status", "--short"]), "");
    for name in ODD {
        fs::write(person.fixture.workspace.join(OsStr::from_bytes(name)), "two\n").unwrap();
    }
    let diff = looks(&person, "git_diff", &json!({}));
    let paths = told(&diff["files"]);
    assert_eq!(paths.len(), ODD.len(), "{diff:#}");
    for path in &paths {
        let one = looks(&person, "git_diff", &json!({"path": path}));
        assert_eq!((told(&one["files"]), &one["additions"]), (vec![path.clone()], &json!(1)), "{path}: {one:#}");
    }
    // What is gone is still known to git.
    for name in ODD {
        fs::remove_file(person.fixture.workspace.join(OsStr::from_bytes(name))).unwrap();
    }
    for path in &paths {
        for (tool, field) in [("git_diff", "files"), ("git_status", "entries")] {
            let one = looks(&person, tool, &json!({"path": path}));
            assert_eq!(told(&one[field]), [path.as_str()], "{tool} {path}: {one:#}");
        }
        let made = does(&person, "git_commit", &json!({"message": "Gone", "files": [path]}));
        assert_eq!((&made["filesChanged"], &made["deletions"]), (&json!(1), &json!(1)), "{path}: {made:#}");
    }
    assert_eq!(git(&person, &["ls-files"]), "a.txt");
}

#[test]
fn a_path_that_a_list_gives_is_read_edited_written_and_deleted() {
    let person = with_odd_names();
    let list = looks(&person, "glob", &json!({"pattern": "**/*"}));
    let paths: Vec<String> = list["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file.as_str().unwrap().to_owned())
        .filter(|path| path.contains('%'))
        .collect();
    assert_eq!(paths.len(), ODD.len(), "{list:#}");
    let before = fs::read_dir(&person.fixture.workspace).unwrap().count();
    for path in &paths {
        let read = looks(&person, "read_file", &json!({"path": path}));
        assert!(read.to_string().contains("one"), "{path}: {read:#}");
        does(&person, "edit_file", &json!({"path": path, "old": "one", "new": "two"}));
        assert!(looks(&person, "read_file", &json!({"path": path})).to_string().contains("two"), "{path}");
        does(&person, "write_file", &json!({"path": path, "content": "three\n"}));
        assert!(looks(&person, "read_file", &json!({"path": path})).to_string().contains("three"), "{path}");
        does(&person, "copy_file", &json!({"source": path, "dest": "copy"}));
        does(&person, "delete_file", &json!({"path": "copy"}));
    }
    assert_eq!(fs::read_dir(&person.fixture.workspace).unwrap().count(), before, "nothing new was made");
    let inside = looks(&person, "list_directory", &json!({"path": "fold%0Aer"}));
    assert!(inside.to_string().contains("in%2541side"), "{inside:#}");
    for path in &paths {
        does(&person, "delete_file", &json!({"path": path}));
    }
    for name in ODD {
        assert!(!person.fixture.workspace.join(OsStr::from_bytes(name)).exists(), "{name:?}");
    }
}

#[test]
fn a_name_is_taken_word_for_word_where_nothing_else_is_meant() {
    let person = with_repository(Person::us());
    for name in ["100%25.txt", "a%20b.txt", "%2e%2e%2fx", "%41"] {
        does(&person, "write_file", &json!({"path": name, "content": "x\n"}));
        assert_eq!(person.fixture.text(name).unwrap(), "x\n", "{name}");
    }
    assert!(!person.fixture.workspace.with_file_name("x").exists());
    person.put(".env", "SECRET\n");
    for (path, code) in [("%2Eenv", "FILE_NOT_FOUND"), (".env", "PERMISSION_DENIED"), ("x%00", "FILE_NOT_FOUND")] {
        assert_eq!(refused(&person, "read_file", &json!({"path": path})).0, code, "{path}");
    }
    // An existing name comes before what is shown by it.
    person.put("nl\nname", "meant\n");
    person.put("nl%0Aname", "called\n");
    let read = looks(&person, "read_file", &json!({"path": "nl%0Aname"}));
    assert!(read.to_string().contains("called"), "{read:#}");
    let read = looks(&person, "read_file", &json!({"path": "nl%250Aname"}));
    assert!(read.to_string().contains("called"), "{read:#}");
}
