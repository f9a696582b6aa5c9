//! Too much of everything: requests, connections, silence.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;

use crate::{EVERY_SCOPE, http_client::Gateway, talk::Talk, tenant, tool};

const LIMITED: &str = "[serve]\nrate_per_caller = \"2/s burst 40\"\nrate_per_tenant = \"4/s burst 100\"\n\
                       rate_per_address = \"1/s burst 30\"\n";

#[test]
fn whoever_asks_too_often_is_told_when_to_come_back_and_others_do_not_notice() {
    let served = Gateway::start_with(LIMITED);
    let (key, theirs) = (tenant(&served, "acme"), tenant(&served, "bolt"));
    let colleague = served.key("colleague", "acme", EVERY_SCOPE);
    let (mut talk, mut colleague, mut bolt) =
        (Talk::by_key(&served, &key), Talk::by_key(&served, &colleague), Talk::by_key(&served, &theirs));
    let (mut fine, mut refused) = (0, 0);
    for _ in 0..2000 {
        let reply = talk.get("/api/me");
        match reply.status {
            200 => fine += 1,
            429 => {
                refused += 1;
                assert_eq!(reply.code(), "RATE_LIMITED");
                let seconds: u64 = reply.header("retry-after").unwrap().parse().unwrap();
                assert!((1..=2).contains(&seconds), "{reply:?}");
            }
            other => panic!("{other}: {reply:?}"),
        }
    }
    assert!(fine >= 40 && refused > 1500, "{fine} {refused}");
    for _ in 0..20 {
        assert_eq!((colleague.get("/api/me").status, bolt.get("/api/me").status), (200, 200));
    }
    // Nothing of a body is waited for, whatever the route.
    let address = served.url.trim_start_matches("http://");
    for path in ["/api/tools/x/calls", "/mcp", "/api/events"] {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\nContent-Length: 1000\r\n\r\n"
        );
        // In one breath, so that nothing is allowed again between the last request and this one.
        let before = format!("GET /api/me HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\n\r\n");
        let said = said_to(&served, &(before.repeat(60) + &head));
        let statuses: Vec<&str> = said.split("HTTP/1.1 ").skip(1).map(|reply| &reply[..3]).collect();
        assert_eq!((statuses.len(), statuses.last()), (61, Some(&"429")), "{path}: {statuses:?}");
    }
    assert_eq!(talk.get("/healthz").status, 200);
    // All callers of a tenant together have a limit, too.
    let refused = (0..200).filter(|_| colleague.get("/api/me").status == 429).count();
    assert!(refused > 100, "{refused}");
    assert_eq!(bolt.get("/api/me").status, 200);
}

#[test]
fn guessing_is_slow_and_whoever_has_a_key_does_not_notice() {
    let served = Gateway::start_with(LIMITED);
    let key = tenant(&served, "acme");
    let mut guesses = Talk::by_key(&served, "haft_guess_wrong");
    let refused = (0..200).filter(|_| guesses.get("/api/me").status == 429).count();
    assert!(refused > 100, "{refused}");
    let link = json!({"link": "x"});
    assert_eq!(served.post("/api/sign-in", &link, None).status, 429);
    assert_eq!(served.request("GET", "/api/me", None, &[("Host", "evil.example")]).status, 429);
    // Another address cannot be pretended.
    let forwarded = [("X-Forwarded-For", "203.0.113.7"), ("Forwarded", "for=203.0.113.7")];
    assert_eq!(served.request("POST", "/api/sign-in", Some(&link), &forwarded).status, 429);
    assert_eq!(Talk::by_key(&served, &key).get("/api/me").status, 200);
    assert_eq!(served.get("/healthz", None).status, 200);
}

#[test]
fn behind_a_proxy_each_client_has_its_own_limit() {
    let served = Gateway::start_with(&format!("{LIMITED}proxies = [\"127.0.0.0/8\"]\n"));
    let ask = |client: &str| served.request("GET", "/api/me", None, &[("X-Forwarded-For", client)]).status;
    let refused = (0..100).filter(|_| ask("203.0.113.7") == 429).count();
    assert!(refused > 40, "{refused}");
    assert_eq!(ask("198.51.100.1"), 401);
    assert_eq!(ask("1.1.1.1, 203.0.113.7"), 429, "what the client says of itself stands before");
}

#[test]
fn on_this_machine_nothing_is_limited_by_itself() {
    let served = Gateway::start();
    let mut talk = Talk::by_key(&served, &tenant(&served, "acme"));
    assert!((0..1000).all(|_| talk.get("/api/me").status == 200));
    let mut stranger = Talk::with(&served, &[]);
    assert!((0..200).all(|_| stranger.get("/api/me").status == 401));
}

#[test]
fn open_to_others_it_is_limited_by_itself() {
    let served = Gateway::start_as(&[], &[("HAFT_SERVE_PUBLIC_URL", "https://haft.example")]);
    let port = served.listening_port();
    let key = served.admin(&["key", "add", "k", "--tenant", "local", "--scopes", "tools:read"]);
    let head = format!(
        "GET /api/me HTTP/1.1\r\nHost: haft.example\r\nAuthorization: Bearer {}\r\n\r\n",
        key["key"].as_str().unwrap()
    );
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let flood = head.repeat(800) + &head.replacen("\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1);
    let mut writer = stream.try_clone().unwrap();
    std::thread::spawn(move || writer.write_all(flood.as_bytes()));
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    let (fine, refused) = (said.matches("HTTP/1.1 200").count(), said.matches("HTTP/1.1 429").count());
    assert!(fine >= 400 && refused > 0 && fine + refused == 801, "{fine} {refused}");
}

/// Everything that a server says to one connection until it ends it.
fn said_to(served: &Gateway, words: &str) -> String {
    let mut stream = TcpStream::connect(served.url.trim_start_matches("http://")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(words.as_bytes()).unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    said
}

/// A request of somebody who behaves, which must not take long.
fn assert_served(talk: &mut Talk) {
    let began = Instant::now();
    assert_eq!(talk.get("/api/me").status, 200);
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
}

#[test]
fn ten_thousand_connections_that_say_nothing_keep_nobody_out() {
    let served = Gateway::start();
    let key = tenant(&served, "acme");
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    let room = limit.maximum.and_then(|files| usize::try_from(files).ok()).unwrap_or(usize::MAX).saturating_sub(300);
    let wanted = 10_050;
    if room < wanted {
        println!("skipped: only {room} files can be open here, and {wanted} connections are needed");
        return;
    }
    let address = served.url.trim_start_matches("http://");
    let mut before = Talk::by_key(&served, &key);
    assert_served(&mut before);
    let silent: Vec<TcpStream> = (0..wanted).map(|_| TcpStream::connect(address).unwrap()).collect();
    for _ in 0..5 {
        assert_served(&mut Talk::by_key(&served, &key));
        assert_served(&mut before);
    }
    drop(silent);
    assert_served(&mut before);
}

#[test]
fn slow_and_half_open_clients_keep_nobody_waiting() {
    let served = Gateway::start();
    let key = tenant(&served, "acme");
    let mut talk = Talk::by_key(&served, &key);
    assert_eq!(talk.post("/api/tools", &tool("echo", "internal")).status, 201);
    let address = served.url.trim_start_matches("http://");
    let begun = |text: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        stream
    };
    let head = format!(
        "POST /api/tools/echo/calls HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n"
    );
    let events = format!("GET /api/events HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\n\r\n");
    let mut held = Vec::new();
    for _ in 0..60 {
        held.push(begun("GET /api/me HTTP/1.1\r\nHo"));
        held.push(begun(&format!("{head}Content-Length: 100\r\n\r\n{{\"inp")));
        held.push(begun(&format!("{head}Transfer-Encoding: chunked\r\n\r\n5\r\n{{\"in")));
        // It asks again and again, and never reads.
        held.push(begun(&format!("GET /openapi.json HTTP/1.1\r\nHost: {address}\r\n\r\n").repeat(20)));
        held.push(begun(&events));
    }
    for _ in 0..10 {
        assert_served(&mut Talk::by_key(&served, &key));
        let called = talk.post("/api/tools/echo/calls", &json!({"input": {}}));
        assert_eq!(called.json()["status"], "success", "{called:?}");
    }
    drop(held);
    assert_served(&mut talk);
}

#[test]
fn a_tenant_cannot_fill_the_memory_with_large_requests() {
    let served = Gateway::start();
    let (key, other) = (tenant(&served, "acme"), tenant(&served, "bolt"));
    let address = served.url.trim_start_matches("http://");
    let head = |key: &str| {
        format!(
            "POST /api/tools/x/calls HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\n\
                 Content-Type: application/json\r\nContent-Length: 8000000\r\nExpect: 100-continue\r\n\r\n"
        )
    };
    // Whoever is let in is asked for the body; the rest is told to come back.
    let answered = |key: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.write_all(head(key).as_bytes()).unwrap();
        let mut said = [0; 12];
        stream.read_exact(&mut said).unwrap();
        (String::from_utf8_lossy(&said[9..]).into_owned(), stream)
    };
    let held: Vec<(String, TcpStream)> = (0..40).map(|_| answered(&key)).collect();
    let let_in = held.iter().filter(|(status, _)| status == "100").count();
    assert_eq!((let_in, held.iter().filter(|(status, _)| status == "429").count()), (16, 24));
    assert_eq!(answered(&other).0, "100");
    assert_eq!(Talk::by_key(&served, &key).get("/api/me").status, 200);
}
