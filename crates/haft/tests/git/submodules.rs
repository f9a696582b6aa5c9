//! Repositories in repositories: what belongs to which, and what is not looked into.

use serde_json::json;

use crate::{
    fenced::Person,
    repo::{does, git, looks, refused, with_repository},
    support::text,
};

/// A repository with a submodule `sub` that has one file.
fn with_submodule(person: Person) -> Person {
    let person = with_repository(person);
    git(&person, &["init", "-q", "origin.git"]);
    person.put("origin.git/b.txt", "b\n");
    git(&person, &["-C", "origin.git", "add", "."]);
    git(&person, &["-C", "origin.git", "commit", "-q", "-m", "Sub"]);
    git(&person, &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "./origin.git", "sub"]);
    person.put(".gitignore", "origin.git\n");
    git(&person, &["add", "."]);
    git(&person, &["commit", "-q", "-m", "With a submodule"]);
    person
}

fn commit_inside(person: &Person) -> String {
    person.put("sub/b.txt", "changed\n");
    git(person, &["-C", "sub", "commit", "-q", "-a", "-m", "Inside"]);
    git(person, &["-C", "sub", "rev-parse", "HEAD"])
}

#[test]
fn a_named_submodule_is_committed_where_it_is_a_part() {
    let person = with_submodule(Person::us());
    let inside = commit_inside(&person);
    let (code, outcome) = person.call("git_commit", &json!({"message": "Pointer", "files": ["sub"]}), &[]);
    assert_eq!((code, &outcome["status"]), (4, &json!("pending")), "{outcome:#}");
    let card = person.run(&["changes", &text(&outcome["tool_call_id"])]).said();
    assert!(card.contains(" on main") && !card.contains("lies inside a git folder"), "{card}");
    assert_eq!(person.run(&["approve", &text(&outcome["tool_call_id"])]).code, Some(0));
    assert_eq!(git(&person, &["rev-parse", "HEAD:sub"]), inside);
    assert_eq!(git(&person, &["show", "--name-only", "--format=%s", "HEAD"]), "Pointer\n\nsub");
    person.put("a.txt", "two\n");
    git(&person, &["-C", "sub", "commit", "-q", "--allow-empty", "-m", "More"]);
    let made = does(&person, "git_commit", &json!({"message": "Both", "files": ["a.txt", "sub"]}));
    assert_eq!(made["filesChanged"], 2, "{made:#}");
    git(&person, &["-C", "sub", "commit", "-q", "--allow-empty", "-m", "Even more"]);
    let made = does(&person, "git_commit", &json!({"message": "All", "files": ["sub/", "."]}));
    assert_eq!((&made["filesChanged"], &made["branch"]), (&json!(1), &json!("main")), "{made:#}");
}

#[test]
fn only_what_lies_beneath_it_belongs_to_a_submodule() {
    let person = with_submodule(Person::us());
    person.put("sub/b.txt", "changed\n");
    let before = git(&person, &["-C", "sub", "rev-parse", "HEAD"]);
    let (code, message) = refused(&person, "git_commit", &json!({"message": "x", "files": ["sub"]}));
    assert!(code == "NO_MATCH" && message.contains("beneath it"), "{code}: {message}");
    assert_eq!(git(&person, &["-C", "sub", "rev-parse", "HEAD"]), before);
    let (code, message) = refused(&person, "git_commit", &json!({"message": "x", "files": ["a.txt", "sub/b.txt"]}));
    assert!(code == "INVALID_ARGS" && message.contains("another repository"), "{code}: {message}");
    let made = does(&person, "git_commit", &json!({"message": "Inside", "files": ["sub/b.txt"]}));
    assert_eq!(git(&person, &["-C", "sub", "rev-parse", "HEAD"]), text(&made["hash"]));
    // A repository that no other knows is its own.
    git(&person, &["init", "-q", "alone"]);
    person.put("alone/c.txt", "c\n");
    does(&person, "git_commit", &json!({"message": "Alone", "files": ["alone"]}));
    assert_eq!(git(&person, &["-C", "alone", "log", "--format=%s"]), "Alone");
}

#[test]
fn a_status_says_that_submodules_were_not_looked_into() {
    let person = with_submodule(Person::us());
    person.put("sub/b.txt", "changed\n");
    let (_, outcome) = person.call("git_status", &json!({}), &[]);
    let result = &outcome["result"];
    assert_eq!(result["structured"]["submodules"], "not looked into", "{outcome:#}");
    assert_eq!(result["metadata"]["submodules"], "not looked into", "{outcome:#}");
    let said = text(&result["content"]);
    assert!(said.contains("clean; submodules not looked into") && !said.contains("tree clean"), "{said}");
    let sub = looks(&person, "git_status", &json!({"path": "sub"}));
    assert_eq!((&sub["entries"][0]["path"], &sub["submodules"]), (&json!("sub/b.txt"), &json!(null)), "{sub:#}");
    let file = looks(&person, "git_status", &json!({"path": "a.txt"}));
    assert_eq!((&file["clean"], &file["submodules"]), (&json!(true), &json!(null)), "{file:#}");
    person.put("a.txt", "two\n");
    let (_, outcome) = person.call("git_status", &json!({}), &[]);
    assert!(text(&outcome["result"]["content"]).ends_with("(submodules not looked into)"), "{outcome:#}");
}
