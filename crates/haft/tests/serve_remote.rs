//! Commands at a gateway: they print and end as they do in a folder.
//!
//! The gateway serves the data folder that commands without `--server` use, so that the same call can be looked at from both
//! sides.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that cannot go on fails")]

mod http_client;
mod support;

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::{Command, Stdio},
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, channel},
    },
};

use http_client::{Gateway, person::Person};
use serde_json::{Value, json};
use support::{Ran, Running, Terminal, id, text};

const SCOPES: &str = "tools:read,tools:execute,approvals:decide,events:read";

/// A gateway with a workspace `shop` of this machine's own tenant, and a key for it.
struct Site {
    served: Gateway,
    key: String,
    folder: PathBuf,
}

impl Site {
    fn new() -> Self {
        let served = Gateway::start();
        let folder = served.workspace();
        fs::write(folder.join("a.txt"), "alpha\n").unwrap();
        served.admin(&["workspace", "add", "shop", "--tenant", "local", "--map", folder.to_str().unwrap()]);
        let key = served.key_in("builder", "local", SCOPES, "shop");
        Self { served, key, folder }
    }

    /// A command at the gateway.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.served.haft(&[args, &["--server", &self.served.url]].concat());
        command.env("HAFT_KEY", &self.key);
        command
    }

    fn there(&self, args: &[&str]) -> Ran {
        Running::start(self.command(args)).finish()
    }

    /// The same command in the folder.
    fn here(&self, args: &[&str]) -> Ran {
        let mut command = self.served.haft(&[args, &["--workspace", self.folder.to_str().unwrap()]].concat());
        command.current_dir(&self.folder);
        Running::start(command).finish()
    }

    fn write(&self, path: &str) -> Ran {
        self.there(&["call", "write_file", &json!({"path": path, "content": "new\n"}).to_string(), "--json"])
    }

    /// A call that waits for an answer.
    fn waiting(&self, path: &str) -> String {
        let ran = self.write(path);
        assert_eq!(ran.code, Some(4), "{ran:?}");
        id(&ran.json())
    }

    fn done(&self, path: &str) -> String {
        let call = self.waiting(path);
        assert_eq!(self.there(&["approve", &call]).code, Some(0));
        call
    }

    fn has(&self, path: &str) -> bool {
        self.folder.join(path).exists()
    }
}

/// What was said, without what changes from one moment to the next.
fn lasting(ran: &Ran) -> (Option<i32>, String, String) {
    let plain = |text: &str| {
        let words = text.split(' ').map(|word| {
            let is_age = word.trim_start_matches('(').chars().next().is_some_and(|first| first.is_ascii_digit());
            if is_age && word.ends_with('s') { "AGE" } else { word }
        });
        words.collect::<Vec<_>>().join(" ")
    };
    (ran.code, plain(&ran.stdout), plain(&ran.stderr))
}

fn same(site: &Site, args: &[&str]) {
    let (there, here) = (site.there(args), site.here(args));
    assert_eq!(lasting(&there), lasting(&here), "{args:?}");
    assert_eq!(there.code, Some(0), "{there:?}");
    let (there, here) = (site.there(&[args, &["--json"]].concat()), site.here(&[args, &["--json"]].concat()));
    assert_eq!(there.json(), here.json(), "{args:?}");
}

/// Without what every call has of its own.
fn without_its_own(mut outcome: Value) -> Value {
    let own = ["tool_call_id", "started_at", "finished_at", "execution_time_ms"];
    own.iter().for_each(|name| drop(outcome.as_object_mut().unwrap().remove(*name)));
    outcome
}

#[test]
fn what_is_looked_at_is_shown_as_it_is_in_the_folder() {
    let site = Site::new();
    let done = site.done("b.txt");
    let refused = site.waiting("c.txt");
    assert_eq!(site.there(&["reject", &refused, "--message", "not now"]).code, Some(0));
    let open = site.waiting("d.txt");
    same(&site, &["log"]);
    same(&site, &["log", "--status", "success", "--tool", "write_file", "--limit", "1"]);
    same(&site, &["log", "--before", &open[..30]]);
    for call in [&done, &refused, &open] {
        same(&site, &["log", "show", call]);
        same(&site, &["changes", call]);
    }
    same(&site, &["log", "show", &done[..30]]);
    same(&site, &["changes", &open, "d.txt"]);
    same(&site, &["changes"]);
    same(&site, &["approvals"]);
    same(&site, &["approvals", "--all"]);
    same(&site, &["tools", "read_file"]);
    same(&site, &["tools", "--search", "directory", "--tokens"]);
    same(&site, &["wait", &done]);
    let names = |ran: Ran| ran.json().as_array().unwrap().iter().map(|tool| text(&tool["name"])).collect::<Vec<_>>();
    // A folder that is no git repository hides the tools for git; a gateway lists them for every workspace.
    let (there, here) = (names(site.there(&["tools", "--json"])), names(site.here(&["tools", "--all", "--json"])));
    assert!(there.len() > 20 && there.iter().all(|name| here.contains(name)), "{there:?} {here:?}");
    let exported = |ran: Ran| ran.json()[0].clone();
    let args = ["tools", "read_file", "--export", "openai"];
    assert_eq!(exported(site.there(&args)), exported(site.here(&args)));
}

#[test]
fn calls_are_made_answered_and_taken_back() {
    let site = Site::new();
    let read = ["call", "read_file", "--path", "a.txt"];
    assert_eq!(lasting(&site.there(&read)), lasting(&site.here(&read)));
    let json = |ran: Ran| without_its_own(ran.json());
    let read = [&read[..], &["--no-cache", "--json"]].concat();
    assert_eq!(json(site.there(&read)), json(site.here(&read)));
    let missing = ["call", "read_file", r#"{"path": "no.txt"}"#];
    assert_eq!(lasting(&site.there(&missing)), lasting(&site.here(&missing)));
    assert_eq!(site.there(&missing).code, Some(1));
    assert_eq!(site.there(&["call", "read_file", "--nonsense", "1"]).code, Some(2));
    assert_eq!(site.there(&["call", "read_file", "--help"]).stdout, site.here(&["call", "read_file", "--help"]).stdout);

    let call = site.waiting("b.txt");
    assert_eq!(site.there(&["wait", &call, "--timeout", "1s"]).code, Some(4));
    let ran = site.there(&["approve", &call]);
    assert_eq!((ran.code, site.has("b.txt")), (Some(0), true), "{ran:?}");
    assert!(ran.stdout.contains("Wrote 4 bytes to b.txt"), "{ran:?}");
    let late = site.there(&["approve", &call]);
    assert_eq!(late.code, Some(1));
    assert!(late.stderr.contains("was already answered: yes (by builder at "), "{late:?}");
    let ran = site.there(&["undo", &call, "--yes", "--json"]);
    assert_eq!((ran.code, site.has("b.txt")), (Some(0), false), "{ran:?}");
    let ran = site.there(&["redo", "--yes"]);
    assert_eq!((ran.code, site.has("b.txt")), (Some(0), true), "{ran:?}");
    let again = site.there(&["redo", &call, "--yes"]);
    assert!(again.code == Some(1) && again.stderr.contains("has not been undone"), "{again:?}");
    let undo = site.there(&["undo", &call]);
    assert_eq!((undo.code, site.has("b.txt")), (Some(4), true), "nobody was there to ask: {undo:?}");

    let call = site.waiting("c.txt");
    let ran = site.there(&["commit", &call, "c.txt"]);
    assert_eq!((ran.code, site.has("c.txt")), (Some(0), true), "{ran:?}");
    let call = site.waiting("d.txt");
    let ran = site.there(&["discard", &call]);
    assert_eq!((ran.code, site.has("d.txt")), (Some(0), false), "{ran:?}");
    assert_eq!(site.there(&["wait", &call]).code, Some(3), "a person said no");
    let call = site.waiting("e.txt");
    let ran = site.there(&["cancel", &call, "--json"]);
    assert_eq!((ran.code, &ran.json()["status"]), (Some(0), &json!("cancelled")), "{ran:?}");
    let twice = site.there(&["cancel", &call]);
    assert!(twice.code == Some(1) && twice.stderr.contains("has already ended: cancelled"), "{twice:?}");
    let call = site.waiting("f.txt");
    let edited = json!({"path": "g.txt", "content": "edited\n"}).to_string();
    let ran = site.there(&["approve", &call, "--input", &edited]);
    assert_eq!((ran.code, site.has("f.txt"), site.has("g.txt")), (Some(0), false, true), "{ran:?}");
}

#[test]
fn all_but_the_last_digit_of_an_id_is_enough_whatever_that_is() {
    let site = Site::new();
    let read = || id(&site.there(&["call", "read_file", "--path", "a.txt", "--json"]).json());
    // The last of all ids that begin so.
    let call = std::iter::repeat_with(read).take(500).find(|call| call.ends_with('f')).unwrap();
    same(&site, &["log", "show", &call[..call.len() - 1]]);
}

#[test]
fn a_yes_is_remembered_as_it_is_in_the_folder() {
    let site = Site::new();
    let call = site.waiting("out/one.txt");
    let ran = site.there(&["approve", &call, "--always", "folder", "--for", "8h", "--uses", "3"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("remembered as g_") && ran.stderr.contains("may do this without asking"), "{ran:?}");
    let grants = site.here(&["grants", "--json"]).json();
    assert!(ran.stderr.contains(&text(&grants[0]["id"])) && grants[0]["usesLeft"] == 3, "{grants} {ran:?}");
    let ran = site.write("out/two.txt");
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn a_workspace_is_named_and_the_server_can_be_set_once() {
    let site = Site::new();
    let key = site.served.key("roving", "local", SCOPES);
    let mut command = site.served.haft(&["call", "read_file", "--path", "a.txt", "--workspace", "shop"]);
    command.env("HAFT_KEY", &key).env("HAFT_SERVER", &site.served.url);
    let ran = Running::start(command).finish();
    assert!(ran.code == Some(0) && ran.stdout.contains("alpha"), "{ran:?}");
    let ran = site.there(&["log", "--workspace", "shed"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("has no workspace `shed`: there are shop"), "{ran:?}");
    let ran = site.there(&["stats"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("unexpected argument '--server'"), "{ran:?}");
    let ran = site.there(&["call", "read_file", "--path", "a.txt", "--auto-approve", "all"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("leave out --auto-approve"), "{ran:?}");
    let mut command = site.served.haft(&["trust", "--show", "--json"]);
    command.env("HAFT_SERVER", &site.served.url);
    assert_eq!(Running::start(command).finish().code, Some(0), "the variable is for the others");
}

#[test]
fn what_goes_wrong_says_what_to_do() {
    let mut site = Site::new();
    let url = site.served.url.clone();
    let with_key = |key: Option<&str>, url: &str| {
        let mut command = site.served.haft(&["tools", "--server", url, "--json"]);
        key.map(|key| command.env("HAFT_KEY", key));
        let ran = Running::start(command).finish();
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let error = ran.json()["error"].clone();
        (text(&error["code"]), text(&error["message"]))
    };
    let (code, message) = with_key(Some("haft_1_2"), &url);
    assert!(code == "UNAUTHORIZED" && message.contains("HAFT_KEY is wrong, has expired or was revoked"), "{message}");
    let (code, message) = with_key(None, &url);
    assert!(
        code == "UNAUTHORIZED" && message.contains(&format!("set HAFT_KEY, or run `haft login {url}`")),
        "{message}"
    );
    let (_, message) = with_key(Some("k"), "http://haft.example.org");
    assert!(message.contains("use https, or a tunnel to 127.0.0.1"), "{message}");
    let (_, message) = with_key(Some("k"), "haft.example.org");
    assert!(message.contains("no address of a server"), "{message}");
    let (code, message) = with_key(Some("k"), &answering("200 OK", "<html>hello</html>"));
    assert!(code == "UPSTREAM_ERROR" && message.contains("is no haft server"), "{message}");
    let old =
        json!({"error": {"code": "NOT_FOUND", "message": "there is no such route; /openapi.json lists them all"}});
    let (_, message) = with_key(Some("k"), &answering("404 Not Found", &old.to_string()));
    assert!(message.contains("is older than this one"), "{message}");
    site.served.kill();
    let ran = site.there(&["tools"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("cannot be reached"), "{ran:?}");
    assert!(ran.stderr.contains("check the address, and that haft runs there"), "{ran:?}");
    let ran = site.there(&["call", "read_file", "--json"]);
    assert_eq!((ran.code, &ran.json()["status"]), (Some(1), &json!("error")), "also then there is an envelope");
}

/// Somebody else's server, which answers everything in the same way.
fn answering(status: &'static str, body: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (url, body) = (format!("http://{}", listener.local_addr().unwrap()), body.to_owned());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            read_request(&mut stream);
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            let _ = stream.write_all((head + &body).as_bytes());
        }
    });
    url
}

/// One request, whole.
fn read_request(stream: &mut TcpStream) -> String {
    let (mut text, mut bytes) = (String::new(), [0; 4096]);
    loop {
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length =
                head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return text;
            }
        }
        match stream.read(&mut bytes) {
            Ok(count @ 1..) => text.push_str(&String::from_utf8_lossy(&bytes[..count])),
            Ok(_) | Err(_) => return text,
        }
    }
}

/// A way to a server, which may be another one later.
struct Way {
    url: String,
    /// Where requests go; nowhere while the server is away.
    to: Arc<Mutex<Option<String>>>,
    lost: Receiver<()>,
}

impl Way {
    /// One that loses the answer to the first request that begins a call.
    fn losing(served: &Gateway) -> Self {
        Self::before(served, false)
    }

    /// One that loses nothing.
    fn steady(served: &Gateway) -> Self {
        Self::before(served, true)
    }

    fn before(served: &Gateway, mut has_lost: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let to = Arc::new(Mutex::new(Some(served.url.clone())));
        let (loses, lost) = channel();
        std::thread::spawn({
            let to = Arc::clone(&to);
            move || {
                for mut near in listener.incoming().map_while(Result::ok) {
                    let request = read_request(&mut near);
                    let Some(url) = to.lock().unwrap().clone() else { continue };
                    let Ok(mut far) = TcpStream::connect(url.trim_start_matches("http://")) else { continue };
                    far.write_all(request.as_bytes()).unwrap();
                    if request.contains("/calls HTTP/1.1") && !has_lost {
                        has_lost = true;
                        let _ = far.read(&mut [0; 1]);
                        *to.lock().unwrap() = None;
                        loses.send(()).unwrap();
                        continue;
                    }
                    std::thread::spawn(move || std::io::copy(&mut far, &mut near));
                }
            }
        });
        Self { url, to, lost }
    }
}

#[test]
fn a_call_whose_server_dies_before_it_answers_is_made_once() {
    let mut site = Site::new();
    let way = Way::losing(&site.served);
    let mut command = site.served.haft(&[
        "call",
        "write_file",
        r#"{"path": "once.txt", "content": "1"}"#,
        "--json",
        "--server",
        &way.url,
    ]);
    command.env("HAFT_KEY", &site.key);
    let running = Running::start(command);
    way.lost.recv_timeout(support::LIMIT).unwrap();
    site.served = site.served.start_again(&[], &[]);
    *way.to.lock().unwrap() = Some(site.served.url.clone());
    let ran = running.finish();
    assert_eq!((ran.code, &ran.json()["status"]), (Some(4), &json!("pending")), "{ran:?}");
    let calls = site.there(&["log", "--json"]).json();
    assert_eq!(calls.as_array().unwrap().len(), 1, "{calls}");
    assert_eq!(calls[0]["callId"], ran.json()["tool_call_id"]);
}

#[test]
fn a_call_that_waits_outlives_the_end_of_its_server() {
    let mut site = Site::new();
    let way = Way::steady(&site.served);
    let input = r#"{"path": "b.txt", "content": "1"}"#;
    let mut command = site.served.haft(&["call", "write_file", input, "--wait", "10m", "--json", "--server", &way.url]);
    command.env("HAFT_KEY", &site.key);
    let running = Running::start(command);
    let call = support::until("a question", || {
        let open = site.there(&["approvals", "--json"]).json();
        open[0]["callId"].as_str().map(str::to_owned)
    });
    site.served.terminate();
    assert_eq!(site.served.ended().0, Some(0));
    *way.to.lock().unwrap() = None;
    site.served = site.served.start_again(&[], &[]);
    *way.to.lock().unwrap() = Some(site.served.url.clone());
    assert_eq!(site.there(&["approve", &call]).code, Some(0));
    let ran = running.finish();
    assert_eq!((ran.code, &ran.json()["status"]), (Some(0), &json!("success")), "{ran:?}");
}

#[test]
fn ctrl_c_stops_the_call_at_the_server() {
    let site = Site::new();
    let input = r#"{"path": "b.txt", "content": "1"}"#;
    let running = Running::start(site.command(&["call", "write_file", input, "--wait", "10m", "--json"]));
    support::until("a question", || {
        let open = site.there(&["approvals", "--json"]).json();
        open.as_array().unwrap().first().cloned()
    });
    rustix::process::kill_process(running.pid(), rustix::process::Signal::INT).unwrap();
    let ran = running.finish();
    assert_eq!((ran.code, &ran.json()["status"]), (Some(130), &json!("cancelled")), "{ran:?}");
    assert_eq!(site.there(&["approvals", "--json"]).json(), json!([]));
}

#[test]
fn a_call_that_waits_goes_on_when_somebody_else_says_yes() {
    let site = Site::new();
    let input = r#"{"path": "b.txt", "content": "1"}"#;
    let running = Running::start(site.command(&["call", "write_file", input, "--wait", "10m", "--json"]));
    let call = support::until("a question", || {
        let open = site.there(&["approvals", "--json"]).json();
        open[0]["callId"].as_str().map(str::to_owned)
    });
    assert_eq!(site.there(&["approve", &call]).code, Some(0));
    let ran = running.finish();
    assert_eq!((ran.code, &ran.json()["status"]), (Some(0), &json!("success")), "{ran:?}");
}

#[test]
fn output_comes_as_it_is_made() {
    let site = Site::new();
    let said = |command: &str| {
        let mut said = site.command(&["call", "shell_exec", &json!({"command": command}).to_string()]);
        said.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut child = said("echo first; sleep 600");
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "first", "before it has ended");
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::INT).unwrap();
    let ended = child.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(ended.status.code() == Some(130) && told.contains("cancelled"), "{told}");

    let ended = said("echo one; echo two >&2; exit 3").wait_with_output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert_eq!((ended.status.code(), &*out), (Some(3), "one\n"), "{err}");
    assert!(err.starts_with("two\nexit 3 after "), "{err}");
}

#[test]
fn a_person_at_the_terminal_is_asked() {
    let site = Site::new();
    let write =
        |path: &str| site.command(&["call", "write_file", &json!({"path": path, "content": "1\n"}).to_string()]);
    let mut terminal = Terminal::start(write("b.txt"));
    let prompt = "Commit this? [y]es [n]o [l]ater [a]lways [e]dit [d]iff [?] ";
    let shown = terminal.read_until(prompt);
    assert!(shown.contains("create b.txt") && shown.contains(" by builder"), "{shown}");
    terminal.type_in("?\n");
    let shown = terminal.read_until(&format!("press Enter.\r\n{prompt}"));
    assert!(shown.contains("y  yes: do exactly what the card shows"), "{shown}");
    terminal.type_in("e\n");
    terminal.read_until("(Enter keeps the old one): ");
    terminal.type_in("{\"path\": \"c.txt\", \"content\": \"2\\n\"}\n");
    let shown = terminal.read_until("Do this instead? [y]es [n]o ");
    assert!(shown.contains("create c.txt"), "{shown}");
    terminal.type_in("y\n");
    terminal.read_until("Wrote 2 bytes to c.txt");
    assert_eq!((terminal.exit_code(), site.has("b.txt"), site.has("c.txt")), (Some(0), false, true));

    let mut terminal = Terminal::start(write("d.txt"));
    terminal.read_until("[?] ");
    terminal.type_in("a\n");
    let shown = terminal.read_until("Which? (Enter goes back) ");
    assert!(shown.contains("1  this very call (would have covered"), "{shown}");
    terminal.type_in("1\n");
    terminal.read_until("remembered as g_");
    assert_eq!((terminal.exit_code(), site.has("d.txt")), (Some(0), true));

    let mut terminal = Terminal::start(write("e.txt"));
    terminal.read_until("[?] ");
    terminal.type_in("n\n");
    terminal.read_until("Why? (Enter to give no reason) ");
    terminal.type_in("not this\n");
    terminal.read_until("“not this”");
    assert_eq!(terminal.exit_code(), Some(3));

    let mut terminal = Terminal::start(write("f.txt"));
    terminal.read_until("[?] ");
    terminal.type_in("l\n");
    terminal.read_until("waits for an answer");
    assert_eq!(terminal.exit_code(), Some(4));
    let mut terminal = Terminal::start(site.command(&["approve"]));
    terminal.read_until("[?] ");
    terminal.type_in("y\n");
    terminal.read_until("Wrote 2 bytes to f.txt");
    assert_eq!((terminal.exit_code(), site.has("f.txt")), (Some(0), true));

    let mut terminal = Terminal::start(write("g.txt"));
    terminal.read_until("[?] ");
    let open = site.there(&["approvals", "--json"]).json();
    assert_eq!(site.there(&["approve", open[0]["callId"].as_str().unwrap()]).code, Some(0));
    terminal.read_until("Wrote 2 bytes to g.txt");
    assert_eq!(terminal.exit_code(), Some(0), "an answer from elsewhere ends the prompt");
}

#[test]
fn questions_are_watched_and_calls_followed() {
    let site = Site::new();
    let mut terminal = Terminal::start(site.command(&["approvals", "--watch"]));
    terminal.read_until("waiting for questions");
    let mut followed = site.command(&["log", "--follow", "--json"]);
    let mut followed = followed.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(followed.stdout.take().unwrap()).lines();
    let call = site.waiting("b.txt");
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    let told = next();
    assert_eq!((&told["callId"], &told["status"]), (&json!(call), &json!("pending")), "{told}");
    terminal.read_until("[?] ");
    terminal.type_in("y\n");
    terminal.read_until("Wrote 4 bytes to b.txt");
    let told = next();
    assert_eq!((&told["callId"], &told["status"]), (&json!(call), &json!("success")), "{told}");
    let open = site.waiting("c.txt");
    terminal.read_until("[?] ");
    assert_eq!(site.there(&["reject", &open]).code, Some(0));
    terminal.read_until("answered elsewhere");
    rustix::process::kill_process(terminal.pid(), rustix::process::Signal::INT).unwrap();
    assert_eq!(terminal.exit_code(), Some(0));
    followed.kill().unwrap();
    followed.wait().unwrap();
}

#[test]
fn whoever_may_only_call_is_not_asked() {
    let mut site = Site::new();
    site.key = site.served.key_in("caller", "local", "tools:execute", "shop");
    let mut terminal = Terminal::start(site.command(&["call", "write_file", r#"{"path": "b.txt", "content": "1"}"#]));
    terminal.read_until("waits for an answer");
    assert_eq!(terminal.exit_code(), Some(4));
    let ran = site.there(&["approvals"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("FORBIDDEN"), "{ran:?}");
}

/// Somebody logs in: the address that the program prints is opened, and what the page would send is sent.
fn log_in(site: &Site, person: &Person<'_>, allow: bool) -> Ran {
    let mut command = site.served.haft(&["login", &site.served.url, "--print"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut address = String::new();
    lines.read_line(&mut address).unwrap();
    let (page, query) = address.trim().split_once('?').unwrap();
    assert_eq!(page, format!("{}/oauth/authorize", site.served.url));
    let shown = person.get(&format!("/oauth/authorize?{query}"));
    assert_eq!(shown.status, 200, "{shown:?}");
    let mut body = json!({"tenant": "local", "workspace": "shop", "allow": allow});
    for pair in query.split('&') {
        let (name, value) = pair.split_once('=').unwrap();
        body[name] = json!(decoded(value));
    }
    body["scopes"] = body["scope"].as_str().unwrap().split(' ').collect();
    let answer = person.post("/api/oauth/consents", body);
    assert_eq!(answer.status, 200, "{answer:?}");
    let to = text(&answer.body["to"]);
    let (host, path) = to.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut back = TcpStream::connect(host).unwrap();
    back.write_all(format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()).unwrap();
    back.read_to_string(&mut String::new()).unwrap();
    let mut stdout = String::new();
    lines.read_to_string(&mut stdout).unwrap();
    let ended = child.wait_with_output().unwrap();
    Ran { code: ended.status.code(), signal: None, stdout, stderr: String::from_utf8(ended.stderr).unwrap() }
}

fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, left)) = rest.split_first() {
        rest = left;
        match first {
            b'+' => bytes.push(b' '),
            b'%' => {
                bytes.push(u8::from_str_radix(std::str::from_utf8(&rest[..2]).unwrap(), 16).unwrap());
                rest = &rest[2..];
            }
            plain => bytes.push(*plain),
        }
    }
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_login_is_kept_renewed_and_ended() {
    let site = Site::new();
    let ann = Person::added(&site.served, "ann@example.org", "local", "member");
    let refused = log_in(&site, &ann, false);
    assert!(
        refused.code == Some(1) && refused.stderr.contains("the login was refused: the person said no"),
        "{refused:?}"
    );
    let ran = log_in(&site, &ann, true);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains(&format!("logged in at {} as ", site.served.url)), "{ran:?}");
    assert!(ran.stdout.ends_with("in local\n"), "{ran:?}");
    let host = site.served.url.trim_start_matches("http://").replace(':', "_");
    let file = site.served.data().join(format!("servers/{host}.json"));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let kept = || serde_json::from_str::<Value>(&fs::read_to_string(&file).unwrap()).unwrap();
    let first = kept();

    let run =
        |args: &[&str]| Running::start(site.served.haft(&[args, &["--server", &site.served.url]].concat())).finish();
    let read = ["call", "read_file", "--path", "a.txt"];
    assert!(run(&read).stdout.contains("alpha"));
    assert_eq!(kept(), first);
    let database = rusqlite::Connection::open(site.served.data().join("haft.db")).unwrap();
    database.execute("update oauth_tokens set expires_at = 1 where kind = 'access'", []).unwrap();
    let together: Vec<Running> = (0..4)
        .map(|_| Running::start(site.served.haft(&[&read[..], &["--server", &site.served.url]].concat())))
        .collect();
    for ran in together.into_iter().map(Running::finish) {
        assert!(ran.stdout.contains("alpha"), "{ran:?}");
    }
    let second = kept();
    assert_ne!(second["access_token"], first["access_token"]);
    assert!(run(&read).stdout.contains("alpha"));
    assert_eq!(kept(), second, "the new token is used from then on");

    let key = run(&["log", "--json"]).json();
    assert!(text(&key[0]["caller"]).contains("by haft on the command line"), "{key}");
    assert!(site.there(&["log", "--limit", "1"]).code == Some(0), "a key is used before a login");
    let ran = Running::start(site.served.haft(&["logout", &site.served.url, "--json"])).finish();
    assert_eq!(ran.json()["revoked"], true, "{ran:?}");
    assert!(!file.exists());
    let bearer = format!("Bearer {}", second["access_token"].as_str().unwrap());
    let answer = site.served.request("GET", "/api/me", None, &[("Authorization", &bearer)]);
    assert_eq!(answer.status, 401, "{answer:?}");
    let ran = run(&["log"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("run `haft login "), "{ran:?}");
    let ran = Running::start(site.served.haft(&["logout", &site.served.url])).finish();
    assert!(ran.code == Some(1) && ran.stderr.contains("nobody is logged in at"), "{ran:?}");
}

#[test]
fn a_login_that_was_ended_elsewhere_says_so() {
    let site = Site::new();
    let ann = Person::added(&site.served, "ann@example.org", "local", "member");
    assert_eq!(log_in(&site, &ann, true).code, Some(0));
    let programs = ann.get("/api/me/programs");
    let program = text(&programs.body["items"][0]["id"]);
    assert_eq!(ann.ask("DELETE", &format!("/api/me/programs/{program}"), None).status, 200);
    let ran = Running::start(site.served.haft(&["log", "--server", &site.served.url])).finish();
    assert!(ran.code == Some(1) && ran.stderr.contains("has ended; run `haft login "), "{ran:?}");
}
