//! A person with a repository, and the plain git that it is made and compared with.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use serde_json::{Value, json};

use crate::{
    fenced::Person,
    support::{ALL, Ran, Running},
};

/// A person whose workspace is a repository with one commit of `a.txt`.
pub(crate) fn with_repository(person: Person) -> Person {
    person
        .put_home(".gitconfig", "[user]\n\tname = Anna\n\temail = anna@example.org\n[init]\n\tdefaultBranch = main\n");
    person.put("a.txt", "one\n");
    git(&person, &["init", "-q"]);
    git(&person, &["add", "."]);
    git(&person, &["commit", "-q", "-m", "First"]);
    person
}

/// Runs plain git in the workspace, which must succeed, and gives what it says.
pub(crate) fn git(person: &Person, arguments: &[&str]) -> String {
    let ran = plain(person, &person.fixture.workspace, arguments);
    assert_eq!(ran.code, Some(0), "git {arguments:?}: {ran:?}");
    ran.stdout.trim_end().to_owned()
}

/// Runs plain git anywhere; it may fail.
pub(crate) fn plain(person: &Person, folder: &Path, arguments: &[&str]) -> Ran {
    let mut command = person.program("/usr/bin/git");
    command.current_dir(folder).args(arguments).env("GIT_ALLOW_PROTOCOL", "file:ext");
    Running::start(command).finish()
}

/// The same repository in the middle of a merge, with a conflict in `a.txt`.
pub(crate) fn merging(person: Person) -> Person {
    git(&person, &["checkout", "-q", "-b", "other"]);
    person.put("a.txt", "theirs\n");
    git(&person, &["commit", "-q", "-a", "-m", "Theirs"]);
    git(&person, &["checkout", "-q", "main"]);
    person.put("a.txt", "ours\n");
    git(&person, &["commit", "-q", "-a", "-m", "Ours"]);
    plain(&person, &person.fixture.workspace, &["merge", "other"]);
    person
}

/// A call that must succeed in mode `all`; gives its value.
pub(crate) fn does(person: &Person, tool: &str, input: &Value) -> Value {
    let (code, outcome) = person.call(tool, input, ALL);
    assert_eq!(code, 0, "{tool} {input}: {outcome:#}");
    outcome["result"]["structured"].clone()
}

/// A look that must succeed without a question; gives its value.
pub(crate) fn looks(person: &Person, tool: &str, input: &Value) -> Value {
    let (code, outcome) = person.call(tool, input, &[]);
    assert_eq!((code, &outcome["approved_by"]), (0, &json!("auto")), "{tool} {input}: {outcome:#}");
    outcome["result"]["structured"].clone()
}

/// A call that must be refused; gives its code and message.
pub(crate) fn refused(person: &Person, tool: &str, input: &Value) -> (String, String) {
    let (code, outcome) = person.call(tool, input, ALL);
    assert_eq!((code, &outcome["status"]), (1, &json!("error")), "{tool} {input}: {outcome:#}");
    let text = |field: &str| outcome["error"][field].as_str().unwrap().to_owned();
    (text("code"), text("message"))
}

/// Puts a program into the workspace.
pub(crate) fn put_program(person: &Person, path: &str, script: &str) {
    person.put(path, format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(person.fixture.path(path), fs::Permissions::from_mode(0o755)).unwrap();
}
