//! People hear of questions by mail and webhook: who does, what it says, and what a bad server does to it.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that cannot go on fails, and starts the program itself"
)]

mod http_client;

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, channel},
    },
    time::{Duration, Instant},
};

use http_client::{
    Answer, Gateway,
    mail_server::{MailServer, links},
    person::Person,
    until, with_stdin, within,
};
use serde_json::{Value, json};

const SCOPES: &str = "tools:read,tools:execute,tools:write,approvals:decide,events:read";
const QUICK: &str = "[notify]\ngrace = \"50ms\"\nevery = \"200ms\"\nretry = \"50ms\"\n";

fn mail(port: u16) -> String {
    format!(
        "{QUICK}[mail]\nhost = \"127.0.0.1\"\nport = {port}\ntls = \"none\"\nfrom = \"haft <haft@acme.example>\"\ntimeout = \"1s\"\n"
    )
}

/// A tenant with a tool that asks, and somebody who asks.
struct Office {
    served: Gateway,
    key: String,
}

impl Office {
    fn with(settings: &str) -> Self {
        Self::on(Gateway::start_with(settings), "Acme", "builder")
    }

    fn on(served: Gateway, tenant: &str, key: &str) -> Self {
        served.admin(&["tenant", "add", "acme", "--name", tenant]);
        let key = served.key(key, "acme", SCOPES);
        for (slug, effect) in [("deploy", "write"), ("erase", "destructive")] {
            let tool = json!({"slug": slug, "description": "For tests.", "inputSchema": {"type": "object"},
                "executionType": "internal", "effect": effect, "permissionPolicy": "always_ask"});
            assert_eq!(served.post("/api/tools", &tool, Some(&key)).status, 201);
        }
        Self { served, key }
    }

    fn person(&self, name: &str, role: &str) -> Person<'_> {
        Person::added(&self.served, &format!("{name}@acme.example"), "acme", role)
    }

    fn ask(&self, input: &Value) -> String {
        let asked = self.served.post("/api/tools/deploy/calls", &json!({"input": input, "wait": 0}), Some(&self.key));
        assert_eq!(asked.status, 202, "{asked:?}");
        asked.body["tool_call_id"].as_str().unwrap().to_owned()
    }

    fn status(&self, call: &str) -> Value {
        self.served.get(&format!("/api/calls/{call}"), Some(&self.key)).body["status"].clone()
    }
}

fn header<'a>(mail: &'a Value, name: &str) -> Vec<&'a str> {
    let headers = mail["headers"].as_array().unwrap().iter();
    headers.filter(|pair| pair[0] == name).map(|pair| pair[1].as_str().unwrap()).collect()
}

#[test]
fn those_who_may_answer_are_told_and_nothing_secret_is() {
    let server = MailServer::secure();
    let settings =
        mail(server.port).replace("\"none\"", "\"starttls\"") + "user = \"haft\"\npassword = \"secret:MAIL\"\n";
    let variables = [("SSL_CERT_FILE", server.authority()), ("MAIL", "correct horse".to_owned())];
    let variables: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let served = Gateway::start_among(&settings, &variables);
    let office = Office::on(served, "Ac\u{202e}me\r\nBcc: spy@evil.example", "buil\u{202e}der\u{200b}");
    let (ann, bob, _vic) =
        (office.person("ann", "admin"), office.person("bob", "member"), office.person("vic", "viewer"));
    let off = bob.ask("PUT", "/api/me/notices", Some(json!({"mail": "off"})));
    assert_eq!((off.status, &off.body["mail"], &off.body["address"]), (200, &json!("off"), &json!("bob@acme.example")));
    let call = office.ask(&json!({"password": "hunter22", "content": "the text of a file"}));
    let told = server.next();
    assert_eq!(
        (&told["to"], &told["tls"], &told["login"]),
        (&json!(["ann@acme.example"]), &json!(true), &json!("haft"))
    );
    assert_eq!(told["from"], "haft@acme.example");
    assert!(told["subject"].as_str().unwrap().contains("deploy needs your answer"), "{told}");
    assert!(header(&told, "Bcc").is_empty() && header(&told, "Auto-Submitted") == ["auto-generated"], "{told}");
    assert!(told["id"].as_str().unwrap().starts_with(&format!("<{call}.1.")), "{told}");
    let raw = told.to_string();
    for hidden in ["hunter22", "the text of a file", "\u{202e}", "\u{200b}"] {
        assert!(!raw.contains(hidden), "{hidden:?}: {raw}");
    }
    for part in [&told["text"], &told["html"]] {
        let part = part.as_str().unwrap();
        assert!(part.contains("deploy") && part.contains("buil\\u{202e}der") && part.contains("/a/"), "{part}");
    }
    // Whoever chooses no longer to hear does not, and the viewer could not answer.
    ann.ask("PUT", "/api/me/notices", Some(json!({"mail": "mine"})));
    let carl = office.person("carl", "owner");
    office.ask(&json!({}));
    assert_eq!(server.next()["to"], json!(["carl@acme.example"]));
    let state = carl.get("/api/notices").body;
    assert!(
        state["channels"]["mail"]["available"] == true && state["channels"]["mail"]["sentAt"].is_string(),
        "{state}"
    );
    let tried = carl.post("/api/notices/test", json!({}));
    assert_eq!((tried.status, &tried.body["to"]), (200, &json!("carl@acme.example")), "{tried:?}");
    assert!(server.next()["subject"].as_str().unwrap().contains("mail from haft arrives"));
    assert_eq!(office.served.get("/api/me/notices", Some(&office.key)).status, 400, "keys get no mail");
    assert!(!office.served.log().contains("correct horse"));
}

#[test]
fn what_is_answered_soon_is_told_to_nobody_and_many_go_together() {
    let server = MailServer::plain();
    let settings = mail(server.port).replace("\"50ms\"\nevery = \"200ms\"", "\"2s\"\nevery = \"2s\"");
    let office = Office::with(&settings);
    let ann = office.person("ann", "admin");
    let soon = office.ask(&json!({}));
    assert_eq!(ann.post(&format!("/api/approvals/{soon}/approve"), json!({})).status, 200);
    let many: Vec<String> = (0..25).map(|n| office.ask(&json!({"n": n}))).collect();
    let (mut mails, mut told, mut left_out) = (0, Vec::new(), 0);
    while told.len() + left_out < many.len() {
        let mail = server.next();
        mails += 1;
        told.extend(links(&mail));
        let more = mail["text"].as_str().unwrap().split_once(" more questions wait");
        left_out += more.map_or(0, |(before, _)| before.rsplit('\n').next().unwrap().parse::<usize>().unwrap());
    }
    assert!(mails <= 3 && told.len() + left_out == many.len(), "{mails} mails with {} and {left_out}", told.len());
    for link in &told {
        assert!(office.served.text(link).contains("deploy needs a yes or a no"));
    }
}

/// How a mail server behaves.
#[derive(Clone, Copy, Debug)]
enum Manner {
    Hang,
    TalkForEver,
    OneLongLine,
    Refuse,
}

/// A mail server that nobody would want.
fn bad_server(manner: &Arc<Mutex<Manner>>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, manner) = (listener.local_addr().unwrap().port(), Arc::clone(manner));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let manner = *manner.lock().unwrap();
            std::thread::spawn(move || match manner {
                Manner::Hang => drop(stream.read(&mut [0; 1])),
                Manner::Refuse => drop(stream.write_all(b"421 4.3.2 not today\r\n")),
                Manner::TalkForEver => while stream.write_all(b"220-and another thing\r\n").is_ok() {},
                Manner::OneLongLine => while stream.write_all(&[b'x'; 4096]).is_ok() {},
            });
        }
    });
    port
}

#[test]
fn a_bad_mail_server_delays_no_call_and_is_given_up() {
    let manner = Arc::new(Mutex::new(Manner::Hang));
    let settings = mail(bad_server(&manner)).replace("retry = \"50ms\"", "retry = \"5ms\"");
    let served = Gateway::start_among(&settings, &[("HAFT_LOG", "warn")]);
    let office = Office::on(served, "Acme", "builder");
    let ann = office.person("ann", "admin");
    let mail_of = || ann.get("/api/notices").body["channels"]["mail"].clone();
    let mut given_up = 0;
    for (bad, why) in [
        (Manner::Hang, "did not answer within 1 s"),
        (Manner::TalkForEver, ""),
        (Manner::OneLongLine, ""),
        (Manner::Refuse, "not today"),
    ] {
        *manner.lock().unwrap() = bad;
        office.ask(&json!({}));
        let failed = within(Duration::from_secs(40), || {
            let (state, began) = (mail_of(), Instant::now());
            let search = json!({"input": {"query": "x"}});
            let read = office.served.post("/api/tools/find_tools/calls", &search, Some(&office.key));
            assert!(read.status == 200 && began.elapsed() < Duration::from_secs(5), "{read:?}");
            (state["givenUp"].as_i64().unwrap() > given_up).then_some(state)
        });
        let failed = failed.unwrap_or_else(|| panic!("{bad:?}: {} {}", mail_of(), office.served.log()));
        given_up = failed["givenUp"].as_i64().unwrap();
        assert!(failed["failure"].as_str().unwrap().contains(why), "{bad:?}: {failed}");
        assert_eq!(failed["waiting"], 0, "{failed}");
    }
    let tried = ann.post("/api/notices/test", json!({}));
    assert!(tried.status == 503 && tried.body["error"]["message"].as_str().unwrap().contains("not today"), "{tried:?}");
    let log = office.served.log();
    assert!(log.contains("a notice did not go out") && log.contains("given_up=true"), "{log}");
    let memory = std::fs::read_to_string(format!("/proc/{}/status", office.served.process())).unwrap();
    let peak = memory.lines().find(|line| line.starts_with("VmHWM")).unwrap().to_owned();
    let kilobytes: u64 = peak.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(kilobytes < 400_000, "it kept what the server said: {peak}");
}

#[test]
fn one_persons_bad_address_keeps_nobody_else_from_hearing() {
    let server = MailServer::plain();
    let office = Office::with(&mail(server.port));
    let _refused = office.person("refused", "admin");
    let _later = office.person("later", "admin");
    let zoe = office.person("zoe", "admin");
    office.ask(&json!({}));
    let mut told = [server.next()["to"][0].clone(), server.next()["to"][0].clone()];
    told.sort_by_key(ToString::to_string);
    assert_eq!(told, ["later@acme.example", "zoe@acme.example"]);
    let state = zoe.get("/api/notices").body["channels"]["mail"].clone();
    assert!(state["givenUp"] == 1 && state["failedAt"].is_string(), "{state}");
    assert_eq!(server.next_within(Duration::from_millis(500)), None, "nobody hears twice");
}

#[test]
fn a_mail_that_may_have_gone_is_known_by_its_id_when_it_comes_again() {
    let server = MailServer::plain();
    let office = Office::with(&mail(server.port));
    office.person("slow", "admin");
    office.ask(&json!({}));
    // The server has it and does not say so. Something else opens meanwhile.
    let first = server.next();
    office.ask(&json!({}));
    // What was sent together is sent together again; what is new goes by itself.
    let again = server.next();
    assert_eq!((&first["id"], links(&first)), (&again["id"], links(&again)));
    let other = server.next();
    assert!(other["id"] != first["id"] && links(&other).len() == 1 && links(&other) != links(&first), "{other}");
}

/// What a webhook was sent.
struct Hook {
    port: u16,
    requests: Receiver<(String, Value)>,
}

impl Hook {
    fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, (tell, requests)) = (listener.local_addr().unwrap().port(), channel());
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                tell.send(Self::read(stream)).ok();
            }
        });
        Self { port, requests }
    }

    fn read(mut stream: TcpStream) -> (String, Value) {
        let (mut lines, mut head) = (BufReader::new(stream.try_clone().unwrap()), String::new());
        while !head.ends_with("\r\n\r\n") && lines.read_line(&mut head).unwrap() > 0 {}
        let length = head.to_lowercase();
        let length = length.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap().parse().unwrap();
        let mut body = vec![0; length];
        lines.read_exact(&mut body).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").unwrap();
        (head, serde_json::from_slice(&body).unwrap_or_else(|_| json!(String::from_utf8_lossy(&body))))
    }

    fn next(&self) -> (String, Value) {
        self.requests.recv_timeout(Duration::from_secs(40)).unwrap()
    }
}

#[test]
fn a_webhook_is_told_what_slack_reads_and_private_addresses_are_refused() {
    let (hook, office) = (Hook::open(), Office::with(QUICK));
    let ann = office.person("ann", "admin");
    for (name, value) in [("HOOK", "T1/B2/s3cr3tpath"), ("SIGN", "signing-secret-1")] {
        with_stdin(office.served.haft(&["secret", "set", name, "--tenant", "acme", "--hosts", "127.0.0.1"]), value);
    }
    let url = format!("http://127.0.0.1:{}/services/{{{{secret:HOOK}}}}", hook.port);
    let put = |body: Value| -> Answer { ann.ask("PUT", "/api/notices", Some(body)) };
    for wrong in ["ftp://x", "http://{{secret:HOOK}}/x", "nonsense"] {
        assert_eq!(put(json!({"webhook": {"url": wrong}})).status, 400, "{wrong}");
    }
    let set = put(json!({"webhook": {"url": url, "secret": "SIGN"}}));
    assert_eq!(set.status, 200, "{set:?}");
    office.ask(&json!({}));
    let failed = until(|| {
        let state = ann.get("/api/notices").body["channels"]["webhook"].clone();
        state["failure"].is_string().then_some(state)
    });
    assert!(
        failed["failure"].as_str().unwrap().contains("127.0.0.1") && !failed.to_string().contains("s3cr3tpath"),
        "{failed}"
    );
    let tried = ann.post("/api/notices/test", json!({"channel": "webhook"}));
    assert_eq!((tried.status, &tried.body["error"]["code"]), (403, &json!("URL_NOT_ALLOWED")), "{tried:?}");
    office.served.admin(&["tenant", "set", "acme", "--allow", &format!("127.0.0.1:{}", hook.port)]);
    assert_eq!(ann.post("/api/notices/test", json!({"channel": "webhook"})).status, 200);
    assert_eq!(hook.next().1["test"], true);
    let call = office.ask(&json!({"token": "hunter2222"}));
    let (head, told) = hook.next();
    assert!(head.starts_with("POST /services/T1/B2/s3cr3tpath HTTP/1.1"), "{head}");
    assert!(told["text"].as_str().unwrap().contains("*deploy*") && !told.to_string().contains("hunter2222"), "{told}");
    assert_eq!((&told["questions"][0]["id"], &told["tenant"]), (&json!(call), &json!("acme")), "{told}");
    let signed = head.lines().find_map(|line| line.strip_prefix("x-haft-signature: t=")).unwrap();
    let (at, mac) = signed.split_once(",v1=").unwrap();
    let check = "import hmac,sys; print(hmac.new(b'signing-secret-1', (sys.argv[1] + '.' + sys.argv[2]).encode(), 'sha256').hexdigest())";
    let ran = std::process::Command::new("python3").args(["-c", check, at, &told.to_string()]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&ran.stdout).trim(), mac, "{told}");
}

#[test]
fn what_nobody_answers_in_time_is_passed_on_once() {
    let server = MailServer::plain();
    let office = Office::with(&(mail(server.port) + "[approvals]\nexpire = \"2s\"\n"));
    let (ann, otto) = (office.person("ann", "member"), office.person("otto", "owner"));
    let rules = json!([{"tool": "deploy", "approvers": {"people": ["ann@acme.example"]}, "onExpiry": "escalate",
        "escalateTo": {"roles": ["owner"]}}]);
    let set = otto.ask("PUT", "/api/approval-rules", Some(json!({"rules": rules, "version": 0})));
    assert_eq!(set.status, 200, "{set:?}");
    let call = office.ask(&json!({}));
    assert_eq!(server.next()["to"], json!(["ann@acme.example"]));
    let path = format!("/api/approvals/{call}/approve");
    assert_eq!(otto.post(&path, json!({})).status, 403, "not yet");
    let digest = ann.get(&format!("/api/approvals/{call}")).body["digest"].clone();
    let passed_on = server.next();
    assert_eq!(passed_on["to"], json!(["otto@acme.example"]), "{passed_on}");
    assert!(passed_on["subject"].as_str().unwrap().contains("is passed on to you"), "{passed_on}");
    let card = ann.get(&format!("/api/approvals/{call}")).body;
    assert!(card["escalatedAt"].is_string() && card["digest"] == digest, "{card}");
    assert_eq!(office.status(&call), "pending");
    let yes = otto.post(&path, json!({"digest": digest}));
    assert_eq!((yes.status, office.status(&call)), (200, json!("success")), "{yes:?}");
    // A second time it is a no, also where the caller waits for it all along.
    let call = office.ask(&json!({}));
    until(|| (office.status(&call) == "rejected").then_some(()));
    let waited = office.served.post("/api/tools/deploy/calls", &json!({"input": {}, "wait": 30}), Some(&office.key));
    assert_eq!(waited.status, 202, "{waited:?}");
    let call = waited.body["tool_call_id"].as_str().unwrap();
    assert!(otto.get(&format!("/api/approvals/{call}")).body["escalatedAt"].is_string());
}
