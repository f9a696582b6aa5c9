//! Pushes to real remotes: shown before they leave, exactly what was shown, and never by the repository's own ways.

use std::{
    fs,
    io::{ErrorKind, Read},
    net::TcpListener,
    path::PathBuf,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    fenced::Person,
    repo::{does, git, looks, plain, put_program, refused, with_repository},
    support::{Running, text, until},
};

/// A repository whose remote is a bare one in the workspace.
fn with_remote(person: Person) -> Person {
    let person = with_repository(person);
    git(&person, &["init", "-q", "--bare", "there.git"]);
    git(&person, &["remote", "add", "origin", "there.git"]);
    person
}

/// What the remote has.
fn remote_tip(person: &Person) -> String {
    let ran = plain(person, &person.fixture.path("there.git"), &["rev-parse", "--verify", "-q", "refs/heads/main"]);
    ran.stdout.trim_end().to_owned()
}

fn asked(person: &Person, input: &Value) -> (String, String) {
    let (code, outcome) = person.call("git_push", input, &[]);
    assert_eq!((code, &outcome["status"]), (4, &json!("pending")), "{outcome:#}");
    let call = text(&outcome["tool_call_id"]);
    (call, person.run(&["approvals"]).said())
}

#[test]
fn a_push_shows_what_leaves_and_sends_exactly_that() {
    for person in Person::everyone() {
        let person = with_remote(person);
        let first = git(&person, &["rev-parse", "HEAD"]);
        let (call, card) = asked(&person, &json!({"setUpstream": true}));
        for words in ["pushes main", "there.git", "First", "cannot be undone"] {
            assert!(card.contains(words), "{words}: {card}");
        }
        assert_eq!(remote_tip(&person), "", "nothing has left yet");
        let ran = person.run(&["approve", &call, "--json"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(remote_tip(&person), first);
        let status = looks(&person, "git_status", &json!({"path": "a.txt"}));
        assert_eq!((&status["upstream"], &status["ahead"]), (&json!("origin/main"), &json!(0)), "{status:#}");
        git(&person, &["commit", "-q", "--allow-empty", "-m", "Second"]);
        let pushed = does(&person, "git_push", &json!({}));
        let second = git(&person, &["rev-parse", "HEAD"]);
        let expected = json!({"remote": "origin", "branch": "main", "oldHash": first, "newHash": second, "commits": 1});
        assert_eq!(pushed, expected);
        let pushed = does(&person, "git_push", &json!({}));
        assert_eq!((&pushed["commits"], &pushed["oldHash"]), (&json!(0), &json!(second)), "{pushed:#}");
    }
}

#[test]
fn what_was_not_shown_is_not_sent() {
    let person = with_remote(Person::us());
    let (call, _) = asked(&person, &json!({}));
    git(&person, &["commit", "-q", "--allow-empty", "-m", "Smuggled"]);
    let ran = person.run(&["approve", &call, "--json"]);
    assert!(ran.code == Some(1) && ran.said().contains("CONFLICT"), "{ran:?}");
    assert_eq!(remote_tip(&person), "");
}

#[test]
fn newer_commits_of_the_remote_are_not_lost() {
    let person = with_remote(Person::us());
    does(&person, "git_push", &json!({}));
    let elsewhere = person.fixture.path("elsewhere").display().to_string();
    git(&person, &["clone", "-q", "there.git", &elsewhere]);
    git(&person, &["-C", &elsewhere, "commit", "-q", "--allow-empty", "-m", "Theirs"]);
    git(&person, &["-C", &elsewhere, "push", "-q"]);
    let theirs = remote_tip(&person);
    git(&person, &["commit", "-q", "--allow-empty", "-m", "Ours"]);
    let (code, message) = refused(&person, "git_push", &json!({}));
    assert!(code == "CONFLICT" && message.contains("git fetch"), "{code}: {message}");
    let (code, _) = refused(&person, "git_push", &json!({"force": "with_lease"}));
    assert_eq!((code.as_str(), remote_tip(&person)), ("CONFLICT", theirs.clone()));
    // Once theirs has been seen, overwriting it is what was asked for.
    git(&person, &["fetch", "-q"]);
    let pushed = does(&person, "git_push", &json!({"force": "with_lease"}));
    assert_eq!((&pushed["oldHash"], pushed["newHash"] == remote_tip(&person)), (&json!(theirs), true), "{pushed:#}");
}

#[test]
fn neither_side_of_a_push_runs_anything() {
    let person = with_remote(Person::us());
    let marker = person.fixture.home.join("marker");
    let touch = format!("touch {}; cat >/dev/null", marker.display());
    for hook in
        [".git/hooks/pre-push", "there.git/hooks/pre-receive", "there.git/hooks/update", "there.git/hooks/post-receive"]
    {
        put_program(&person, hook, &touch);
    }
    put_program(&person, "evil.sh", &touch);
    let evil = person.fixture.path("evil.sh").display().to_string();
    git(&person, &["-C", "there.git", "config", "core.alternateRefsCommand", &evil]);
    git(&person, &["config", "core.fsmonitor", &evil]);
    does(&person, "git_push", &json!({}));
    assert!(!marker.exists());
    git(&person, &["commit", "-q", "--allow-empty", "-m", "More"]);
    git(&person, &["push", "-q", "origin", "main"]);
    assert!(marker.exists(), "the hooks do not run with plain git either");
}

#[test]
fn a_repository_has_no_say_in_where_and_how_a_push_goes() {
    let settings = [
        ("core.sshCommand", "x"),
        ("credential.helper", "!x"),
        ("remote.origin.receivepack", "x"),
        ("remote.origin.vcs", "x"),
        ("remote.origin.proxy", "http://x"),
        ("url.ext::x.insteadOf", "there.git"),
        ("url.x.pushInsteadOf", "there"),
        ("http.proxy", "http://x"),
        ("protocol.ext.allow", "always"),
        ("include.path", "/etc/hostname"),
    ];
    for (key, value) in settings {
        let person = with_remote(Person::us());
        git(&person, &["config", key, value]);
        let (code, message) = refused(&person, "git_push", &json!({}));
        assert_eq!(code, "PERMISSION_DENIED", "{key}: {message}");
        assert_eq!(remote_tip(&person), "", "{key}");
    }
    let urls =
        ["ext::sh -c x", "http://127.0.0.1:1/x", "git://127.0.0.1/x", "/etc", "../there.git", "file:///etc", "-x"];
    for url in urls {
        let person = with_remote(Person::us());
        fs::create_dir(person.fixture.workspace.with_file_name("there.git")).unwrap();
        git(&person, &["config", "remote.origin.url", url]);
        let (code, message) = refused(&person, "git_push", &json!({}));
        assert_eq!(code, "PERMISSION_DENIED", "{url}: {message}");
        // The address that a push really takes counts.
        git(&person, &["config", "remote.origin.url", "there.git"]);
        git(&person, &["config", "remote.origin.pushurl", url]);
        assert_eq!(refused(&person, "git_push", &json!({})).0, "PERMISSION_DENIED", "{url}");
    }
}

#[test]
fn a_remote_outside_is_pushed_to_where_the_user_says_so() {
    let person = with_repository(Person::us());
    let outside: PathBuf = person.fixture.workspace.with_file_name("outside");
    fs::create_dir(&outside).unwrap();
    plain(&person, &outside, &["init", "-q", "--bare", "there.git"]);
    let url = format!("file://{}", outside.join("there.git").display());
    git(&person, &["remote", "add", "origin", &url]);
    assert_eq!(refused(&person, "git_push", &json!({})).0, "PERMISSION_DENIED");
    person.put_home(".config/haft/haft.toml", format!("[sandbox]\nwrite = [{:?}]\n", outside.display().to_string()));
    does(&person, "git_push", &json!({}));
    let tip = plain(&person, &outside.join("there.git"), &["rev-parse", "main"]).stdout;
    assert_eq!(tip.trim_end(), git(&person, &["rev-parse", "HEAD"]));
}

#[test]
fn a_host_that_does_not_answer_and_a_password_in_its_address() {
    let person = with_repository(Person::us());
    // A port that was just let go: nobody listens there.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    git(&person, &["remote", "add", "origin", &format!("https://anna:hunter2@127.0.0.1:{port}/x.git")]);
    let (code, outcome) = person.call("git_push", &json!({}), crate::support::ALL);
    assert_eq!((code, &outcome["error"]["code"]), (1, &json!("NETWORK_ERROR")), "{outcome:#}");
    assert_eq!((&outcome["error"]["recoverable"], &outcome["attempts"]), (&json!(true), &json!(1)), "{outcome:#}");
    assert!(!outcome.to_string().contains("hunter2"), "{outcome:#}");
    let (_, card) = asked(&person, &json!({}));
    assert!(!card.contains("hunter2") && card.contains("[redacted]@127.0.0.1"), "{card}");
}

#[test]
fn a_push_to_a_silent_host_ends_with_its_time_and_with_its_haft() {
    for how in ["time", "kill"] {
        let person = with_repository(Person::us());
        let host = TcpListener::bind("127.0.0.1:0").unwrap();
        host.set_nonblocking(true).unwrap();
        let url = format!("https://127.0.0.1:{}/x.git", host.local_addr().unwrap().port());
        git(&person, &["remote", "add", "origin", &url]);
        let limit = if how == "time" { "2000" } else { "100000" };
        let call = ["call", "git_push", "{}", "--json", "--auto-approve", "all", "--timeout", limit];
        let running = Running::start(person.haft(&call));
        let (mut heard, _) = until("a push", || host.accept().ok());
        if how == "time" {
            let ran = running.finish();
            assert!(ran.code == Some(1) && ran.said().contains("OUTCOME_UNKNOWN"), "{ran:?}");
        } else {
            running.kill();
        }
        heard.set_nonblocking(false).unwrap();
        heard.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let mut bytes = [0; 4096];
        let last = loop {
            match heard.read(&mut bytes) {
                Ok(1..) => {}
                last => break last,
            }
        };
        // Whoever still lived would keep the connection open, and nothing would come.
        let timed_out =
            last.as_ref().is_err_and(|err| matches!(err.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut));
        assert!(!timed_out, "{how}: git lives on");
    }
}
