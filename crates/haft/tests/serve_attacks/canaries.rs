//! Secrets that must never be seen again: each is looked for in everything that the server says and keeps.

use std::{
    io::{Read, Write},
    net::TcpListener,
    path::Path,
    thread,
};

use serde_json::json;

use crate::{
    http_client::{Gateway, event_stream::EventReader, person::Person, with_stdin},
    talk::{Reply, Talk},
    tenant, text, tool,
};

const MASTER: &str = "canary-master-key-0123456789abcdef-xyz";
const OF_TENANT: &str = "canary-secret-of-a-tenant";
const OF_OPERATOR: &str = "canary-secret-of-the-operator";
const PASSWORD: &str = "canary correct horse";

/// Answers each request with everything that it was sent.
fn echoing() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut bytes = vec![0; 1 << 16];
            let length = stream.read(&mut bytes).unwrap_or(0);
            let sent = String::from_utf8_lossy(&bytes[..length]).into_owned();
            let status = if sent.contains("fail") { "500 No" } else { "200 OK" };
            let answer =
                format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{sent}", sent.len());
            stream.write_all(answer.as_bytes()).ok();
        }
    });
    port
}

/// Everything that was heard, with what it was an answer to.
#[derive(Default)]
struct Heard(Vec<(String, String)>);

impl Heard {
    fn note(&mut self, what: &str, reply: &Reply) {
        self.0.push((what.to_owned(), format!("{}{}", reply.head, reply.text)));
    }

    fn assert_without(&self, canaries: &[(&str, &str)]) {
        for (what, said) in &self.0 {
            for (name, canary) in canaries {
                if let Some(place) = said.find(canary) {
                    let from = said[..place].char_indices().rev().nth(200).map_or(0, |(index, _)| index);
                    panic!("{name} is in {what}: …{}…", &said[from..place]);
                }
            }
        }
        assert!(self.0.len() > 40, "{}", self.0.len());
    }
}

/// The text of every file that a folder has.
fn files(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if let Ok(bytes) = std::fs::read(&path) {
            found.push((path.display().to_string(), String::from_utf8_lossy(&bytes).into_owned()));
        }
    }
}

/// Has each secret used, in the right way and in wrong ones.
fn use_secrets(served: &Gateway, (key, person): (&str, &Person<'_>), port: u16, heard: &mut Heard) {
    let mut talk = Talk::by_key(served, key);
    for (slug, url) in [
        ("asks", format!("http://127.0.0.1:{port}/{{{{secret:TOKEN}}}}")),
        ("fails", format!("http://127.0.0.1:{port}/fail")),
    ] {
        let mut written = tool(slug, "gateway");
        written["execution"] = json!({"url": url, "method": "POST", "headers": {"X-Token": "{{secret:TOKEN}}"}});
        heard.note(slug, &talk.post("/api/tools", &written));
        let called = talk.post(&format!("/api/tools/{slug}/calls"), &json!({"input": {"a": 1}}));
        let outcome = called.json();
        heard.note(slug, &called);
        let id = text(&outcome["tool_call_id"]);
        for path in [
            format!("/api/calls/{id}"),
            format!("/api/calls/{id}/output"),
            format!("/api/tools/{slug}"),
            format!("/api/tools/{slug}/versions"),
        ] {
            heard.note(&path, &talk.get(&path));
        }
    }
    let mut signed_in = Talk::with(served, &[("Cookie", &person.cookie), ("X-CSRF-Token", &person.csrf)]);
    for path in [
        "/api/secrets",
        "/api/keys",
        "/api/me",
        "/api/me/sign-ins",
        "/api/people",
        "/api/settings",
        "/",
        "/metrics",
        "/openapi.json",
    ] {
        heard.note(path, &signed_in.get(path));
    }
    heard.note(
        "another password",
        &signed_in.post("/api/me/password", &json!({"password": format!("{PASSWORD} 2"), "oldPassword": "wrong"})),
    );
    let wrong = json!({"email": "ann@acme.example", "password": PASSWORD, "tenant": "bolt"});
    let mut stranger = Talk::with(served, &[]);
    heard.note("a wrong sign-in", &stranger.post("/api/sign-in", &wrong));
    heard.note(
        "an unreadable sign-in",
        &stranger.ask("POST", "/api/sign-in", Some(format!("{{\"password\": \"{PASSWORD}\"").as_bytes())),
    );
    heard.note("a wrong field", &stranger.post("/api/sign-in", &json!({"email": 1, "password": PASSWORD})));
    let other = served.get("/api/tools", None);
    assert_eq!(other.status, 401);
    heard.note("a key in the path", &stranger.get(&format!("/api/{key}?key={key}")));
    heard.note("a key that is cut off", &Talk::by_key(served, &key[..key.len() - 1]).get("/api/me"));
}

/// What the operator is told, and what lies in the server's files.
fn look_around(served: &Gateway, heard: &mut Heard) {
    let doctor = served.haft(&["doctor", "--json"]).output().unwrap();
    heard.0.push((
        "haft doctor".to_owned(),
        String::from_utf8_lossy(&[doctor.stdout, doctor.stderr].concat()).into_owned(),
    ));
    heard.0.push(("the log".to_owned(), served.log()));
    let operators = ["secrets", "secret"];
    let mut kept = Vec::new();
    files(&served.data(), &mut kept);
    assert!(kept.iter().any(|(path, _)| path.ends_with("haft.db")), "the database was looked at");
    // The operator's own secrets lie in files that only the operator reads.
    heard
        .0
        .extend(kept.into_iter().filter(|(path, _)| !operators.iter().any(|name| path.contains(&format!("/{name}")))));
}

#[test]
fn no_secret_is_seen_again() {
    let port = echoing();
    let settings = format!("[web]\nallow = [\"127.0.0.1:{port}\"]\n");
    let variables = [("HAFT_LOG", "trace"), ("HAFT_SECRET_KEY", MASTER)];
    let served = Gateway::start_among(&settings, &variables);
    let key = tenant(&served, "acme");
    with_stdin(served.haft(&["secret", "set", "TOKEN", "--tenant", "acme", "--hosts", "127.0.0.1"]), OF_TENANT);
    with_stdin(served.haft(&["secret", "set", "OPERATOR"]), OF_OPERATOR);
    let person = Person::added(&served, "ann@acme.example", "acme", "owner");
    assert_eq!(person.post("/api/me/password", json!({"password": PASSWORD})).status, 200);
    let mut heard = Heard::default();
    let mut events = EventReader::by_key(&served, "/api/events?maxAge=3", &key);
    use_secrets(&served, (&key, &person), port, &mut heard);
    let mut waits = tool("waits", "external");
    waits["isAsync"] = json!(true);
    let mut talk = Talk::by_key(&served, &key);
    talk.post("/api/tools", &waits);
    let call = text(&talk.post("/api/tools/waits/calls", &json!({"input": {}})).json()["tool_call_id"]);
    let mut token = None;
    while let Some(mut frame) = events.next() {
        // Whoever may give the result is told its token, here and nowhere else.
        if let Some(told) = frame.data.as_object_mut().and_then(|data| data.remove("submitToken")) {
            token = Some(text(&told));
        }
        heard.0.push(("an event".to_owned(), format!("{frame:?}")));
    }
    let token = token.expect("the token is told to whoever may use it");
    heard.note("the call", &talk.get(&format!("/api/calls/{call}")));
    heard.note("with the token", &Talk::by_key(&served, &token).get("/api/me"));
    heard.note(
        "a result",
        &Talk::by_key(&served, &token).post("/api/tool-results", &json!({"callId": call, "result": "x"})),
    );
    look_around(&served, &mut heard);
    let (cookie, secret) = (person.cookie.split_once('=').unwrap().1, key.rsplit('_').next().unwrap());
    let canaries = [
        ("the master key", MASTER),
        ("the tenant's secret", OF_TENANT),
        ("the operator's secret", OF_OPERATOR),
        ("the password", PASSWORD),
        ("the key", secret),
        ("the cookie", cookie),
        ("the csrf token", person.csrf.as_str()),
        ("the submit token", token.rsplit('_').next().unwrap()),
    ];
    heard.assert_without(&canaries);
}
