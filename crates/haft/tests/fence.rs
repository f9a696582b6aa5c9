//! What a hostile agent would try with a command: none of it gets out, and none of it is committed unseen.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod fenced;
mod support;

use std::{
    fs,
    io::Read,
    os::unix::{fs::symlink, net::UnixListener},
    time::{Duration, Instant},
};

use fenced::Person;
use serde_json::{Value, json};
use support::{ALL, id, text};

fn code(outcome: &Value) -> &str {
    outcome["error"]["code"].as_str().unwrap_or_default()
}

#[test]
fn no_folder_but_one_of_the_workspace_is_started_in() {
    let person = Person::us();
    person.put("sub/a", "a\n");
    symlink("/etc", person.fixture.path("out")).unwrap();
    symlink("sub", person.fixture.path("in")).unwrap();
    let data = person.fixture.data.to_string_lossy().into_owned();
    for cwd in ["..", "/", "/etc", "out", "sub/../..", "~", "$HOME", "no", "sub/a", "", &data, "/proc/self/cwd"] {
        for (tool, what) in [
            ("shell_exec", json!({"command": "pwd", "cwd": cwd})),
            ("run_code", json!({"language": "bash", "code": "pwd", "cwd": cwd})),
        ] {
            let (_, outcome) = person.call(tool, &what, ALL);
            let allowed =
                outcome["result"]["structured"]["stdout"] == json!(format!("{}\n", person.fixture.workspace.display()));
            let refused =
                ["INVALID_PATH", "FILE_NOT_FOUND", "NOT_A_DIRECTORY", "INVALID_ARGS"].contains(&code(&outcome));
            assert!(refused || (allowed && cwd.is_empty()), "{tool} in {cwd:?}: {outcome:#}");
        }
    }
    let (_, outcome) = person.call("shell_exec", &json!({"command": "cat a", "cwd": "in"}), &[]);
    assert_eq!(outcome["result"]["structured"]["stdout"], json!("a\n"), "{outcome:#}");
}

#[test]
fn words_that_no_program_could_be_given_are_refused_before_anybody_is_asked() {
    let person = Person::us();
    let long = "x".repeat(200_000);
    let inputs = [
        ("shell_exec", json!({"command": "echo a\u{0}b"})),
        ("shell_exec", json!({"command": "echo", "env": {"A": long}})),
        ("shell_exec", json!({"command": "echo", "env": {"A": "a\u{0}b"}})),
        ("shell_exec", json!({"command": "echo", "env": {"A=B": "c"}})),
        ("shell_exec", json!({"command": "echo", "env": {"LD_PRELOAD": "./x.so"}})),
        ("shell_exec", json!({"command": "echo", "env": {"BASH_ENV": "./x"}, "network": true})),
        ("shell_exec", json!({"command": "echo", "env": {"GIT_CONFIG_COUNT": "1"}})),
        ("run_code", json!({"language": "bash", "code": "echo", "args": ["a\u{0}b"]})),
        ("run_code", json!({"language": "bash", "code": "echo", "args": [long]})),
        ("run_code", json!({"language": "bash", "code": "echo", "args": vec!["x".repeat(1000); 3000]})),
        ("run_code", json!({"language": "python", "code": "print(1)\u{0}"})),
    ];
    for (tool, input) in inputs {
        let file = person.fixture.home.join("input.json");
        fs::write(&file, input.to_string()).unwrap();
        let ran = person.run(&["call", tool, &format!("@{}", file.display()), "--json", "--auto-approve", "all"]);
        assert_eq!(code(&ran.json()), "INVALID_ARGS", "{tool} {:.80}: {:.500}", input.to_string(), ran.stdout);
    }
}

#[test]
fn a_home_folder_of_the_caller_s_choice_opens_nothing() {
    for person in Person::everyone() {
        let data = person.fixture.data.to_string_lossy().into_owned();
        for home in ["/", "/proc", "/dev", "/etc", "/usr", "/root", "relative", "", "../..", "/proc/1/root", &data] {
            let command = "cat /etc/shadow 2>/dev/null; ls /root 2>/dev/null | head -1; \
                for at in / /etc /usr /bin /proc /sys; do : > $at/mark && echo wrote $at; done 2>/dev/null; echo end";
            let input = json!({"command": command, "env": {"HOME": home}});
            let (_, outcome) = person.call("shell_exec", &input, ALL);
            assert_eq!(outcome["result"]["structured"]["stdout"], json!("end\n"), "{home:?}: {outcome:#}");
        }
    }
}

#[test]
fn neither_the_store_nor_another_workspace_is_seen() {
    for person in Person::everyone() {
        let other = person.fixture.home.join("other");
        fs::create_dir(&other).unwrap();
        person.give(&other);
        fs::write(other.join("file"), "not for you\n").unwrap();
        let flag = other.to_string_lossy().into_owned();
        let secret = [
            "call",
            "shell_exec",
            "--command",
            "echo not for you > staged; echo not for you > /tmp/t",
            "--json",
            "--workspace",
            &flag,
        ];
        let call = id(&person.run(&secret).json());
        let data = person.fixture.data.display().to_string();
        let look = format!(
            "cat {data}/haft.db* {data}/changes/{call}/* {data}/private/*/*/*/t {flag}/file /tmp/t; \
             grep -rs 'not for you' {data} {flag} /proc/*/root/tmp /proc/*/cwd /proc/*/environ; \
             find / -xdev -name 'haft.db*' -o -xdev -name '{call}'; ls /proc/1/fd /proc/1/root; cat /proc/1/environ"
        );
        let said = person.says(&format!("({look}) 2>/dev/null; echo end"));
        assert_eq!(said, "end\n");
        // What one workspace puts where all can name it, another one does not get.
        person.says("mkdir -p /tmp/bin ~/.local/bin; echo evil > /tmp/bin/git; echo evil > ~/.local/bin/git; echo evil > ~/.bashrc");
        let ran = person.run(&[
            "call",
            "shell_exec",
            "--command",
            "cat /tmp/bin/git ~/.local/bin/git ~/.bashrc",
            "--json",
            "--workspace",
            &flag,
        ]);
        assert_eq!(ran.json()["result"]["structured"]["stdout"], json!(""), "{ran:?}");
        assert!(!person.fixture.home.join(".bashrc").exists());
    }
}

#[test]
fn with_the_network_off_nobody_answers() {
    let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_nonblocking(true).unwrap();
    tcp.set_nonblocking(true).unwrap();
    let (tcp_port, udp_port) = (tcp.local_addr().unwrap().port(), udp.local_addr().unwrap().port());
    for mut person in Person::everyone() {
        // A service of the user's that listens on a path, as an agent for keys, a message bus or a display does.
        let socket = person.fixture.home.join("agent.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        listener.set_nonblocking(true).unwrap();
        person.give(&socket);
        for name in ["SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST", "WAYLAND_DISPLAY"] {
            person.variables.push((name, socket.clone().into()));
        }
        let code = format!(
            "import socket, os\n\
             def reach(family, kind, to):\n\
             \x20   try:\n\
             \x20       s = socket.socket(family, kind); s.settimeout(1); s.connect(to); s.send(b'x'); print('reached', to)\n\
             \x20   except OSError as e: pass\n\
             I, U = socket.AF_INET, socket.AF_UNIX\n\
             reach(I, socket.SOCK_STREAM, ('127.0.0.1', {tcp_port}))\n\
             reach(socket.AF_INET6, socket.SOCK_STREAM, ('::1', {tcp_port}))\n\
             for to in [('169.254.169.254', 80), ('1.1.1.1', 53), ('8.8.8.8', 443)]:\n\
             \x20   reach(I, socket.SOCK_STREAM, to); reach(I, socket.SOCK_DGRAM, to)\n\
             for to in ['{}', '/run/docker.sock', '/var/run/docker.sock', '/run/dbus/system_bus_socket', '/tmp/.X11-unix/X0', '\\0/tmp/.X11-unix/X0', '/run/systemd/private']:\n\
             \x20   reach(U, socket.SOCK_STREAM, to)\n\
             try: print('resolved', socket.getaddrinfo('example.com', 80))\n\
             except OSError: pass\n\
             for family in [16, 17, 38, 40]:\n\
             \x20   try: socket.socket(family, socket.SOCK_RAW, 15 if family == 16 else 0); print('family', family)\n\
             \x20   except OSError: pass\n\
             for name in ['SSH_AUTH_SOCK', 'DBUS_SESSION_BUS_ADDRESS', 'DOCKER_HOST', 'WAYLAND_DISPLAY']:\n\
             \x20   if name in os.environ: print('variable', name)\n\
             socket.socket(I, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {udp_port}))\n\
             print('end')\n",
            socket.display()
        );
        let (_, outcome) = person.call("run_code", &json!({"language": "python", "code": code}), ALL);
        assert_eq!(outcome["result"]["structured"]["stdout"], json!("end\n"), "{outcome:#}");
        assert!(listener.accept().is_err() && tcp.accept().is_err() && udp.recv(&mut [0; 8]).is_err());
    }
}

/// What must be asked for in every mode.
const LEAVES_THE_FENCE: &[&str] = &[
    "mkdir .haft; echo x > .haft/settings",
    "mkdir -p sub/.HAFT/tools; echo x > sub/.HAFT/tools/x.toml",
    "echo x > haft.toml",
    "echo '{}' > .mcp.json",
    "mkdir -p .config/haft; echo '{}' > .config/haft/mcp.json",
    "git init -q; echo 'echo x' > .git/hooks/post-checkout",
    "git init -q; ln -s ../../run .git/hooks/pre-push",
    "git init -q; rm -r .git/hooks; ln -s ../hooks .git/hooks",
    "git init -q; git config core.fsmonitor ./run",
    "git init -q; git config core.hooksPath hooks",
    "git init -q; git config alias.st '!./run'",
    "git init -q; git config include.path ../more",
    "git init -q; printf '# comment \\\\\\n[core] fsmonitor = ./run\\n' >> .git/config",
    "git init -q; printf '[user][core]sshCommand = ./run\\n' >> .git/config",
    "git init -q; printf '[user]\\n\\tname = a\\\\\\\\\\n[core]\\n\\teditor = ./run\\n' >> .git/config",
    "git init -q; echo ../elsewhere > .git/commondir",
    "git init -q --bare bare; git -C bare config core.fsmonitor ./run",
    "mkdir sub; echo 'gitdir: ../bare' > sub/.git",
    "mkdir bare; ln -s bare .git",
    "ln -s /etc/passwd link",
    "ln -s ../.. link",
    "ln -s inner link; ln -s / inner",
    "cp /bin/true tool; chmod u+s tool",
    "cp /bin/true tool; chmod g+s tool",
];

/// What is asked for unless somebody has named that very path, even where git ignores it.
const RUNS_BY_ITSELF: &[&str] = &[
    "mkdir -p .github/workflows; echo x > .github/workflows/ci.yml",
    "mkdir .vscode; echo x > .vscode/tasks.json",
    "mkdir .claude; echo x > .claude/settings.json",
    "echo x > .envrc",
    "echo x > .gitlab-ci.yml",
    "mkdir .cargo; echo x > .cargo/config.toml",
    "echo x > .npmrc",
    "echo x > sitecustomize.py",
    "echo '!*' > .gitignore",
    "mkdir -p tools/bin; echo x > tools/bin/activate",
    "mkdir -p lib; echo x > lib/x.pth",
    "echo x > .env",
];

#[test]
fn what_would_act_by_itself_is_never_committed_unasked() {
    let person = Person::us();
    let old = person.fixture.picture();
    for command in LEAVES_THE_FENCE {
        let call = person.stages(command, ALL);
        assert!(person.fixture.picture() == old, "{command}");
        assert_eq!(person.run(&["reject", &call]).code, Some(0));
    }
    // Everything is ignored, so that it would come in unasked as build output.
    person.put(".gitignore", "*\n");
    let old = person.fixture.picture();
    assert_eq!(person.shell("echo x > plain", &[]).0, 0, "what is ignored comes in unasked");
    fs::remove_file(person.fixture.path("plain")).unwrap();
    for command in LEAVES_THE_FENCE.iter().chain(RUNS_BY_ITSELF) {
        let call = person.stages(command, &[]);
        assert!(person.fixture.picture() == old, "{command}");
        assert_eq!(person.run(&["reject", &call]).code, Some(0));
    }
}

#[test]
fn what_was_prepared_under_another_name_is_seen_when_it_is_moved() {
    let person = Person::us();
    person.put("x/hooks/pre-commit", "#!/bin/sh\n");
    person.put("x/HEAD", "ref: refs/heads/main\n");
    person.put("h/settings", "x\n");
    for command in ["mv x .git", "cp -r x .git", "mv h .haft", "mv h/settings haft.toml"] {
        let call = person.stages(command, ALL);
        assert_eq!(person.run(&["reject", &call]).code, Some(0));
    }
    for (from, to) in [("x", ".git"), ("h", ".haft"), ("h/settings", "haft.toml")] {
        let input = json!({"from": from, "to": to});
        let whole = json!({"from": from, "to": to, "recursive": true});
        for (tool, input) in [("move_file", &input), ("copy_file", &whole)] {
            let (_, outcome) = person.call(tool, input, ALL);
            assert_eq!(outcome["status"], json!("pending"), "{tool} {from} {to}: {outcome:#}");
        }
    }
}

#[test]
fn moving_something_into_build_output_takes_it_away() {
    let person = Person::us();
    person.put(".gitignore", "target/\n");
    person.put("target/made", "made\n");
    person.put("src/main.rs", "fn main() {}\n");
    person.put("notes", "notes\n");
    for command in
        ["mv src target/", "mv notes target/", "mv notes target/x; mv src target/y", "cp notes target/; rm notes"]
    {
        let call = person.stages(command, &[]);
        assert!(person.fixture.path("src/main.rs").exists() && person.fixture.path("notes").exists(), "{command}");
        assert_eq!(person.run(&["reject", &call]).code, Some(0));
    }
    person.stages("mv target/made made", &[]);
    let (_, outcome) = person.shell("mv target/made target/moved", &[]);
    assert_eq!(outcome["approved_by"], json!("config"), "{outcome:#}");
}

#[test]
fn a_secret_stays_hidden_whatever_was_committed_before() {
    let person = Person::us();
    person.put("services/api/.env", "not for you\n");
    person.put(".gitignore", "build*/\n");
    let fill = "for i in 1 2 3 4 5 6 7 8; do mkdir build$i; (cd build$i; seq 3000 | xargs touch); done";
    let (code, outcome) = person.shell(fill, &[]);
    assert_eq!((code, &outcome["approved_by"]), (0, &json!("config")), "{:.300}", outcome.to_string());
    let said =
        person.says("cat services/api/.env; cp -r services /tmp/s; cat /tmp/s/api/.env; ln services/api/.env l; cat l");
    assert!(!said.contains("not for you"), "{said}");
}

/// A repository with secrets of all sorts: as committed, changed since, never committed, only added.
fn repository_with_secrets(person: &Person) {
    person.put("certs/test.pem", "a certificate for tests\n");
    person.put("config/.env", "TOKEN=placeholder\n");
    person.put(".npmrc", "audit=false\n");
    person.put("src/main.rs", "fn main() {}\n");
    person.put_home(".gitconfig", "[user]\n\tname = Anna\n\temail = anna@example.org\n");
    person.git(&["init", "-q", "-b", "main"]);
    person.git(&["add", "-A"]);
    person.git(&["commit", "-qm", "first"]);
    person.put("config/.env", "TOKEN=not-for-you\n");
    person.put(".env.local", "not-for-you\n");
    person.put("added.key", "not-for-you\n");
    person.git(&["add", "added.key"]);
    person.put(".ssh/id_work", "not-for-you\n");
    person.put("keys/id_ed25519", "not-for-you\n");
}

#[test]
fn a_secret_is_shown_only_as_the_commit_has_it() {
    for person in Person::everyone() {
        repository_with_secrets(&person);
        let said = person.says(
            "cat certs/test.pem config/.env .npmrc; cat .env.local added.key .ssh/id_work keys/id_ed25519 2>/dev/null; \
             ls -A . .ssh keys config 2>&1 | grep -e env -e key -e ssh -e id_ ; git diff HEAD --stat; \
             git status --short; git ls-files -s | wc -l; grep -rs not-for-you .; echo end",
        );
        let expected = "a certificate for tests\nTOKEN=placeholder\naudit=false\n\
            ls: cannot access '.ssh': No such file or directory\n.env\nkeys:\nAD added.key\n5\nend\n";
        assert_eq!(said.replace("keys\n", ""), expected);
        for (path, shown) in [("certs/test.pem", true), (".npmrc", true), ("config/.env", false), (".env.local", false)]
        {
            let (_, outcome) = person.call("read_file", &json!({"path": path}), &[]);
            assert_eq!(outcome["status"] == json!("success"), shown, "{path}: {outcome:#}");
            assert!(!outcome.to_string().contains("not-for-you"), "{outcome:#}");
        }
        let input = json!({"pattern": "certificate|not-for-you|placeholder", "includeHidden": true});
        let (_, outcome) = person.call("grep", &input, &[]);
        assert_eq!(outcome["result"]["structured"]["matches"].as_array().map(Vec::len), Some(1), "{outcome:#}");
        // Everything that is tracked can be added and committed; what is hidden stays as it is.
        let added = person.does(
            "echo new > new; git add -A && git commit -qm second && git log --oneline | wc -l && git show --stat",
        );
        assert!(added.starts_with("2\n") && !added.contains(".env"), "{added}");
        assert_eq!(person.fixture.text("config/.env").as_deref(), Some("TOKEN=not-for-you\n"));
    }
}

#[test]
fn what_a_command_leaves_in_the_place_of_a_secret_is_left_out() {
    let person = Person::us();
    repository_with_secrets(&person);
    person.put("only/.env", "not-for-you\n");
    for (command, path) in [
        ("echo mine > .env.local", ".env.local"),
        ("rm config/.env", "config/.env"),
        ("rm -r config; mkdir config; echo mine > config/.env", "config"),
        ("mkdir .ssh; echo mine > .ssh/id_work", ".ssh"),
        ("mkdir .env.local; echo mine > .env.local/x", ".env.local"),
        ("ln -s /etc/passwd .env.local", ".env.local"),
        ("rm -r only", "only"),
        ("mv only elsewhere && rm -r elsewhere", "only"),
    ] {
        let old = person.fixture.picture();
        let (_, outcome) = person.shell(command, ALL);
        let said = outcome.to_string();
        assert!(said.contains("secrets that commands are not shown") && said.contains(path), "{command}: {outcome:#}");
        assert!(person.fixture.picture() == old, "{command}: {outcome:#}");
    }
    // What the commit shows can be changed like anything else, after a question.
    let call = person.stages("echo more >> certs/test.pem", &[]);
    assert_eq!(person.run(&["approve", &call]).code, Some(0));
    assert_eq!(person.fixture.text("certs/test.pem").as_deref(), Some("a certificate for tests\nmore\n"));
    assert_eq!(person.says("cat certs/test.pem"), "a certificate for tests\n");
}

#[test]
fn a_command_that_changes_the_commit_is_shown_nothing_more() {
    let person = Person::us();
    repository_with_secrets(&person);
    // Whatever a command does to its own copy of the repository, what it sees was settled before.
    let said = person.does(
        "git rm -q --cached config/.env; git commit -qm x; cat config/.env; \
         git update-index --add --cacheinfo 100644,$(git rev-parse HEAD:.npmrc),.env.local; git commit -qm y; \
         cat .env.local 2>/dev/null; git checkout -q -- .env.local; cat .env.local",
    );
    assert_eq!(said, "TOKEN=placeholder\naudit=false\n");
    assert_eq!(person.says("cat .env.local; cat config/.env 2>/dev/null"), "audit=false\n");
    for path in [".env.local", "config/.env"] {
        let (_, outcome) = person.call("read_file", &json!({"path": path}), &[]);
        assert_eq!(code(&outcome), "PERMISSION_DENIED", "{path}: {outcome:#}");
        assert!(person.fixture.text(path).unwrap().contains("not-for-you"), "{path}");
    }
}

#[test]
fn a_link_shows_no_more_than_what_it_leads_to() {
    let person = Person::us();
    repository_with_secrets(&person);
    person.put("store/real", "not-for-you\n");
    symlink("store/real", person.fixture.path(".env.linked")).unwrap();
    symlink(".env.local", person.fixture.path("plain")).unwrap();
    symlink(".", person.fixture.path(".env.here")).unwrap();
    let said =
        person.says("cat .env.linked store/real plain .env.here/.env.local 2>/dev/null; ls store; cat src/main.rs");
    assert_eq!(said, "fn main() {}\n");
    for path in [".env.linked", "plain", ".env.here/.env.local"] {
        let (_, outcome) = person.call("read_file", &json!({"path": path}), &[]);
        assert_eq!(code(&outcome), "PERMISSION_DENIED", "{path}: {outcome:#}");
    }
}

#[test]
fn the_user_s_settings_hide_names_and_show_paths_for_tools_and_commands_alike() {
    let person = Person::us();
    person.put("tokens.txt", "not-for-you\n");
    person.put("state/main.tfstate", "not-for-you\n");
    person.put("fixtures/test.pem", "for you\n");
    person.put("other/test.pem", "not-for-you\n");
    let shown = person.fixture.path("fixtures");
    person.put_home(
        ".config/haft/haft.toml",
        format!("[sandbox]\nhide = [\"tokens.txt\", \"*.tfstate\"]\nshow = [\"{}\"]\n", shown.display()),
    );
    assert_eq!(
        person.says("cat tokens.txt state/* fixtures/test.pem other/test.pem 2>/dev/null; ls"),
        "for you\nfixtures\nother\nstate\n"
    );
    for (path, shown) in
        [("tokens.txt", false), ("state/main.tfstate", false), ("fixtures/test.pem", true), ("other/test.pem", false)]
    {
        let (_, outcome) = person.call("read_file", &json!({"path": path}), &[]);
        assert_eq!(outcome["status"] == json!("success"), shown, "{path}: {outcome:#}");
        let (_, outcome) = person.call("grep", &json!({"pattern": "you", "path": path}), &[]);
        assert_eq!(outcome["result"]["structured"]["matches"][0].is_object(), shown, "{path}: {outcome:#}");
    }
    let (_, outcome) = person.call("grep", &json!({"pattern": "you"}), &[]);
    assert_eq!(outcome["result"]["structured"]["matches"].as_array().map(Vec::len), Some(1), "{outcome:#}");
}

#[test]
fn nothing_of_a_call_lives_a_second_after_it() {
    let person = Person::us();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // With the network on, a daemon could be heard for as long as it lives: the connection ends with it.
    let command = format!(
        "(setsid nohup bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}; while :; do sleep 5; done' > /dev/null 2>&1 &); \
        sleep 0.1; for i in $(seq 100); do read -t 0.05 < /dev/zero; done; echo left"
    );
    let input = json!({"command": command, "network": true});
    let (_, outcome) = person.call("shell_exec", &input, &[]);
    let call = id(&outcome);
    assert_eq!(person.run(&["approve", &call]).code, Some(0));
    let ended = Instant::now();
    let (mut heard, _) = listener.accept().unwrap();
    heard.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let end = heard.read(&mut [0; 8]);
    assert!(matches!(end, Ok(0) | Err(_)) && ended.elapsed() < Duration::from_secs(30), "{end:?}");
}

#[test]
fn a_yes_is_to_what_was_shown() {
    let person = Person::us();
    person.put("a", "a\n");
    let call = person.stages("echo shown > a; echo shown > b", &[]);
    // Another input is another call, with a preview and an answer of its own.
    let ran = person.run(&["approve", &call, "--input", r#"{"command": "rm -rf /"}"#, "--json"]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    let ran = person.run(&["approve", &call, "--input", r#"{"command": "echo x > a", "more": 1}"#, "--json"]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert_eq!(person.fixture.text("a").as_deref(), Some("a\n"));
    let _ = person.run(&["approve", &call]);
    let now = (person.fixture.text("a"), person.fixture.text("b"));
    assert!(now == (Some("shown\n".into()), Some("shown\n".into())) || now == (Some("a\n".into()), None), "{now:?}");
}

#[test]
fn of_two_calls_for_the_same_path_one_is_told_of_the_other() {
    for person in Person::everyone() {
        person.put("a", "a\n");
        let first = person.stages("echo first >> a; echo 1 > one", &[]);
        let second = person.stages("echo second >> a; echo 2 > two", &[]);
        assert_eq!(person.run(&["approve", &first]).code, Some(0));
        let ran = person.run(&["approve", &second, "--json"]);
        assert_eq!(code(&ran.json()), "CONFLICT", "{ran:?}");
        assert_eq!((person.fixture.text("a").as_deref(), person.fixture.text("two")), (Some("a\nfirst\n"), None));
        // At the same moment, too.
        let calls: Vec<_> =
            (0..4).map(|number| person.stages(&format!("echo {number} >> a; echo > new{number}"), &[])).collect();
        let running: Vec<_> =
            calls.iter().map(|call| support::Running::start(person.haft(&["approve", call, "--json"]))).collect();
        let codes: Vec<_> = running.into_iter().map(|running| text(&running.finish().json()["status"])).collect();
        assert_eq!(codes.iter().filter(|status| *status == "success").count(), 1, "{codes:?}");
        let new = (0..4).filter(|number| person.fixture.path(&format!("new{number}")).exists()).count();
        assert_eq!((new, person.fixture.text("a").unwrap().lines().count()), (1, 3));
    }
}
