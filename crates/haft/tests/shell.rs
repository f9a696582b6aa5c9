//! Commands and code through the program: seen before they are committed, in whole or in part, undone, stopped, fenced.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that cannot go on fails")]

mod support;

use std::{collections::BTreeSet, fs};

use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};
use support::{ALL, Fixture, HAFT, Running, id, text, until};

fn shell(command: &str) -> Value {
    json!({ "command": command })
}

/// A command that must wait for a yes.
fn staged(fixture: &Fixture, command: &str) -> String {
    fixture.pending("shell_exec", &shell(command))
}

/// A command that needs no yes, and what it gave.
fn unasked(fixture: &Fixture, command: &str) -> Value {
    let (code, outcome) = fixture.call("shell_exec", &shell(command), &[]);
    assert_eq!((code, &outcome["status"]), (0, &json!("success")), "{command}: {outcome:#}");
    outcome
}

fn kinds(changes: &Value) -> BTreeSet<(String, String)> {
    changes.as_array().unwrap().iter().map(|change| (text(&change["path"]), text(&change["kind"]))).collect()
}

fn pairs(pairs: &[(&str, &str)]) -> BTreeSet<(String, String)> {
    pairs.iter().map(|(path, kind)| ((*path).to_owned(), (*kind).to_owned())).collect()
}

#[test]
fn a_command_is_seen_before_it_is_committed_in_part_and_undone() {
    let fixture = Fixture::new();
    fixture.put("a", "a\n");
    fixture.put("build/o", "o\n");
    let old = fixture.picture();
    let call = staged(&fixture, "echo A >> a; echo n > new; rm -rf build; echo said; exit 3");
    assert!(fixture.picture() == old, "nothing has changed yet");
    let shown = fixture.json(&["changes", &call]);
    let expected = pairs(&[("a", "changed"), ("new", "created"), ("build", "deleted"), ("build/o", "deleted")]);
    assert_eq!(kinds(&shown["changes"]), expected, "{shown:#}");
    assert_eq!((&shown["exitCode"], text(&shown["output"]).trim()), (&json!(3), "said"), "{shown:#}");
    let ran = fixture.run(&["commit", &call, "a", "new"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!((fixture.text("a").unwrap().as_str(), fixture.text("build/o").unwrap().as_str()), ("a\nA\n", "o\n"));
    assert_eq!(fixture.run(&["undo", &call, "--yes"]).code, Some(0));
    assert!(fixture.picture() == old);
    assert_eq!(fixture.run(&["redo", &call, "--yes"]).code, Some(0));
    assert_eq!((fixture.text("a").unwrap().as_str(), fixture.text("new").unwrap().as_str()), ("a\nA\n", "n\n"));
}

#[test]
fn a_command_heeds_signals_that_its_haft_ignores() {
    let fixture = Fixture::new();
    let mut ignoring = fixture.program("sh");
    ignoring.args(["-c", "trap '' INT QUIT HUP; exec \"$0\" \"$@\"", HAFT, "call", "shell_exec"]);
    ignoring.args(["--command", "kill -INT $$; echo survived", "--json"]);
    let outcome = Running::start(ignoring).finish().json();
    let result = &outcome["result"]["structured"];
    assert_eq!((&result["exitCode"], &result["stdout"]), (&json!(130), &json!("")), "{outcome:#}");
}

#[test]
fn approving_commits_what_was_seen_and_does_not_run_again() {
    let fixture = Fixture::new();
    let call = staged(&fixture, "date +%N > stamp; cat stamp");
    let seen = text(&fixture.json(&["changes", &call])["output"]);
    assert_eq!(fixture.run(&["approve", &call]).code, Some(0));
    assert!(seen.contains(fixture.text("stamp").unwrap().trim()), "{seen}");
}

#[test]
fn what_changes_nothing_is_a_read() {
    let fixture = Fixture::new();
    fixture.put("a", "some\n");
    let outcome = unasked(&fixture, "cat a; ls; grep -r some .; (echo x > /tmp/y); touch a; chmod u+w a");
    assert_eq!((&outcome["approved_by"], &outcome["isolation"]), (&json!("auto"), &json!("namespaces")));
    assert!(outcome.get("changes").is_none_or(Value::is_null), "{outcome:#}");
    // The folder for temporary files lasts between calls.
    let outcome = unasked(&fixture, "cat /tmp/y");
    assert_eq!(outcome["result"]["structured"]["stdout"], json!("x\n"), "{outcome:#}");
}

#[test]
fn a_change_underneath_is_a_conflict_and_loses_nothing() {
    let fixture = Fixture::new();
    fixture.put("b", "b\n");
    let call = staged(&fixture, "echo mine >> b; echo other > c");
    fixture.put("b", "yours\n");
    let ran = fixture.run(&["commit", &call]);
    assert!(ran.code != Some(0) && ran.stderr.contains('b'), "{ran:?}");
    assert_eq!((fixture.text("b").unwrap().as_str(), fixture.text("c")), ("yours\n", None));
}

#[test]
fn a_stopped_command_keeps_what_it_had_staged() {
    let fixture = Fixture::new();
    let input = json!({"command": "echo half > half; echo begun; sleep 60", "timeout": 700});
    let (code, outcome) = fixture.call("shell_exec", &input, ALL);
    assert_eq!((code, &outcome["error"]["code"]), (1, &json!("TIMEOUT")), "{outcome:#}");
    assert_eq!(text(&outcome["error"]["details"]["stdout"]), "begun\n", "{outcome:#}");
    assert_eq!(fixture.text("half"), None);
    let call = id(&outcome);
    let shown = fixture.json(&["changes", &call]);
    assert_eq!((&shown["changes"][0]["path"], &shown["changes"][0]["state"]), (&json!("half"), &json!("staged")));
    let ran = fixture.run(&["commit", &call]);
    assert_eq!((ran.code, fixture.text("half").as_deref()), (Some(0), Some("half\n")), "{ran:?}");
}

#[test]
fn a_cancel_from_another_process_ends_everything() {
    let fixture = Fixture::new();
    let marker = format!("sleep 61.{}", std::process::id());
    let command = format!("echo begun > begun; ({marker} & setsid {marker} & {marker}) ");
    let running = Running::start(fixture.haft(&["call", "shell_exec", &shell(&command).to_string(), "--json"]));
    let call = until("the command at work", || {
        let rows = fixture.json(&["log", "--tool", "shell_exec"]);
        let first = rows.as_array().unwrap().first()?;
        (alive(&marker) == 3).then(|| text(&first["callId"]))
    });
    assert_eq!(fixture.run(&["cancel", &call]).code, Some(0));
    let ran = running.finish();
    assert_eq!((ran.code, &ran.json()["status"]), (Some(130), &json!("cancelled")), "{ran:?}");
    assert_eq!(alive(&marker), 0);
    assert_eq!(fixture.json(&["changes", &call])["changes"][0]["path"], json!("begun"));
}

#[test]
fn killing_haft_ends_its_commands() {
    let fixture = Fixture::new();
    let marker = format!("sleep 62.{}", std::process::id());
    let command = format!("({marker} & setsid {marker} & {marker})");
    let running = Running::start(fixture.haft(&["call", "shell_exec", &shell(&command).to_string(), "--json"]));
    // A call is in the journal a moment after it has begun to work.
    until("the command at work", || {
        let rows = fixture.json(&["log", "--tool", "shell_exec"]);
        (alive(&marker) == 3 && !rows.as_array().unwrap().is_empty()).then_some(())
    });
    kill_process(running.pid(), Signal::KILL).unwrap();
    running.finish();
    until("its end", || (alive(&marker) == 0).then_some(()));
    // The next process says what became of it.
    let rows = fixture.json(&["log", "--tool", "shell_exec"]);
    let story = fixture.story(&text(&rows[0]["callId"]));
    assert_eq!(story["outcome"]["error"]["code"], json!("INTERRUPTED"), "{story:#}");
}

/// How many processes of this command line there are.
fn alive(command: &str) -> usize {
    let words: Vec<u8> = command.replace(' ', "\0").into_bytes();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    lines.filter(|line| line.strip_suffix(b"\0") == Some(&words)).count()
}

#[test]
fn streams_exit_codes_and_input_come_as_they_are() {
    let fixture = Fixture::new();
    let outcome = unasked(&fixture, "printf out; printf err >&2; exit 7");
    let structured = &outcome["result"]["structured"];
    assert_eq!(
        (&structured["exitCode"], &structured["stdout"], &structured["stderr"]),
        (&json!(7), &json!("out"), &json!("err"))
    );
    assert!(text(&outcome["result"]["content"]).contains("[exit 7]"));
    let input = json!({"command": "cat; echo $GREETING; pwd", "stdin": "in\n", "env": {"GREETING": "hi"}, "cwd": "."});
    let (_, outcome) = fixture.call("shell", &input, &[]);
    let here = fixture.workspace.display();
    assert_eq!(outcome["result"]["structured"]["stdout"], json!(format!("in\nhi\n{here}\n")), "{outcome:#}");
    let (code, outcome) = fixture.call("shell_exec", &json!({"command": "true", "env": {"LD_PRELOAD": "x"}}), &[]);
    assert_eq!((code, &outcome["error"]["code"]), (1, &json!("INVALID_ARGS")), "{outcome:#}");
    let (code, outcome) = fixture.call("shell_exec", &json!({"command": "true", "cwd": "../.."}), &[]);
    assert_eq!((code, &outcome["error"]["code"]), (1, &json!("INVALID_PATH")), "{outcome:#}");
    let outcome = unasked(&fixture, "kill -TERM $$");
    assert_eq!(outcome["result"]["structured"]["signal"], json!(15), "{outcome:#}");
}

#[test]
fn some_commands_are_refused_outright_and_quoting_them_is_not_running_them() {
    let fixture = Fixture::new();
    for command in ["rm -rf /", "cd / && rm -rf *", ":(){ :|:& };:", "dd if=/dev/zero of=/dev/sda"] {
        let (code, outcome) = fixture.call("shell_exec", &shell(command), ALL);
        assert_eq!((code, &outcome["error"]["code"]), (1, &json!("COMMAND_BLOCKED")), "{command}: {outcome:#}");
    }
    let outcome = unasked(&fixture, "echo 'rm -rf /'");
    assert_eq!(outcome["result"]["structured"]["stdout"], json!("rm -rf /\n"));
}

#[test]
fn a_live_hook_is_asked_for_even_in_mode_all() {
    let fixture = Fixture::new();
    let command = "git init -q . && printf '#!/bin/sh\\n' > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit";
    let (code, outcome) = fixture.call("shell_exec", &shell(command), ALL);
    assert_eq!((code, &outcome["status"]), (4, &json!("pending")), "{outcome:#}");
    assert!(!fixture.path(".git").exists());
}

#[test]
fn secrets_and_hafts_own_data_are_out_of_reach() {
    let fixture = Fixture::new();
    fixture.put(".env", "TOKEN=not-for-you\n");
    fixture.put("deep/server.key", "not-for-you\n");
    fs::create_dir_all(fixture.home.join(".ssh")).unwrap();
    fs::write(fixture.home.join(".ssh/id_rsa"), "not-for-you").unwrap();
    let data = fixture.data.display();
    let home = fixture.home.display();
    let command = format!("cat .env deep/server.key {home}/.ssh/id_rsa {data}/* 2>&1; ls -a {data} {home} 2>&1; env");
    let outcome = unasked(&fixture, &command);
    let said = outcome.to_string();
    assert!(!said.contains("not-for-you") && !said.contains("SQLite") && !said.contains("haft.db"), "{outcome:#}");
}

#[test]
fn what_git_ignores_is_not_asked_for() {
    let fixture = Fixture::new();
    fixture.put(".gitignore", "target/\n*.log\n");
    fixture.put("src/main.c", "int main(void) { return 0; }\n");
    fixture.put("forced.log", "tracked all the same\n");
    let git = |arguments: &[&str]| assert!(fixture.program("git").args(arguments).output().unwrap().status.success());
    git(&["init", "-q"]);
    git(&["add", ".gitignore", "src"]);
    git(&["add", "-f", "forced.log"]);
    let outcome =
        unasked(&fixture, "mkdir -p target && cc -o target/main src/main.c && target/main && echo fine > run.log");
    assert_eq!(outcome["approved_by"], json!("config"), "{outcome:#}");
    assert!(fixture.path("target/main").exists() && fixture.path("run.log").exists());
    unasked(&fixture, "git status --short");
    // What is tracked, or was not ignored before, is asked for.
    staged(&fixture, "echo more >> forced.log");
    staged(&fixture, "echo '*' > .gitignore; rm -rf src");
    staged(&fixture, "ln -s / target/everything");
    assert_eq!(fixture.run(&["undo", &id(&outcome), "--yes"]).code, Some(0));
    assert!(!fixture.path("target").exists());
}

/// What a virtual environment and a package bring, as `python3 -m venv` and `npm` lay it down.
const INSTALL: &str = "mkdir -p .venv/bin .venv/lib/python3/site-packages node_modules/x/.github/workflows; \
    ln -s /usr/bin/python3 .venv/bin/python3; ln -s python3 .venv/bin/python; ln -s lib .venv/lib64; \
    echo x > .venv/bin/activate; echo x > .venv/lib/python3/site-packages/x.pth; echo '*' > .venv/.gitignore; \
    echo x > node_modules/x/.travis.yml; echo x > node_modules/x/.npmrc; echo x > node_modules/x/test.pem; \
    echo x > node_modules/x/.github/workflows/ci.yml";

#[test]
fn installed_packages_come_in_whole() {
    for ignored in ["", ".venv/\nnode_modules/\n"] {
        let fixture = Fixture::new();
        fixture.put(".gitignore", ignored);
        let flags: &[&str] = if ignored.is_empty() { ALL } else { &[] };
        let (code, outcome) = fixture.call("shell_exec", &shell(INSTALL), flags);
        assert_eq!((code, &outcome["status"]), (0, &json!("success")), "{ignored:?}: {outcome:#}");
        for made in [".venv/bin/python", ".venv/bin/activate", "node_modules/x/.travis.yml", "node_modules/x/test.pem"]
        {
            assert!(fixture.path(made).symlink_metadata().is_ok(), "{made}");
        }
        // What is there already and runs by itself is asked for, and so is any other way out.
        for command in [
            "echo evil >> .venv/bin/activate",
            "echo evil >> .venv/lib/python3/site-packages/x.pth",
            "ln -s /etc/passwd .venv/bin/python4",
            "ln -s /usr/bin/env .venv/bin/python3.9",
            "ln -s /usr/bin/python3 node_modules/python3",
            "ln -sf /usr/bin/python3 .venv/bin/python",
            "ln -s ../../../../usr/bin/python3 .venv/bin/python3.8",
            "mkdir .venv/.haft; echo x > .venv/.haft/settings",
            "cp /bin/true .venv/bin/root; chmod u+s .venv/bin/root",
        ] {
            let (code, outcome) = fixture.call("shell_exec", &shell(command), &[]);
            assert_eq!((code, &outcome["status"]), (4, &json!("pending")), "{ignored:?}: {command}: {outcome:#}");
        }
    }
}

#[test]
fn what_a_yes_to_a_run_leaves_staged_is_said_first() {
    let fixture = Fixture::new();
    let input = json!({"command": "echo x > plain; echo x > .envrc; echo said", "network": true});
    let call = fixture.pending("shell_exec", &input);
    assert_eq!(fixture.run(&["approve", &call]).code, Some(0));
    let told = text(&fixture.story(&call)["outcome"]["result"]["content"]);
    let first = told.lines().next().unwrap();
    assert!(first.contains("`.envrc`") && first.contains(&format!("Apply: haft commit {call} ")), "{told}");
    assert!(fixture.path("plain").exists() && !fixture.path(".envrc").exists());
    unasked(&fixture, "cat plain");
    for command in ["changes", "commit"] {
        let ran = fixture.run(&[command]);
        assert!(ran.code == Some(0) && ran.stderr.contains(&call), "without an id it is meant: {ran:?}");
    }
    assert!(fixture.path(".envrc").exists());
}

#[test]
fn a_failure_without_the_network_says_so() {
    let fixture = Fixture::new();
    let hint = "[It had no network. If it needs one, set `network: true` (at the terminal: `--network`).]";
    for (command, told) in [
        ("echo 'no matching package named `x` found' >&2; exit 101", true),
        ("exit 6", true),
        ("echo failed; false", true),
        ("true", false),
        ("false", false),
        ("no-such-program", false),
        ("kill -TERM $$", false),
    ] {
        let outcome = unasked(&fixture, command);
        let content = text(&outcome["result"]["content"]);
        assert_eq!(content.ends_with(hint), told, "{command}: {content}");
        assert_eq!(outcome["result"]["structured"]["hint"].is_string(), told, "{outcome:#}");
    }
    let ran = fixture.run(&["call", "shell_exec", "--command", "exit 6"]);
    assert!(ran.said().contains("It had no network."), "a person is told, too: {ran:?}");
    let (_, outcome) = fixture.call("run_code", &json!({"language": "python", "code": "raise OSError('no')"}), &[]);
    assert!(text(&outcome["result"]["content"]).ends_with(hint), "{outcome:#}");
}

#[test]
fn a_program_that_commands_do_not_see_is_named_with_the_setting_that_shows_it() {
    let fixture = Fixture::new();
    let program = fixture.home.join("own/tool");
    fs::create_dir_all(program.parent().unwrap()).unwrap();
    fs::write(&program, "#!/bin/sh\necho ran\n").unwrap();
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let outcome = unasked(&fixture, &format!("{} --version", program.display()));
    let told = text(&outcome["result"]["content"]);
    let setting = format!("read = [{:?}]", program.parent().unwrap());
    let place = "under `[sandbox]` in ~/.config/haft/haft.toml";
    assert!(told.contains(&format!("write `{setting}` {place}")), "{told}");
    fs::create_dir_all(fixture.home.join(".config/haft")).unwrap();
    fs::write(fixture.home.join(".config/haft/haft.toml"), format!("[sandbox]\n{setting}\n")).unwrap();
    let outcome = unasked(&fixture, &program.display().to_string());
    assert_eq!(outcome["result"]["structured"]["stdout"], json!("ran\n"), "{outcome:#}");

    // The line keeps what is set already, and never shows the whole home folder.
    let beside = fixture.home.join("tool");
    fs::copy(&program, &beside).unwrap();
    let told = text(&unasked(&fixture, &beside.display().to_string())["result"]["content"]);
    let setting = format!("read = [{:?}, {beside:?}]", program.parent().unwrap());
    assert!(told.contains(&format!("write `{setting}` {place}")), "{told}");
    let settings = format!("[sandbox]\n{setting}\nhide = [\"hidden\"]\n");
    fs::write(fixture.home.join(".config/haft/haft.toml"), settings).unwrap();
    let outcome = unasked(&fixture, &format!("{0} && ls {1}", beside.display(), fixture.home.display()));
    let seen = text(&outcome["result"]["structured"]["stdout"]);
    assert!(seen.starts_with("ran\n") && !seen.contains(".config"), "{outcome:#}");
    for secret in [".ssh/tool", "hidden/tool", "linked"] {
        let secret = fixture.home.join(secret);
        fs::create_dir_all(secret.parent().unwrap()).unwrap();
        match secret.ends_with("linked") {
            true => std::os::unix::fs::symlink(fixture.home.join(".ssh/tool"), &secret).unwrap(),
            false => drop(fs::copy(&program, &secret).unwrap()),
        }
        let outcome = unasked(&fixture, &secret.display().to_string());
        let told = text(&outcome["result"]["content"]);
        assert!(!told.contains("it is there") && !told.contains("ran\n"), "nothing is said of a secret: {told}");
    }
}

#[test]
fn code_runs_like_a_command() {
    let fixture = Fixture::new();
    let input = json!({"language": "python", "code": "open('made','w').write('1'); print(6*7)"});
    let (code, outcome) = fixture.call("run_code", &input, ALL);
    assert_eq!(code, 0, "{outcome:#}");
    let structured = &outcome["result"]["structured"];
    assert_eq!((&structured["stdout"], &structured["filesChanged"]), (&json!("42\n"), &json!(["made"])));
    let long = format!("{}print(len('x'))", "# a comment\n".repeat(40_000));
    let input = json!({"language": "python", "code": long}).to_string().into_bytes();
    let outcome = fixture.run_with_input(&["call", "run_code", "-", "--json"], input).json();
    assert_eq!(outcome["result"]["structured"]["stdout"], json!("1\n"), "{}", outcome["error"]);
    let input = json!({"language": "bash", "code": "echo $1; cat", "args": ["one"], "stdin": "two\n"});
    let (_, outcome) = fixture.call("run_code", &input, &[]);
    assert_eq!(outcome["result"]["structured"]["stdout"], json!("one\ntwo\n"), "{outcome:#}");
    let input = json!({"language": "python", "code": "import socket; socket.create_connection(('127.0.0.1',9),1)"});
    let (_, outcome) = fixture.call("run_code", &input, ALL);
    assert_ne!(outcome["result"]["structured"]["exitCode"], json!(0), "{outcome:#}");
    let input = json!({"language": "python", "code": "while True: pass", "timeoutMs": 500});
    let (_, outcome) = fixture.call("run_code", &input, ALL);
    assert_eq!(outcome["error"]["code"], json!("TIMEOUT"), "{outcome:#}");
}

#[test]
fn the_network_is_asked_for_before() {
    let fixture = Fixture::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let input =
        json!({"command": format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached > reached"), "network": true});
    let call = fixture.pending("shell_exec", &input);
    assert!(fixture.run(&["approvals"]).stdout.contains("any host"), "the card says what it may reach");
    assert_eq!(fixture.json(&["changes", &call])["changes"], json!([]), "it has not run yet");
    let ran = fixture.run(&["approve", &call]);
    assert_eq!((ran.code, fixture.text("reached").as_deref()), (Some(0), Some("reached\n")), "{ran:?}");
    assert_eq!(fixture.run(&["undo", &call, "--yes"]).code, Some(0));
    assert_eq!(fixture.text("reached"), None);
}
