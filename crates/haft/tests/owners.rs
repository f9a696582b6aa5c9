//! Files of others in the workspace: whoever runs a command there is told why it could not change them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod fenced;
mod support;

use std::{
    fs,
    os::unix::fs::{PermissionsExt, chown},
};

use fenced::{NOBODY, Person};
use serde_json::{Value, json};
use support::text;

/// Somebody whom no fence of these tests knows.
const OTHER: u32 = 54_321;

fn left_out(outcome: &Value) -> Vec<String> {
    outcome["result"]["structured"]["leftOut"].as_array().into_iter().flatten().map(text).collect()
}

/// A workspace with a file, a folder and a script of somebody else's, all open to everybody. Only root can make one.
fn mixed(person: &Person, other: (u32, u32)) {
    for path in ["theirs", "shared/mine"] {
        person.put(path, "old\n");
        fs::set_permissions(person.fixture.path(path), fs::Permissions::from_mode(0o666)).unwrap();
    }
    fs::set_permissions(person.fixture.path("shared"), fs::Permissions::from_mode(0o777)).unwrap();
    for path in ["theirs", "shared"] {
        chown(person.fixture.path(path), Some(other.0), Some(other.1)).unwrap();
    }
}

#[test]
fn what_belongs_to_another_user_or_group_is_named_with_what_to_do() {
    if !rustix::process::geteuid().is_root() {
        return files_of_another_group();
    }
    for (person, own) in [(Person::us(), 0), (Person::ordinary(), NOBODY)] {
        for other in [(OTHER, OTHER), (own, OTHER)] {
            mixed(&person, other);
            person.put("own", "old\n");
            // What it could do is staged all the same, and the card says what it could not do, before the yes.
            let (code, outcome) = person.shell("echo new > own; echo new >> theirs", &[]);
            assert_eq!((code, &outcome["status"]), (4, &json!("pending")), "{other:?}: {outcome:#}");
            let call = support::id(&outcome);
            let card = person.run(&["changes", &call]).said();
            let remedy = format!("chown {own}:{own}");
            assert!(card.contains("left out: theirs: belongs to another user or group"), "{card}");
            assert!(card.split_whitespace().collect::<Vec<_>>().join(" ").contains(&remedy), "{card}");
            // The command could not do all of it, and says so by its own code.
            assert_eq!(person.run(&["approve", &call]).code, Some(1));
            assert_eq!(person.fixture.text("own").unwrap(), "new\n");
            assert_eq!(person.fixture.text("theirs").unwrap(), "old\n");

            let (_, outcome) = person.shell("touch shared/new", &[]);
            let told = left_out(&outcome);
            assert!(told.len() == 1 && told[0].starts_with("shared: "), "{other:?}: {outcome:#}");
            assert!(text(&outcome["result"]["content"]).contains("[left out: shared: "), "{outcome:#}");
            let code = "open('theirs', 'a').write('x')";
            let (_, outcome) = person.call("run_code", &json!({"language": "python", "code": code}), &[]);
            assert!(left_out(&outcome)[0].starts_with("theirs: "), "{other:?}: {outcome:#}");
        }
        // Who reads, or complains of something else, hears nothing of it.
        for quiet in ["cat theirs shared/mine", "ls /root; echo theirs", "echo x > /etc/x; true"] {
            let (_, outcome) = person.shell(quiet, &[]);
            assert_eq!(left_out(&outcome), Vec::<String>::new(), "{quiet}: {outcome:#}");
        }
        for path in ["theirs", "shared"] {
            chown(person.fixture.path(path), Some(own), Some(own)).unwrap();
        }
        person.does("echo new >> theirs; touch shared/new");
        assert_eq!(person.fixture.text("theirs").unwrap(), "old\nnew\n");
    }
}

/// Whoever is in more than one group can have such files without root; whoever is not cannot test it.
fn files_of_another_group() {
    let own = rustix::process::getegid();
    let Some(group) = rustix::process::getgroups().unwrap().into_iter().find(|group| *group != own) else { return };
    let person = Person::us();
    person.put("theirs", "old\n");
    chown(person.fixture.path("theirs"), None, Some(group.as_raw())).unwrap();
    let (_, outcome) = person.shell("echo new >> theirs", &[]);
    assert!(left_out(&outcome)[0].starts_with("theirs: "), "{outcome:#}");
}
