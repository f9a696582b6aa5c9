//! Uploads to `haft serve`: what they are, who sees them, and by which address.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod http_client;

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

use http_client::Gateway;
use serde_json::{Value, json};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\nthe rest of a picture";

/// An answer whose body may be anything.
struct RawAnswer {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl RawAnswer {
    fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// Sends a head and a body as they are; to whoever speaks the older version nothing is sent in chunks.
fn send(served: &Gateway, head: &str, body: &[u8]) -> RawAnswer {
    let address = served.url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream.write_all(format!("{head}Host: {address}\r\n\r\n").as_bytes()).unwrap();
    // A server that has refused already does not read on.
    let _sent = stream.write_all(body);
    let mut answer = Vec::new();
    let _cut_off = stream.read_to_end(&mut answer);
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(answer.len());
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
    RawAnswer { status, body: answer.get(end + 4..).unwrap_or_default().to_vec(), head }
}

fn upload(served: &Gateway, key: &str, name: &str, body: &[u8]) -> RawAnswer {
    let length = body.len();
    let head = format!(
        "POST /api/media?name={name} HTTP/1.0\r\nAuthorization: Bearer {key}\r\nContent-Type: text/html\r\nContent-Length: {length}\r\n"
    );
    send(served, &head, body)
}

fn get(served: &Gateway, path: &str, headers: &str) -> RawAnswer {
    send(served, &format!("GET {path} HTTP/1.0\r\n{headers}"), b"")
}

struct TwoTenants {
    served: Gateway,
    key: String,
    other: String,
}

fn two_tenants(settings: &str) -> TwoTenants {
    let served = Gateway::start_with(settings);
    served.admin(&["tenant", "add", "acme"]);
    served.admin(&["tenant", "add", "bolt"]);
    let (key, other) = (served.key("k", "acme", "tools:execute"), served.key("o", "bolt", "tools:execute"));
    TwoTenants { served, key, other }
}

#[test]
fn what_is_uploaded_is_known_by_its_bytes_and_given_in_ranges() {
    let TwoTenants { served, key, other } = two_tenants("");
    let bearer = format!("Authorization: Bearer {key}\r\n");
    // Two and a half pieces of a megabyte.
    let large: Vec<u8> = PNG.iter().copied().chain((0..2_600_000_u32).map(|number| (number / 7) as u8)).collect();
    let made = upload(&served, &key, "..%2Fa%20b.png", &large);
    assert_eq!(made.status, 201, "{} {}", made.head, made.json());
    let view = made.json();
    assert_eq!((&view["mime"], &view["size"]), (&json!("image/png"), &json!(large.len())), "not what the client says");
    assert_eq!(view["name"], "a b.png");
    let path = view["url"].as_str().unwrap();
    let whole = get(&served, path, &bearer);
    assert_eq!((whole.status, whole.body == large), (200, true), "{}", whole.head);
    assert_eq!(whole.header("content-type"), Some("image/png"));
    assert_eq!(whole.header("content-disposition"), Some("inline; filename*=UTF-8''a%20b.png"));
    assert_eq!(whole.header("x-content-type-options"), Some("nosniff"));
    assert!(whole.header("content-security-policy").unwrap().contains("sandbox"));
    let tag = whole.header("etag").unwrap().to_owned();
    for (range, expected) in [
        ("bytes=0-3", 0..4),
        ("bytes=1048570-1048580", 1_048_570..1_048_581),
        ("bytes=2000000-", 2_000_000..large.len()),
        ("bytes=-5", large.len() - 5..large.len()),
    ] {
        let part = get(&served, path, &format!("{bearer}Range: {range}\r\n"));
        assert_eq!(part.status, 206, "{range}");
        let said = format!("bytes {}-{}/{}", expected.start, expected.end - 1, large.len());
        assert_eq!(part.header("content-range"), Some(said.as_str()));
        assert!(part.body == large[expected.clone()], "{range}");
    }
    let beyond = get(&served, path, &format!("{bearer}Range: bytes=9999999-\r\n"));
    assert_eq!(
        (beyond.status, beyond.header("content-range")),
        (416, Some(format!("bytes */{}", large.len()).as_str()))
    );
    let changed = get(&served, path, &format!("{bearer}Range: bytes=0-3\r\nIf-Range: \"other\"\r\n"));
    assert_eq!((changed.status, changed.body.len()), (200, large.len()));
    assert_eq!(get(&served, path, &format!("{bearer}If-None-Match: {tag}\r\n")).status, 304);
    let theirs = get(&served, path, &format!("Authorization: Bearer {other}\r\n"));
    let nobodys = get(&served, "/api/media/me_none", &bearer);
    assert_eq!((theirs.status, theirs.json()), (404, nobodys.json()), "another tenant's is as if it never was");
    assert_eq!(get(&served, path, "").status, 401);
    let blind = served.key("blind", "acme", "mcp:manage");
    assert_eq!(get(&served, path, &format!("Authorization: Bearer {blind}\r\n")).status, 403);
    let delete =
        |key: &str| served.request("DELETE", path, None, &[("Authorization", &format!("Bearer {key}"))]).status;
    assert_eq!((delete(&other), delete(&key), delete(&key)), (404, 200, 404));
    assert_eq!(get(&served, path, &bearer).status, 404);
}

#[test]
fn what_a_browser_could_run_is_only_handed_out_as_a_file() {
    let TwoTenants { served, key, .. } = two_tenants("");
    let bearer = format!("Authorization: Bearer {key}\r\n");
    for (body, mime, shown) in [
        (&b"<html><script>alert(1)</script>"[..], "text/html", "attachment"),
        (b"<?xml version='1.0'?><svg onload='alert(1)'/>", "image/svg+xml", "attachment"),
        (b"PK\x03\x04zipped", "application/zip", "attachment"),
        (b"\0\x01\x02", "application/octet-stream", "attachment"),
        (b"plain words", "text/plain; charset=utf-8", "inline"),
        (b"%PDF-1.7 pages", "application/pdf", "inline"),
        (b"", "text/plain; charset=utf-8", "inline"),
    ] {
        let made = upload(&served, &key, "a.png", body);
        assert_eq!(made.status, 201, "{}", made.json());
        let given = get(&served, made.json()["url"].as_str().unwrap(), &bearer);
        assert_eq!((given.status, given.body.as_slice()), (200, body));
        assert_eq!(given.header("content-type"), Some(mime));
        assert!(given.header("content-disposition").unwrap().starts_with(shown), "{mime}: {}", given.head);
        assert!(given.header("content-security-policy").unwrap().contains("sandbox"), "{}", given.head);
    }
}

#[test]
fn more_than_may_be_is_refused_before_it_is_read() {
    let TwoTenants { served, key, .. } = two_tenants("[serve]\nmedia_limit = \"2MiB\"\nmedia_quota = \"5MiB\"\n");
    let bearer = format!("Authorization: Bearer {key}\r\n");
    let told = format!("POST /api/media HTTP/1.1\r\nConnection: close\r\n{bearer}Content-Length: 900000000\r\n");
    let refused = send(&served, &told, b"only the beginning");
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (413, &json!("TOO_LARGE")), "{}", refused.head);
    // Somebody who does not say how much there will be is stopped where it is too much.
    let chunk = [b"100000\r\n".as_slice(), &vec![7; 0x10_0000], b"\r\n"].concat();
    let endless = format!("POST /api/media HTTP/1.1\r\nConnection: close\r\n{bearer}Transfer-Encoding: chunked\r\n");
    let stopped = send(&served, &endless, &chunk.repeat(8));
    assert!(stopped.status == 413 || stopped.head.is_empty(), "{}", stopped.head);
    let piece = vec![7; 2 << 20];
    let statuses: Vec<u16> = (0..4).map(|_| upload(&served, &key, "a", &piece).status).collect();
    assert_eq!(statuses[..2], [201, 201], "what was given up takes no room: {statuses:?}");
    assert_eq!(statuses[2..], [413, 413], "the tenant has its limit too: {statuses:?}");
}

#[test]
fn a_signed_address_opens_one_thing_for_a_while() {
    let TwoTenants { served, key, other } = two_tenants("");
    let one = upload(&served, &key, "one.png", PNG).json();
    let two = upload(&served, &key, "two.txt", b"other words").json();
    let (one, two) = (one["id"].as_str().unwrap(), two["id"].as_str().unwrap());
    let sign = |key: &str, body: &Value| served.post(&format!("/api/media/{one}/sign"), body, Some(key));
    let signed = sign(&key, &json!({}));
    assert_eq!(signed.status, 200, "{signed:?}");
    let url = signed.body["url"].as_str().unwrap();
    let path = url.strip_prefix(&served.url).unwrap_or_else(|| panic!("{url}"));
    let given = get(&served, path, "");
    assert_eq!((given.status, given.body.as_slice()), (200, PNG), "{}", given.head);
    let (exp, sig) = (signed.body["exp"].as_i64().unwrap(), path.rsplit('=').next().unwrap());
    let nobodys = get(&served, &format!("/api/media/me_none?exp={exp}&sig={sig}"), "");
    assert_eq!(nobodys.status, 404);
    for forged in [
        format!("/api/media/{two}?exp={exp}&sig={sig}"),
        format!("/api/media/{one}?exp={}&sig={sig}", exp + 1),
        format!("/api/media/{one}?exp={exp}&sig={}", sig.replace(|_| true, "0")),
        format!("/api/media/{one}?exp={exp}&sig="),
        format!("/api/media/{one}?exp=soon&sig={sig}"),
        format!("/api/media/{one}?sig={sig}"),
        format!("/api/media/{one}?exp={exp}"),
    ] {
        let refused = get(&served, &forged, "");
        assert_eq!((refused.status, refused.json()), (404, nobodys.json()), "{forged}");
    }
    assert_eq!(sign(&other, &json!({})).status, 404, "another tenant signs nothing of it");
    assert_eq!(sign(&key, &json!({"expiresIn": 0})).status, 400);
    assert_eq!(sign(&key, &json!({"expiresIn": 700_000})).status, 400);
    let short = sign(&key, &json!({"expiresIn": 1})).body["url"].as_str().unwrap().replace(&served.url, "");
    let patience = Instant::now() + Duration::from_secs(30);
    while get(&served, &short, "").status != 404 {
        assert!(Instant::now() < patience, "the address still works");
    }
    assert_eq!(get(&served, &short, "").json(), nobodys.json());
}
