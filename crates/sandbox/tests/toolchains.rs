//! What is found of the tools in a home folder, and what is not shown of it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use haft_sandbox::fence::{Toolchains, UserEnvironment, refused_variable, toolchains};

/// A home folder and a workspace in it, made by hand.
struct Home {
    path: PathBuf,
    variables: BTreeMap<String, String>,
    _folder: tempfile::TempDir,
}

impl Home {
    fn new() -> Home {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().join("home/ann");
        fs::create_dir_all(path.join("project")).unwrap();
        Home { path, variables: BTreeMap::new(), _folder: folder }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    fn folder(&self, name: &str) -> &Home {
        fs::create_dir_all(self.at(name)).unwrap();
        self
    }

    fn file(&self, name: &str, content: &str) -> &Home {
        fs::create_dir_all(self.at(name).parent().unwrap()).unwrap();
        fs::write(self.at(name), content).unwrap();
        self
    }

    fn link(&self, name: &str, target: &Path) -> &Home {
        fs::create_dir_all(self.at(name).parent().unwrap()).unwrap();
        symlink(target, self.at(name)).unwrap();
        self
    }

    fn set(&mut self, name: &str, value: impl Into<String>) -> &mut Home {
        self.variables.insert(name.to_owned(), value.into());
        self
    }

    /// Puts folders of the home folder on the `PATH`, the system's after them.
    fn path(&mut self, folders: &[&str]) -> &mut Home {
        let mut all: Vec<String> = folders.iter().map(|name| self.at(name).to_str().unwrap().to_owned()).collect();
        all.push("/usr/bin".to_owned());
        self.set("PATH", all.join(":"))
    }

    fn tools(&self) -> Toolchains {
        self.tools_in(&self.at("project"))
    }

    fn tools_in(&self, workspace: &Path) -> Toolchains {
        toolchains(&UserEnvironment { home: &self.path, workspace, variables: &self.variables })
    }

    /// The paths in the home folder, told from there and sorted.
    fn told<'a>(&self, paths: impl IntoIterator<Item = &'a PathBuf>) -> Vec<String> {
        let told = |path: &PathBuf| path.strip_prefix(&self.path).unwrap().to_str().unwrap().to_owned();
        let mut told: Vec<String> = paths.into_iter().map(told).collect();
        told.sort();
        told
    }
}

fn variable<'a>(tools: &'a Toolchains, name: &str) -> Option<&'a str> {
    tools.environment.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

fn why<'a>(tools: &'a Toolchains, at: &Path) -> Option<&'a str> {
    tools.left_out.iter().find(|left| left.at == at).map(|left| left.why)
}

#[test]
fn rust_is_its_programs_its_toolchains_and_its_caches_but_not_its_credentials() {
    let mut home = Home::new();
    home.file(".cargo/bin/cargo", "").folder(".cargo/registry").folder(".cargo/git").folder(".rustup/toolchains");
    home.file(".cargo/credentials.toml", "token").file(".cargo/config.toml", "[net]\nretry = 1\n");
    home.path(&[".cargo/bin"]);
    let tools = home.tools();
    assert_eq!(home.told(&tools.readable), [".cargo/bin", ".cargo/config.toml", ".rustup"]);
    assert_eq!(home.told(tools.caches.iter().map(|cache| &cache.at)), [".cargo/git", ".cargo/registry"]);
    assert_eq!(tools.hidden, Vec::<PathBuf>::new(), "what is not shown needs no mask");
    assert_eq!(variable(&tools, "PATH").unwrap(), format!("{}:/usr/bin", home.at(".cargo/bin").display()));
    let found: Vec<&str> = tools.found.iter().map(|found| found.name.as_str()).collect();
    assert_eq!(found, ["cargo", "rustup"]);
}

#[test]
fn a_home_of_cargo_elsewhere_is_named_inside_too() {
    let mut home = Home::new();
    home.file("tools/cargo/bin/cargo", "").folder("tools/cargo/registry").folder("tools/rustup/toolchains/stable");
    let (cargo, rustup) = (home.at("tools/cargo"), home.at("tools/rustup"));
    home.set("CARGO_HOME", cargo.to_str().unwrap()).set("RUSTUP_HOME", rustup.to_str().unwrap());
    home.set("RUSTUP_TOOLCHAIN", "nightly").path(&["tools/cargo/bin"]);
    let tools = home.tools();
    assert_eq!(home.told(&tools.readable), ["tools/cargo/bin", "tools/rustup"]);
    assert_eq!(variable(&tools, "CARGO_HOME"), cargo.to_str());
    assert_eq!(variable(&tools, "RUSTUP_TOOLCHAIN"), Some("nightly"));
    assert_eq!(home.told(tools.caches.iter().map(|cache| &cache.at)), ["tools/cargo/registry"]);
}

#[test]
fn versions_of_node_python_and_go_are_shown_with_what_they_need() {
    let mut home = Home::new();
    home.file(".nvm/versions/node/v20/bin/node", "").folder(".nvm/versions/node/v20/lib").folder(".nvm/.cache");
    home.file(".pyenv/versions/3.12/bin/python3", "").folder(".pyenv/shims").folder(".pyenv/bin");
    home.file("go/bin/gopls", "").folder("go/pkg/mod").folder("go/src/private").folder(".cache/go-build");
    home.file("sdk/go1.22/bin/go", "").folder("sdk/go1.22/src/runtime").folder("sdk/go1.22/pkg");
    home.file("node-v18/bin/node", "").folder("node-v18/lib/node_modules").file("node-v18/notes.txt", "");
    home.path(&[
        ".nvm/versions/node/v20/bin",
        ".pyenv/shims",
        ".pyenv/bin",
        "go/bin",
        "sdk/go1.22/bin",
        "node-v18/bin",
    ]);
    let tools = home.tools();
    let expected = [".nvm/versions", ".pyenv", "go/bin", "node-v18/bin", "node-v18/lib", "sdk/go1.22"];
    assert_eq!(home.told(&tools.readable), expected);
    assert_eq!(home.told(tools.caches.iter().map(|cache| &cache.at)), [".cache/go-build", "go/pkg/mod"]);
    assert_eq!(variable(&tools, "PATH").unwrap().split(':').count(), 7);
}

#[test]
fn links_in_local_bin_lead_to_what_they_name() {
    let mut home = Home::new();
    home.file(".local/share/uv/tools/ruff/bin/ruff", "").folder(".local/share/uv/python/cpython-3.12/bin");
    home.link(".local/bin/ruff", &home.at(".local/share/uv/tools/ruff/bin/ruff"));
    home.file(".local/share/agent/versions/2", "").link(".local/bin/agent", &home.at(".local/share/agent/versions/2"));
    home.file("apps/node/v22/bin/node", "").folder("apps/node/v22/lib").file("apps/node/v22/diary", "");
    home.link("apps/node/current", Path::new("v22")).link(".local/bin/node", &home.at("apps/node/current/bin/node"));
    home.folder(".local/lib/python3.11/site-packages").file(".local/share/keyrings/login", "secret");
    home.link(".local/bin/gone", &home.at("nowhere")).link(".local/bin/sh", Path::new("/usr/bin/sh"));
    home.path(&[".local/bin"]);
    let tools = home.tools();
    let expected = [
        ".local/bin",
        ".local/lib",
        ".local/share/agent/versions/2",
        ".local/share/uv",
        "apps/node/current/bin/node",
        "apps/node/v22/bin/node",
        "apps/node/v22/lib",
    ];
    assert_eq!(home.told(&tools.readable), expected);
}

#[test]
fn a_folder_that_is_a_link_works_by_both_names() {
    let mut home = Home::new();
    home.file("dotfiles/bin/hello", "").link("bin", Path::new("dotfiles/bin"));
    home.path(&["bin", "dotfiles/bin"]);
    let tools = home.tools();
    assert_eq!(home.told(&tools.readable), ["bin", "dotfiles/bin"]);
    assert_eq!(variable(&tools, "PATH").unwrap(), format!("{}:/usr/bin", home.at("dotfiles/bin").display()));
}

#[test]
fn what_must_not_be_shown_is_left_out_and_said() {
    let mut home = Home::new();
    home.folder("open/bin").folder(".ssh/bin").file("file", "");
    fs::set_permissions(home.at("open/bin"), fs::Permissions::from_mode(0o777)).unwrap();
    let above = home.path.parent().unwrap().to_owned();
    let inside = ["open/bin", ".ssh/bin", "missing", "file"].map(|name| home.at(name));
    let places = [[home.path.clone(), above].as_slice(), &inside].concat();
    let path: Vec<&str> = places.iter().map(|place| place.to_str().unwrap()).collect();
    home.set("PATH", format!("{}:bin::/:/usr/bin", path.join(":")));
    home.set("JAVA_HOME", path[0]);
    home.file("bin/java", "");
    let tools = home.tools();
    assert_eq!(tools.readable, Vec::<PathBuf>::new());
    assert_eq!(variable(&tools, "PATH"), Some("/usr/bin"));
    assert_eq!(variable(&tools, "JAVA_HOME"), None);
    let whys: Vec<_> = places.iter().map(|place| why(&tools, place).unwrap()).collect();
    assert_eq!(
        whys,
        [
            "it is the home folder itself",
            "the home folder lies in it",
            "everybody may write into it",
            "its name says that it holds secrets",
            "it is not there",
            "it is not a folder",
        ]
    );
    assert_eq!(why(&tools, Path::new("bin")), Some("it is not an absolute path"));
    assert_eq!(why(&tools, Path::new("/")), Some("the home folder lies in it"));
}

#[test]
fn settings_are_shown_unless_they_may_hold_a_secret() {
    let home = Home::new();
    home.file(".npmrc", "fund=false\n").file(".config/pip/pip.conf", "[global]\nproxy = https://me:word@host/\n");
    home.file(".cargo/config.toml", "[registry]\ntoken = 'x'\n").folder(".cargo/bin").file(".netrc", "machine x");
    let tools = home.tools();
    assert_eq!(home.told(&tools.readable), [".cargo/bin", ".npmrc"]);
    for name in [".config/pip/pip.conf", ".cargo/config.toml"] {
        assert_eq!(why(&tools, &home.at(name)), Some("it may hold a secret"), "{name}");
    }
    assert_eq!(tools.hidden, Vec::<PathBuf>::new());
    // Where the workspace is the home folder itself, everything in it is seen.
    let tools = home.tools_in(&home.path);
    assert_eq!(home.told(&tools.hidden), [".cargo/config.toml", ".config/pip/pip.conf", ".netrc"]);
    assert_eq!(tools.readable, Vec::<PathBuf>::new());
}

#[test]
fn a_virtual_environment_of_the_workspace_stays_the_workspace_s() {
    let mut home = Home::new();
    home.file("project/.venv/pyvenv.cfg", "").file("project/.venv/bin/python", "");
    let venv = home.at("project/.venv");
    home.set("VIRTUAL_ENV", venv.to_str().unwrap()).path(&["project/.venv/bin"]);
    let tools = home.tools();
    assert_eq!(tools.readable, Vec::<PathBuf>::new());
    assert_eq!(variable(&tools, "VIRTUAL_ENV"), venv.to_str());
    assert!(variable(&tools, "PATH").unwrap().starts_with(venv.to_str().unwrap()));
}

#[test]
fn the_environment_is_clean() {
    let mut home = Home::new();
    home.set("PATH", "/usr/bin").set("USER", "ann").set("TZ", "Europe/Berlin");
    home.set("AWS_SECRET_ACCESS_KEY", "x").set("LD_PRELOAD", "/x.so").set("SSH_AUTH_SOCK", "/run/x");
    let tools = home.tools();
    let names: Vec<&str> = tools.environment.iter().map(|(name, _)| name.as_str()).collect();
    let fixed = ["PATH", "HOME", "USER", "LOGNAME", "LANG", "TERM", "TMPDIR"];
    assert_eq!(names, [fixed.as_slice(), &["GIT_TERMINAL_PROMPT", "PIP_DISABLE_PIP_VERSION_CHECK", "TZ"]].concat());
    assert_eq!(variable(&tools, "HOME"), home.path.to_str());
    assert_eq!(variable(&tools, "LOGNAME"), Some("ann"));
}

#[test]
fn no_caller_sets_what_loads_code() {
    for name in ["LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONHOME", "BASH_ENV", "ENV", "NODE_OPTIONS", "PERL5OPT"] {
        assert!(refused_variable(name), "{name}");
    }
    for name in ["GIT_SSH_COMMAND", "GIT_CONFIG_COUNT", "GIT_CONFIG_GLOBAL", "JAVA_TOOL_OPTIONS", "", "A=B", "A\0"] {
        assert!(refused_variable(name), "{name:?}");
    }
    for name in ["PATH", "PYTHONPATH", "NODE_ENV", "RUST_LOG", "GIT_AUTHOR_NAME", "CI", "EDITOR", "OLD_LD"] {
        assert!(!refused_variable(name), "{name}");
    }
}

#[test]
fn only_the_name_is_taken_from_the_settings_of_git() {
    let home = Home::new();
    assert_eq!(home.tools().gitconfig, None);
    home.file(".config/git/config", "[user]\n\tname = Old\n\temail = old@example.org\n");
    let written = "[core]\n\tsshCommand = evil\n[user \"x\"]\nname = No\n[USER] name = \"Ann \\\"A\\\" B; \" ; a comment\n\
                   [init]\ndefaultbranch = trunk # usual\n[credential]\n\thelper = store\n";
    home.file(".gitconfig", written);
    let expected = "[user]\n\tname = \"Ann \\\"A\\\" B; \"\n[user]\n\temail = \"old@example.org\"\n\
                    [init]\n\tdefaultBranch = \"trunk\"\n";
    assert_eq!(home.tools().gitconfig.as_deref(), Some(expected));
}
