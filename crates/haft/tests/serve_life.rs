//! The life of `haft serve`: started in the background, found, opened, watched, ended, killed and started again.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod http_client;

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::Output,
    time::{Duration, Instant},
};

use http_client::{Answer, Gateway, haft, new_folder, until, within};
use serde_json::{Value, json};
use tempfile::TempDir;

const EVERYTHING: &str = "tools:read,tools:execute,tools:write,approvals:decide,events:read";

/// A data folder whose server is started in the background, and ended with the test.
struct Laptop {
    folder: TempDir,
    variables: Vec<(&'static str, String)>,
}

impl Laptop {
    fn new(variables: &[(&'static str, &str)]) -> Self {
        let mut variables: Vec<_> = variables.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        variables.push(("HAFT_SERVE_LISTEN", "127.0.0.1:0".to_owned()));
        Self { folder: new_folder(""), variables }
    }

    fn command(&self, args: &[&str]) -> std::process::Command {
        let mut command = haft(&self.folder, args);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    fn json(&self, args: &[&str]) -> Value {
        let done = self.run(&[args, &["--json"]].concat());
        serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{args:?}: {done:?}"))
    }

    fn data(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join("data").join(name)
    }

    /// What others find it by.
    fn record(&self) -> Option<Value> {
        fs::read(self.data("server.json")).ok().and_then(|record| serde_json::from_slice(&record).ok())
    }

    fn address(&self) -> String {
        self.record().unwrap()["url"].as_str().unwrap().trim_start_matches("http://").to_owned()
    }
}

impl Drop for Laptop {
    fn drop(&mut self) {
        self.run(&["serve", "--stop"]);
    }
}

/// What comes back for some bytes, when the server has closed the connection.
fn raw(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

fn head(address: &str, line: &str, headers: &[&str]) -> String {
    format!(
        "{line} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{}\r\n",
        headers.iter().map(|line| format!("{line}\r\n")).collect::<String>()
    )
}

/// A form as the file of `haft open` posts it.
fn post_form(address: &str, path: &str, form: &str, origin: &str) -> String {
    let length = format!("Content-Length: {}", form.len());
    let headers = [origin, "Content-Type: application/x-www-form-urlencoded", &length];
    raw(address, &format!("{}{form}", head(address, &format!("POST {path}"), &headers)))
}

fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default()
}

/// The value of a field of a form.
fn field(html: &str, name: &str) -> String {
    let (_, rest) = html.split_once(&format!("name=\"{name}\" value=\"")).unwrap();
    rest.split('"').next().unwrap().to_owned()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn id(answer: &Answer) -> String {
    answer.body["tool_call_id"].as_str().unwrap_or_else(|| panic!("{answer:?}")).to_owned()
}

/// A tenant with a workspace, and a key that may do everything there.
fn shop(served: &Gateway) -> String {
    served.admin(&["tenant", "add", "acme"]);
    let folder = served.workspace();
    served.admin(&["workspace", "add", "shop", "--tenant", "acme", "--map", folder.to_str().unwrap()]);
    served.key_in("full", "acme", EVERYTHING, "shop")
}

/// A call that waits for its yes.
fn asked(served: &Gateway, key: &str, path: &str) -> String {
    let body = json!({"input": {"path": path, "content": "x"}, "wait": 0});
    let asked = served.post("/api/tools/write_file/calls", &body, Some(key));
    assert_eq!(asked.status, 202, "{asked:?}");
    id(&asked)
}

fn sleeps() -> Value {
    json!({"input": {"command": "sleep 3"}})
}

#[test]
fn it_is_started_in_the_background_found_again_and_ended() {
    let laptop = Laptop::new(&[]);
    let opened = laptop.json(&["open", "--print"]);
    let link = opened["signIn"].as_str().unwrap();
    let record = laptop.record().unwrap();
    assert_eq!((&opened["url"], &opened["opened"]), (&record["url"], &json!(false)), "{opened}");
    let process = record["process"].as_u64().unwrap();
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let session = stat.rsplit(')').next().unwrap().split_whitespace().nth(3).unwrap().to_owned();
    assert_eq!(session, process.to_string(), "it has a session of its own");
    let again = laptop.json(&["open", "--print", "/approvals/tc_1"]);
    assert_eq!(again["url"], opened["url"], "the one that runs is found");
    assert!(again["signIn"].as_str().unwrap().contains("/sign-in?to=/approvals/tc_1#"), "{again}");
    let body = json!({"link": link}).to_string();
    let headers = ["Content-Type: application/json", &format!("Content-Length: {}", body.len())];
    let signed_in =
        raw(&laptop.address(), &format!("{}{body}", head(&laptop.address(), "POST /api/sign-in", &headers)));
    assert_eq!(status(&signed_in), 200, "{signed_in}");
    let log = fs::read_to_string(laptop.data("server.log")).unwrap();
    assert_eq!(
        (mode(&laptop.data("server.log")), log.contains(link.split('#').nth(1).unwrap())),
        (0o600, false),
        "{log}"
    );
    let stopped = laptop.json(&["serve", "--stop"]);
    assert_eq!((&stopped["stopped"], &stopped["url"]), (&json!(true), &opened["url"]));
    assert_eq!((laptop.record(), laptop.json(&["serve", "--stop"])), (None, json!({"stopped": false})));
    assert!(
        !Path::new(&format!("/proc/{process}/exe")).exists() || fs::read_link(format!("/proc/{process}/exe")).is_err()
    );
}

#[test]
fn a_browser_is_handed_a_file_that_signs_in_without_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let (browser, seen) = (folder.path().join("browser"), folder.path().join("seen"));
    let script = format!(
        "#!/bin/sh\nstat -c %a \"$1\" > {0}.mode; echo \"$@\" > {0}.args; cp \"$1\" {0}.new; mv {0}.new {0}\n",
        seen.display()
    );
    fs::write(&browser, script).unwrap();
    fs::set_permissions(&browser, fs::Permissions::from_mode(0o755)).unwrap();
    let laptop = Laptop::new(&[("BROWSER", browser.to_str().unwrap())]);
    let opening =
        laptop.command(&["open", "/approvals", "--json"]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let html = until(|| fs::read_to_string(&seen).ok());
    let args = fs::read_to_string(seen.with_extension("args")).unwrap();
    let (code, address) = (field(&html, "code"), laptop.address());
    assert!(!args.contains(&code) && args.trim().ends_with(".html"), "{args}");
    assert_eq!(fs::read_to_string(seen.with_extension("mode")).unwrap().trim(), "600");
    assert!(html.contains(&format!("action=\"http://{address}/sign-in\"")), "{html}");
    let form = format!("code={code}&to={}", field(&html, "to"));
    let elsewhere = post_form(&address, "/sign-in", &form, "Origin: http://127.0.0.1:1");
    assert_eq!(status(&elsewhere), 403, "another page cannot: {elsewhere}");
    let posted = post_form(&address, "/sign-in", &form, "Origin: null");
    assert_eq!(status(&posted), 200, "{posted}");
    assert!(posted.contains("data-csrf=") && posted.contains("href=\"/approvals\""), "{posted}");
    assert!(posted.to_lowercase().contains("set-cookie: haft="), "{posted}");
    let again = post_form(&address, "/sign-in", &form, "Origin: null");
    assert_eq!((status(&again), again.contains(&code)), (401, false), "{again}");
    assert_eq!(
        status(&post_form(&address, "/api/sign-out", "", "Origin: null")),
        403,
        "nothing else is for such a file"
    );
    let done = opening.wait_with_output().unwrap();
    let told: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!((done.status.code(), &told["opened"], told.get("signIn")), (Some(0), &json!(true), None), "{done:?}");
    let left = fs::read_dir(laptop.data(""))
        .unwrap()
        .flatten()
        .filter(|file| file.path().extension().is_some_and(|kind| kind == "html"));
    assert_eq!(left.count(), 0, "the file is gone");
}

#[test]
fn without_a_browser_it_says_so_and_no_link_reaches_what_may_be_a_log() {
    let laptop = Laptop::new(&[]);
    let opened = laptop.run(&["open"]);
    let said = String::from_utf8_lossy(&opened.stdout).into_owned();
    assert!(opened.status.success() && said.contains("no browser") && !said.contains('#'), "{opened:?}");
    let printed = laptop.run(&["open", "--print"]);
    assert!(String::from_utf8_lossy(&printed.stdout).contains("/sign-in#"), "{printed:?}");
    let wrong = laptop.run(&["open", "https://evil.example"]);
    assert!(!wrong.status.success(), "{wrong:?}");
}

#[test]
fn one_in_the_background_ends_when_nobody_needs_it() {
    let laptop = Laptop::new(&[("HAFT_SERVE_IDLE", "1s")]);
    let ws = laptop.folder.path().join("ws");
    let asks =
        laptop.command(&["call", "write_file", r#"{"path":"a","content":"a"}"#, "--json"]).current_dir(&ws).output();
    let call: Value = serde_json::from_slice(&asks.unwrap().stdout).unwrap();
    assert_eq!(call["status"], "pending", "{call}");
    laptop.json(&["open", "--print"]);
    let ended = within(Duration::from_secs(3), || laptop.record().is_none().then_some(()));
    assert_eq!(ended, None, "an open question keeps it");
    let no = laptop.command(&["reject", call["tool_call_id"].as_str().unwrap()]).current_dir(&ws).output().unwrap();
    assert!(no.status.success(), "{no:?}");
    until(|| laptop.record().is_none().then_some(()));
    assert_eq!(laptop.json(&["serve", "--stop"]), json!({"stopped": false}));
}

#[test]
fn a_port_that_is_in_use_keeps_nobody_from_opening_the_page() {
    let taken = std::net::TcpListener::bind("127.0.0.1:7373");
    let folder = new_folder("");
    let opened = haft(&folder, &["open", "--print", "--json"]).output().unwrap();
    let stopped = haft(&folder, &["serve", "--stop"]).output().unwrap();
    let told: Value = serde_json::from_slice(&opened.stdout).unwrap_or_else(|_| panic!("{opened:?}"));
    assert!(told["url"].as_str().unwrap().starts_with("http://127.0.0.1:"), "{told}");
    assert!(stopped.status.success());
    drop(taken);
}

#[test]
fn the_demo_is_data_and_is_added_once() {
    let served = Gateway::start_as(&["--demo"], &[]).start_again(&["--demo"], &[]);
    let tenants = served.admin(&["tenant", "list"]);
    let demo =
        |tenants: &Value| tenants["items"].as_array().unwrap().iter().filter(|tenant| tenant["slug"] == "demo").count();
    assert_eq!(demo(&tenants), 1, "{tenants}");
    assert_eq!(served.admin(&["workspace", "list", "--tenant", "demo"])["items"].as_array().unwrap().len(), 1);
    let people = served.admin(&["person", "list", "--tenant", "demo"]);
    assert_eq!(people["items"][0]["role"], "owner", "{people}");
    let key = served.key_in("k", "demo", EVERYTHING, "demo");
    let wanted = [
        (
            "fetchWeather",
            json!({"executionType": "gateway", "visible": true, "execution": {"url": "https://api.weather.com/current", "method": "GET"}}),
        ),
        (
            "fetchExternalData",
            json!({"executionType": "external", "visible": false, "isAsync": false, "timeout": 10000}),
        ),
        (
            "confirmAction",
            json!({"executionType": "space", "visible": true, "isAsync": true, "description": "Ask the user to confirm an action"}),
        ),
        ("displayChart", json!({"executionType": "internal", "visible": true})),
    ];
    for (slug, fields) in wanted {
        let tool = served.get(&format!("/api/tools/{slug}"), Some(&key)).body;
        for (name, value) in fields.as_object().unwrap() {
            assert_eq!(&tool[name], value, "{slug}: {tool}");
        }
        assert_eq!(tool["version"], 1, "{slug} was saved once");
    }
    let chart = json!({"title": "Calls", "rows": [{"week": 1}]});
    let shown = served.post("/api/tools/displayChart/calls", &json!({"input": chart}), Some(&key));
    assert_eq!(shown.body["result"]["structured"], json!({"success": true, "args": chart}), "{shown:?}");
    let readme = served.post("/api/tools/read_file/calls", &json!({"input": {"path": "README.md"}}), Some(&key));
    assert_eq!(readme.body["status"], "success", "{readme:?}");
}

#[test]
fn nothing_is_lost_when_it_is_killed() {
    let mut served = Gateway::start();
    let key = shop(&served);
    let tool = json!({"slug": "outside", "description": "Waits.", "inputSchema": {"type": "object"}, "executionType": "external", "isAsync": true});
    assert_eq!(served.post("/api/tools", &tool, Some(&key)).status, 201);
    let (waits, waits_outside) = (asked(&served, &key, "after.txt"), {
        let waiting = served.post("/api/tools/outside/calls", &json!({"input": {}}), Some(&key));
        assert_eq!(waiting.status, 202, "{waiting:?}");
        id(&waiting)
    });
    let address = served.url.trim_start_matches("http://").to_owned();
    let bearer = format!("Authorization: Bearer {key}");
    let mut stream = TcpStream::connect(&address).unwrap();
    stream.write_all(head(&address, "GET /api/events", &[&bearer]).as_bytes()).unwrap();
    let mut long = TcpStream::connect(&address).unwrap();
    let body = json!({"input": {"command": "sleep 600"}}).to_string();
    let headers = [bearer.as_str(), "Content-Type: application/json", &format!("Content-Length: {}", body.len())];
    long.write_all(format!("{}{body}", head(&address, "POST /api/tools/shell_exec/calls", &headers)).as_bytes())
        .unwrap();
    let under_way = until(|| {
        let calls = served.get("/api/calls?tool=shell_exec", Some(&key)).body;
        calls["items"][0]["callId"].as_str().map(str::to_owned)
    });
    served.kill();
    let mut told = String::new();
    stream.read_to_string(&mut told).ok();
    let served = served.start_again(&[], &[]);
    let interrupted = until(|| {
        let call = served.get(&format!("/api/calls/{under_way}"), Some(&key)).body;
        (call["state"] == "ended").then(|| call["outcome"]["error"]["code"].clone())
    });
    assert_eq!(interrupted, "INTERRUPTED");
    for call in [&waits, &waits_outside] {
        assert_eq!(served.get(&format!("/api/calls/{call}"), Some(&key)).body["status"], "pending");
    }
    let yes = served.post(&format!("/api/approvals/{waits}/approve"), &json!({}), Some(&key));
    assert_eq!((yes.status, &yes.body["outcome"]["status"]), (200, &json!("success")), "{yes:?}");
    assert!(served.workspace().join("after.txt").exists());
    let given = json!({"callId": waits_outside, "result": {"done": true}});
    let given = served.post("/api/tool-results", &given, Some(&key));
    assert_eq!((given.status, &given.body["status"]), (200, &json!("resolved")), "{given:?}");
}

#[test]
fn asked_to_end_it_takes_nothing_new_and_lets_what_is_under_way_end() {
    let mut served = Gateway::start();
    let key = shop(&served);
    let waits = asked(&served, &key, "later.txt");
    let address = served.url.trim_start_matches("http://").to_owned();
    let bearer = format!("Authorization: Bearer {key}");
    let mut stream = TcpStream::connect(&address).unwrap();
    stream.write_all(head(&address, "GET /api/events", &[&bearer]).as_bytes()).unwrap();
    let asked = json!({"input": {"path": "held.txt", "content": "x"}});
    let (ended, under_way, held) = std::thread::scope(|scope| {
        let under_way = scope.spawn(|| served.post("/api/tools/shell_exec/calls", &sleeps(), Some(&key)));
        let held = scope.spawn(|| served.post("/api/tools/write_file/calls", &asked, Some(&key)));
        until(|| {
            let count = served.get("/api/calls?state=open", Some(&key)).body["items"].as_array().unwrap().len();
            let open = served.get("/api/approvals", Some(&key)).body["items"].as_array().unwrap().len();
            (count >= 3 && open == 2).then_some(())
        });
        served.terminate();
        until(|| (served.get("/readyz", None).status == 503).then_some(()));
        assert_eq!(served.get("/healthz", None).status, 200, "it lives until it has ended");
        let refused = served.get("/api/me", Some(&key));
        assert_eq!((refused.status, &refused.body["error"]["code"]), (503, &json!("UNAVAILABLE")), "{refused:?}");
        assert!(refused.header("retry-after").is_some());
        let mut told = String::new();
        stream.read_to_string(&mut told).unwrap();
        (told, under_way.join().unwrap(), held.join().unwrap())
    });
    assert!(ended.contains("\n: this server ends\n"), "{ended}");
    assert_eq!((under_way.status, &under_way.body["status"]), (200, &json!("success")), "{under_way:?}");
    assert_eq!((held.status, &held.body["status"]), (202, &json!("pending")), "{held:?}");
    let (code, lines) = served.ended();
    assert_eq!((code, lines), (Some(0), vec![json!({"event": "ending", "why": "signal"}).to_string()]));
    let served = served.start_again(&[], &[]);
    for call in [waits, id(&held)] {
        let yes = served.post(&format!("/api/approvals/{call}/approve"), &json!({}), Some(&key));
        assert_eq!((yes.status, &yes.body["outcome"]["status"]), (200, &json!("success")), "{yes:?}");
    }
}

#[test]
fn a_question_expires_by_itself() {
    let served = Gateway::start();
    let key = shop(&served);
    let tool = json!({"slug": "soon", "description": "Waits.", "inputSchema": {"type": "object"}, "executionType": "external", "isAsync": true, "expiresAfter": 300});
    assert_eq!(served.post("/api/tools", &tool, Some(&key)).status, 201);
    let call = id(&served.post("/api/tools/soon/calls", &json!({"input": {}}), Some(&key)));
    let ended = until(|| {
        let call = served.get(&format!("/api/calls/{call}"), Some(&key)).body;
        (call["state"] == "ended").then_some(call)
    });
    assert_eq!(
        (&ended["status"], &ended["outcome"]["error"]["code"]),
        (&json!("cancelled"), &json!("EXPIRED")),
        "{ended}"
    );
}

#[test]
fn what_is_old_is_removed_by_itself() {
    let served = Gateway::start();
    let key = shop(&served);
    let done = id(&served.post("/api/tools/glob/calls", &json!({"input": {"pattern": "*"}}), Some(&key)));
    let waits = asked(&served, &key, "kept.txt");
    let all_past = ["JOURNAL", "OUTPUTS", "CHANGES", "UNASKED"].map(|what| format!("HAFT_RETENTION_{what}"));
    let all_past: Vec<(&str, &str)> = all_past.iter().map(|name| (name.as_str(), "0s")).collect();
    let served = served.start_again(&[], &all_past);
    until(|| (served.get(&format!("/api/calls/{done}"), Some(&key)).status == 404).then_some(()));
    let yes = served.post(&format!("/api/approvals/{waits}/approve"), &json!({}), Some(&key));
    assert_eq!((yes.status, &yes.body["answered"]), (200, &json!(true)), "what waits stays, with its changes: {yes:?}");
    assert!(served.workspace().join("kept.txt").exists());
}

#[test]
fn each_request_is_one_line_of_the_log_and_no_secret_is() {
    let mut served = Gateway::start_as(&["--log-format", "json"], &[("HAFT_LOG", "info")]);
    let key = shop(&served);
    let local = served.key("local", "local", EVERYTHING);
    let canary = "canary-secret-value";
    let link = served.first["signIn"].as_str().unwrap().to_owned();
    let signed_in = served.post("/api/sign-in", &json!({"link": link}), None);
    let cookie = signed_in.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let csrf = signed_in.body["csrf"].as_str().unwrap().to_owned();
    served.request("GET", &format!("/api/me?token={canary}"), None, &[("Cookie", &cookie), ("X-CSRF-Token", &csrf)]);
    served.request("GET", &format!("/api/calls/{canary}"), None, &[("Authorization", &format!("Bearer {canary}"))]);
    served.request("GET", &format!("/{canary}/x?{canary}"), None, &[("X-Request-Id", &format!("{canary} {canary}"))]);
    served.post("/api/sign-in", &json!({"email": "a@example.org", "password": canary}), None);
    served.post(&format!("/api/tools/{canary}/calls"), &json!({"input": {"q": canary}}), Some(&key));
    served.post(
        "/api/tools/write_file/calls",
        &json!({"input": {"path": canary, "content": canary}, "wait": 0}),
        Some(&key),
    );
    let own = served.request(
        "GET",
        "/api/me",
        None,
        &[("Authorization", &format!("Bearer {local}")), ("X-Request-Id", "mine-1")],
    );
    assert_eq!(own.header("x-request-id"), Some("mine-1"), "{own:?}");
    served.terminate();
    assert_eq!(served.ended().0, Some(0));
    let log = served.log();
    let code = link.split('#').nth(1).unwrap();
    let cookie = cookie.split('=').nth(1).unwrap();
    for secret in [canary, code, cookie, &csrf, key.split('_').nth(2).unwrap(), local.split('_').nth(2).unwrap()] {
        assert!(!log.contains(secret), "{secret} is in the log:\n{log}");
    }
    let lines: Vec<Value> =
        log.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect();
    let requests: Vec<&Value> = lines.iter().filter(|line| line["message"] == "request").collect();
    assert_eq!(requests.len(), 8, "{log}");
    let mine = requests.iter().find(|line| line["request"] == "mine-1").unwrap();
    assert_eq!(
        (&mine["level"], &mine["method"], &mine["route"], &mine["status"]),
        (&json!("INFO"), &json!("GET"), &json!("/api/me"), &json!(200)),
        "{mine}"
    );
    assert!(mine["caller"].as_str().unwrap().starts_with("key:") && mine["ms"].is_u64(), "{mine}");
    let routes: Vec<&str> = requests.iter().map(|line| line["route"].as_str().unwrap()).collect();
    assert!(routes.contains(&"/api/calls/{id}") && routes.contains(&"none"), "{routes:?}");
}

#[test]
fn metrics_are_for_this_machine_and_name_nobody() {
    let served = Gateway::start();
    let key = shop(&served);
    let local = served.key("local", "local", "tools:read");
    let tool = json!({"slug": "secretly_named", "description": "Gives back.", "inputSchema": {"type": "object"}, "executionType": "internal"});
    assert_eq!(served.post("/api/tools", &tool, Some(&key)).status, 201);
    served.post("/api/tools/secretly_named/calls", &json!({"input": {}}), Some(&key));
    served.post("/api/tools/glob/calls", &json!({"input": {"pattern": "*"}}), Some(&key));
    served.post("/api/tools/read_file/calls", &json!({"input": {"path": "none"}}), Some(&key));
    asked(&served, &key, "a.txt");
    let address = served.url.trim_start_matches("http://").to_owned();
    let mut stream = TcpStream::connect(&address).unwrap();
    stream.write_all(head(&address, "GET /api/events", &[&format!("Authorization: Bearer {key}")]).as_bytes()).unwrap();
    let metrics = |headers: &[&str]| raw(&address, &head(&address, "GET /metrics", headers));
    let text = until(|| Some(metrics(&[])).filter(|text| text.contains("\nhaft_open_streams 1\n")));
    assert!(status(&text) == 200 && text.contains("content-type: text/plain; version=0.0.4"), "{text}");
    for line in [
        "haft_calls_total{tool=\"authored\",status=\"success\"} 1",
        "haft_calls_total{tool=\"glob\",status=\"success\"} 1",
        "haft_calls_total{tool=\"read_file\",status=\"error\"} 1",
        "haft_call_duration_seconds_count 3",
        "haft_open_questions 1",
        "haft_waiting_calls 1",
        "haft_http_requests_total{route=\"/api/tools/{slug}/calls\",method=\"POST\",status=\"202\"} 1",
        "# TYPE haft_database_commit_seconds histogram",
        "# TYPE process_open_fds gauge",
        "haft_build_info{version=",
    ] {
        assert!(text.contains(&format!("\n{line}")), "{line} is missing:\n{text}");
    }
    for name in ["secretly_named", "acme", "shop", key.split('_').nth(1).unwrap()] {
        assert!(!text.contains(name), "{name}:\n{text}");
    }
    let by_proxy = "X-Forwarded-For: 203.0.113.9";
    assert_eq!(status(&metrics(&[by_proxy])), 403, "whoever comes by a proxy is not on this machine");
    assert_eq!(status(&metrics(&[by_proxy, &format!("Authorization: Bearer {key}")])), 403);
    assert_eq!(status(&metrics(&[by_proxy, &format!("Authorization: Bearer {local}")])), 200);
}

#[test]
fn a_hundred_thousand_open_questions_cost_nothing() {
    let mut served = Gateway::start();
    let key = shop(&served);
    asked(&served, &key, "a.txt");
    served.kill();
    multiply_questions(&served.data(), 100_000);
    let served = served.start_again(&[], &[]);
    let text = served.text("/metrics");
    assert!(text.contains("\nhaft_open_questions 10000\n"), "{text}");
    // What is done once at the start is over when nothing has been used for a while.
    let mut before = cpu_time(served.process());
    until(|| {
        let (began, now) = (Instant::now(), cpu_time(served.process()));
        within(Duration::from_millis(500), || (began.elapsed() > Duration::from_millis(500)).then_some(()));
        let is_quiet = now - before < Duration::from_millis(10);
        before = now;
        is_quiet.then_some(())
    });
    let (began, before) = (Instant::now(), cpu_time(served.process()));
    within(Duration::from_secs(4), || None::<()>);
    let used = cpu_time(served.process()) - before;
    assert!(used < began.elapsed() / 100, "{used:?} of processor time in {:?}", began.elapsed());
    let first = served.get("/api/approvals?limit=1", Some(&key));
    assert_eq!(first.body["items"].as_array().unwrap().len(), 1);
}

/// Makes many of the one open question that there is.
fn multiply_questions(data: &Path, count: u32) {
    let database = rusqlite::Connection::open(data.join("haft.db")).unwrap();
    let columns = |table: &str| -> Vec<String> {
        let mut names = database.prepare(&format!("select name from pragma_table_info('{table}')")).unwrap();
        let names = names.query_map([], |row| row.get(0)).unwrap();
        names.map(Result::unwrap).collect()
    };
    for (table, key) in [("open_calls", "id"), ("questions", "call")] {
        let all = columns(table).join(", ");
        let with_new_id = all.replace(&format!("tenant, {key}"), "tenant, printf('tc_%012x%020x', 1, n)");
        let fill = format!(
            "with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < {count}) \
             insert into {table} ({all}) select {with_new_id} from (select * from {table} limit 1), numbers"
        );
        assert_eq!(database.execute(&fill, []).unwrap(), count as usize);
    }
}

/// How much of the processor a process has used.
fn cpu_time(process: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let mut fields = stat.rsplit(')').next().unwrap().split_whitespace().skip(11);
    let mut ticks = || fields.next().unwrap().parse::<u64>().unwrap();
    Duration::from_millis((ticks() + ticks()) * 10)
}
