//! Redirects, and servers that mean no good.

use std::{io::Write, net::TcpListener, time::Duration};

use flate2::{Compression, write::GzEncoder};
use haft_sandbox::web::{
    BodyEnd, Bytes, FetchFailure, FetchLimits, FetchOutcome, HeaderMap, Method, Request, ResponseBody, WebClient,
    WebError, WebRules,
};
use tokio::time::Instant;

use crate::servers::Server;

fn client(servers: &[&Server]) -> WebClient {
    let allowed = servers.iter().map(|server| server.address.to_string().parse().unwrap()).collect();
    let limits = FetchLimits { connect: Duration::from_secs(10), silence: Duration::from_millis(300) };
    WebClient::new(WebRules { allowed, ..WebRules::default() }, limits)
}

fn get(client: &WebClient, url: &str) -> Request {
    let until = Instant::now() + Duration::from_secs(20);
    let target = client.target(url).unwrap();
    Request { target, method: Method::GET, headers: HeaderMap::new(), body: Bytes::new(), until, silence: None }
}

fn post(client: &WebClient, url: &str, body: &'static str) -> Request {
    Request { method: Method::POST, body: Bytes::from_static(body.as_bytes()), ..get(client, url) }
}

async fn fetch(servers: &[&Server], path: &str) -> Result<FetchOutcome, FetchFailure> {
    let client = client(servers);
    let request = get(&client, &servers[0].url(path));
    client.fetch(request, |_| true).await
}

async fn body_of(server: &Server, most: usize) -> Result<ResponseBody, WebError> {
    let client = client(&[server]);
    let request = get(&client, &server.url("/"));
    client.send(&request).await?.read(most).await
}

fn answer(headers: &str, body: &[u8]) -> Vec<u8> {
    let mut answer = format!("HTTP/1.1 200 OK\r\n{headers}\r\n").into_bytes();
    answer.extend_from_slice(body);
    answer
}

#[tokio::test]
async fn a_redirect_to_another_port_of_this_machine_is_refused_before_a_packet_leaves() {
    let canary = Server::saying("HTTP/1.1 200 OK\r\n\r\n");
    for to in [
        canary.url("/"),
        format!("//127.0.0.1:{}/", canary.address.port()),
        format!("http://2130706433:{}/", canary.address.port()),
        format!("http://[::ffff:7f00:1]:{}/", canary.address.port()),
        "http://169.254.169.254/latest/".to_owned(),
        "http://localhost/".to_owned(),
        "file:///etc/passwd".to_owned(),
        "http://me:pw@example.org/".to_owned(),
    ] {
        let first = Server::redirecting(302, to.clone());
        let failed = fetch(&[&first], "/").await.err().unwrap();
        assert!(matches!(failed.error, WebError::Refused(_)), "{to}: {failed:?}");
    }
    assert_eq!(canary.hits(), 0);
}

#[tokio::test]
async fn redirects_are_followed_five_times_and_only_where_they_may() {
    let last = Server::saying(answer("content-length: 2\r\n", b"ok"));
    let mut chain = vec![last];
    for _ in 0..5 {
        let next = Server::redirecting(307, chain.last().unwrap().url("/x"));
        chain.push(next);
    }
    chain.reverse();
    let servers: Vec<&Server> = chain.iter().collect();
    let fetched = fetch(&servers, "/").await.map_err(|failed| failed.error).unwrap();
    assert_eq!((fetched.redirects.len(), fetched.url.to_string()), (5, servers[5].url("/x")));
    let more = Server::redirecting(308, servers[0].url("/"));
    let failed = fetch(&[&[&more], &servers[..]].concat(), "/").await.err().unwrap();
    assert!(matches!(failed.error, WebError::TooManyRedirects { most: 5 }), "{failed:?}");

    let client = client(&servers);
    let stopped =
        client.fetch(get(&client, &servers[4].url("/")), |_| false).await.map_err(|failed| failed.error).unwrap();
    assert_eq!(stopped.response.status.as_u16(), 307);
    assert_eq!(stopped.not_followed.unwrap().to.to_string(), servers[5].url("/x"));
}

#[tokio::test]
async fn a_loop_of_redirects_has_an_end() {
    let round = Server::new(|_, stream| {
        let _gone = stream.write_all(b"HTTP/1.1 302 X\r\nlocation: /again\r\ncontent-length: 0\r\n\r\n");
    });
    let failed = fetch(&[&round], "/").await.err().unwrap();
    assert!(matches!(failed.error, WebError::TooManyRedirects { .. }), "{failed:?}");
    assert_eq!(round.hits(), 6);
}

#[tokio::test]
async fn another_origin_hears_nothing_of_who_asks() {
    let other = Server::saying(answer("content-length: 0\r\n", b""));
    let first = Server::redirecting(302, other.url("/"));
    let client = client(&[&first, &other]);
    let mut request = get(&client, &first.url("/"));
    for (name, value) in [("authorization", "Bearer x"), ("cookie", "a=b"), ("x-api-key", "k"), ("accept", "text/html")]
    {
        request.headers.insert(name, value.parse().unwrap());
    }
    assert!(client.fetch(request, |_| true).await.is_ok());
    assert!(first.request().contains("authorization: Bearer x\r\n"));
    let heard = other.request();
    assert!(heard.contains("accept: text/html\r\n"), "{heard}");
    for gone in ["Bearer", "a=b", "x-api-key"] {
        assert!(!heard.contains(gone), "{heard}");
    }
}

#[tokio::test]
async fn a_post_becomes_a_get_unless_the_answer_says_to_send_it_again() {
    for (status, begins, sent) in
        [(301, "GET", ""), (302, "GET", ""), (303, "GET", ""), (307, "POST", "x=1"), (308, "POST", "x=1")]
    {
        let server = Server::new(move |request, stream| {
            let to = if request.contains(" /first ") { "location: /second\r\n" } else { "" };
            let status = if to.is_empty() { 200 } else { status };
            let _gone = write!(stream, "HTTP/1.1 {status} X\r\n{to}content-length: 0\r\n\r\n");
        });
        let client = client(&[&server]);
        let done = client.fetch(post(&client, &server.url("/first"), "x=1"), |_| true).await;
        assert_eq!(done.map_err(|failed| failed.error).unwrap().response.status.as_u16(), 200);
        assert!(server.request().starts_with("POST /first"));
        let second = server.request();
        assert!(
            second.starts_with(&format!("{begins} /second")) && second.ends_with(&format!("\r\n\r\n{sent}")),
            "{second}"
        );
    }
    let other = Server::saying(answer("", b""));
    let first = Server::redirecting(307, format!("http://127.0.0.2:{}/", other.address.port()));
    let rules = WebRules {
        allowed: vec!["127.0.0.0/8".parse().unwrap()],
        ports: (1024..=65535).collect(),
        ..WebRules::default()
    };
    let client = WebClient::new(rules, FetchLimits::default());
    let kept =
        client.fetch(post(&client, &first.url("/"), "x=1"), |_| true).await.map_err(|failed| failed.error).unwrap();
    assert!(kept.not_followed.is_some() && other.hits() == 0);
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn packed_bodies_are_unpacked() {
    let text = "some text that is packed, some text that is packed".repeat(40);
    let deflated = {
        let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    let zlib = {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    let twice = [gzip(text.as_bytes()), gzip(text.as_bytes())].concat();
    for (encoding, body, times) in [
        ("gzip", gzip(text.as_bytes()), 1),
        ("X-GZIP", gzip(text.as_bytes()), 1),
        ("gzip", twice, 2),
        ("deflate", deflated, 1),
        ("deflate", zlib, 1),
        ("identity", text.clone().into_bytes(), 1),
    ] {
        let server = Server::saying(answer(
            &format!("content-encoding: {encoding}\r\ncontent-length: {}\r\n", body.len()),
            &body,
        ));
        let body = body_of(&server, 1 << 20).await.unwrap();
        assert!(matches!(body.end, BodyEnd::Whole), "{encoding}: {:?}", body.end);
        assert_eq!(String::from_utf8(body.bytes).unwrap(), text.repeat(times), "{encoding}");
    }
    // `some words` as brotli packs it when it does not pack it.
    let brotli = b"\x8b\x04\x80some words\x03";
    let server =
        Server::saying(answer(&format!("content-encoding: br\r\ncontent-length: {}\r\n", brotli.len()), brotli));
    assert_eq!(body_of(&server, 100).await.unwrap().bytes, b"some words");
}

fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_bomb_goes_off_in_little_room() {
    // Ten gibibytes of nothing, in ten mebibytes: a thousand times the same packed mebibytes.
    let member = gzip(&vec![0; 10 << 20]);
    let bomb = Server::new(move |_, stream| {
        let _gone = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n");
        for _ in 0..1024 {
            if stream.write_all(&member).is_err() {
                break;
            }
        }
    });
    let before = peak_memory();
    let body = body_of(&bomb, 2 << 20).await.unwrap();
    assert_eq!((body.bytes.len(), matches!(body.end, BodyEnd::Limit)), (2 << 20, true));
    assert!(peak_memory() - before < 64 << 10, "{} KiB", peak_memory() - before);
    // Packed bytes without end that unpack to nothing have an end too.
    let empty = gzip(b"");
    let endless = Server::new(move |_, stream| {
        let _gone = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n");
        while stream.write_all(&empty).is_ok() {}
    });
    let body = body_of(&endless, 1000).await.unwrap();
    assert!(body.bytes.is_empty() && matches!(body.end, BodyEnd::Limit));
}

#[tokio::test]
async fn bodies_end_where_they_may() {
    for (server, bytes, end) in [
        (Server::saying(answer("content-length: 5\r\n", b"whole")), "whole", "Whole"),
        (Server::saying("HTTP/1.0 200 OK\r\n\r\nold"), "old", "Whole"),
        (Server::saying(answer("transfer-encoding: chunked\r\n", b"3\r\nabc\r\n0\r\n\r\n")), "abc", "Whole"),
        (Server::saying(answer("content-length: 3\r\n", b"abcdef")), "abc", "Whole"),
        (Server::saying(answer("content-length: 100\r\n", b"cut")), "cut", "Broken"),
        (Server::saying(answer("transfer-encoding: chunked\r\n", b"3\r\nabc\r\n")), "abc", "Broken"),
        (Server::saying(answer("transfer-encoding: chunked\r\n", b"3\r\nabc\r\nzzz\r\n")), "abc", "Broken"),
        (Server::saying(answer("content-length: 9\r\ncontent-encoding: gzip\r\n", b"not so   ")), "", "Broken"),
    ] {
        let body = body_of(&server, 1000).await.unwrap();
        assert_eq!(String::from_utf8(body.bytes).unwrap(), bytes);
        assert!(format!("{:?}", body.end).starts_with(end), "{bytes}: {:?}", body.end);
    }
    let endless = Server::new(|_, stream| {
        let _gone = stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
        while stream.write_all(b"4\r\nabcd\r\n").is_ok() {}
    });
    let body = body_of(&endless, 1002).await.unwrap();
    assert_eq!((body.bytes.len(), matches!(body.end, BodyEnd::Limit)), (1002, true));
}

#[tokio::test]
async fn servers_that_say_nothing_sensible_are_told_of() {
    let headers = "x: y\r\n".repeat(100_000);
    for (server, expected) in [
        (Server::saying("SSH-2.0-OpenSSH_9.2\r\n"), "Broken"),
        (Server::saying(""), "Broken"),
        (Server::saying(format!("HTTP/1.1 200 OK\r\n{headers}\r\n")), "Broken"),
        (Server::saying(format!("HTTP/1.1 200 OK\r\nx: {}", "y".repeat(1 << 20))), "Broken"),
        (Server::saying("HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nabcde"), "Broken"),
    ] {
        let failed = body_of(&server, 1000).await.map(|body| body.bytes);
        assert!(format!("{failed:?}").contains(expected), "{failed:?}");
    }
}

/// Writes a byte again and again, as slowly as the reader just bears, until nobody reads any more.
fn dribble(stream: &mut std::net::TcpStream, byte: &[u8], pace: Duration) {
    let (_open, never) = std::sync::mpsc::channel::<()>();
    while stream.write_all(byte).is_ok() {
        let _waited = never.recv_timeout(pace);
    }
}

#[tokio::test]
async fn slow_servers_are_given_up() {
    let silent = Server::new(|_, stream| dribble(stream, b"", Duration::from_secs(5)));
    let failed = body_of(&silent, 1000).await.map(|body| body.bytes);
    assert!(matches!(failed, Err(WebError::Silent { .. })), "{failed:?}");

    let stuck = Server::new(|_, stream| {
        let _gone = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\npart");
        dribble(stream, b"", Duration::from_secs(5));
    });
    let body = body_of(&stuck, 1000).await.unwrap();
    assert!(body.bytes == b"part" && format!("{:?}", body.end).contains("silent"), "{:?}", body.end);

    // A byte now and then keeps a connection alive, but not beyond the time for the whole of it.
    for begin in ["HTTP/1.1 200 OK\r\nx: ", "HTTP/1.1 200 OK\r\n\r\n"] {
        let loris = Server::new(move |_, stream| {
            let _gone = stream.write_all(begin.as_bytes());
            dribble(stream, b"y", Duration::from_millis(50));
        });
        let client = client(&[&loris]);
        let request = Request { until: Instant::now() + Duration::from_secs(1), ..get(&client, &loris.url("/")) };
        let started = Instant::now();
        let read = async { client.send(&request).await?.read(1000).await };
        match read.await {
            Err(error) => assert!(matches!(error, WebError::Late), "{error:?}"),
            Ok(body) => assert!(!body.bytes.is_empty() && matches!(body.end, BodyEnd::Broken(_))),
        }
        assert!(started.elapsed() < Duration::from_secs(10));
    }
}

#[tokio::test]
async fn nobody_there_is_told_of() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let rules = WebRules { allowed: vec![gone.to_string().parse().unwrap()], ..WebRules::default() };
    let client = WebClient::new(rules, FetchLimits::default());
    let failed = client.send(&get(&client, &format!("http://{gone}/"))).await.map(|response| response.status);
    assert!(matches!(&failed, Err(error @ WebError::Unreachable { .. }) if error.nothing_sent()), "{failed:?}");
    let failed = client.send(&get(&client, &format!("https://{gone}/"))).await.map(|response| response.status);
    assert!(failed.is_err(), "{failed:?}");
}
