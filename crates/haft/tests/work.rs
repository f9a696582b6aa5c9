//! A day's work through the program, as it is typed into a shell: builds, tests and commits with the user's own tools.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(clippy::disallowed_methods, reason = "these tests look for the tools that they use")]

mod fenced;
mod support;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use fenced::Person;
use serde_json::{Value, json};
use support::{ALL, id};

/// Somebody with the tools, the variables and the home of whoever runs the tests, and a data folder of their own.
fn at_home() -> Person {
    let mut person = Person::us();
    for name in ["PATH", "HOME", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"] {
        if let Some(value) = env::var_os(name) {
            person.variables.push((name, value));
        }
    }
    // Whoever starts this by `cargo test` has the toolchain's own folders first, which a person's shell has not.
    person
}

/// The folder in which the crates lie that were fetched before.
fn registry() -> PathBuf {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    home.unwrap_or_else(|| PathBuf::from(env::var_os("HOME").unwrap()).join(".cargo")).join("registry/src")
}

fn has(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

fn success(outcome: &(i32, Value)) -> &Value {
    let structured = &outcome.1["result"]["structured"];
    assert_eq!((outcome.0, &structured["exitCode"]), (0, &json!(0)), "{:#}", outcome.1);
    structured
}

#[test]
fn a_crate_with_a_dependency_is_built_and_tested_by_the_first_call() {
    let person = at_home();
    let registry = registry();
    assert!(registry.is_dir(), "haft itself was built from {}", registry.display());
    person.put("Cargo.toml", "[package]\nname = \"small\"\nedition = \"2021\"\n\n[dependencies]\nitoa = \"1\"\n");
    person.put(".gitignore", "target/\n");
    person.put(
        "src/main.rs",
        "fn main() { println!(\"{}\", itoa::Buffer::new().format(42)) }\n\
         #[test]\nfn two() { assert_eq!(itoa::Buffer::new().format(2), \"2\") }\n",
    );
    let said = person.does("cargo build && cargo test && cargo run -q");
    assert!(said.contains("test result: ok. 1 passed") && said.ends_with("42\n"), "{said}");
    assert!(person.fixture.path("target/debug/small").exists() && person.fixture.path("Cargo.lock").exists());
    // What was committed has its times, so nothing is built again; nothing that matters changes, and nobody is asked.
    let outcome = person.shell("cargo build 2>&1 && cargo test 2>&1", &[]);
    let said = success(&outcome)["stdout"].as_str().unwrap().to_owned();
    assert!(!said.contains("Compiling"), "{said}");
    // Outside, the user's own cargo finds the same.
    let output = person.program("cargo").args(["build", "--offline"]).output().unwrap();
    assert!(!String::from_utf8_lossy(&output.stderr).contains("Compiling"), "{output:?}");
}

/// Where packages say that they come from; nobody is there.
const NOWHERE: &str = "https://host.example";

#[test]
fn packages_are_installed_from_the_cache_and_tested() {
    if !has("npm") {
        return println!("there is no npm here");
    }
    for person in Person::everyone() {
        let integrity = cached_package(&person);
        person.put(
            "package.json",
            r#"{"name":"work","version":"1.0.0","dependencies":{"tiny":"1.0.0"},
            "scripts":{"test":"node test.js"}}"#,
        );
        let lock = json!({"name": "work", "version": "1.0.0", "lockfileVersion": 3, "requires": true, "packages": {
            "": {"name": "work", "version": "1.0.0", "dependencies": {"tiny": "1.0.0"}},
            "node_modules/tiny": {"version": "1.0.0", "integrity": integrity, "bin": {"tiny": "index.js"},
                "resolved": format!("{NOWHERE}/tiny-1.0.0.tgz")}}});
        person.put("package-lock.json", lock.to_string());
        person.put("test.js", "console.log(require('tiny') + 1)\n");
        person.put(".gitignore", "node_modules\n");
        // Everything that it makes is ignored, and its links lead to what it makes.
        let outcome = person.shell("npm ci && npm test", &[]);
        assert!(success(&outcome)["stdout"].as_str().unwrap().ends_with("42\n"), "{:#}", outcome.1);
        person.owns("node_modules/tiny/package.json");
        let link = fs::read_link(person.fixture.path("node_modules/.bin/tiny")).unwrap();
        assert_eq!(link.to_str(), Some("../tiny/index.js"));
    }
}

/// Puts a package into the user's own cache, as an earlier installation would have; gives its hash.
fn cached_package(person: &Person) -> String {
    let script = "mkdir -p package && cd package && echo 'module.exports = 41' > index.js && \
        echo '{\"name\":\"tiny\",\"version\":\"1.0.0\",\"bin\":{\"tiny\":\"index.js\"}}' > package.json && cd .. && tar czf tiny.tgz package && \
        npm cache add ./tiny.tgz >&2 && node -e \"process.stdout.write('sha512-' + \
        require('crypto').createHash('sha512').update(require('fs').readFileSync('tiny.tgz')).digest('base64'))\" && \
        rm -rf package tiny.tgz";
    let output = person.program("/bin/sh").args(["-ec", script]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_test_run_is_not_asked_for() {
    if !has("pytest") {
        return println!("there is no pytest here");
    }
    for person in Person::everyone() {
        person.put("tests/test_it.py", "def test_it(tmp_path):\n    (tmp_path / 'a').write_text('a')\n");
        let outcome = person.shell("pytest -q", &[]);
        assert!(success(&outcome)["stdout"].as_str().unwrap().contains("1 passed"), "{:#}", outcome.1);
        assert!(person.fixture.path(".pytest_cache/.gitignore").exists());
        let outcome = person.shell("pytest -q --lf", &[]);
        assert!(success(&outcome)["stdout"].as_str().unwrap().contains("1 passed"), "{:#}", outcome.1);
    }
}

#[test]
fn make_knows_what_is_up_to_date() {
    for person in Person::everyone() {
        person.put("Makefile", "out: in\n\tcp in out\n");
        person.put("in", "in\n");
        assert_eq!(person.does("make"), "cp in out\n");
        person.owns("out");
        assert!(person.says("make").contains("up to date"));
    }
}

#[test]
fn a_commit_has_the_user_s_name() {
    for person in Person::everyone() {
        person.put_home(".gitconfig", "[user]\n\tname = A Person\n\temail = person@example.org\n");
        person.put("file", "file\n");
        person.does("git init -q");
        person.does("git add file");
        person.does("git commit -qm first");
        let output = person.program("git").args(["log", "--format=%an <%ae> %s"]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "A Person <person@example.org> first\n", "{output:?}");
        let output = person.program("git").args(["status", "--porcelain"]).output().unwrap();
        assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
        // A look at it changes nothing that anybody is asked for.
        person.put("file", "more\n");
        assert_eq!(
            person.says("git status --porcelain && git diff --stat | tail -1 | cut -c1-7"),
            " M file\n 1 file\n"
        );
    }
}

#[test]
fn a_class_is_compiled_and_run() {
    if !has("javac") {
        return println!("there is no javac here");
    }
    for person in Person::everyone() {
        person.put("A.java", "class A { public static void main(String[] a) { System.out.println(\"a\"); } }\n");
        assert!(person.does("javac A.java && java A").ends_with("a\n"));
    }
}

#[test]
fn tools_in_the_home_folder_are_found() {
    for mut person in Person::everyone() {
        let tool = "tools/bin/greet";
        person.put_home(tool, "#!/bin/sh\necho greetings from \"$HOME\"\n");
        executable(&person.fixture.home.join(tool));
        let path = format!("{}:/usr/bin:/bin", person.fixture.home.join("tools/bin").display());
        person.variables.push(("PATH", path.into()));
        assert_eq!(person.says("greet"), format!("greetings from {}\n", person.fixture.home.display()));
        // The rest of the home folder is not there, and what is there cannot be written.
        person.put_home("private", "not for you");
        let said = person.says("cat ~/private; ls -a ~; echo more >> ~/tools/bin/greet");
        assert!(!said.contains("not for you") && !said.contains("private\n"), "{said}");
        assert!(fs::read_to_string(person.fixture.home.join(tool)).unwrap().ends_with("$HOME\"\n"));
    }
}

fn executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn caches_last_between_calls_and_those_of_a_rejected_one_do_not() {
    for person in Person::everyone() {
        person.put_home(".cache/pip/own", "own\n");
        let own = || fs::read_dir(person.fixture.home.join(".cache/pip")).unwrap().count();
        assert_eq!(person.says("cat ~/.cache/pip/own; echo kept > ~/.cache/pip/kept; echo kept > /tmp/kept"), "own\n");
        assert_eq!(person.says("cat ~/.cache/pip/kept /tmp/kept"), "kept\nkept\n");
        let call =
            person.stages("echo bad > ~/.cache/pip/bad; echo bad > /tmp/bad; rm ~/.cache/pip/kept; touch new", &[]);
        assert_eq!(person.run(&["reject", &call]).code, Some(0));
        assert_eq!(
            person.says("cat ~/.cache/pip/bad /tmp/bad 2>&1 | grep -c 'No such file'; cat ~/.cache/pip/kept"),
            "2\nkept\n"
        );
        let call = person.stages("echo good > ~/.cache/pip/good; echo good > /tmp/good; touch new", &[]);
        assert_eq!(person.run(&["approve", &call]).code, Some(0));
        assert_eq!(person.says("cat ~/.cache/pip/good /tmp/good"), "good\ngood\n");
        assert_eq!(own(), 1, "the user's own cache is as it was");
        // Another workspace has its own.
        let other = person.fixture.home.join("other");
        fs::create_dir(&other).unwrap();
        person.give(&other);
        let ran = person.run(&[
            "call",
            "shell_exec",
            "--command",
            "cat ~/.cache/pip/own; cat ~/.cache/pip/good /tmp/good",
            "--json",
            "--workspace",
            &other.to_string_lossy(),
        ]);
        assert_eq!(ran.json()["result"]["structured"]["stdout"], json!("own\n"), "{ran:?}");
    }
}

#[test]
fn what_a_command_leaves_half_done_is_not_kept() {
    let person = Person::us();
    let input = json!({"command": "echo half > /tmp/half; sleep 60", "timeout": 1500});
    let (_, outcome) = person.call("shell_exec", &input, ALL);
    assert_eq!(outcome["error"]["code"], json!("TIMEOUT"), "{outcome:#}");
    assert_eq!(person.says("cat /tmp/half 2>/dev/null | wc -c"), "0\n");
    assert!(!person.fixture.data.join("changes").join(id(&outcome)).join("private").exists());
}
