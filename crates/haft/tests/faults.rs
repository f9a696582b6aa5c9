//! Commands that take too much, do not end, or leave odd things: a clear error each time, and nothing is lost.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that cannot go on fails")]
#![expect(clippy::disallowed_methods, reason = "mounting a tiny disk needs `mount`")]

mod fenced;
mod support;

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs,
    io::Write,
    os::unix::{
        ffi::OsStrExt,
        fs::{FileTypeExt, MetadataExt, chown, symlink},
    },
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use fenced::Person;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use support::{ALL, Fixture, Running, id, text, until};

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// What lies in a folder, by name.
fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// The processes whose command line holds this text, but for those that run the tests.
fn alive(marker: &str) -> Vec<i32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let ids = processes.filter_map(|process| process.file_name().to_str()?.parse::<i32>().ok());
    ids.filter(|id| {
        let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).replace('\0', " ").starts_with(marker)
    })
    .collect()
}

#[test]
fn a_command_that_takes_too_much_is_ended_and_says_of_what() {
    let bombs = [
        (
            "processes",
            "python3 -c 'import os\nwhile True:\n  try:\n    if os.fork() == 0: os.setsid()\n  except OSError: pass'",
        ),
        ("memory", "python3 -c 'a = bytearray(1 << 30)' & python3 -c 'b = bytearray(1 << 30)' & wait"),
        ("disk", "head -c 400M /dev/zero > big; sleep 60"),
        ("disk", "head -c 400M /dev/zero > /tmp/big; sleep 60"),
        ("disk", "exec 3> /tmp/gone; rm /tmp/gone; head -c 400M /dev/zero >&3; sleep 60"),
    ];
    let limits = [("HAFT_SANDBOX_PROCESSES", "150"), ("HAFT_SANDBOX_MEMORY", "300MB"), ("HAFT_SANDBOX_DISK", "50MB")];
    for mut person in Person::everyone() {
        person.variables.extend(limits.map(|(name, value)| (name, value.into())));
        for (limit, bomb) in bombs {
            let (code, outcome) = person.shell(bomb, ALL);
            let error = &outcome["error"];
            assert_eq!((code, &error["code"]), (1, &json!("RESOURCE_LIMIT")), "{bomb}: {outcome:#}");
            assert_eq!(error["details"]["limitHit"], json!(limit), "{bomb}: {outcome:#}");
            assert!(text(&error["message"]).contains("sandbox."), "it says what to raise: {error}");
        }
        assert!(!person.fixture.path("big").exists(), "nothing was committed");
        assert_eq!(person.says("echo fine; cat /tmp/big 2>/dev/null | wc -c"), "fine\n0\n");
    }
}

#[test]
fn a_flood_of_output_is_cut_and_the_end_is_kept() {
    let person = Person::us();
    let (code, outcome) = person.shell("yes | head -c 200M; echo the end", &[]);
    let structured = &outcome["result"]["structured"];
    assert_eq!((code, &structured["truncated"]), (0, &json!(true)), "{:.300}", outcome.to_string());
    let said = text(&outcome["result"]["content"]);
    assert!(said.len() < 1 << 20 && said.ends_with("the end\n[exit 0]"), "{} bytes", said.len());
}

#[test]
fn whatever_a_command_starts_ends_with_it() {
    for person in Person::everyone() {
        let marker = format!("sleep 9{}.25", std::process::id());
        let daemon = format!("(setsid sh -c 'setsid {marker} & {marker}' > /dev/null 2>&1 < /dev/null &); echo left");
        assert_eq!(person.says(&daemon), "left\n");
        assert_eq!(alive(&marker), Vec::<i32>::new());
        // Nobody inside can stop or end those who watch.
        let stops = format!("{marker} & kill -STOP -1; kill -KILL 1; kill -STOP 1; kill -STOP $PPID; {marker}");
        let begun = Instant::now();
        let (_, outcome) = person.call("shell_exec", &json!({"command": stops, "timeout": 2000}), ALL);
        assert_eq!(outcome["error"]["code"], json!("TIMEOUT"), "{outcome:#}");
        assert!(begun.elapsed() < Duration::from_secs(60));
        assert_eq!(alive(&marker), Vec::<i32>::new());
    }
}

#[test]
fn killing_the_keeper_of_the_fence_is_told_and_loses_nothing() {
    let person = Person::us();
    let marker = format!("sleep 8{}.25", std::process::id());
    let command = json!({"command": format!("echo half > half; {marker}")}).to_string();
    let running = Running::start(person.haft(&["call", "shell_exec", &command, "--json"]));
    let haft = running.pid().as_raw_nonzero().get();
    until("the command at work", || (!alive(&marker).is_empty()).then_some(()));
    let keeper = alive(support::HAFT).into_iter().find(|id| parent(*id) == Some(haft)).unwrap();
    kill_process(Pid::from_raw(keeper).unwrap(), Signal::KILL).unwrap();
    let ran = running.finish();
    let outcome = ran.json();
    assert_eq!((ran.code, &outcome["error"]["code"]), (Some(1), &json!("EXECUTION_ERROR")), "{outcome:#}");
    assert!(text(&outcome["error"]["message"]).contains("killed"), "{outcome:#}");
    until("its end", || alive(&marker).is_empty().then_some(()));
    assert!(!person.fixture.path("half").exists());
    assert_eq!(person.says("echo on"), "on\n");
}

fn parent(id: i32) -> Option<i32> {
    let line = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    line.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// How many moments haft is killed at, spread over the time that a whole call takes, by all people together.
const MOMENTS: u32 = 60;

#[test]
fn killed_at_any_moment_it_leaves_all_or_nothing() {
    let people = Person::everyone();
    let moments = MOMENTS / u32::try_from(people.len()).unwrap();
    for person in people {
        let marker = format!("sleep 0.0{}", std::process::id());
        let begin = "mkdir -p d; rm -rf d e new; mkdir d; for i in $(seq 40); do echo old > d/$i; done";
        let change = format!("mv d e; echo new > new; for i in $(seq 20); do echo new > e/$i; done; rm e/3*; {marker}");
        let change = json!({ "command": change }).to_string();
        person.does(begin);
        let old = names(&person.fixture.workspace);
        let begun = Instant::now();
        let call = ["call", "shell_exec", &change, "--json", "--auto-approve", "all"];
        assert_eq!(person.run(&call).code, Some(0));
        let whole = begun.elapsed();
        let (mut none, mut all) = (0, 0);
        // A machine that became slower since is given longer, until one call at least has come to its commit.
        let spread = (0..moments).map(|moment| whole.mul_f64(f64::from(moment) / f64::from(moments) * 1.2));
        let longer = (1..8).map(|doubled| whole * (1 << doubled));
        for (number, moment) in spread.chain(longer).enumerate() {
            if number >= moments as usize && all > 0 {
                break;
            }
            person.does(begin);
            let mut running = Running::start(person.haft(&call));
            // Either its end or its moment comes first.
            running.ends_within(moment);
            running.kill();
            until("the end of its processes", || alive(&marker).is_empty().then_some(()));
            // Whoever comes next recovers.
            let rows = person.json(&["log", "--limit", "1"]);
            assert_ne!(rows[0]["state"], json!("executing"), "{rows:#}");
            match has_changed(&person, &old) {
                false => none += 1,
                true => all += 1,
            }
        }
        println!("{none} times nothing had changed, {all} times all of it");
        assert!(none > 0 && all > 0, "{none} {all}");
        no_stray(&person);
    }
}

/// Whether all of the change is there, and asserts that nothing of it is otherwise.
fn has_changed(person: &Person, old: &BTreeSet<String>) -> bool {
    let now = names(&person.fixture.workspace);
    if now == *old {
        let files = names(&person.fixture.path("d")).len();
        assert_eq!((files, person.fixture.text("d/1").as_deref()), (40, Some("old\n")));
        return false;
    }
    assert_eq!(now, BTreeSet::from(["e".to_owned(), "new".to_owned()]));
    assert_eq!(person.fixture.text("e/20").as_deref(), Some("new\n"));
    assert!(!person.fixture.path("e/33").exists() && person.fixture.path("e/25").exists());
    true
}

/// Asserts that nothing lies in the data folder that no call needs.
fn no_stray(person: &Person) {
    let usual = [
        "changes",
        "fence.json",
        "haft.db",
        "haft.db-shm",
        "haft.db-wal",
        "locks",
        "outputs",
        "owners",
        "private",
        "swept",
    ];
    let stray: Vec<_> =
        names(&person.fixture.data).into_iter().filter(|name| !usual.contains(&name.as_str())).collect();
    assert_eq!(stray, Vec::<String>::new());
    let known: BTreeSet<String> = {
        let rows = person.json(&["log", "--limit", "1000"]);
        rows.as_array().unwrap().iter().map(|row| text(&row["callId"])).collect()
    };
    for call in names(&person.fixture.data.join("changes")) {
        let folder = person.fixture.data.join("changes").join(&call);
        // One that was killed before it was recorded has no row; `haft gc` removes its folder in time.
        assert!(
            !known.contains(&call) || !folder.join("layer").exists(),
            "{call} has a layer that nobody takes: {:?}",
            names(&folder)
        );
    }
}

#[test]
fn a_disk_that_takes_nothing_more_is_told_and_nothing_is_half_done() {
    if !is_root() {
        return println!("only root can mount a tiny disk");
    }
    let person = Person::us();
    let disk = Mount::tmpfs(&person.fixture.workspace, "size=1m");
    person.put("a", "a\n");
    person.put("fill", vec![0_u8; 900 << 10]);
    let old = person.fixture.picture();
    let (code, outcome) = person.shell("echo b >> a; head -c 500k /dev/zero > b; echo c > c", ALL);
    assert_eq!((code, &outcome["error"]["code"]), (1, &json!("RESOURCE_LIMIT")), "{outcome:#}");
    assert!(person.fixture.picture() == old, "all or nothing: {:?}", names(&person.fixture.workspace));
    disk.read_only();
    assert_eq!(person.says("cat a"), "a\n");
    let call = person.stages("rm a; echo b > b", &[]);
    let ran = person.run(&["approve", &call]);
    assert!(ran.code == Some(1) && ran.said().contains("read-only"), "{ran:?}");
    assert!(person.fixture.picture() == old);
}

/// Something that is mounted for as long as this lives.
struct Mount(PathBuf);

impl Mount {
    fn tmpfs(at: &Path, options: &str) -> Self {
        let status = Command::new("mount").args(["-t", "tmpfs", "-o", options, "none"]).arg(at).status().unwrap();
        assert!(status.success());
        Self(at.to_owned())
    }

    fn read_only(&self) {
        assert!(Command::new("mount").args(["-o", "remount,ro"]).arg(&self.0).status().unwrap().success());
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn what_is_mounted_inside_cannot_be_staged_and_the_card_says_so() {
    if !is_root() {
        return println!("only root can mount something");
    }
    let person = Person::us();
    fs::create_dir(person.fixture.path("inner")).unwrap();
    let _mount = Mount::tmpfs(&person.fixture.path("inner"), "size=1m");
    let call = person.stages("echo a > a; echo b > inner/b", &[]);
    assert!(!person.fixture.path("a").exists(), "it has not run");
    let card = person.run(&["approvals"]).stdout;
    assert!(card.contains("cannot be undone"), "{card}");
    let ran = person.run(&["approve", &call, "--json"]);
    assert_eq!((ran.code, &ran.json()["undoable"]), (Some(0), &json!(false)), "{ran:?}");
    assert_eq!(person.fixture.text("inner/b").as_deref(), Some("b\n"));
}

/// The numbers of the system calls that make namespaces and Landlock rules here.
#[cfg(target_arch = "x86_64")]
const UNSHARE: &str = "272";
#[cfg(target_arch = "aarch64")]
const UNSHARE: &str = "97";
const LANDLOCK: &str = "444";

/// The program on a kernel that refuses these system calls.
fn on_a_kernel_without(person: &Person, calls: &str, args: &[&str]) -> support::Ran {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fenced/refusing.py");
    let script = fs::read_to_string(script).unwrap();
    let mut command = person.program("python3");
    let haft = person.haft::<&str>(&[]);
    command.args(["-c", &script, calls]).arg(haft.get_program()).args(args);
    Running::start(command).finish()
}

#[test]
fn without_namespaces_nothing_runs_unasked_and_every_answer_says_the_rung() {
    let person = Person::ordinary();
    let input = json!({"command": "echo a > a; cat a; ls -d /tmp/x; : > /dev/tcp/127.0.0.1/9"}).to_string();
    for flags in [&[][..], ALL] {
        let ran = on_a_kernel_without(&person, UNSHARE, &[&["call", "shell_exec", &input, "--json"], flags].concat());
        assert_eq!((ran.code, &ran.json()["status"]), (Some(4), &json!("pending")), "{ran:?}");
    }
    assert!(!person.fixture.path("a").exists());
    let card = person.run(&["approvals"]).stdout;
    assert!(card.contains("landlock") && card.contains("cannot be undone"), "{card}");
    let open = person.json(&["approvals"]);
    let call = text(&open[0]["callId"]);
    let ran = on_a_kernel_without(&person, UNSHARE, &["approve", &call, "--json"]);
    let outcome = ran.json();
    assert_eq!((ran.code, &outcome["isolation"]), (Some(0), &json!("landlock")), "{outcome:#}");
    assert_eq!(
        (&outcome["undoable"], person.fixture.text("a").as_deref()),
        (&json!(false), Some("a\n")),
        "{outcome:#}"
    );
    assert_eq!(person.json(&["log", "show", &call])["outcome"]["isolation"], json!("landlock"));
    // The fence that cannot be built is named with the step.
    let both = format!("{UNSHARE},{LANDLOCK}");
    let ran = on_a_kernel_without(&person, &both, &["call", "shell_exec", &input, "--json", "--auto-approve", "all"]);
    let error = &ran.json()["error"];
    assert_eq!(error["code"], json!("SANDBOX_UNAVAILABLE"), "{ran:?}");
    assert!(text(&error["message"]).contains("Landlock"), "{error}");
    let ran = on_a_kernel_without(&person, &both, &["call", "read_file", "--path", "a", "--json"]);
    assert_eq!(ran.code, Some(0), "what starts no process needs no fence: {ran:?}");
    no_stray(&person);
}

#[test]
fn what_no_longer_works_is_found_out_again() {
    let person = Person::ordinary();
    assert_eq!(person.says("echo here"), "here\n");
    let call = ["call", "shell_exec", "--command", "echo here", "--json"];
    let ran = on_a_kernel_without(&person, UNSHARE, &call);
    assert_eq!(ran.json()["error"]["code"], json!("SANDBOX_UNAVAILABLE"), "never silently lower: {ran:?}");
    let ran = on_a_kernel_without(&person, UNSHARE, &call);
    assert_eq!(ran.json()["status"], json!("pending"), "{ran:?}");
    assert_eq!(person.says("echo here"), "here\n");
}

#[test]
fn what_runs_by_landlock_alone_never_runs_as_root() {
    if !is_root() {
        return println!("only root could run something as root");
    }
    let person = Person::us();
    let ran = on_a_kernel_without(&person, UNSHARE, &["call", "shell_exec", "--command", "id", "--json"]);
    let error = &ran.json()["error"];
    assert_eq!(error["code"], json!("SANDBOX_UNAVAILABLE"), "nobody is asked for what cannot be: {ran:?}");
    assert!(text(&error["message"]).contains("root"), "{error}");
}

#[test]
fn other_people_s_files_are_left_as_they_are() {
    if !is_root() {
        return println!("only root can give files away");
    }
    let person = Person::us();
    person.put("theirs", "theirs\n");
    person.put("folder/theirs", "theirs\n");
    person.put("ours", "ours\n");
    for path in ["theirs", "folder", "folder/theirs"] {
        chown(person.fixture.path(path), Some(4242), Some(4242)).unwrap();
    }
    let old = person.fixture.picture();
    let (_, outcome) = person.shell("cat theirs; echo x >> theirs; rm -rf theirs folder; mv folder away", ALL);
    assert_eq!(outcome["result"]["structured"]["stdout"], json!("theirs\n"), "{outcome:#}");
    assert!(person.fixture.picture() == old, "{outcome:#}");
    person.does("echo more >> ours; echo new > new");
    assert_eq!(person.fixture.text("ours").as_deref(), Some("ours\nmore\n"));
    person.owns("new");
    assert_eq!(person.fixture.path("theirs").metadata().unwrap().uid(), 4242);
}

#[test]
fn odd_things_are_committed_or_named() {
    for person in Person::everyone() {
        person.put("a", "a\n");
        fs::hard_link(person.fixture.path("a"), person.fixture.path("b")).unwrap();
        let old = person.fixture.picture();
        let command = "echo more >> b; ln a c; mkfifo fifo; \
            python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"socket\")'; \
            printf 1 > \"$(printf 'new\\nline')\"; printf 2 > \"$(printf 'bad\\xff')\"; ln -s nowhere link";
        let (code, outcome) = person.shell(command, ALL);
        assert_eq!(code, 0, "{outcome:#}");
        let left = outcome["result"]["structured"]["leftOut"].to_string();
        assert!(left.contains("fifo") && left.contains("socket"), "{left}");
        assert_eq!(
            (person.fixture.text("a").unwrap().as_str(), person.fixture.text("b").unwrap().as_str()),
            ("a\n", "a\nmore\n")
        );
        assert_eq!(fs::read(person.fixture.workspace.join(OsStr::from_bytes(b"bad\xff"))).unwrap(), b"2");
        assert_eq!(fs::read(person.fixture.workspace.join("new\nline")).unwrap(), b"1");
        let special = |path: &str| person.fixture.path(path).symlink_metadata().map(|meta| meta.file_type());
        assert!(
            !special("fifo").is_ok_and(|kind| kind.is_fifo()) && !special("socket").is_ok_and(|kind| kind.is_socket())
        );
        assert_eq!(person.run(&["undo", &id(&outcome), "--yes"]).code, Some(0));
        assert!(person.fixture.picture() == old, "{:?}", names(&person.fixture.workspace));
    }
}

#[test]
fn a_deep_tree_is_committed_and_one_that_nobody_can_list_is_refused() {
    let person = Person::ordinary();
    let deep = |name: &str| {
        format!(
            "python3 -c 'import os\nfor i in range(6000):\n  os.mkdir(\"{name}\"); os.chdir(\"{name}\")\n\
             open(\"leaf\", \"w\").write(\"x\")'"
        )
    };
    let (code, outcome) = person.shell(&deep("d"), ALL);
    assert_eq!(code, 0, "{:.500}", outcome.to_string());
    assert!(person.fixture.path("d/d/d").is_dir());
    let deepest = "import os\nfor i in range(6000): os.chdir(\"d\")\nprint(open(\"leaf\").read())";
    let looked = person.program("python3").args(["-c", deepest]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&looked.stdout), "x\n", "{looked:?}");
    let undone = person.run(&["undo", &id(&outcome), "--yes"]);
    assert_eq!(undone.code, Some(0), "{:.500}", undone.said());
    assert!(!person.fixture.path("d").exists());
    let old = names(&person.fixture.workspace);
    let (_, outcome) = person.shell(&deep(&"d".repeat(60)), ALL);
    assert_eq!(outcome["error"]["code"], json!("RESOURCE_LIMIT"), "{:.500}", outcome.to_string());
    assert_eq!(names(&person.fixture.workspace), old);
    assert!(!person.fixture.data.join("changes").join(id(&outcome)).exists());
}

#[test]
fn many_files_are_committed_and_undone() {
    let person = Person::ordinary();
    let command =
        "python3 -c 'import os\nos.mkdir(\"many\")\nfor i in range(20000): open(f\"many/{i}\", \"w\").write(str(i))'";
    let (code, outcome) = person.shell(command, ALL);
    assert_eq!(code, 0, "{:.500}", outcome.to_string());
    assert_eq!(person.fixture.path("many").read_dir().unwrap().count(), 20_000);
    assert_eq!(person.run(&["undo", &id(&outcome), "--yes"]).code, Some(0));
    assert!(!person.fixture.path("many").exists());
}

#[test]
fn a_folder_that_becomes_a_link_while_a_commit_runs_leads_nowhere() {
    let person = Person::us();
    let outside = person.fixture.home.join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "outside\n").unwrap();
    person.put("spot/file", "inside\n");
    symlink(&outside, person.fixture.path("trap")).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let (spot, trap) = (person.fixture.path("spot"), person.fixture.path("trap"));
    let swapping = Arc::clone(&stop);
    let swapper = std::thread::spawn(move || {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        while !swapping.load(Ordering::Relaxed) {
            let _ = renameat_with(CWD, &spot, CWD, &trap, RenameFlags::EXCHANGE);
        }
    });
    let mut ends = BTreeSet::new();
    for turn in 0..20 {
        let (_, outcome) = person.shell(&format!("echo {turn} > spot/file; echo x > spot/new{turn}"), ALL);
        ends.insert(outcome["error"]["code"].to_string());
        assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "outside\n", "{outcome:#}");
        assert_eq!(names(&outside).len(), 1, "{outcome:#}");
    }
    stop.store(true, Ordering::Relaxed);
    swapper.join().unwrap();
    println!("{ends:?}");
}

#[test]
fn the_home_folder_can_be_the_workspace() {
    for mut person in Person::everyone() {
        let home = person.fixture.workspace.clone();
        let data = home.join(".local/share/haft");
        person.variables.push(("HOME", home.clone().into()));
        person.variables.push(("HAFT_DATA_DIR", data.clone().into()));
        let secrets = [
            ".ssh/id_ed25519",
            ".aws/credentials",
            ".netrc",
            ".bash_history",
            ".config/gh/hosts.yml",
            ".git-credentials",
            ".docker/config.json",
        ];
        for secret in secrets {
            person.put(secret, "not for you\n");
        }
        person.put(".bashrc", "true\n");
        person.put("project/a", "a\n");
        for folder in [".local", ".local/share"] {
            fs::create_dir_all(home.join(folder)).unwrap();
            person.give(&home.join(folder));
        }
        let said = person
            .says(&format!("cat {} 2>&1; ls -a .local/share/haft .ssh 2>&1; cat project/a; pwd", secrets.join(" ")));
        assert!(!said.contains("not for you") && !said.contains("haft.db") && said.contains("a\n"), "{said}");
        assert!(said.ends_with(&format!("{}\n", home.display())), "{said}");
        let call = person.stages("echo evil >> .bashrc; echo b > project/b", &[]);
        let card = person.run(&["approvals"]).stdout;
        assert!(card.contains(".bashrc") && card.contains('!'), "{card}");
        assert_eq!(person.run(&["approve", &call]).code, Some(0));
        assert_eq!(person.fixture.text("project/b").as_deref(), Some("b\n"));
        assert_eq!(person.run(&["undo", &call, "--yes"]).code, Some(0));
        assert_eq!(person.fixture.text(".bashrc").as_deref(), Some("true\n"));
        // What is hidden cannot be replaced either.
        let (_, outcome) = person.shell("rm -rf .ssh .local/share/haft; mv .aws away; echo x > .ssh/x; true", ALL);
        assert!(person.fixture.path(".ssh/id_ed25519").exists() && data.join("haft.db").exists(), "{outcome:#}");
        assert!(person.fixture.path(".aws/credentials").exists(), "{outcome:#}");
    }
}

#[test]
fn a_path_may_have_any_character() {
    for mut person in Person::everyone() {
        let odd = "a:b,c\\d\"e'f\ng h%i=j\u{e9}";
        let workspace = person.fixture.workspace.join(odd);
        fs::create_dir(&workspace).unwrap();
        person.give(&workspace);
        person.fixture.workspace = workspace;
        let data = person.fixture.home.join(format!("data {odd}"));
        person.variables.push(("HAFT_DATA_DIR", data.into()));
        person.put("sub/a", "a\n");
        let (code, outcome) = person.shell("pwd; cd sub && echo b > b && cat a", ALL);
        assert_eq!(code, 0, "{outcome:#}");
        let said = text(&outcome["result"]["structured"]["stdout"]);
        assert_eq!(said, format!("{}\na\n", person.fixture.workspace.display()));
        assert_eq!(person.fixture.text("sub/b").as_deref(), Some("b\n"));
        assert_eq!(person.run(&["undo", &id(&outcome), "--yes"]).code, Some(0));
        assert_eq!(person.fixture.text("sub/b"), None);
    }
}

#[test]
fn what_lies_beside_a_workspace_below_tmp_is_not_seen() {
    let mut fixture = Fixture::new();
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    fs::write(folder.path().join("beside"), "not for you\n").unwrap();
    fixture.workspace = folder.path().canonicalize().unwrap().join("workspace");
    fs::create_dir(&fixture.workspace).unwrap();
    let person = Person::with(fixture);
    let mut leaf = fs::File::create(person.fixture.path("a")).unwrap();
    leaf.write_all(b"a\n").unwrap();
    let said = person.does("cat a ../beside 2>&1; echo b > b; echo t > /tmp/t; ls /tmp ..");
    assert!(said.starts_with("a\n") && !said.contains("not for you") && said.contains("t\n"), "{said}");
    assert_eq!(person.fixture.text("b").as_deref(), Some("b\n"));
    assert!(!Path::new("/tmp/t").exists());
    assert_eq!(person.says("cat /tmp/t"), "t\n");
}

#[test]
fn the_outcome_of_every_command_names_its_rung() {
    let person = Person::us();
    let (_, outcome): (i32, Value) = person.shell("true", &[]);
    assert_eq!(outcome["isolation"], json!("namespaces"), "{outcome:#}");
}
