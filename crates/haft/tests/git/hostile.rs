//! Repositories that want to run something: each attack works with plain git, and with haft it does not.

use std::{fs, os::unix::fs::symlink};

use serde_json::{Value, json};

use crate::{
    fenced::Person,
    repo::{git, looks, plain, put_program, with_repository},
    support::picture,
};

/// Every look that a caller can take.
fn every_look() -> Vec<(&'static str, Value)> {
    vec![
        ("git_status", json!({})),
        ("git_status", json!({"path": "a.txt"})),
        ("git_diff", json!({})),
        ("git_diff", json!({"staged": true})),
        ("git_diff", json!({"base": "HEAD"})),
        ("git_log", json!({})),
        ("git_log", json!({"path": "a.txt", "ref": "HEAD"})),
        ("git_branch", json!({})),
    ]
}

/// One way to have something run: how it is laid out, and the plain git by which it works.
struct Attack {
    name: &'static str,
    /// Settings of the repository; `EVIL` stands for the program.
    settings: &'static [(&'static str, &'static str)],
    /// Lines of `.gitattributes`.
    attributes: &'static str,
    /// What plain git has to be asked for.
    plain: &'static [&'static str],
}

const ATTACKS: &[Attack] = &[
    Attack { name: "fsmonitor", settings: &[("core.fsmonitor", "EVIL")], attributes: "", plain: &["status"] },
    Attack {
        name: "a clean filter",
        settings: &[("filter.x.clean", "EVIL; cat")],
        attributes: "*.txt filter=x",
        plain: &["status"],
    },
    Attack {
        name: "a clean filter without a shell",
        settings: &[("filter.x.clean", "EVIL")],
        attributes: "*.txt filter=x",
        plain: &["diff"],
    },
    Attack {
        name: "a filter that is required",
        settings: &[("filter.x=y.clean", "EVIL; cat"), ("filter.x=y.required", "true")],
        attributes: "*.txt filter=x=y",
        plain: &["status"],
    },
    Attack {
        name: "a filter process",
        settings: &[("filter.x.process", "EVIL")],
        attributes: "*.txt filter=x",
        plain: &["diff"],
    },
    Attack { name: "an external diff", settings: &[("diff.external", "EVIL")], attributes: "", plain: &["diff"] },
    Attack {
        name: "a diff driver",
        settings: &[("diff.x.command", "EVIL")],
        attributes: "*.txt diff=x",
        plain: &["diff"],
    },
    Attack { name: "textconv", settings: &[("diff.x.textconv", "EVIL")], attributes: "*.txt diff=x", plain: &["diff"] },
    Attack {
        name: "settings elsewhere",
        settings: &[("include.path", "EVIL.config")],
        attributes: "",
        plain: &["status"],
    },
    Attack {
        name: "settings elsewhere under a condition",
        settings: &[("includeIf.onbranch:main.path", "EVIL.config")],
        attributes: "",
        plain: &["status"],
    },
    Attack {
        name: "signatures",
        settings: &[("log.showSignature", "true"), ("gpg.program", "EVIL"), ("gpg.ssh.program", "EVIL")],
        attributes: "",
        plain: &["log"],
    },
];

/// Lays an attack out; the marker says that it worked.
fn lay_out(person: &Person, attack: &Attack) -> std::path::PathBuf {
    let marker = person.fixture.home.join("marker");
    let evil = person.fixture.path("evil.sh").display().to_string();
    put_program(person, "evil.sh", &format!("touch {}; cat", marker.display()));
    person.put("evil.sh.config", format!("[core]\n\tfsmonitor = {evil}\n"));
    for (key, value) in attack.settings {
        git(person, &["config", key, &value.replace("EVIL", &evil)]);
    }
    if !attack.attributes.is_empty() {
        // A file of the repository's own that no other place of attributes overrules.
        person.put(".git/info/attributes", format!("{}\n", attack.attributes));
    }
    if attack.name == "signatures" {
        // A commit with something that looks like a signature.
        let tree = git(person, &["rev-parse", "HEAD^{tree}"]);
        let who = "Anna <anna@example.org> 1700000000 +0000";
        let signed = format!(
            "tree {tree}\nauthor {who}\ncommitter {who}\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\nSigned\n"
        );
        person.put("commit", signed);
        let hash = git(person, &["hash-object", "-t", "commit", "-w", "commit"]);
        git(person, &["update-ref", "refs/heads/main", &hash]);
    }
    // Only whoever reads the file sees that it has changed.
    person.put("a.txt", "two\n");
    let _ = fs::remove_file(&marker);
    marker
}

#[test]
fn nothing_that_a_repository_names_is_run() {
    for attack in ATTACKS {
        for person in Person::everyone() {
            let person = with_repository(person);
            let marker = lay_out(&person, attack);
            for (tool, input) in every_look() {
                let shown = looks(&person, tool, &input);
                assert!(!marker.exists(), "{}: {tool} {input} ran it: {shown:#}", attack.name);
            }
            let _ = plain(&person, &person.fixture.workspace, attack.plain);
            assert!(marker.exists(), "{}: the attack does not work with plain git either", attack.name);
        }
    }
}

#[test]
fn an_attack_hides_nothing_of_what_has_changed() {
    for attack in ATTACKS {
        let person = with_repository(Person::us());
        lay_out(&person, attack);
        let status = looks(&person, "git_status", &json!({"path": "a.txt"}));
        assert_eq!(status["entries"][0]["worktree"], "M", "{}: {status:#}", attack.name);
        let diff = looks(&person, "git_diff", &json!({"path": "a.txt"}));
        assert!(diff["diff"].as_str().unwrap().contains("+two"), "{}: {diff:#}", attack.name);
    }
}

#[test]
fn a_look_changes_nothing() {
    let person = with_repository(Person::us());
    person.put("a.txt", "changed\n");
    person.put("new.txt", "new\n");
    // What git remembers of the files is out of date, so that it would like to write it anew.
    person.put("b.txt", "b\n");
    git(&person, &["add", "b.txt"]);
    person.put("b.txt", "b\n");
    let before = picture(&person.fixture.workspace);
    for (tool, input) in every_look() {
        looks(&person, tool, &input);
        assert!(picture(&person.fixture.workspace) == before, "{tool} {input} changed something");
    }
}

#[test]
fn submodules_with_settings_of_their_own_run_nothing() {
    let person = with_repository(Person::us());
    let marker = person.fixture.home.join("marker");
    put_program(&person, "evil.sh", &format!("touch {}; cat", marker.display()));
    git(&person, &["init", "-q", "sub"]);
    person.put("sub/b.txt", "b\n");
    git(&person, &["-C", "sub", "add", "."]);
    git(&person, &["-C", "sub", "commit", "-q", "-m", "Sub"]);
    person.put(".gitmodules", "[submodule \"sub\"]\n\tpath = sub\n\turl = ./sub\n");
    git(&person, &["add", "sub", ".gitmodules"]);
    git(&person, &["commit", "-q", "-m", "With a submodule"]);
    let evil = person.fixture.path("evil.sh").display().to_string();
    git(&person, &["-C", "sub", "config", "core.fsmonitor", &evil]);
    git(&person, &["-C", "sub", "config", "diff.external", &evil]);
    person.put("sub/b.txt", "changed\n");
    let _ = fs::remove_file(&marker);
    for (tool, input) in every_look() {
        looks(&person, tool, &input);
        assert!(!marker.exists(), "{tool} {input}");
    }
    let of_sub = looks(&person, "git_status", &json!({"path": "sub"}));
    assert!(!marker.exists() && of_sub["entries"][0]["path"] == "sub/b.txt", "{of_sub:#}");
    git(&person, &["status"]);
    assert!(marker.exists(), "the attack does not work with plain git either");
}

#[test]
fn missing_objects_are_not_fetched() {
    let person = with_repository(Person::us());
    let marker = person.fixture.home.join("marker");
    put_program(&person, "evil.sh", &format!("touch {}", marker.display()));
    let evil = person.fixture.path("evil.sh").display().to_string();
    git(&person, &["config", "remote.origin.url", &format!("ext::{evil}")]);
    git(&person, &["config", "remote.origin.promisor", "true"]);
    git(&person, &["config", "extensions.partialClone", "origin"]);
    git(&person, &["config", "protocol.ext.allow", "always"]);
    let blob = git(&person, &["rev-parse", "HEAD:a.txt"]);
    fs::remove_file(person.fixture.path(&format!(".git/objects/{}/{}", &blob[..2], &blob[2..]))).unwrap();
    person.put("a.txt", "changed\n");
    for (tool, input) in every_look() {
        let _ = person.call(tool, &input, &[]);
        assert!(!marker.exists(), "{tool} {input}");
    }
    let _ = plain(&person, &person.fixture.workspace, &["diff"]);
    assert!(marker.exists(), "the attack does not work with plain git either");
}

#[test]
fn files_outside_the_workspace_are_not_read() {
    // Each leads git to another repository of the user's, whose commits and files nobody here may see.
    type LayOut = fn(&Person, &std::path::Path);
    let ways: [(&str, LayOut); 6] = [
        ("a file that points there", |person, other| {
            fs::remove_dir_all(person.fixture.path(".git")).unwrap();
            person.put(".git", format!("gitdir: {}\n", other.join(".git").display()));
        }),
        ("a link", |person, other| {
            fs::remove_dir_all(person.fixture.path(".git")).unwrap();
            symlink(other.join(".git"), person.fixture.path(".git")).unwrap();
        }),
        ("a common folder", |person, other| {
            person.put(".git/commondir", format!("{}\n", other.join(".git").display()));
        }),
        ("linked refs and objects", |person, other| {
            for name in ["refs", "objects"] {
                fs::remove_dir_all(person.fixture.path(".git").join(name)).unwrap();
                symlink(other.join(".git").join(name), person.fixture.path(".git").join(name)).unwrap();
            }
        }),
        ("borrowed objects", |person, other| {
            person.put(".git/objects/info/alternates", format!("{}\n", other.join(".git/objects").display()));
            let head = fs::read(other.join(".git/refs/heads/main")).unwrap();
            fs::write(person.fixture.path(".git/refs/heads/main"), head).unwrap();
        }),
        ("another place for the files", |person, other| {
            git(person, &["config", "core.worktree", &other.display().to_string()]);
        }),
    ];
    for (way, lay_out) in ways {
        let person = with_repository(Person::us());
        let other = person.fixture.home.join("other");
        fs::create_dir(&other).unwrap();
        person.give(&other);
        plain(&person, &other, &["init", "-q"]);
        fs::write(other.join("a.txt"), "PRIVATE\n").unwrap();
        plain(&person, &other, &["add", "."]);
        plain(&person, &other, &["commit", "-q", "-m", "PRIVATE"]);
        fs::write(other.join("a.txt"), "PRIVATE too\n").unwrap();
        lay_out(&person, &other);
        let works = [&["log"][..], &["diff"]].map(|look| plain(&person, &person.fixture.workspace, look).said());
        assert!(works.concat().contains("PRIVATE"), "{way} does not work with plain git either: {works:?}");
        for (tool, input) in every_look() {
            let (_, outcome) = person.call(tool, &input, &[]);
            assert!(!outcome.to_string().contains("PRIVATE"), "{way}: {tool} {input}: {outcome:#}");
        }
    }
}

#[test]
fn a_file_that_git_complains_about_is_not_told() {
    let person = with_repository(Person::us());
    person.put_home("secret", "hunter2 is the password\n");
    symlink(person.fixture.home.join("secret"), person.fixture.path(".git/packed-refs")).unwrap();
    let said = plain(&person, &person.fixture.workspace, &["branch"]).said();
    assert!(said.contains("hunter2"), "plain git does not tell it either: {said}");
    for (tool, input) in every_look() {
        let (_, outcome) = person.call(tool, &input, &[]);
        assert!(!outcome.to_string().contains("hunter2"), "{tool} {input}: {outcome:#}");
    }
}

#[test]
fn the_sessions_own_words_to_git_do_not_count() {
    let mut person = with_repository(Person::us());
    let marker = person.fixture.home.join("marker");
    put_program(&person, "evil.sh", &format!("touch {}; cat", marker.display()));
    let evil = person.fixture.path("evil.sh");
    person.variables = vec![
        ("GIT_EXTERNAL_DIFF", evil.clone().into()),
        ("GIT_DIR", "/nowhere".into()),
        ("GIT_WORK_TREE", "/".into()),
        ("GIT_INDEX_FILE", "/nowhere".into()),
        ("GIT_CONFIG_COUNT", "1".into()),
        ("GIT_CONFIG_KEY_0", "core.fsmonitor".into()),
        ("GIT_CONFIG_VALUE_0", evil.into()),
        ("GIT_TRACE", "1".into()),
    ];
    person.put("a.txt", "changed\n");
    for (tool, input) in every_look() {
        looks(&person, tool, &input);
        assert!(!marker.exists(), "{tool} {input}");
    }
}

#[test]
fn what_could_be_an_option_or_a_pattern_is_taken_for_a_name_or_refused() {
    let person = with_repository(Person::us());
    let out = person.fixture.path("written").display().to_string();
    let output = format!("--output={out}");
    for name in [output.as_str(), "-p", "--all", "--exec=sh", "-c", "--upload-pack=sh", "--no-index"] {
        for (tool, input) in [
            ("git_diff", json!({"base": name})),
            ("git_log", json!({"ref": name})),
            ("git_branch", json!({"name": name})),
            ("git_branch", json!({"name": name, "create": true})),
            ("git_branch", json!({"name": "x", "create": true, "from": name})),
            ("git_branch", json!({"name": name, "checkout": true})),
            ("git_push", json!({"remote": name})),
            ("git_push", json!({"branch": name})),
        ] {
            let (_, outcome) = person.call(tool, &input, &[]);
            assert_eq!(outcome["error"]["code"], "INVALID_ARGS", "{tool} {input}: {outcome:#}");
        }
        // A path may be called anything.
        for tool in ["git_status", "git_diff", "git_log"] {
            let (_, outcome) = person.call(tool, &json!({"path": name}), &[]);
            assert!(matches!(outcome["status"].as_str(), Some("success" | "error")), "{outcome:#}");
        }
    }
    for path in [":(top)", ":/", ":!a.txt", "*.txt", ":(exclude)a.txt"] {
        person.put("a.txt", "changed\n");
        let diff = looks(&person, "git_diff", &json!({"path": path}));
        assert_eq!(diff["files"], json!([]), "{path}: {diff:#}");
    }
    assert!(!std::path::Path::new(&out).exists());
}
