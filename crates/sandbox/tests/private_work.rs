//! Real work in the fence without a network: builds, tests and commits, as root and as an ordinary user.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test that cannot go on fails, and says what it lacks")]
#![expect(clippy::disallowed_methods, reason = "the tests use the toolchains of whoever runs them")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use haft_sandbox::fence::{
    CommandExit, Fence, FenceJob, FenceLimits, OFFLINE, Private, Rung, Toolchains, UserEnvironment, WorkspaceView,
    keep, throw_away, toolchains,
};

const NOBODY: u32 = 65534;
const SYSTEM_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A workspace with its data, and whoever works in it.
struct World {
    path: PathBuf,
    tools: Toolchains,
    calls: std::cell::Cell<u32>,
    _folder: tempfile::TempDir,
}

impl World {
    /// With the home folder and the toolchains of whoever runs the test.
    fn of_the_user() -> World {
        let variables: BTreeMap<String, String> = std::env::vars().collect();
        let home = PathBuf::from(&variables["HOME"]);
        World::new(tempfile::tempdir().unwrap(), &home, &variables)
    }

    /// With a new home folder, filled by `fill`, and the tools of the system.
    fn with_home(fill: impl FnOnce(&Path)) -> World {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        fs::create_dir(&home).unwrap();
        fill(&home);
        let variables = BTreeMap::from([("PATH".to_owned(), SYSTEM_PATH.to_owned())]);
        World::new(folder, &home, &variables)
    }

    fn new(folder: tempfile::TempDir, home: &Path, variables: &BTreeMap<String, String>) -> World {
        let path = folder.path().canonicalize().unwrap();
        let workspace = path.join("workspace");
        fs::create_dir(&workspace).unwrap();
        let tools = toolchains(&UserEnvironment { home, workspace: &workspace, variables });
        World { path, tools, calls: std::cell::Cell::new(0), _folder: folder }
    }

    fn file(&self, name: &str, content: &str) -> &World {
        let path = self.path.join("workspace").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    /// Runs a script fenced; what it wrote privately is kept if it went well. What it wrote into the workspace is not.
    fn run(&self, script: &str) -> (CommandExit, String) {
        self.calls.set(self.calls.get() + 1);
        let call = self.path.join(format!("data/changes/{}", self.calls.get()));
        let (layer, private) = (call.join("layer"), call.join("private"));
        for name in ["upper", "work"] {
            fs::create_dir_all(layer.join(name)).unwrap();
        }
        let workspace = self.path.join("workspace");
        let layers = Private::open(&self.path.join("data"), &workspace).unwrap();
        let offline = OFFLINE.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let job = FenceJob {
            command: ["bash", "-c", script].map(str::to_owned).to_vec(),
            folder: workspace.clone(),
            environment: self.tools.environment.iter().cloned().chain(offline).collect(),
            stdin: vec![],
            workspace,
            view: WorkspaceView::Aside { layer },
            layered: layers.layers(&private, &self.tools).unwrap(),
            readable: self.tools.readable.clone(),
            writable: vec![],
            hidden: self.tools.hidden.clone(),
            masks: Vec::new(),
            network: false,
            limits: FenceLimits::default(),
            rung: Rung::Namespaces,
        };
        let mut output = Vec::new();
        let process = Fence::new(helper()).start(&job).unwrap();
        let ended = process.wait(&mut |_, piece| output.extend_from_slice(piece)).unwrap();
        let decide = if ended.exit == CommandExit::Code(0) { keep } else { throw_away };
        decide(&private).unwrap();
        (ended.exit, String::from_utf8_lossy(&output).into_owned())
    }

    /// Runs a script that must go well.
    fn works(&self, script: &str) -> String {
        let (exit, output) = self.run(script);
        assert_eq!(exit, CommandExit::Code(0), "{script}: {output}");
        output
    }
}

/// The program that builds fences: an example of this crate, beside its tests.
fn helper() -> PathBuf {
    std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("examples/fence")
}

/// Whether the machine has a program; says so if it does not.
fn has(program: &str) -> bool {
    let found = SYSTEM_PATH.split(':').any(|folder| Path::new(folder).join(program).exists());
    if !found {
        eprintln!("not tested, because this machine has no {program}");
    }
    found
}

#[test]
fn a_crate_with_a_dependency_is_built_and_tested() {
    let world = World::of_the_user();
    world.file("Cargo.toml", "[package]\nname = 'small'\nedition = '2021'\n[dependencies]\nstrsim = '0.11'\n");
    world.file("src/lib.rs", "#[test]\nfn near() { assert_eq!(strsim::levenshtein(\"ab\", \"ac\"), 1) }\n");
    let output = world.works("cargo build 2>&1 && cargo test 2>&1");
    assert!(output.contains("1 passed"), "{output}");
    // Nothing of it has reached the user's own folders, and the next call works as well.
    assert!(world.works("cargo check 2>&1").contains("Finished"));
}

/// Where a package says that it comes from; nobody is there.
const NOWHERE: &str = "https://host.example";

#[test]
fn packages_come_from_the_cache_of_npm() {
    if !has("npm") {
        return;
    }
    let made = tempfile::tempdir().unwrap();
    let npm = |home: &Path, folder: &Path, arguments: &[&str]| {
        let mut command = Command::new("npm");
        command.args(arguments).current_dir(folder).env_clear().env("PATH", SYSTEM_PATH).env("HOME", home);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    fs::write(made.path().join("package.json"), r#"{"name": "near", "version": "1.0.0", "main": "near.js"}"#).unwrap();
    fs::write(made.path().join("near.js"), "module.exports = () => 42;\n").unwrap();
    let mut told = String::new();
    let world = World::with_home(|home| {
        told = npm(home, made.path(), &["pack", "--json"]);
        npm(home, made.path(), &["cache", "add", "./near-1.0.0.tgz"]);
    });
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    let first = told.get(0).or_else(|| told.get("near")).unwrap();
    let package = r#""name": "small", "version": "1.0.0", "dependencies": {"near": "1.0.0"}"#;
    world.file("package.json", &format!(r#"{{{package}, "scripts": {{"test": "node --test"}}}}"#));
    let near = format!(
        r#"{{"version": "1.0.0", "resolved": "{NOWHERE}/near-1.0.0.tgz", "integrity": {}}}"#,
        first["integrity"]
    );
    let lock = format!(r#""lockfileVersion": 3, "packages": {{"": {{{package}}}, "node_modules/near": {near}}}"#);
    world.file("package-lock.json", &format!(r#"{{"name": "small", "version": "1.0.0", {lock}}}"#));
    world.file("small.test.js", "require('node:test')('near', () => { if (require('near')() !== 42) throw 1; });\n");
    let output = world.works("npm ci 2>&1 && npm test 2>&1");
    assert!(output.contains("pass 1"), "{output}");
}

#[test]
fn pytest_make_and_java_work() {
    let world = World::with_home(|_| {});
    world.file(
        "test_small.py",
        "def test_sum(tmp_path):\n    (tmp_path / 'x').write_text('1')\n    assert 1 + 1 == 2\n",
    );
    world.file("Makefile", "hello: hello.c\n\t$(CC) -o hello hello.c\n").file("hello.c", "int main(void){return 0;}\n");
    world.file("Small.java", "class Small { public static void main(String[] a) { System.out.print(6 * 7); } }\n");
    for (program, script, told) in [
        ("pytest", "pytest 2>&1", "1 passed"),
        ("make", "make 2>&1 && ./hello && echo fine", "fine"),
        ("javac", "javac Small.java 2>&1 && java Small", "42"),
    ] {
        if has(program) {
            let output = world.works(script);
            assert!(output.contains(told), "{output}");
        }
    }
}

#[test]
fn git_knows_who_commits_and_the_repository_may_say_otherwise() {
    let settings =
        "[user]\n\tname = Ann\n\temail = ann@example.org\n[core]\n\tpager = evil\n[init]\n\tdefaultBranch = trunk\n";
    let world = World::with_home(|home| fs::write(home.join(".gitconfig"), settings).unwrap());
    world.file("a", "1\n");
    let commit = "git init -q . && git add a && git commit -qm first && git log --format='%an <%ae> %D'";
    assert_eq!(world.works(commit), "Ann <ann@example.org> HEAD -> trunk\n");
    let otherwise = commit.replace("git add", "git config user.name Bob && git add");
    assert_eq!(world.works(&otherwise), "Bob <ann@example.org> HEAD -> trunk\n");
    assert_eq!(world.works("git config --global core.pager; cat ~/.gitconfig | grep -c evil; true"), "0\n");
    world.works("git config --global user.name Eve");
    assert_eq!(world.works(commit), "Eve <ann@example.org> HEAD -> trunk\n");
}

#[test]
fn private_folders_last_when_the_call_does() {
    let world = World::with_home(|home| fs::create_dir_all(home.join(".cache/pip")).unwrap());
    world.works("mkdir -p ~/.config/x && echo 1 > ~/.config/x/y && echo 1 > /tmp/t && echo 1 > ~/.cache/pip/p");
    world.works("test -e ~/.config/x/y && test -e /tmp/t && test -e ~/.cache/pip/p");
    assert_eq!(world.run("rm -r ~/.config; rm /tmp/t ~/.cache/pip/p; exit 1").0, CommandExit::Code(1));
    world.works("rm ~/.config/x/y && rm /tmp/t && test -e ~/.cache/pip/p && ls -A ~ | grep -qx .cache");
    assert!(fs::read_dir(world.tools.home.join(".cache/pip")).unwrap().next().is_none());
    let left = world.works("ls -A ~/.config/x /tmp");
    assert!(!left.lines().any(|name| name == "y" || name == "t"), "{left}");
}

/// Where haft is root and the workspace is another's, that other is whom the private folders are for. Only root can be
/// in this place; for others the workspace is their own, as in the tests above.
#[test]
fn private_folders_belong_to_the_owner_of_the_workspace() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let settings = "[user]\n\tname = Ann\n\temail = ann@example.org\n";
    let world = World::with_home(|home| {
        fs::create_dir_all(home.join(".cache/pip")).unwrap();
        fs::write(home.join(".gitconfig"), settings).unwrap();
    });
    own(&world.path.join("workspace"));
    world.works(
        "test $(id -u) = 65534 && echo 1 > ~/x && mkdir ~/.cache/new && echo 1 > /tmp/t && echo 1 > ~/.cache/pip/p",
    );
    world.works(
        "rm ~/x && rmdir ~/.cache/new && echo 2 > /tmp/t && rm ~/.cache/pip/p && git init -q . && touch a && \
                 git add a && git commit -qm first",
    );
}

/// The same tests as somebody who may not do everything, with Rust in a home folder of their own; who is not root has
/// just run them so.
#[test]
fn all_of_it_works_for_an_ordinary_user() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    for name in ["deps", "examples", "home/.rustup"] {
        fs::create_dir_all(folder.path().join(name)).unwrap();
    }
    let program = folder.path().join("deps/tests");
    copy_program(&std::env::current_exe().unwrap(), &program);
    copy_program(&helper(), &folder.path().join("examples/fence"));
    let rustup = give_rust_to(&home);
    own(folder.path());
    let script = "mount --bind \"$1\" \"$HOME/.rustup\" && cd / && exec setpriv --reuid 65534 --regid 65534 \
                  --clear-groups \"$2\" --skip an_ordinary_user";
    let path = format!("{}:{SYSTEM_PATH}", home.join(".cargo/bin").display());
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, "sh"]).arg(rustup).arg(&program);
    command.env_clear().env("PATH", path).env("HOME", &home).env("RUST_BACKTRACE", "0");
    let output = command.output().unwrap();
    let told = [output.stdout, output.stderr].concat();
    let told = String::from_utf8_lossy(&told);
    assert!(output.status.success() && told.contains("test result: ok. 6 passed"), "{told}");
}

/// Copies the programs and the one package that the tests need; tells where the toolchains are.
fn give_rust_to(home: &Path) -> PathBuf {
    let variables: BTreeMap<String, String> = std::env::vars().collect();
    let own = |name: &str, usual: &str| {
        variables.get(name).map_or_else(|| Path::new(&variables["HOME"]).join(usual), PathBuf::from)
    };
    let (from, to) = (own("CARGO_HOME", ".cargo"), home.join(".cargo"));
    fs::create_dir_all(to.join("bin")).unwrap();
    fs::copy(from.join("bin/rustup"), to.join("bin/rustup")).unwrap();
    for name in ["cargo", "rustc", "rustdoc"] {
        symlink("rustup", to.join("bin").join(name)).unwrap();
    }
    for part in ["index", "cache"] {
        for registry in fs::read_dir(from.join("registry").join(part)).unwrap() {
            let registry = registry.unwrap().path();
            let to = to.join("registry").join(part).join(registry.file_name().unwrap());
            copy_what_is_of_strsim(&registry, &to);
        }
    }
    own("RUSTUP_HOME", ".rustup")
}

fn copy_what_is_of_strsim(registry: &Path, to: &Path) {
    let package = registry.join(".cache/st/rs/strsim");
    let files = fs::read_dir(registry).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    for file in files.chain([package]).filter(|file| file.exists()) {
        let name = file.strip_prefix(registry).unwrap();
        let wanted = name.extension().is_none_or(|end| end != "crate") || name.to_str().unwrap().starts_with("strsim-");
        if wanted {
            fs::create_dir_all(to.join(name).parent().unwrap()).unwrap();
            fs::copy(&file, to.join(name)).unwrap();
        }
    }
}

/// Gives a folder with everything in it to the ordinary user.
fn own(folder: &Path) {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    chown(folder, Some(NOBODY), Some(NOBODY)).unwrap();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            own(&path);
        } else {
            std::os::unix::fs::lchown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }
}

/// Copies a program that is to be run. Another process does it: were the copy written here, a process that another test
/// starts at this moment could hold it open for a while, and what is being written cannot be run.
fn copy_program(from: &Path, to: &Path) {
    assert!(Command::new("cp").args([from, to]).status().unwrap().success());
}
