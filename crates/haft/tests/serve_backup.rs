//! Backups taken while calls, uploads and commits go on, and restored elsewhere, into either database.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test that cannot go on fails, or says that it has nothing to do, and starts the program itself"
)]

#[path = "stories/database.rs"]
mod database;
mod http_client;

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use http_client::{Gateway, haft, new_folder, until, within};
use serde_json::{Value, json};
use tempfile::TempDir;

const SCOPES: &str = "tools:read,tools:execute,tools:write,approvals:decide,events:read";
const SECRET: &str = "a-secret-key-for-tests-of-backups-only";

/// A folder with a database of its own, and what every command there is told.
struct Site {
    folder: TempDir,
    variables: Vec<(String, String)>,
}

impl Site {
    /// On the database that the tests run on.
    fn new(node: &str) -> Self {
        let folder = new_folder("");
        let url = database::create(folder.path());
        Self::on(folder, url, node)
    }

    /// On a file.
    fn on_file() -> Self {
        Self::on(new_folder(""), None, "file")
    }

    fn on(folder: TempDir, url: Option<String>, node: &str) -> Self {
        let mut variables = vec![("HAFT_SERVE_NODE".to_owned(), node.to_owned())];
        variables.push(("HAFT_SECRET_KEY".to_owned(), SECRET.to_owned()));
        variables.extend(url.map(|url| ("HAFT_STORE_URL".to_owned(), url)));
        Self { folder, variables }
    }

    fn haft(&self, args: &[&str]) -> Command {
        let mut command = haft(&self.folder, args);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs a command that must succeed, and reads what it prints.
    fn json(&self, args: &[&str]) -> Value {
        let done = self.haft(&[args, &["--json"]].concat()).output().unwrap();
        assert!(done.status.success(), "{args:?}: {}{}", text(&done.stdout), text(&done.stderr));
        serde_json::from_slice(&done.stdout).unwrap()
    }

    /// Runs a command that must fail, and gives what it says.
    fn refused(&self, args: &[&str]) -> String {
        let done = self.haft(args).output().unwrap();
        assert_eq!(done.status.code(), Some(1), "{args:?}: {}{}", text(&done.stdout), text(&done.stderr));
        text(&done.stderr)
    }

    fn serve(self) -> Gateway {
        let variables: Vec<(&str, &str)> =
            self.variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        Gateway::start_in(self.folder, &variables)
    }

    /// The slugs of all tenants.
    fn tenants(&self) -> Vec<String> {
        let listed = self.json(&["admin", "tenant", "list"]);
        listed["items"].as_array().unwrap().iter().map(|tenant| tenant["slug"].as_str().unwrap().to_owned()).collect()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn ask(on: &Gateway, key: &str, path: &str, content: &str) -> String {
    let body = json!({"input": {"path": path, "content": content}, "wait": 0});
    let asked = on.post("/api/tools/write_file/calls", &body, Some(key));
    assert_eq!(asked.status, 202, "{asked:?}");
    asked.body["tool_call_id"].as_str().unwrap().to_owned()
}

fn approve(on: &Gateway, key: &str, call: &str) {
    let yes = on.post(&format!("/api/approvals/{call}/approve"), &json!({}), Some(key));
    assert_eq!((yes.status, &yes.body["answered"]), (200, &json!(true)), "{yes:?}");
    until(|| (status(on, key, call) == "success").then_some(()));
}

fn status(on: &Gateway, key: &str, call: &str) -> String {
    let found = on.get(&format!("/api/calls/{call}"), Some(key));
    assert_eq!(found.status, 200, "{call}: {found:?}");
    found.body["status"].as_str().unwrap().to_owned()
}

/// Sends bytes, and gives the bytes behind the head of the answer.
fn exchange(on: &Gateway, head: &str, body: &[u8]) -> Vec<u8> {
    let address = on.url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(format!("{head}Host: {address}\r\n\r\n").as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    answer.split_off(end + 4)
}

fn upload(on: &Gateway, key: &str, bytes: &[u8]) -> String {
    let length = bytes.len();
    let head =
        format!("POST /api/media?name=x HTTP/1.0\r\nAuthorization: Bearer {key}\r\nContent-Length: {length}\r\n");
    let made: Value = serde_json::from_slice(&exchange(on, &head, bytes)).unwrap();
    made["id"].as_str().unwrap().to_owned()
}

fn download(on: &Gateway, key: &str, id: &str) -> Vec<u8> {
    exchange(on, &format!("GET /api/media/{id} HTTP/1.0\r\nAuthorization: Bearer {key}\r\n"), b"")
}

/// Bytes that do not pack well.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    (0..length).map(|_| next()).collect()
}

/// The only workspace that haft keeps on a site.
fn kept_workspace(data: &Path) -> PathBuf {
    let only = |folder: PathBuf| fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    only(only(PathBuf::from(format!("{}-workspaces", data.display()))))
}

/// What was acknowledged.
#[derive(Default)]
struct Acknowledged {
    written: Mutex<Vec<(String, String)>>,
    uploaded: Mutex<Vec<(String, Vec<u8>)>>,
    by_command: Mutex<Vec<String>>,
}

/// Calls, uploads, and calls of other processes, until it is told to stop.
fn work(served: &Gateway, key: &str, done: &Acknowledged, stop: &AtomicBool) {
    thread::scope(|scope| {
        for worker in 0..2 {
            scope.spawn(move || {
                for number in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let path = format!("w{worker}/{number}.txt");
                    let call = ask(served, key, &path, &path);
                    approve(served, key, &call);
                    done.written.lock().unwrap().push((call, path));
                }
            });
        }
        scope.spawn(|| {
            for number in 1.. {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let bytes = noise(number, 100_000);
                let id = upload(served, key, &bytes);
                done.uploaded.lock().unwrap().push((id, bytes));
            }
        });
        scope.spawn(|| {
            for number in 0.. {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let (folder, name) = (served.workspace(), format!("c{number}.txt"));
                let mut call = served.haft(&["call", "write_file", "--auto-approve", "all", "--json"]);
                call.current_dir(folder).args(["--path", &name, "--content", "by a command"]);
                let ran = call.output().unwrap();
                assert!(ran.status.success(), "{}", text(&ran.stdout));
                let outcome: Value = serde_json::from_slice(&ran.stdout).unwrap();
                done.by_command.lock().unwrap().push(outcome["tool_call_id"].as_str().unwrap().to_owned());
            }
        });
    });
}

/// Each call either has its file, or has not touched it. Those that were under way are ended first.
fn every_call_is_whole(served: &Gateway, key: &str, shop: &Path) {
    let listed = until(|| {
        let listed = served.get("/api/calls?tool=write_file&limit=200", Some(key)).body;
        let is_under_way = |call: &Value| call["state"] == "executing" || call["state"] == "preparing";
        let states = listed["items"].as_array().unwrap().iter();
        (!states.clone().any(is_under_way)).then_some(listed)
    });
    for call in listed["items"].as_array().unwrap() {
        let whole = served.get(&format!("/api/calls/{}", call["callId"].as_str().unwrap()), Some(key)).body;
        let file = shop.join(whole["input"]["path"].as_str().unwrap());
        match call["status"].as_str().unwrap() {
            "success" => assert!(file.exists(), "{call}"),
            "pending" => assert!(!file.exists(), "{call}"),
            _ => {}
        }
    }
}

#[test]
fn a_backup_under_load_holds_everything_that_was_acknowledged_and_goes_on_elsewhere() {
    let site = Site::new("first");
    site.json(&["admin", "tenant", "add", "acme"]);
    site.json(&["admin", "workspace", "add", "shop", "--tenant", "acme"]);
    let made = site.json(&["admin", "key", "add", "k", "--tenant", "acme", "--scopes", SCOPES, "--workspace", "shop"]);
    let key = made["key"].as_str().unwrap();
    let mut served = site.serve();
    let waiting = ask(&served, key, "waits.txt", "later");
    let (done, stop) = (Acknowledged::default(), AtomicBool::new(false));
    let (written, uploaded, by_command) = thread::scope(|scope| {
        scope.spawn(|| work(&served, key, &done, &stop));
        let enough = || done.written.lock().unwrap().len() > 4 && done.by_command.lock().unwrap().len() > 1;
        until(|| (enough() && done.uploaded.lock().unwrap().len() > 2).then_some(()));
        let before = (done.written.lock().unwrap().clone(), done.uploaded.lock().unwrap().clone());
        let commands = done.by_command.lock().unwrap().clone();
        let taken = served.haft(&["backup", "b.tar.gz", "--json"]).output().unwrap();
        assert!(taken.status.success(), "{}", text(&taken.stderr));
        stop.store(true, Ordering::Relaxed);
        (before.0, before.1, commands)
    });
    let backup = served.workspace().parent().unwrap().join("b.tar.gz");
    served.kill();

    // Elsewhere, under another name.
    let other = Site::new("second");
    let restored = other.json(&["restore", backup.to_str().unwrap()]);
    let tables = restored["tables"].as_array().unwrap();
    assert!(tables.iter().all(|table| table["from"] == table["to"]), "{restored}");
    for call in &by_command {
        let found = other.json(&["log", "show", call, "--workspace", served.workspace().to_str().unwrap()]);
        assert_eq!(found["status"], "success", "{found}");
    }
    // What the old one had is out of reach.
    fs::remove_dir_all(served.data()).unwrap();
    fs::remove_dir_all(format!("{}-workspaces", served.data().display())).unwrap();
    let again = other.serve();
    let shop = kept_workspace(&again.data());
    for (call, path) in &written {
        assert_eq!(status(&again, key, call), "success");
        assert_eq!(fs::read_to_string(shop.join(path)).unwrap(), *path);
    }
    for (id, bytes) in &uploaded {
        assert!(download(&again, key, id) == *bytes, "{id}");
    }
    every_call_is_whole(&again, key, &shop);
    // What waited is committed, and what was committed is undone.
    approve(&again, key, &waiting);
    assert_eq!(fs::read_to_string(shop.join("waits.txt")).unwrap(), "later");
    // The first one has made the folder that the others lie in.
    let (call, path) = written.iter().find(|(_, path)| !path.ends_with("/0.txt")).unwrap();
    let undo = again.post(&format!("/api/calls/{call}/undo"), &json!({"wait": 0}), Some(key));
    assert_eq!(undo.body["status"], "pending", "{undo:?}");
    approve(&again, key, undo.body["tool_call_id"].as_str().unwrap());
    assert!(!shop.join(path).exists());
}

/// A site with a tenant, a workspace with a file in it, and a call that waits.
fn filled(site: &Site, tenant: &str) {
    site.json(&["admin", "tenant", "add", tenant]);
    site.json(&["admin", "workspace", "add", "shop", "--tenant", tenant]);
    let folder = PathBuf::from(format!("{}-workspaces", site.path("data").display())).join("tn_x").join("ws_x");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(format!("{tenant}.txt")), noise(7, 3_000_000)).unwrap();
    let asked = site.haft(&["call", "write_file", "--path", "asked.txt", "--content", "x", "--json"]).output().unwrap();
    assert_eq!(asked.status.code(), Some(4), "{}", text(&asked.stderr));
}

#[test]
fn a_backup_of_either_database_is_restored_to_either() {
    let file = Site::on_file();
    filled(&file, "acme");
    file.json(&["backup", "b.tar.gz"]);
    let server = Site::new("node");
    if server.variables.len() < 3 {
        println!("skipped: there is no PostgreSQL to restore to");
        return;
    }
    server.json(&["restore", file.path("b.tar.gz").to_str().unwrap()]);
    assert!(server.tenants().contains(&"acme".to_owned()));
    server.json(&["backup", "c.tar.gz"]);
    let refused = server.refused(&["restore", "c.tar.gz"]);
    assert!(refused.contains("--replace"), "{refused}");
    server.json(&["restore", "c.tar.gz", "--replace"]);
    let back = Site::on_file();
    let restored = back.json(&["restore", server.path("c.tar.gz").to_str().unwrap()]);
    assert_eq!(back.tenants(), file.tenants());
    let rows =
        |of: &Value| of["tables"].as_array().unwrap().iter().map(|table| table["to"].as_i64().unwrap()).sum::<i64>();
    assert_eq!(rows(&restored), rows(&file.json(&["restore", "--check", "b.tar.gz"])));
    assert_eq!(back.json(&["approvals", "--all"]).as_array().unwrap().len(), 1);
    let held = server.serve();
    let used = held.haft(&["restore", "c.tar.gz", "--replace"]).output().unwrap();
    assert!(text(&used.stderr).contains("haft uses"), "{}", text(&used.stderr));
}

#[test]
fn a_restore_refuses_whatever_it_may_not_touch() {
    let site = Site::on_file();
    filled(&site, "acme");
    site.json(&["backup", "b.tar.gz"]);
    let said = site.refused(&["backup", "b.tar.gz"]);
    assert!(said.contains("--replace"), "{said}");
    site.json(&["backup", "b.tar.gz", "--replace"]);
    let said = site.refused(&["restore", "b.tar.gz"]);
    assert!(said.contains("has data already"), "{said}");
    site.json(&["restore", "--check", "b.tar.gz"]);

    // Another key, and none.
    let other = Site::on_file();
    let backup = site.path("b.tar.gz");
    let backup = backup.to_str().unwrap();
    let restore = |key: Option<&str>| {
        let mut command = other.haft(&["restore", backup]);
        command.env_remove("HAFT_SECRET_KEY");
        key.map(|key| command.env("HAFT_SECRET_KEY", key));
        let done = command.output().unwrap();
        assert_eq!(done.status.code(), Some(1));
        text(&done.stderr)
    };
    let said = restore(Some("another-secret-key-of-32-characters"));
    assert!(said.contains("the variable HAFT_SECRET_KEY is another master key"), "{said}");
    let said = restore(None);
    assert!(said.contains("missing") && said.contains("secret.key"), "{said}");
    assert!(!other.path("data").exists() && !other.path("data.restoring").exists(), "nothing was touched");

    // With the key in it nothing is needed.
    let done = site.haft(&["backup", "k.tar.gz", "--with-key"]).output().unwrap();
    assert!(text(&done.stderr).contains("holds the master key"), "{}", text(&done.stderr));
    let mut with_key = other.haft(&["restore", site.path("k.tar.gz").to_str().unwrap()]);
    assert!(with_key.env_remove("HAFT_SECRET_KEY").output().unwrap().status.success());
    assert!(other.path("data/secret.key").exists());

    // While somebody uses it.
    let held = other.serve();
    let said = held.haft(&["restore", backup, "--replace"]).output().unwrap();
    assert!(text(&said.stderr).contains("haft uses"), "{}", text(&said.stderr));
}

/// What a gzip file holds, if all of it is right.
fn unpacked(packed: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(packed).read_to_end(&mut bytes).ok().map(|_| bytes)
}

#[test]
fn a_file_with_one_wrong_byte_is_not_restored() {
    let site = Site::on_file();
    site.json(&["admin", "tenant", "add", "acme"]);
    site.json(&["backup", "b.tar.gz"]);
    let bytes = fs::read(site.path("b.tar.gz")).unwrap();
    let other = Site::on_file();
    let refused = |wrong: &[u8], what: String| {
        fs::write(other.path("wrong"), wrong).unwrap();
        other.refused(&["restore", "wrong"]);
        assert!(!other.path("data").exists() && !other.path("data.restoring").exists(), "{what}");
    };
    let tar = unpacked(&bytes).unwrap();
    for place in (10..bytes.len()).step_by(bytes.len() / 9) {
        let mut wrong = bytes.clone();
        wrong[place] ^= 0x20;
        // Some bits of a packed file say nothing.
        if unpacked(&wrong).is_none_or(|wrong| wrong != tar) {
            refused(&wrong, format!("byte {place}"));
        }
        refused(&bytes[..place], format!("cut at {place}"));
    }
    // The same behind right checksums of gzip: of what is no filling, every byte counts.
    for place in (0..tar.len()).step_by(tar.len() / 9).filter_map(|from| (from..tar.len()).find(|at| tar[*at] != 0)) {
        let mut wrong = tar.clone();
        wrong[place] ^= 0x01;
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(&wrong).unwrap();
        refused(&packed.finish().unwrap(), format!("byte {place} of the tar"));
    }
    refused(&bytes[..bytes.len() - 1], "cut at its end".to_owned());
    refused(&[bytes.as_slice(), b"x"].concat(), "longer".to_owned());
    refused(b"no backup at all", "something else".to_owned());
}

#[test]
fn whoever_kills_a_backup_or_a_restore_finds_the_old_data_or_the_new() {
    let site = Site::on_file();
    filled(&site, "old");
    site.json(&["backup", "old.tar.gz"]);
    let new = Site::on_file();
    filled(&new, "new");
    new.json(&["backup", "new.tar.gz"]);
    let packed = new.path("new.tar.gz");
    let (mut restored, mut stayed) = (0, 0);
    for round in 0..14 {
        let killed_after = |args: &[&str]| {
            let mut child = site.haft(args).stdout(std::process::Stdio::null()).spawn().unwrap();
            within(Duration::from_millis(1 << round.min(11)), || child.try_wait().unwrap());
            child.kill().ok();
            child.wait().unwrap();
        };
        killed_after(&["backup", "killed.tar.gz"]);
        if site.path("killed.tar.gz").exists() {
            site.json(&["restore", "--check", "killed.tar.gz"]);
            fs::remove_file(site.path("killed.tar.gz")).unwrap();
        }
        killed_after(&["restore", packed.to_str().unwrap(), "--replace"]);
        let tenants = site.tenants();
        let workspace = |tenant: &str| site.path("data-workspaces/tn_x/ws_x").join(format!("{tenant}.txt")).exists();
        let is_new = tenants.contains(&"new".to_owned());
        assert_eq!(tenants.contains(&"old".to_owned()), !is_new, "{tenants:?}");
        assert_eq!((workspace("old"), workspace("new")), (!is_new, is_new));
        if is_new {
            restored += 1;
            site.json(&["restore", "old.tar.gz", "--replace"]);
        } else {
            stayed += 1;
        }
    }
    assert!(restored > 0 && stayed > 0, "{restored} restored, {stayed} not");
    site.json(&["backup", "last.tar.gz"]);
    let left: Vec<String> = fs::read_dir(site.folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("restor") || name.contains("replaced"))
        .collect();
    assert!(left.iter().all(|name| name == "data.restoring"), "{left:?}");
}

/// A small disk; unmounted in the end.
struct SmallDisk(TempDir);

impl SmallDisk {
    fn new() -> Option<Self> {
        let disk = Self(tempfile::tempdir().unwrap());
        let mount =
            Command::new("/bin/mount").args(["-t", "tmpfs", "-o", "size=2m", "tmpfs"]).arg(disk.0.path()).status();
        mount.is_ok_and(|status| status.success()).then_some(disk)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _unmounted = Command::new("/bin/umount").arg("-l").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_disk_is_told_and_nothing_half_is_left() {
    let site = Site::on_file();
    filled(&site, "acme");
    let Some(disk) = SmallDisk::new() else {
        println!("skipped: a small disk cannot be mounted here");
        return;
    };
    let there = disk.0.path().join("b.tar.gz");
    let there = there.to_str().unwrap();
    let said = site.refused(&["backup", there]);
    assert!(said.contains("No space left"), "{said}");
    assert_eq!(fs::read_dir(disk.0.path()).unwrap().count(), 0);

    site.json(&["backup", "b.tar.gz"]);
    let mut restore = site.haft(&["restore", "b.tar.gz"]);
    fs::create_dir(disk.0.path().join("x")).unwrap();
    let said = restore.env("HAFT_DATA_DIR", disk.0.path().join("x/data")).output().unwrap();
    assert!(text(&said.stderr).contains("not enough space"), "{}", text(&said.stderr));
    assert_eq!(fs::read_dir(disk.0.path().join("x")).unwrap().count(), 0);
}
