//! The card of a command, wherever it is seen: what ran, what came of it, and what a yes covers.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};
use support::{ALL, Fixture, Terminal, id, text};

/// A workspace that git knows, where `target` is ignored.
fn in_git() -> Fixture {
    let fixture = Fixture::new();
    fixture.put(".gitignore", "target/\n");
    for arguments in [&["init", "-q"][..], &["config", "user.name", "tester"], &["config", "user.email", "t@e.st"]] {
        assert!(fixture.program("git").args(arguments).output().unwrap().status.success());
    }
    fixture
}

fn asked(fixture: &Fixture, input: &Value) -> (String, String) {
    let call = fixture.pending("shell_exec", input);
    let ran = fixture.run(&["changes", &call]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let listed = fixture.run(&["approvals"]).stdout;
    // Only how long ago it was asked may differ.
    let card = |said: &str| said.split_once('\n').unwrap().1.trim_end().to_owned();
    assert_eq!(card(&listed), card(&ran.stdout), "the card is the same everywhere");
    (call, ran.stdout)
}

fn has_in_order(card: &str, parts: &[&str]) {
    let mut rest = card;
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else { panic!("`{part}` is not where it should be in:\n{card}") };
        rest = after;
    }
}

#[test]
fn what_ran_what_came_of_it_and_what_a_yes_covers_in_this_order() {
    let fixture = in_git();
    fixture.put("README.md", "one\n");
    let command = "mkdir -p target/debug; for i in $(seq 200); do echo $i > target/debug/$i; done; \
                   echo two >> README.md; mkdir src; echo 'fn main() {}' > src/main.rs; echo x > .envrc; \
                   rm -f nothing; seq 10000; exit 3";
    let input = json!({"command": command, "description": "Builds it", "env": {"DEPTH": "2"}});
    let (call, card) = asked(&fixture, &input);
    has_in_order(
        &card,
        &[
            "shell_exec",
            "\n  $ mkdir -p target/debug;",
            "seq 10000; exit 3\n",
            "the agent says:\n  Builds it\n",
            "env: {\"DEPTH\":\"2\"}\n",
            "rm deletes nothing\n",
            "exit 3 after ",
            ", isolation namespaces\n",
            "  │ 1\n  │ 2\n",
            &format!("  │ … 9984 more lines: haft changes {call} --all\n"),
            "  │ 10000\n",
            " paths: ",
            "create .envrc  2 B, +1 -0  ! is run or obeyed",
            "change README.md  8 B, +1 -0\n",
            "+two\n",
            "create src/main.rs",
            "202 derived: target/ (692 B)\n",
            "In short: shell_exec mkdir -p target/debug;",
            "exit 3",
            "206 paths: ",
            "look twice at .envrc\n",
            "A yes commits these 206 paths. The command does not run again.",
            "Why asked: it would change 206 paths\n",
        ],
    );
    assert!(!card.contains("target/debug/7"), "build output is one line");
    let wide = card.lines().find(|line| line.chars().count() > 80);
    assert_eq!(wide, None);
    let whole = fixture.run(&["changes", &call, "--all"]).stdout;
    assert!(whole.contains("  │ 5000\n") && whole.contains("create target/debug/7 "), "everything can be seen");
}

#[test]
fn nothing_that_a_command_says_or_is_called_passes_for_hafts_own_words() {
    let fixture = Fixture::new();
    let command = "printf 'A yes commits nothing\\n\\033[2J\\rover\\n'; printf '%079d' 0; \
                   echo 'Why asked: no reason'; echo 1 > $'a\\nyes'; : \u{202e}live";
    let description = "harmless\nA yes commits nothing \u{200b}";
    let (_, card) = asked(&fixture, &json!({"command": command, "description": description}));
    assert_eq!(card.matches("\nA yes ").count(), 1, "{card}");
    assert_eq!(card.matches("\nWhy asked: ").count(), 1, "{card}");
    assert!(!card.contains(['\u{1b}', '\r', '\u{202e}', '\u{200b}']), "{card}");
    assert!(card.contains("\\u{202e}live") && card.contains("1 character is written out"), "{card}");
    let wide = card.lines().find(|line| line.chars().count() > 80);
    assert_eq!(wide, None, "a terminal breaks no line by itself");
}

#[test]
fn a_long_command_is_never_cut() {
    let fixture = Fixture::new();
    let words: Vec<String> = (0..400).map(|number| format!("word{number}")).collect();
    let command = format!("echo {} > said # {}", words.join(" "), "x".repeat(500));
    let (_, card) = asked(&fixture, &json!({ "command": command }));
    let shown: String =
        card.lines().skip(1).take_while(|line| !line.starts_with("exit")).map(|line| &line[4..]).collect();
    assert_eq!(shown, command);
}

#[test]
fn a_commit_and_a_folder_that_goes_are_one_line_each() {
    let fixture = in_git();
    for number in 0..30 {
        fixture.put(&format!("build/deep/{number}"), "12345\n");
    }
    let (call, card) = asked(&fixture, &json!({"command": "git add .gitignore && git commit -qm one && rm -rf build"}));
    has_in_order(
        &card,
        &[
            "commit ",
            " on ",
            " (1 file)\n",
            "delete build/  31 paths inside, 180 B\n",
            "A yes makes commit ",
            "changes 32 more paths. The",
        ],
    );
    assert!(!card.contains(".git/objects") && !card.contains("build/deep"), "{card}");
    let changes = &fixture.json(&["changes", &call])["changes"];
    let summary = changes.as_array().unwrap().iter().find_map(|change| change["summary"].as_str()).unwrap();
    assert!(summary.starts_with("commit ") && card.contains(summary), "{summary}");
}

/// Three sources with one changed line each, and a lock file.
fn with_changed_sources() -> Fixture {
    let fixture = in_git();
    let write = |word: &str, lock: usize| {
        for name in ["a", "b", "c"] {
            fixture.put(&format!("{name}.rs"), format!("fn {name}() {{\n    {word}();\n}}\n"));
        }
        fixture.put("Cargo.lock", (0..lock).map(|line| format!("{line}\n")).collect::<String>());
    };
    write("one", 40);
    for arguments in [&["add", "-A"][..], &["commit", "-qm", "first"]] {
        assert!(fixture.program("git").args(arguments).output().unwrap().status.success());
    }
    write("two", 60);
    fixture
}

#[test]
fn a_commit_shows_every_changed_line_of_source_and_is_called_a_commit() {
    let files = json!(["a.rs", "b.rs", "c.rs", "Cargo.lock"]);
    for (tool, input) in [
        ("git_commit", json!({"message": "Two", "files": files})),
        ("shell_exec", json!({"command": "git commit -qam Two"})),
    ] {
        let fixture = with_changed_sources();
        let call = fixture.pending(tool, &input);
        let card = fixture.run(&["changes", &call]).stdout;
        has_in_order(
            &card,
            &[
                "commit ",
                " (4 files)\n",
                "Cargo.lock: 20 lines added, 0 removed (generated)\n",
                "+++ b/a.rs\n",
                "-    one();\n+    two();\n",
                "+++ b/b.rs\n",
                "-    one();\n+    two();\n",
                "+++ b/c.rs\n",
                "-    one();\n+    two();\n",
                "\nA yes makes commit ",
                " (4 files). It can be undone later.\nWhy asked: it would make a git commit\nyes ",
            ],
        );
        for hidden in ["more line", "+45\n", " paths", "COMMIT_EDITMSG", "does not cover"] {
            assert!(!card.contains(hidden), "{hidden}: {card}");
        }
        let done = fixture.run(&["approve", &call]);
        assert!(done.stdout.contains("✓ commit ") && !done.stdout.contains("paths"), "{done:?}");
        let undone = fixture.run(&["undo", &call, "--yes"]);
        assert!(undone.stdout.starts_with("Undid commit ") && !undone.stdout.contains("objects"), "{undone:?}");
        let redone = fixture.run(&["redo", &call, "--yes"]);
        assert!(redone.stdout.starts_with("Brought back commit "), "{redone:?}");
    }
}

#[test]
fn a_very_long_commit_counts_what_it_leaves_out() {
    let fixture = with_changed_sources();
    fixture.put("long.rs", (0..500).map(|line| format!("line {line}\n")).collect::<String>());
    let call = fixture.pending("git_commit", &json!({"message": "Long", "files": ["."]}));
    let card = fixture.run(&["changes", &call]).stdout;
    has_in_order(&card, &["(5 files)\n", "+++ b/a.rs\n", "+    two();\n", "… a/long.rs b/long.rs: 506 lines\n"]);
    let whole = fixture.run(&["changes", &call, "--all"]).stdout;
    assert!(whole.contains("+line 0\n") && whole.contains("+line 499\n"), "{whole}");
}

#[test]
fn a_command_with_the_network_says_before_what_a_yes_lets_it_do() {
    let fixture = Fixture::new();
    let input = json!({"command": "echo made > made; echo hook > .envrc", "network": true});
    let (call, card) = asked(&fixture, &input);
    has_in_order(
        &card,
        &[
            "  $ echo made > made",
            "It would run in a sandbox (isolation: namespaces).\n",
            "It has not run yet, so its changes cannot be shown.",
            "A yes runs it with the network on: any host, this machine included, and commits\n",
            "Flagged paths stay staged.\n",
            "Why asked: ",
        ],
    );
    let shown = fixture.json(&["changes", &call]);
    assert!(shown.get("exitCode").is_none() && shown.get("output").is_none(), "it has not run: {shown:#}");
    assert_eq!(fixture.run(&["approve", &call]).code, Some(0));
    let after = fixture.run(&["changes", &call]).stdout;
    has_in_order(&after, &["· create .envrc", "✓ create made", &format!("haft commit {call}"), "haft undo"]);
    assert_eq!((fixture.text("made").as_deref(), fixture.text(".envrc")), (Some("made\n"), None));
}

#[test]
fn programs_see_how_a_command_ended_before_and_after() {
    let fixture = in_git();
    let call =
        fixture.pending("shell_exec", &json!({"command": "mkdir target; echo 1 > target/o; echo 2 > s; exit 4"}));
    let derived = |shown: &Value| {
        let changes = shown["changes"].as_array().unwrap().iter();
        changes.map(|change| (text(&change["path"]), change["derived"] == json!(true))).collect::<Vec<_>>()
    };
    let shown = fixture.json(&["changes", &call]);
    assert_eq!((&shown["exitCode"], &shown["output"]), (&json!(4), &json!("")), "{shown:#}");
    let expected = [("s", false), ("target", true), ("target/o", true)].map(|(path, is)| (path.to_owned(), is));
    assert_eq!(derived(&shown), expected);
    fixture.run(&["approve", &call]);
    let shown = fixture.json(&["changes", &call]);
    assert_eq!((&shown["status"], &shown["exitCode"]), (&json!("success"), &json!(4)), "{shown:#}");

    let (_, outcome) = fixture.call("shell_exec", &json!({"command": "seq 100000"}), &[]);
    let shown = fixture.json(&["changes", &id(&outcome)]);
    assert_eq!(text(&shown["output"]).lines().count(), 100_000, "the whole of it");
    let code = json!({"language": "python", "code": "print('[exit 0]'); open('n', 'w')"});
    let (_, outcome) = fixture.call("run_code", &code, ALL);
    let shown = fixture.json(&["changes", &id(&outcome)]);
    assert_eq!((&shown["exitCode"], &shown["output"]), (&json!(0), &json!("[exit 0]\n")), "{shown:#}");

    let (_, outcome) = fixture.call("shell_exec", &json!({"command": "echo begun; sleep 60", "timeout": 500}), &[]);
    let shown = fixture.json(&["changes", &id(&outcome)]);
    assert_eq!((shown.get("exitCode"), &shown["output"]), (None, &json!("begun\n")), "{shown:#}");
    let (_, outcome) = fixture.call("write_file", &json!({"path": "w", "content": "w"}), ALL);
    let shown = fixture.json(&["changes", &id(&outcome)]);
    assert!(shown.get("exitCode").is_none() && shown.get("output").is_none(), "no command: {shown:#}");
}

#[test]
fn output_comes_as_it_is_said_and_once() {
    let fixture = Fixture::new();
    let input = json!({"command": "echo out; printf err >&2; exit 5"}).to_string();
    let ran = fixture.run(&["call", "shell_exec", &input]);
    assert_eq!((ran.code, ran.stdout.trim_end()), (Some(5), "out"), "{ran:?}");
    assert!(ran.stderr.starts_with("err") && ran.stderr.contains("exit 5"), "{ran:?}");
    let ran = fixture.run(&["call", "shell_exec", &input, "--json"]);
    assert_eq!((ran.json()["status"].as_str(), ran.stderr.as_str()), (Some("success"), ""), "{ran:?}");
}

#[test]
fn at_a_terminal_the_card_follows_what_was_said() {
    let fixture = Fixture::new();
    let command = json!({"command": "echo made > made; printf half"}).to_string();
    let mut terminal = Terminal::start(fixture.haft(&["call", "shell_exec", &command]));
    let card = terminal.read_until("Commit this?").replace('\r', "");
    assert!(card.starts_with("half\nshell_exec "), "it begins on a line of its own: {card}");
    has_in_order(&card, &["  $ echo made > made", "exit 0 after", "  │ half\n", "create made", "A yes commits"]);
    terminal.type_in("y\n");
    terminal.read_until("undo with: haft undo");
    assert_eq!(terminal.exit_code(), Some(0));
    assert_eq!(fixture.text("made").as_deref(), Some("made\n"));
}

#[test]
fn an_undo_has_a_card_of_its_own() {
    let fixture = Fixture::new();
    fixture.put("run.sh", "echo hi\n");
    let command = json!({"command": "chmod +x run.sh; echo made > made"});
    let (_, outcome) = fixture.call("shell_exec", &command, ALL);
    let mut terminal = Terminal::start(fixture.haft(&["undo", &id(&outcome)]));
    let card = terminal.read_until("[?]").replace('\r', "");
    has_in_order(
        &card,
        &["\ndelete made", "\nmode run.sh  8 B, not executable\n", "A yes undoes exactly this.", "Undo this?"],
    );
    for word in ["✓", "Commit", "[a]lways", "[e]dit"] {
        assert!(!card.contains(word), "{word} in {card}");
    }
    terminal.type_in("?\n");
    let help = terminal.read_until("press Enter");
    assert!(help.contains("undo_call: Undo the file changes") && !help.contains("always"), "{help}");
    terminal.type_in("y\n");
    let done = terminal.read_until("redo with:").replace('\r', "");
    has_in_order(&done, &["↶ delete made", "↶ mode run.sh  8 B\n"]);
    assert_eq!(terminal.exit_code(), Some(0));
    let mut terminal = Terminal::start(fixture.haft(&["redo"]));
    let card = terminal.read_until("Redo this?").replace('\r', "");
    has_in_order(&card, &["\ncreate made", "\nmode run.sh  8 B, executable\n", "A yes brings exactly this back."]);
    assert!(!card.contains('✓') && !card.contains('↶'), "{card}");
}

#[test]
fn what_can_be_remembered_fits_the_terminal_and_says_how_to_choose() {
    let fixture = Fixture::new();
    fixture.put("main.rs", "hi\n");
    let input = json!({"path": "main.rs", "old": "hi", "new": "hello"}).to_string();
    let mut terminal = Terminal::start(fixture.haft(&["call", "edit_file", &input]));
    terminal.read_until("[?]");
    terminal.type_in("a\n");
    let menu = terminal.read_until("Which? (Enter goes back)").replace('\r', "");
    has_in_order(&menu, &["paths: main.rs; kinds of change: changed", "2  the same tool in this folder", "2 8h 5x"]);
    assert!(menu.lines().all(|line| line.chars().count() <= 80), "{menu}");
    terminal.type_in("2 8h\n");
    assert_eq!(terminal.exit_code(), Some(0));
    let call = text(&fixture.json(&["log"])[0]["callId"]);
    let shown = fixture.run(&["log", "show", &call]).stdout;
    assert!(shown.contains("Edited main.rs") && !shown.contains("undo_call"), "models read that: {shown}");
}

#[test]
fn later_leaves_the_question_open() {
    let fixture = Fixture::new();
    let command = json!({"command": "echo made > made"}).to_string();
    let mut terminal = Terminal::start(fixture.haft(&["call", "shell_exec", &command]));
    terminal.read_until("[?]");
    terminal.type_in("l\n");
    terminal.read_until("haft approve");
    assert_eq!(terminal.exit_code(), Some(4));
    assert_eq!(fixture.run(&["approve"]).code, Some(0), "from another process");
    assert_eq!(fixture.text("made").as_deref(), Some("made\n"));
}

#[test]
fn an_answer_from_elsewhere_does_not_end_up_behind_the_prompt() {
    let fixture = Fixture::new();
    let command = json!({"command": "echo made > made"}).to_string();
    let mut terminal = Terminal::start(fixture.haft(&["call", "shell_exec", &command]));
    terminal.read_until("[?]");
    assert_eq!(fixture.run(&["approve"]).code, Some(0));
    let rest = terminal.read_until("create made").replace('\r', "");
    assert!(rest.trim_start_matches(' ').starts_with('\n'), "{rest:?}");
}

#[test]
fn ctrl_c_says_what_stays_staged_and_how_to_go_on() {
    let fixture = Fixture::new();
    // What it says is seen while it runs: it would not end by itself.
    let command = json!({"command": "echo half > half; echo begun; sleep 60"}).to_string();
    let mut terminal = Terminal::start(fixture.haft(&["call", "shell_exec", &command]));
    terminal.read_until("begun");
    kill_process(terminal.pid(), Signal::INT).unwrap();
    let said = terminal.read_until("drop it").replace('\r', "");
    has_in_order(&said, &["cancelled", "create half", "haft changes tc_", "haft commit tc_", "haft discard tc_"]);
    assert_eq!(terminal.exit_code(), Some(130));
    assert_eq!(fixture.text("half"), None);
}

#[test]
fn always_is_withheld_with_its_reason_where_content_cannot_be_shown() {
    let fixture = Fixture::new();
    let binary = json!({"command": "head -c 3000 /dev/zero > zeros"}).to_string();
    let mut terminal = Terminal::start(fixture.haft(&["call", "shell_exec", &binary]));
    let card = terminal.read_until("[?]");
    assert!(
        card.contains("A yes cannot be remembered: the content of `zeros`") && !card.contains("[a]lways"),
        "{card}"
    );
    terminal.type_in("n\n\n");
    terminal.read_until("rejected");
    let mut terminal = Terminal::start(fixture.haft(&["call", "shell_exec", "{\"command\":\"echo x > text\"}"]));
    let card = terminal.read_until("[?]");
    assert!(card.contains("[a]lways") && !card.contains("cannot be remembered"), "{card}");
    terminal.type_in("n\n\n");
    terminal.read_until("rejected");
}

#[test]
fn the_rung_in_force_is_told_wherever_somebody_looks() {
    let fixture = Fixture::new();
    let findings = fixture.run(&["doctor", "--json"]).json();
    let fence = findings.as_array().unwrap().iter().find(|finding| finding["what"] == "sandbox").unwrap();
    let status = fixture.json(&[]);
    let said = fixture.run::<&str>(&[]).stdout;
    match status["rung"].as_str() {
        Some("namespaces") => {
            assert!(fence["good"] == json!(true) && text(&fence["found"]).contains("isolation namespaces"), "{fence}");
            assert!(said.contains("isolation: namespaces"), "{said}");
        }
        // Where it cannot be built, what helps is said.
        other => {
            assert!(matches!(other, None | Some("landlock")), "{status}");
            assert!(fence["good"] == json!(false) && !text(&fence["fix"]).is_empty(), "{fence}");
            assert!(said.contains("haft doctor"), "{said}");
        }
    }
}
