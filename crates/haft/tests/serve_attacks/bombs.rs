//! Bodies, heads, paths and queries that are nonsense or far too much: each is refused in the one shape, and soon.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::{
    http_client::Gateway,
    talk::{Reply, Talk, raw},
    tenant, tool,
};

/// Refused with a code that has a page.
fn assert_refused(reply: &Reply, statuses: &[u16], what: &str) {
    assert!(statuses.contains(&reply.status), "{what}: {reply:?}");
    let (error, status) = (reply.json()["error"].clone(), reply.status);
    assert!(
        error["code"].is_string() && error["message"].is_string() && error["recoverable"].is_boolean(),
        "{what} {status}: {}",
        reply.text
    );
    assert!(!reply.text.contains("expected struct"), "{what}: {}", reply.text);
    assert!(reply.text.len() < 20_000, "{what}: {} bytes", reply.text.len());
}

#[test]
fn json_that_is_too_deep_too_wide_or_none_is_refused() {
    let served = Gateway::start();
    let mut talk = Talk::by_key(&served, &tenant(&served, "acme"));
    assert_eq!(talk.post("/api/tools", &tool("echo", "internal")).status, 201);
    let nested = |open: &str, close: &str, times: usize| format!("{}1{}", open.repeat(times), close.repeat(times));
    let input = |input: &str| format!("{{\"input\":{{\"a\":{input}}}}}");
    let bombs: Vec<(&str, Vec<u8>)> = vec![
        ("deep arrays", input(&nested("[", "]", 200_000)).into()),
        ("deep objects", input(&nested("{\"a\":", "}", 100_000)).into()),
        ("a number out of range", input("1e400").into()),
        ("digits without end", input(&"9".repeat(1 << 20)).into()),
        ("a field twice", b"{\"input\":{},\"input\":{}}".to_vec()),
        ("half a letter", input("\"\\ud800\"").into()),
        ("no text", b"{\"input\":{\"a\":\"\xff\xfe\"}}".to_vec()),
        ("a mark first", b"\xef\xbb\xbf{}".to_vec()),
        ("nothing after all", b"{\"input\":".to_vec()),
        ("more after all", b"{} {}".to_vec()),
        ("another field", b"{\"input\":{},\"__proto__\":{}}".to_vec()),
        ("a wrong kind", b"{\"input\":[]}".to_vec()),
        ("a body that is a list", b"[1]".to_vec()),
        ("not a number", input("NaN").into()),
        ("a wait without end", b"{\"input\":{},\"wait\":18446744073709551615}".to_vec()),
        ("a negative wait", b"{\"input\":{},\"wait\":-1}".to_vec()),
    ];
    for (what, bomb) in &bombs {
        let began = Instant::now();
        assert_refused(&talk.ask("POST", "/api/tools/echo/calls", Some(bomb)), &[400], what);
        assert!(began.elapsed() < Duration::from_secs(10), "{what}: {:?}", began.elapsed());
    }
    let long = vec![b' '; (8 << 20) + 1];
    assert_refused(&talk.ask("POST", "/api/tools/echo/calls", Some(&long)), &[413], "too long");
    // What is odd and yet JSON comes back as it went in.
    for odd in [
        json!({"__proto__": {"a": 1}}),
        json!({"a": "x\u{0}y"}),
        json!({"": {"": ""}}),
        json!({"a": 1e308, "b": i64::MIN}),
    ] {
        let called = talk.post("/api/tools/echo/calls", &json!({"input": odd}));
        assert_eq!(called.json()["result"]["structured"]["args"], odd, "{called:?}");
    }
}

#[test]
fn mcp_takes_no_more_than_any_other_route() {
    let served = Gateway::start();
    let key = tenant(&served, "acme");
    let address = served.url.trim_start_matches("http://");
    let head = |more: &str| {
        format!(
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n\
                 Accept: application/json, text/event-stream\r\n{more}\r\n"
        )
    };
    let mut told = head(&format!("Content-Length: {}\r\n", 100 << 20)).into_bytes();
    told.extend(vec![b'x'; 4 << 20]);
    assert_refused(&raw(&served, &told), &[413], "a length that is too much");
    let mut endless = head("Transfer-Encoding: chunked\r\n").into_bytes();
    let piece = [format!("{:x}\r\n", 1 << 20).into_bytes(), vec![b' '; 1 << 20], b"\r\n".to_vec()].concat();
    (0..18).for_each(|_| endless.extend_from_slice(&piece));
    assert_refused(&raw(&served, &endless), &[413], "chunks without end");
    let mut talk = Talk::by_key(&served, &key);
    assert_refused(&talk.ask("POST", "/mcp", Some(b"{}")), &[406], "without saying what is accepted");
    assert_refused(&talk.get("/mcp"), &[400, 405, 406], "no stream");
    let session = [("Authorization", format!("Bearer {key}")), ("Mcp-Session-Id", "nobodys".to_owned())];
    let session: Vec<(&str, &str)> = session.iter().map(|(name, value)| (*name, value.as_str())).collect();
    assert_refused(&Talk::with(&served, &session).ask("DELETE", "/mcp", None), &[404], "a session of nobody");
}

#[test]
fn strangers_may_say_little() {
    let served = Gateway::start();
    let address = served.url.trim_start_matches("http://");
    let head = format!(
        "POST /api/sign-in HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n"
    );
    assert_refused(&raw(&served, head.as_bytes()), &[413], "before it has come");
}

#[test]
fn heads_paths_and_queries_have_an_end() {
    let served = Gateway::start();
    let key = tenant(&served, "acme");
    let address = served.url.trim_start_matches("http://");
    let begin = format!("Host: {address}\r\nAuthorization: Bearer {key}\r\nConnection: close\r\n");
    let get = |target: &str, more: &str| raw(&served, format!("GET {target} HTTP/1.1\r\n{begin}{more}\r\n").as_bytes());
    assert_eq!(get("/api/me", "").status, 200);
    assert_refused(&get("/api/me", &format!("X: {}\r\n", "y".repeat(64 << 10))), &[431], "a long header");
    let many: String = (0..101).map(|n| format!("X{n}: y\r\n")).collect();
    assert_refused(&get("/api/me", &many), &[431], "many headers");
    assert_refused(&get(&format!("/{}", "a".repeat(1 << 20)), ""), &[414, 431], "a path of 1 MiB");
    assert_refused(&get(&format!("/api/calls/{}", "a".repeat(9000)), ""), &[414], "a long path");
    assert_refused(&get(&format!("/api/calls?tool={}", "a".repeat(9000)), ""), &[414], "a long query");
    assert_refused(&get(&format!("/api/calls?{}", "limit=1&".repeat(900)), ""), &[400], "the same thing often");
    assert_refused(&get("/api/calls?tool=%ff%fe", ""), &[400], "a query that is no text");
    assert_refused(&get("/api/calls/%ff%fe", ""), &[400], "a path that is no text");
    assert_refused(&get("/api/calls?limit=99999999999999999999", ""), &[400], "a number that is none");
    assert_refused(&get("/api/tools/a%00b", ""), &[400], "a path with a NUL");
}

#[test]
fn however_a_path_is_written_it_leads_to_one_place() {
    let served = Gateway::start();
    let mut talk = Talk::by_key(&served, &tenant(&served, "acme"));
    for (path, statuses) in [
        ("/api/calls/..%2f..%2fapi%2fme", &[404][..]),
        ("/api/calls/%2e%2e/me", &[404]),
        ("/api/../api/me", &[404]),
        ("/api/./me", &[404]),
        ("//api/me", &[404]),
        ("/api//me", &[404]),
        ("/api/me/", &[404]),
        ("/API/ME", &[404]),
        ("/api/tools/%252e%252e%252fme", &[404]),
        ("/api/tools/..%5c..%5cme", &[404]),
        ("/api/tools/read_file%20", &[404]),
        ("/api/tools/re\u{0430}d_file", &[400, 404]),
        ("/api/tools/rе%61d_file", &[400, 404]),
        ("/api/tools/read%E2%80%8B_file", &[404]),
        ("/api/media/..%2f..%2f..%2fetc%2fpasswd", &[404]),
        ("/api/workspaces/..%2f..", &[404, 405]),
    ] {
        assert_refused(&talk.get(path), statuses, path);
    }
    for slug in [
        "re\u{0430}d_file",
        "READ_FILE",
        "read_file",
        "Shell",
        "mcp__a__b",
        "__proto__",
        "a/b",
        "..",
        "",
        "a b",
        "a\u{200b}b",
    ] {
        let made = talk.post("/api/tools", &tool(slug, "internal"));
        assert_refused(&made, &[400, 409], slug);
    }
}
