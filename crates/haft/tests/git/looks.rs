//! Repositories in every state that people leave them in.

use std::{ffi::OsStr, fs, os::unix::ffi::OsStrExt, os::unix::fs::chown};

use haft::{house, settings::Settings};
use haft_runtime::CallRequest;
use haft_store::{Durability, Store};
use serde_json::{Value, json};

use crate::{
    fenced::{NOBODY, Person},
    repo::{git, looks, merging, refused, with_repository},
};

#[test]
fn outside_a_repository_models_are_shown_no_tool_for_one() {
    let person = Person::us();
    let names = |flags: &[&str]| {
        let listed = person.json(&[&["tools"], flags].concat());
        let of_git = |tool: &Value| tool["name"].as_str().filter(|name| name.starts_with("git_")).map(str::to_owned);
        listed.as_array().unwrap().iter().filter_map(of_git).collect::<Vec<_>>()
    };
    assert_eq!(names(&[]), Vec::<String>::new());
    let all = ["git_branch", "git_commit", "git_diff", "git_log", "git_push", "git_status"];
    assert_eq!(names(&["--all"]), all);
    let (code, message) = refused(&person, "git_status", &json!({}));
    assert!(code == "INVALID_PATH" && message.contains("no git repository"), "{code}: {message}");
    let person = with_repository(person);
    let listed = person.json(&["tools"]).to_string();
    assert!(all.iter().all(|name| listed.contains(&format!("\"{name}\""))), "{listed}");
}

#[test]
fn a_branch_with_an_upstream_says_how_it_stands() {
    let person = with_repository(Person::us());
    git(&person, &["init", "-q", "--bare", "there.git"]);
    git(&person, &["remote", "add", "origin", "there.git"]);
    git(&person, &["push", "-q", "-u", "origin", "main"]);
    git(&person, &["commit", "-q", "--allow-empty", "-m", "Second"]);
    let status = looks(&person, "git_status", &json!({"path": "a.txt"}));
    assert_eq!(
        (&status["upstream"], &status["ahead"], &status["behind"]),
        (&json!("origin/main"), &json!(1), &json!(0))
    );
    assert_eq!((&status["clean"], &status["detached"]), (&json!(true), &json!(false)), "{status:#}");
    let branches = looks(&person, "git_branch", &json!({}));
    assert_eq!(branches["branches"][0]["upstream"], "origin/main", "{branches:#}");
}

#[test]
fn no_branch_and_no_commit() {
    let person = with_repository(Person::us());
    git(&person, &["checkout", "-q", "--detach"]);
    let status = looks(&person, "git_status", &json!({}));
    assert_eq!((&status["branch"], &status["detached"]), (&json!(""), &json!(true)), "{status:#}");
    assert_eq!(looks(&person, "git_branch", &json!({}))["current"], "");
    git(&person, &["checkout", "-q", "--orphan", "fresh"]);
    let status = looks(&person, "git_status", &json!({}));
    assert_eq!((&status["branch"], &status["entries"][0]["index"]), (&json!("fresh"), &json!("A")), "{status:#}");
    assert_eq!(looks(&person, "git_branch", &json!({}))["current"], "fresh");
    assert_eq!(looks(&person, "git_log", &json!({}))["commits"], json!([]));
    assert_eq!(looks(&person, "git_diff", &json!({"staged": true}))["additions"], 1);
}

#[test]
fn commits_are_told_as_git_tells_them() {
    let person = with_repository(Person::us());
    let odd = [
        ("@1700000000 +0545", "\n \nOne \n two\n \t\n\n  Body\n\nmore\n\n"),
        ("@100000 -0330", "Grün – 漢字\n\n\n\nAfter many\n"),
        ("@4000000000 +1400", "Only\r\n"),
        ("@999999 -1200", ""),
    ];
    for (date, message) in odd {
        let how = ["commit", "-q", "--allow-empty", "--allow-empty-message", "--cleanup=verbatim", "-m", message];
        git(&person, &[&how[..], &["--date", date]].concat());
    }
    let told = looks(&person, "git_log", &json!({"limit": odd.len()}))["commits"].clone();
    let format = "--format=%H%x00%h%x00%an%x00%ae%x00%aI%x00%s%x00%b%x01";
    let said = git(&person, &["log", "--max-count", &odd.len().to_string(), format]);
    let commits: Vec<_> = said.split_terminator('\u{1}').map(|commit| commit.trim_start_matches('\n')).collect();
    assert_eq!(commits.len(), odd.len());
    for (told, said) in told.as_array().unwrap().iter().zip(commits) {
        let fields: Vec<&str> = said.split('\0').collect();
        let names = ["hash", "shortHash", "author", "email", "date", "subject", "body"];
        for (name, field) in names.iter().zip(fields) {
            assert_eq!(told[name], field.trim_end_matches(char::is_whitespace), "{name}: {told:#}");
        }
    }
}

#[test]
fn a_merge_in_progress() {
    let person = merging(with_repository(Person::us()));
    let status = looks(&person, "git_status", &json!({}));
    assert_eq!((&status["entries"][0]["index"], &status["entries"][0]["worktree"]), (&json!("U"), &json!("U")));
    let diff = looks(&person, "git_diff", &json!({}));
    assert!(diff["diff"].as_str().unwrap().contains("+<<<<<<<") && diff["files"][0]["path"] == "a.txt", "{diff:#}");
    let diff = looks(&person, "git_diff", &json!({"base": "HEAD"}));
    assert!(diff["additions"].as_u64().unwrap() >= 4, "{diff:#}");
    looks(&person, "git_diff", &json!({"staged": true}));
    // It is ended like any commit.
    person.put("a.txt", "both\n");
    git(&person, &["add", "a.txt"]);
    let made = crate::repo::does(&person, "git_commit", &json!({"message": "Merge"}));
    assert_eq!(git(&person, &["rev-list", "--parents", "-1", "HEAD"]).split(' ').count(), 3, "{made:#}");
}

#[test]
fn five_thousand_changes_and_odd_names() {
    let person = with_repository(Person::us());
    for number in 0..5000 {
        fs::write(person.fixture.path(&format!("f{number}")), "x\n").unwrap();
    }
    let odd = OsStr::from_bytes(b"line\nbreak\xff \"quoted\"\ttab");
    fs::write(person.fixture.workspace.join(odd), "x\n").unwrap();
    git(&person, &["add", "."]);
    let ran = person.run(&["call", "git_status", "{}"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let (_, outcome) = person.call("git_status", &json!({"path": "a.txt"}), &[]);
    assert_eq!(outcome["result"]["structured"]["clean"], true);
    let (_, outcome) = person.call("git_diff", &json!({"staged": true}), &[]);
    assert_eq!(outcome["result"]["structured"]["additions"], 5001, "{outcome:#.400}");
    git(&person, &["rm", "-q", "-r", "--cached", "."]);
    fs::remove_dir_all(person.fixture.path(".git")).unwrap();
    git(&person, &["init", "-q"]);
    for number in 0..5000 {
        fs::remove_file(person.fixture.path(&format!("f{number}"))).unwrap();
    }
    let status = looks(&person, "git_status", &json!({}));
    let paths: Vec<&str> =
        status["entries"].as_array().unwrap().iter().map(|entry| entry["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["a.txt", "line%0Abreak%FF \"quoted\"%09tab"], "{status:#}");
    git(&person, &["add", "."]);
    let diff = looks(&person, "git_diff", &json!({"staged": true}));
    assert_eq!(diff["files"][1]["path"], paths[1], "{diff:#}");
}

#[test]
fn of_what_the_user_hides_only_the_names_are_shown() {
    let person = with_repository(Person::us());
    for name in ["tokens.txt", "hidden/a.txt", "shown/test.pem"] {
        person.put(name, "OLD-SECRET\n");
    }
    git(&person, &["add", "-f", "."]);
    git(&person, &["commit", "-q", "-m", "Secrets"]);
    let shown = person.fixture.path("shown");
    let settings = format!("[sandbox]\nhide = [\"tokens.txt\", \"hidden\"]\nshow = [\"{}\"]\n", shown.display());
    person.put_home(".config/haft/haft.toml", settings);
    for name in ["tokens.txt", "hidden/a.txt"] {
        person.put(name, "NEW-SECRET\n");
    }
    person.put("shown/test.pem", "for you\n");
    git(&person, &["add", "tokens.txt"]);
    for input in [json!({"base": "HEAD"}), json!({}), json!({"staged": true})] {
        let diff = looks(&person, "git_diff", &input);
        let patch = diff["diff"].as_str().unwrap();
        assert!(!patch.contains("NEW-SECRET"), "{input}: {diff:#}");
    }
    let diff = looks(&person, "git_diff", &json!({"base": "HEAD"}));
    assert!(diff["diff"].as_str().unwrap().contains("+for you"), "{diff:#}");
    assert_eq!(diff["files"].as_array().map(Vec::len), Some(3), "{diff:#}");
    // What is staged would be committed; the card does not show it either, and `files` leaves such names out.
    let (_, outcome) = person.call("git_commit", &json!({"message": "x"}), &[]);
    let call = outcome["tool_call_id"].as_str().unwrap();
    let told = [outcome.to_string(), person.run(&["approvals"]).said(), person.run(&["log", call, "--json"]).said()];
    assert!(told.iter().all(|text| !text.contains("NEW-SECRET")), "{told:?}");
    let (code, message) = refused(&person, "git_commit", &json!({"message": "x", "files": ["hidden"]}));
    assert!(code == "NO_MATCH" || code == "PERMISSION_DENIED", "{code}: {message}");
}

#[test]
fn of_secrets_only_the_names_are_shown() {
    let person = with_repository(Person::us());
    let long = "OLD-SECRET\n".repeat(20);
    for name in [".env", "keys/Server.KEY", "id_rsa"] {
        person.put(name, &long);
    }
    git(&person, &["add", "-f", "."]);
    git(&person, &["commit", "-q", "-m", "Secrets"]);
    for name in [".env", "keys/Server.KEY"] {
        person.put(name, "NEW-SECRET\n");
    }
    git(&person, &["mv", "id_rsa", "harmless.txt"]);
    person.put("harmless.txt", format!("{long}NEW-SECRET\n"));
    git(&person, &["add", "harmless.txt"]);
    person.put("a.txt", "seen\n");
    for input in [json!({}), json!({"base": "HEAD"}), json!({"staged": true}), json!({"path": "keys"})] {
        let (_, outcome) = person.call("git_diff", &input, &[]);
        assert!(!outcome.to_string().contains("SECRET"), "{input}: {outcome:#}");
    }
    let diff = looks(&person, "git_diff", &json!({"base": "HEAD"}));
    let paths: Vec<&str> =
        diff["files"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect();
    assert_eq!(paths, [".env", "a.txt", "harmless.txt", "keys/Server.KEY"]);
    assert!(diff["diff"].as_str().unwrap().contains("+seen"));
    assert_eq!(refused(&person, "git_diff", &json!({"path": ".env"})).0, "PERMISSION_DENIED");
}

#[test]
fn a_bare_repository_has_history_and_no_files() {
    let person = with_repository(Person::us());
    git(&person, &["clone", "-q", "--bare", ".", "bare.git"]);
    let log = looks(&person, "git_log", &json!({"path": "bare.git"}));
    assert_eq!(log["commits"][0]["subject"], "First", "{log:#}");
    for tool in ["git_status", "git_diff"] {
        let (code, message) = refused(&person, tool, &json!({"path": "bare.git"}));
        assert!(code == "INVALID_PATH" && message.contains("bare"), "{code}: {message}");
    }
}

#[test]
fn a_lock_that_was_left_behind_hinders_only_what_writes() {
    let person = with_repository(Person::us());
    person.put(".git/index.lock", "");
    person.put("a.txt", "changed\n");
    assert_eq!(looks(&person, "git_status", &json!({}))["entries"][0]["worktree"], "M");
    let (code, message) = refused(&person, "git_commit", &json!({"message": "x", "files": ["a.txt"]}));
    assert!(code == "BUSY" && message.contains(".lock"), "{code}: {message}");
}

#[test]
fn a_repository_of_somebody_else_is_refused_with_what_to_do() {
    // Only root can give a folder away; whoever is not root owns all of the workspace.
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let person = with_repository(Person::ordinary());
    for path in ["", ".git"] {
        chown(person.fixture.path(path), Some(NOBODY - 1), Some(NOBODY - 1)).unwrap();
    }
    let (code, message) = refused(&person, "git_status", &json!({}));
    assert!(code == "PERMISSION_DENIED" && message.contains("safe.directory"), "{code}: {message}");
    let here = person.fixture.workspace.display().to_string();
    person.put_home(".gitconfig", format!("[safe]\n\tdirectory = {here}\n"));
    looks(&person, "git_status", &json!({}));
}

#[test]
fn a_linked_worktree_is_looked_at_where_its_repository_agrees() {
    for person in Person::everyone() {
        let mut person = with_repository(person);
        let linked = person.fixture.workspace.with_file_name("linked");
        git(&person, &["worktree", "add", "-q", "-b", "side", &linked.display().to_string()]);
        person.fixture.workspace = linked;
        person.put("a.txt", "changed\n");
        let status = looks(&person, "git_status", &json!({}));
        assert_eq!((&status["branch"], &status["entries"][0]["path"]), (&json!("side"), &json!("a.txt")), "{status:#}");
        assert_eq!(looks(&person, "git_log", &json!({}))["commits"][0]["subject"], "First");
    }
}

#[test]
fn a_part_of_a_larger_repository_shows_only_itself() {
    let mut person = with_repository(Person::us());
    person.put("sub/b.txt", "b\n");
    git(&person, &["add", "."]);
    git(&person, &["commit", "-q", "-m", "Sub"]);
    person.put("sub/b.txt", "changed b\n");
    person.put("a.txt", "changed a\n");
    // Whoever marks a folder works in it alone.
    fs::create_dir(person.fixture.path("sub/.haft")).unwrap();
    person.fixture.workspace.push("sub");
    let status = looks(&person, "git_status", &json!({}));
    assert_eq!(status["entries"], json!([{"path": "b.txt", "index": ".", "worktree": "M"}]));
    let diff = looks(&person, "git_diff", &json!({}));
    assert!(!diff.to_string().contains("changed a") && diff["files"][0]["path"] == "b.txt", "{diff:#}");
    assert_eq!(looks(&person, "git_log", &json!({}))["commits"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_history_is_given_again_until_there_is_a_new_commit() {
    let person = with_repository(Person::us());
    let settings = Settings { home: person.fixture.home.clone(), ..Settings::defaults(person.fixture.data.clone()) };
    let store = Store::open(&settings.data, Durability::Normal).await.unwrap();
    let house = house::open(settings, store, &person.fixture.workspace).await.unwrap();
    let look = async || {
        let outcome = house.pipeline.call(CallRequest::new(house.caller.clone(), "git_log", json!({}))).await;
        let outcome = serde_json::to_value(outcome).unwrap();
        (outcome["cached"] == true, outcome["result"]["structured"]["commits"][0]["subject"].clone())
    };
    assert_eq!([look().await, look().await], [(false, json!("First")), (true, json!("First"))]);
    git(&person, &["commit", "-q", "--allow-empty", "-m", "Second"]);
    assert_eq!(look().await, (false, json!("Second")));
    git(&person, &["pack-refs", "--all"]);
    assert_eq!(look().await, (true, json!("Second")));
}
