//! Commits and branches: made aside, seen, committed, undone and made again.

use serde_json::{Value, json};

use crate::{
    fenced::Person,
    repo::{does, git, looks, merging, plain, put_program, refused, with_repository},
    support::text,
};

#[test]
fn a_commit_is_one_line_and_can_be_undone_and_made_again() {
    for person in Person::everyone() {
        let person = with_repository(person);
        let first = git(&person, &["rev-parse", "HEAD"]);
        person.put("a.txt", "two\n");
        person.put("new.txt", "new\n");
        let input = json!({"message": "Second\n\n#1 with a body", "files": ["a.txt", "new.txt"]});
        let (code, outcome) = person.call("git_commit", &input, &[]);
        assert_eq!((code, &outcome["status"]), (4, &json!("pending")), "{outcome:#}");
        assert_eq!(git(&person, &["rev-parse", "HEAD"]), first, "nothing has changed yet");
        let call = text(&outcome["tool_call_id"]);
        let card = person.run(&["changes", &call]).said();
        for words in ["[main ", "Second", "+two", "+new", "commit ", " on main"] {
            assert!(card.contains(words), "{words}: {card}");
        }
        assert_eq!(person.run(&["approve", &call]).code, Some(0));
        let log = looks(&person, "git_log", &json!({}));
        let second = &log["commits"][0];
        assert_eq!((&second["subject"], &second["body"]), (&json!("Second"), &json!("#1 with a body")), "{log:#}");
        assert_eq!(second["author"], "Anna");
        assert_eq!(person.run(&["undo", &call, "--yes"]).code, Some(0));
        assert_eq!(git(&person, &["rev-parse", "HEAD"]), first);
        assert_eq!(person.run(&["redo", &call, "--yes"]).code, Some(0));
        assert_eq!(git(&person, &["rev-parse", "HEAD"]), text(&second["hash"]));
        assert_eq!(git(&person, &["status", "--short"]), "");
        assert_eq!(git(&person, &["fsck", "--no-progress"]), "");
    }
}

#[test]
fn named_files_and_nothing_else_are_committed() {
    let person = with_repository(Person::us());
    person.put("staged.txt", "staged\n");
    git(&person, &["add", "staged.txt"]);
    person.put("sub/one.txt", "one\n");
    person.put("sub/.env", "KEY=1\n");
    person.put("[a]*.txt", "odd\n");
    let made = does(&person, "git_commit", &json!({"message": "Chosen", "files": ["sub", "[a]*.txt"]}));
    assert_eq!((&made["filesChanged"], &made["insertions"], &made["branch"]), (&json!(2), &json!(2), &json!("main")));
    assert_eq!(git(&person, &["show", "--name-only", "--format=", "HEAD"]), "[a]*.txt\nsub/one.txt");
    assert_eq!(git(&person, &["diff", "--cached", "--name-only"]), "staged.txt");
    let made = does(&person, "git_commit", &json!({"message": "What is staged"}));
    assert_eq!((&made["filesChanged"], &made["deletions"]), (&json!(1), &json!(0)));
    std::fs::remove_file(person.fixture.path("staged.txt")).unwrap();
    let made = does(&person, "git_commit", &json!({"message": "Gone", "files": ["staged.txt"]}));
    assert_eq!((&made["filesChanged"], &made["deletions"]), (&json!(1), &json!(1)));
}

#[test]
fn nothing_to_commit_and_what_is_asked_for_all_the_same() {
    let person = with_repository(Person::us());
    for input in
        [json!({"message": "x"}), json!({"message": "x", "files": ["a.txt"]}), json!({"message": "x", "files": []})]
    {
        assert_eq!(refused(&person, "git_commit", &input).0, "NO_MATCH", "{input}");
    }
    person.put("b.txt", "b\n");
    git(&person, &["add", "b.txt"]);
    let unchanged = json!({"message": "x", "files": ["a.txt"], "allowEmpty": true});
    assert_eq!(refused(&person, "git_commit", &unchanged).0, "NO_MATCH", "what else is staged stays out");
    let made = does(&person, "git_commit", &json!({"message": "All", "files": [".", "a.txt"]}));
    assert_eq!(made["filesChanged"], 1, "{made:#}");
    let made = does(&person, "git_commit", &json!({"message": "Empty", "allowEmpty": true}));
    assert_eq!((&made["filesChanged"], &made["insertions"]), (&json!(0), &json!(0)));
    assert_eq!(git(&person, &["log", "-1", "--format=%s"]), "Empty");
}

#[test]
fn a_name_that_is_nothing_is_refused() {
    let person = with_repository(Person::us());
    person.put("b.txt", "b\n");
    let (code, message) = refused(&person, "git_commit", &json!({"message": "x", "files": ["b.txt", "missing.txt"]}));
    assert!(code == "FILE_NOT_FOUND" && message.contains("`missing.txt`"), "{code}: {message}");
    assert_eq!(git(&person, &["log", "--format=%s"]), "First");
    std::fs::remove_file(person.fixture.path("a.txt")).unwrap();
    let made = does(&person, "git_commit", &json!({"message": "x", "files": ["b.txt", "a.txt"]}));
    assert_eq!((&made["filesChanged"], &made["deletions"]), (&json!(2), &json!(1)));
}

#[test]
fn the_card_shows_sources_and_names_the_rest() {
    let person = with_repository(Person::us());
    let lines = |name: &str, count: usize| (0..count).map(|line| format!("{name} {line}\n")).collect::<String>();
    person.put("Cargo.lock", lines("lock", 40_000));
    person.put("src/long.rs", lines("long", 300));
    person.put("z.rs", lines("last", 200));
    let input = json!({"message": "All", "files": ["."]});
    let (_, outcome) = person.call("git_commit", &input, &[]);
    let call = text(&outcome["tool_call_id"]);
    let card = person.run(&["changes", &call, "--all"]).said();
    assert!(card.contains("Cargo.lock: 40000 lines added, 0 removed (generated)"), "{card}");
    assert!(!card.contains("+lock 1\n"), "{card}");
    for line in ["+long 0", "+long 299", "+last 0", "+last 199"] {
        assert!(card.contains(line), "{line}: {card}");
    }
    assert_eq!(person.run(&["approve", &call]).code, Some(0));
}

#[test]
fn a_commit_is_made_and_undone_although_another_git_has_looked() {
    for person in Person::everyone() {
        let person = with_repository(person);
        let look_anew = |seconds: u64| {
            // The same content with another time makes git write its index again.
            let file = std::fs::File::options().write(true).open(person.fixture.path("other.txt")).unwrap();
            file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds)).unwrap();
            let index = std::fs::read(person.fixture.path(".git/index")).unwrap();
            git(&person, &["status", "--short"]);
            assert_ne!(std::fs::read(person.fixture.path(".git/index")).unwrap(), index, "git wrote its index");
        };
        person.put("other.txt", "other\n");
        git(&person, &["add", "."]);
        git(&person, &["commit", "-q", "-m", "Other"]);
        let first = git(&person, &["rev-parse", "HEAD"]);
        person.put("a.txt", "two\n");
        let (_, outcome) = person.call("git_commit", &json!({"message": "Second", "files": ["a.txt"]}), &[]);
        let call = text(&outcome["tool_call_id"]);
        look_anew(1_000_000_000);
        let ran = person.run(&["approve", &call]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let second = git(&person, &["rev-parse", "HEAD"]);
        look_anew(1_000_000_001);
        let ran = person.run(&["undo", &call, "--yes"]);
        assert_eq!((ran.code, git(&person, &["rev-parse", "HEAD"])), (Some(0), first), "{ran:?}");
        look_anew(1_000_000_002);
        let ran = person.run(&["redo", &call, "--yes"]);
        assert_eq!((ran.code, git(&person, &["rev-parse", "HEAD"])), (Some(0), second), "{ran:?}");
        // What the index says counts: something else that is staged is not thrown away.
        person.put("other.txt", "changed\n");
        git(&person, &["add", "other.txt"]);
        let ran = person.run(&["undo", &call, "--yes"]);
        assert!(ran.code != Some(0) && ran.said().contains(".git/index"), "{ran:?}");
    }
}

#[test]
fn secrets_that_are_left_out_are_named() {
    let person = with_repository(Person::us());
    person.put(".env", "KEY=1\n");
    let (code, message) = refused(&person, "git_commit", &json!({"message": "x", "files": ["."]}));
    assert!(code == "NO_MATCH" && message.contains("`.env`") && message.contains("secrets"), "{code}: {message}");
}

#[test]
fn a_merge_is_committed_as_a_whole() {
    let person = merging(with_repository(Person::us()));
    person.put("a.txt", "both\n");
    let (code, message) = refused(&person, "git_commit", &json!({"message": "x", "files": ["a.txt"]}));
    assert!(code == "INVALID_ARGS" && message.contains("`git add`"), "{code}: {message}");
    git(&person, &["add", "a.txt"]);
    let outcome = asked(&person, "git_commit", &json!({"message": "Merge"}), &["commit ", " on main"]);
    assert_eq!(git(&person, &["rev-list", "--parents", "-1", "HEAD"]).split(' ').count(), 3, "{outcome:#}");
}

#[test]
fn branches_and_commits_on_none_are_one_line_that_is_not_flagged() {
    let person = with_repository(Person::us());
    let first = git(&person, &["rev-parse", "HEAD"])[..7].to_owned();
    asked(&person, "git_branch", &json!({"name": "new", "create": true}), &[&format!("branch new at {first}")]);
    let both = json!({"name": "work/it", "create": true, "checkout": true});
    asked(&person, "git_branch", &both, &[&format!("branch work/it at {first}, checked out")]);
    asked(&person, "git_branch", &json!({"name": "main", "checkout": true}), &["switch to branch main"]);
    assert_eq!(git(&person, &["branch", "--show-current"]), "main");
    git(&person, &["checkout", "-q", "--detach"]);
    person.put("a.txt", "two\n");
    asked(&person, "git_commit", &json!({"message": "x", "files": ["a.txt"]}), &["commit ", " on detached HEAD"]);
    // A command that does more than that is seen to.
    let (_, outcome) = person.shell("git branch more; echo x > .git/hooks/post-checkout", &[]);
    let card = person.run(&["changes", &text(&outcome["tool_call_id"])]).said();
    assert!(card.contains("post-checkout") && card.contains(".git/refs/heads/more"), "{card}");
    assert!(!card.contains("branch more at"), "{card}");
}

/// A call that is asked about as a write, with these words on one line and no flag; then approved.
fn asked(person: &Person, tool: &str, input: &Value, words: &[&str]) -> Value {
    let (code, outcome) = person.call(tool, input, &[]);
    assert_eq!((code, &outcome["status"]), (4, &json!("pending")), "{outcome:#}");
    let call = text(&outcome["tool_call_id"]);
    let list = person.run(&["changes", &call]).said();
    assert!(list.lines().any(|line| words.iter().all(|word| line.contains(word))), "{words:?}: {list}");
    assert!(!list.contains("inside a git folder"), "{list}");
    let open = person.json(&["approvals"]);
    assert!(open.to_string().contains("\"effect\":\"write\""), "{open:#}");
    assert_eq!(person.run(&["approve", &call]).code, Some(0), "{list}");
    outcome
}

#[test]
fn hooks_run_inside_the_fence_and_may_refuse() {
    let person = with_repository(Person::us());
    let marker = person.fixture.home.join("marker");
    put_program(&person, ".git/hooks/pre-commit", &format!("touch {}; echo said by the hook", marker.display()));
    person.put("a.txt", "two\n");
    let made = does(&person, "git_commit", &json!({"message": "Hooked", "files": ["a.txt"]}));
    assert!(!marker.exists() && made["hash"] == git(&person, &["rev-parse", "HEAD"]), "{made:#}");
    put_program(&person, ".git/hooks/pre-commit", "echo not like this >&2; exit 1");
    person.put("a.txt", "three\n");
    let (code, message) = refused(&person, "git_commit", &json!({"message": "Refused", "files": ["a.txt"]}));
    assert!(code == "EXECUTION_ERROR" && message.contains("not like this"), "{code}: {message}");
    assert_eq!(git(&person, &["log", "-1", "--format=%s"]), "Hooked");
}

#[test]
fn without_a_name_nobody_commits_and_a_signature_is_not_made() {
    let person = with_repository(Person::us());
    person.put_home(".gitconfig", "[commit]\n\tgpgSign = true\n[user]\n\tuseConfigOnly = true\n");
    git(&person, &["config", "user.useConfigOnly", "true"]);
    person.put("a.txt", "two\n");
    let input = json!({"message": "Who", "files": ["a.txt"]});
    let (code, message) = refused(&person, "git_commit", &input);
    assert!(code == "EXECUTION_ERROR" && message.contains("user.email"), "{code}: {message}");
    git(&person, &["config", "user.name", "Berta"]);
    git(&person, &["config", "user.email", "berta@example.org"]);
    let (code, outcome) = person.call("git_commit", &input, crate::support::ALL);
    assert_eq!((code, &outcome["result"]["metadata"]["signed"]), (0, &json!(false)), "{outcome:#}");
    assert_eq!(git(&person, &["log", "-1", "--format=%an %G?"]), "Berta N");
}

#[test]
fn in_a_part_of_a_larger_repository_only_that_part_is_committed() {
    let mut person = with_repository(Person::us());
    person.put("sub/b.txt", "b\n");
    git(&person, &["add", "sub"]);
    git(&person, &["commit", "-q", "-m", "Sub"]);
    person.put("a.txt", "changed a\n");
    git(&person, &["add", "a.txt"]);
    std::fs::create_dir(person.fixture.path("sub/.haft")).unwrap();
    person.fixture.workspace.push("sub");
    person.put("b.txt", "changed b\n");
    let (code, message) = refused(&person, "git_commit", &json!({"message": "All"}));
    assert!(code == "INVALID_PATH" && message.contains("outside the workspace"), "{code}: {message}");
    let made = does(&person, "git_commit", &json!({"message": "Part", "files": ["b.txt"]}));
    assert_eq!(made["filesChanged"], 1);
    assert_eq!(git(&person, &["show", "--name-only", "--format=", "HEAD"]), "sub/b.txt");
    assert_eq!(refused(&person, "git_branch", &json!({"name": "main", "checkout": true})).0, "INVALID_PATH");
}

#[test]
fn branches_are_made_and_checked_out_and_that_is_undone() {
    for person in Person::everyone() {
        let person = with_repository(person);
        git(&person, &["checkout", "-q", "-b", "other"]);
        person.put("a.txt", "other\n");
        git(&person, &["commit", "-q", "-a", "-m", "Other"]);
        git(&person, &["checkout", "-q", "main"]);
        let made = does(&person, "git_branch", &json!({"name": "new", "create": true, "from": "other"}));
        assert_eq!((&made["created"], &made["current"]), (&json!("new"), &json!("main")), "{made:#}");
        let (code, outcome) = person.call("git_branch", &json!({"name": "other", "checkout": true}), &[]);
        assert_eq!((code, person.fixture.text("a.txt").unwrap().as_str()), (4, "one\n"), "{outcome:#}");
        let call = text(&outcome["tool_call_id"]);
        assert_eq!(person.run(&["approve", &call]).code, Some(0));
        assert_eq!(person.fixture.text("a.txt").unwrap(), "other\n");
        assert_eq!(looks(&person, "git_branch", &json!({}))["current"], "other");
        assert_eq!(person.run(&["undo", &call, "--yes"]).code, Some(0));
        assert_eq!(
            (person.fixture.text("a.txt").unwrap().as_str(), git(&person, &["branch", "--show-current"]).as_str()),
            ("one\n", "main")
        );
        let (code, message) = refused(&person, "git_branch", &json!({"name": "nowhere", "checkout": true}));
        assert!(matches!(code.as_str(), "EXECUTION_ERROR" | "INVALID_ARGS"), "{code}: {message}");
        assert!(plain(&person, &person.fixture.workspace, &["rev-parse", "nowhere"]).code != Some(0));
    }
}
