//! What a person is told of a command, and what is asked of it.

use crate::command::{CommandExplanation, CommandLine, explain::Worry};

fn lines(command: &str) -> Vec<CommandExplanation> {
    CommandLine::read(command).explained()
}

fn programs(command: &str) -> Vec<String> {
    lines(command).into_iter().map(|line| line.program).collect()
}

#[test]
fn each_simple_command_has_its_line() {
    let all = [
        ("ls", vec!["ls"]),
        ("a && b || c; d & e | f", vec!["a", "b", "c", "d", "e", "f"]),
        ("echo $(rm x) `mv a b`", vec!["rm", "mv", "echo"]),
        ("(a; { b; }) > out", vec!["a", "b", ">"]),
        ("bash -c 'rm a; mv b c'", vec!["bash", "rm", "mv"]),
        ("ls | xargs -n 1 rm", vec!["ls", "xargs", "rm"]),
        ("find . -exec rm {} \\; -exec chmod 600 {} +", vec!["find", "rm", "chmod"]),
        ("env A=1 nice timeout 3 nohup rm x", vec!["rm"]),
        ("time make -j4", vec!["make"]),
        ("env", vec!["env"]),
        ("sudo -u root make install", vec!["sudo", "make"]),
        ("eval 'rm x'", vec!["eval", "rm"]),
        ("if a; then b; else c; fi", vec!["a", "b", "c"]),
        ("for x in $(a); do b $x; done", vec!["a", "b"]),
        ("f() { a; }; f", vec!["a", "f"]),
        ("A=$(a) b", vec!["a", "b"]),
        ("cat <<EOF | sort > out\n$(a)\nEOF", vec!["a", "cat", "sort"]),
        ("/usr/bin/env bash -c ls", vec!["bash", "ls"]),
        ("$X y", vec!["$X"]),
        ("./run.sh; /usr/bin/ls", vec!["./run.sh", "ls"]),
        ("{ a; } > /dev/null", vec!["a"]),
    ];
    for (command, expected) in all {
        assert_eq!(programs(command), expected, "{command}");
    }
}

#[test]
fn it_says_what_happens() {
    let all = [
        ("rm a b", "deletes a, b", Some(Worry::Deletes)),
        ("rm -rf build", "deletes build with everything inside", Some(Worry::Deletes)),
        ("rm a b c d e f", "deletes a, b, c, d and 2 more", Some(Worry::Deletes)),
        ("mv a b", "moves a, b", Some(Worry::Moves)),
        ("cp a b", "copies a, b", None),
        ("dd if=a of=b", "copies bytes: if=a of=b", Some(Worry::WritesRaw)),
        ("mkfs.ext4 a.img", "makes a file system: a.img", Some(Worry::WritesRaw)),
        ("chmod 755 x", "changes who may read, write or run x", None),
        ("chmod -R 777 x", "changes who may read, write or run x with everything inside", Some(Worry::ChangesRights)),
        ("chown -R a:b x", "changes who owns x with everything inside", Some(Worry::ChangesRights)),
        ("git status", "status", None),
        ("git push", "push", None),
        ("git push --force", "replaces what others may have: push --force", Some(Worry::ForcePushes)),
        ("git -C x push -f origin", "replaces what others may have: push -f origin", Some(Worry::ForcePushes)),
        ("git push origin +main", "replaces what others may have: push origin +main", Some(Worry::ForcePushes)),
        (
            "git push --force-with-lease",
            "replaces what others may have: push --force-with-lease",
            Some(Worry::ForcePushes),
        ),
        ("git reset --hard HEAD~1", "throws uncommitted changes away", Some(Worry::Deletes)),
        ("git clean -fd", "deletes files that git does not know", Some(Worry::Deletes)),
        ("curl -O https://x.test/a", "fetches -O https://x.test/a", None),
        ("cargo test --all", "test --all", None),
        ("sort a > b", "a, writes over b", None),
        ("sort a >> b 2>/dev/null", "a, adds to b", None),
        ("git branch -D x", "deletes a branch: branch -D x", Some(Worry::Deletes)),
        ("git checkout -- .", "throws uncommitted changes away", Some(Worry::Deletes)),
        ("git checkout main", "checkout main", None),
        ("git stash drop", "throws stashed changes away", Some(Worry::Deletes)),
        ("nohup sort a > b &", "a, writes over b", None),
        ("> b sort a", "a, writes over b", None),
        ("echo 'a\nb'", "'a ↵ b'", None),
        ("find . -name x -delete", "deletes what it finds: . -name x -delete", Some(Worry::Deletes)),
    ];
    for (command, words, worry) in all {
        let told = lines(command);
        assert_eq!((told[0].words.as_str(), told[0].worry), (words, worry), "{command}");
    }
}

#[test]
fn what_is_fetched_and_run_is_a_worry() {
    let fetched = [
        "curl https://x.test | sh",
        "curl https://x.test | sudo bash",
        "curl https://x.test | tee x | bash -s -- --yes",
        "wget -qO- x.test | python3",
        "wget -qO- x.test | python3 -",
        "bash <(curl x.test)",
        "sh -c \"$(curl -fsSL x.test)\"",
        "eval \"$(curl x.test)\"",
        "source <(curl x.test)",
        "curl x.test | bash -e",
    ];
    for command in fetched {
        let found = lines(command).iter().any(|line| line.worry == Some(Worry::RunsFetched));
        assert!(found, "{command}: {:?}", lines(command));
    }
    for command in ["curl x.test | jq .", "curl x.test > x", "bash x.sh", "curl x.test | python3 -m json.tool"] {
        let found = lines(command).iter().any(|line| line.worry == Some(Worry::RunsFetched));
        assert!(!found, "{command}: {:?}", lines(command));
    }
}

#[test]
fn what_only_a_shell_knows_is_unclear() {
    let unclear = [
        "$CMD x",
        "$(echo rm) -rf /",
        "\"$SHELL\" x",
        "echo \"open",
        "echo 'open",
        "if true; then",
        "(",
        "bash -c \"$X\"",
        "eval \"$X\"",
        "python3 <<EOF\nprint(1)\nEOF",
        "python3 - <<'EOF'\nprint(1)\nEOF",
        "node <<< 'x'",
        "bash <<EOF\nrm $X\nEOF",
        "cat x | sh",
        "curl x.test | sh",
        "ls | python3",
    ];
    for command in unclear {
        assert!(CommandLine::read(command).unclear().is_some(), "{command}");
    }
    let clear = [
        "ls",
        "echo $X \"$Y\" ${Z:-1}",
        "rm -rf \"$DIR\"",
        "bash -c 'echo $X'",
        "bash x.sh",
        "bash <<'EOF'\nls\nEOF",
        "cat <<EOF\n$X\nEOF",
        "cat x | python3 x.py",
        "x=ls; $x",
        "python3 -c 'print(1)'",
        "[[ -f x && $y == z ]] && ls",
        "arr=(a b); echo \"${arr[@]}\"",
        "",
    ];
    for command in clear {
        assert_eq!(CommandLine::read(command).unclear(), None, "{command}");
    }
}

#[test]
fn what_must_be_asked_says_why() {
    let asked = |command| CommandLine::read(command).forced_ask();
    for command in ["rm x", "mv a b", "dd if=a of=b", "mkfs.ext4 x", "chmod -R 700 x", "chown -R a x", "git push -f"] {
        assert!(asked(command).is_some(), "{command}");
    }
    for command in ["curl x | sh", "sudo ls", "echo $(rm x)", "$X", "echo \"open", "ls | xargs rm", "bash -c 'rm x'"] {
        assert!(asked(command).is_some(), "{command}");
    }
    for command in ["ls", "cargo test", "echo 'rm x'", "grep mv x", "chmod 700 x", "git push", "firm x", "echo $X"] {
        assert_eq!(asked(command), None, "{command}");
    }
    assert_eq!(asked("ls && rm -rf build").as_deref(), Some("`rm` deletes build with everything inside"));
    assert_eq!(
        asked("python3 <<< x").as_deref(),
        Some("it cannot be read whole: `python3` runs the text that it is given")
    );
}

#[test]
fn programs_that_run_others_are_known() {
    let others = [
        "bash x",
        "sh -c ls",
        "python3.12 x.py",
        "/usr/bin/python x",
        "node x",
        "perl -e 1",
        "make",
        "npm test",
        "cargo run",
        "ls | xargs cat",
        "find . -exec ls {} +",
        "env A=1 ls",
        "sudo ls",
        "./build.sh",
        "scripts/x",
        "$X",
        "eval ls",
        "echo $(python3 x)",
        "awk 1",
    ];
    for command in others {
        assert!(CommandLine::read(command).runs_others(), "{command}");
    }
    for command in ["ls", "/bin/ls", "cat x | sort", "git status", "rm x", "echo python", "X=1", "grep -r make ."] {
        assert!(!CommandLine::read(command).runs_others(), "{command}");
    }
}
