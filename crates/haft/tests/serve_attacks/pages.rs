//! Pages of others, names that lead here by a trick, and headers that pretend something.

use serde_json::json;

use crate::{
    http_client::{Gateway, person::Person},
    talk::raw,
};

const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

#[test]
fn another_name_leads_nowhere_by_any_method() {
    let served = Gateway::start();
    let port = served.url.rsplit(':').next().unwrap().to_owned();
    let names = [
        "evil.example".to_owned(),
        format!("evil.example:{port}"),
        format!("127.0.0.1.evil.example:{port}"),
        format!("localhost.evil.example:{port}"),
        format!("evil.example@127.0.0.1:{port}"),
        format!("127.0.0.1@evil.example:{port}"),
        "10.0.0.1".to_owned(),
        "0.0.0.0".to_owned(),
        "localhost.".to_owned(),
        "[::ffff:10.0.0.1]".to_owned(),
        String::new(),
    ];
    for method in METHODS {
        for name in &names {
            let answer = served.request(method, "/api/me", None, &[("Host", name)]);
            assert_eq!(answer.status, 421, "{method} {name}: {answer:?}");
        }
        let target = format!(
            "{method} http://evil.example/api/me HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n"
        );
        assert_eq!(raw(&served, target.as_bytes()).status, 421, "{method}");
    }
    let twice =
        format!("GET /api/me HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nHost: evil.example\r\nConnection: close\r\n\r\n");
    assert_eq!(raw(&served, twice.as_bytes()).status, 400);
    assert_eq!(raw(&served, b"GET /api/me HTTP/1.0\r\n\r\n").status, 421);
    for header in ["X-Forwarded-Host", "X-Host", "Forwarded"] {
        let value = if header == "Forwarded" { "host=evil.example" } else { "evil.example" };
        assert_eq!(served.request("GET", "/healthz", None, &[(header, value)]).status, 200);
    }
}

#[test]
fn a_page_of_another_origin_changes_nothing() {
    let served = Gateway::start();
    served.admin(&["tenant", "add", "acme"]);
    let person = Person::added(&served, "ann@acme.example", "acme", "owner");
    let other = Person::added(&served, "bob@acme.example", "acme", "owner");
    let key = json!({"name": "k", "scopes": ["tools:read"]});
    let made = |headers: &[(&str, &str)]| served.request("POST", "/api/keys", Some(&key), headers).status;
    let (cookie, csrf) = (("Cookie", person.cookie.as_str()), ("X-CSRF-Token", person.csrf.as_str()));
    assert_eq!(made(&[cookie, csrf]), 201);
    assert_eq!(made(&[cookie, csrf, ("Origin", served.url.as_str())]), 201);
    let port: u16 = served.url.rsplit(':').next().unwrap().parse().unwrap();
    let origins = [
        "null".to_owned(),
        "https://evil.example".to_owned(),
        format!("http://127.0.0.1:{}", port ^ 1),
        format!("https://127.0.0.1:{port}"),
        format!("http://127.0.0.1:{port}.evil.example"),
        "http://localhost".to_owned(),
        format!("http://evil.example#{}", served.url),
        String::new(),
    ];
    for origin in &origins {
        assert_eq!(made(&[cookie, csrf, ("Origin", origin)]), 403, "{origin}");
        let sign_in = served.request("POST", "/api/sign-in", Some(&json!({"link": "x"})), &[("Origin", origin)]);
        assert_eq!(sign_in.status, 403, "{origin}: {sign_in:?}");
    }
    for wrong in ["", "x", &other.csrf, &person.csrf[1..], &format!("{}a", person.csrf)] {
        assert_eq!(made(&[cookie, ("X-CSRF-Token", wrong)]), 403, "{wrong}");
    }
    assert_eq!(made(&[cookie]), 403);
    assert_eq!(
        made(&[cookie, ("Referer", served.url.as_str())]),
        403,
        "where a page says that it is from proves nothing"
    );
    assert_eq!(made(&[cookie, csrf, csrf]), 400);
    let query = format!("/api/keys?csrf={}&_csrf={}", person.csrf, person.csrf);
    assert_eq!(served.request("POST", &query, Some(&key), &[cookie]).status, 403);
}

#[test]
fn a_page_can_neither_read_nor_frame_nor_preflight() {
    let served = Gateway::start();
    for (method, path) in
        [("GET", "/"), ("GET", "/api/me"), ("OPTIONS", "/api/keys"), ("GET", "/nothing"), ("PATCH", "/healthz")]
    {
        let headers = [("Origin", served.url.as_str()), ("Access-Control-Request-Method", "POST")];
        let answer = served.request(method, path, None, &headers);
        let names: Vec<&str> = answer.headers.iter().map(|(name, _)| name.as_str()).collect();
        assert!(!names.iter().any(|name| name.starts_with("access-control-")), "{path}: {names:?}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{method} {path}");
        assert!(answer.header("content-security-policy").unwrap().contains("frame-ancestors 'none'"), "{path}");
    }
    let misdirected = served.request("GET", "/api/me", None, &[("Host", "evil.example")]);
    assert_eq!(misdirected.header("x-content-type-options"), Some("nosniff"), "{misdirected:?}");
}

#[test]
fn no_header_and_no_word_in_the_address_makes_one_method_another() {
    let served = Gateway::start();
    served.admin(&["tenant", "add", "acme"]);
    let person = Person::added(&served, "ann@acme.example", "acme", "owner");
    let made = person.post("/api/keys", json!({"name": "stays", "scopes": ["tools:read"]}));
    let path = format!("/api/keys/{}", made.body["id"].as_str().unwrap());
    for name in ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"] {
        for method in ["GET", "POST"] {
            let headers = [("Cookie", person.cookie.as_str()), ("X-CSRF-Token", &person.csrf), (name, "DELETE")];
            let answer = served.request(method, &format!("{path}?_method=DELETE"), None, &headers);
            assert_eq!(answer.status, 405, "{answer:?}");
        }
    }
    let kept = person.get("/api/keys").body;
    assert_eq!(kept["items"][0]["name"], "stays", "{kept}");
}
