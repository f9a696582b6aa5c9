//! Connections that are slow, silent, too many or nonsense.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;

use axum::{
    Router,
    body::{Body, Bytes},
    http::{HeaderMap, StatusCode},
    middleware::from_fn,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use futures_util::stream;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::{Notify, oneshot},
    task::JoinHandle,
    time::{Duration, Instant, advance, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{LINGER, serve};
use crate::{
    pace::{HEAD_WITHIN, SILENCE, TAKEN_WITHIN},
    refusal,
    route::whole_body,
};

/// A server of its own for one test.
struct Served {
    address: std::net::SocketAddr,
    stop: CancellationToken,
    /// Tells that `/wait` was asked.
    asked: Arc<Notify>,
    /// Lets `/wait` answer.
    go_on: Arc<Notify>,
    ended: JoinHandle<std::io::Result<()>>,
}

async fn limited(headers: HeaderMap, body: Body) -> Response {
    whole_body(&headers, body, 1 << 20)
        .await
        .map_or_else(IntoResponse::into_response, |_| StatusCode::OK.into_response())
}

impl Served {
    async fn start(most: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, stop, go_on) =
            (listener.local_addr().unwrap(), CancellationToken::new(), Arc::new(Notify::new()));
        let asked = Arc::new(Notify::new());
        let (asks, waits) = (asked.clone(), go_on.clone());
        let wait = move || async move {
            asks.notify_one();
            waits.notified().await;
            "waited"
        };
        let router = Router::new()
            .route("/", get(|| async { "hello" }))
            .route("/wait", get(wait))
            .route("/panic", get(|| async { if true { panic!("canary-of-a-panic") } else { "" } }))
            .route("/limited", post(limited))
            .layer(from_fn(refusal::shape));
        let ended = tokio::spawn(serve(listener, router, most, stop.clone()));
        Self { address, stop, asked, go_on, ended }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// All that is answered to these bytes until the connection ends.
    async fn said_to(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect().await;
        stream.write_all(bytes).await.unwrap();
        until_the_end(&mut stream).await
    }
}

const HELLO: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";

async fn until_the_end(stream: &mut TcpStream) -> String {
    let mut said = Vec::new();
    // An end by force is an end.
    stream.read_to_end(&mut said).await.ok();
    String::from_utf8_lossy(&said).into_owned()
}

async fn hello(stream: &mut TcpStream) -> bool {
    if stream.write_all(HELLO).await.is_err() {
        return false;
    }
    let mut said = Vec::new();
    while !said.ends_with(b"hello") {
        let mut some = [0; 512];
        match stream.read(&mut some).await {
            Ok(0) | Err(_) => return false,
            Ok(length) => said.extend_from_slice(&some[..length]),
        }
    }
    true
}

#[tokio::test]
async fn the_head_of_every_request_must_come_in_time() {
    let served = Served::start(10).await;
    for begun in [&b""[..], b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\n"] {
        for asked_before in [false, true] {
            if begun.is_empty() && asked_before {
                continue;
            }
            let mut client = served.connect().await;
            if asked_before {
                assert!(hello(&mut client).await);
            }
            client.write_all(begun).await.unwrap();
            tokio::time::pause();
            let began = Instant::now();
            assert_eq!(until_the_end(&mut client).await, "");
            let took = began.elapsed();
            assert!(took >= HEAD_WITHIN - Duration::from_secs(1) && took < HEAD_WITHIN * 2, "{begun:?}: {took:?}");
            tokio::time::resume();
        }
    }
}

#[tokio::test]
async fn a_head_in_small_pieces_has_no_more_time() {
    let served = Served::start(10).await;
    let mut client = served.connect().await;
    tokio::time::pause();
    let began = Instant::now();
    let ended = loop {
        if client.write_all(b"x").await.is_err() {
            break began.elapsed();
        }
        let mut some = [0; 64];
        match timeout(Duration::from_secs(1), client.read(&mut some)).await {
            Ok(Ok(0) | Err(_)) => break began.elapsed(),
            Ok(Ok(_)) => panic!("nothing was asked"),
            Err(_) => {}
        }
    };
    assert!(ended < HEAD_WITHIN * 2, "{ended:?}");
}

#[tokio::test]
async fn a_connection_may_be_idle_for_a_while_and_not_for_ever() {
    let served = Served::start(10).await;
    let mut client = served.connect().await;
    assert!(hello(&mut client).await);
    tokio::time::pause();
    advance(SILENCE - Duration::from_secs(5)).await;
    tokio::time::resume();
    assert!(hello(&mut client).await, "it is kept for the next request");
    tokio::time::pause();
    let began = Instant::now();
    assert_eq!(until_the_end(&mut client).await, "");
    assert!(began.elapsed() >= SILENCE - Duration::from_secs(1), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_handler_may_work_longer_than_anybody_may_be_silent() {
    let served = Served::start(10).await;
    let mut client = served.connect().await;
    client.write_all(b"GET /wait HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut some = [0; 1];
    tokio::time::pause();
    timeout(SILENCE * 3, client.peek(&mut some)).await.unwrap_err();
    tokio::time::resume();
    served.go_on.notify_one();
    assert!(until_the_end(&mut client).await.ends_with("waited"));
}

/// Tells when it is dropped.
struct Told(Option<oneshot::Sender<()>>);

impl Drop for Told {
    fn drop(&mut self) {
        self.0.take().unwrap().send(()).ok();
    }
}

#[tokio::test]
async fn whoever_does_not_read_the_answer_is_given_up_on() {
    let (tell, told) = oneshot::channel();
    let endless = Arc::new(std::sync::Mutex::new(Some(Told(Some(tell)))));
    let handler = move || {
        let told = endless.lock().unwrap().take().unwrap();
        let piece = Bytes::from(vec![b'x'; 64 << 10]);
        let pieces = stream::unfold((told, piece), |(told, piece)| async move {
            Some((Ok::<_, std::convert::Infallible>(piece.clone()), (told, piece)))
        });
        async move { Body::from_stream(pieces) }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().route("/", get(handler));
    tokio::spawn(serve(listener, router, 10, CancellationToken::new()));
    let mut client = TcpStream::connect(address).await.unwrap();
    client.write_all(HELLO).await.unwrap();
    let mut some = [0; 1024];
    assert!(client.read(&mut some).await.unwrap() > 0);
    tokio::time::pause();
    let began = Instant::now();
    timeout(TAKEN_WITHIN * 3, told).await.expect("it is given up on").unwrap();
    assert!(began.elapsed() >= TAKEN_WITHIN - Duration::from_secs(1), "{:?}", began.elapsed());
}

fn error_of(said: &str) -> (String, String) {
    let (head, body) = said.split_once("\r\n\r\n").unwrap_or((said, ""));
    let body: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
    let status = head.split(' ').nth(1).unwrap_or_default().to_owned();
    (status, body["error"]["code"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn what_cannot_be_read_is_refused_in_the_one_shape() {
    let served = Served::start(10).await;
    let many: String = (0..101).map(|n| format!("x{n}: y\r\n")).collect();
    let long = "y".repeat(refusal::LONGEST_HEAD);
    for (head, status, code) in [
        (format!("GET / HTTP/1.1\r\nHost: x\r\nx: {long}\r\n\r\n"), "431", "TOO_LARGE"),
        (format!("GET / HTTP/1.1\r\nHost: x\r\nx: {long}"), "431", "TOO_LARGE"),
        (format!("GET / HTTP/1.1\r\nHost: x\r\n{many}\r\n"), "431", "TOO_LARGE"),
        (format!("GET /{} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", &long[..9000]), "414", "TOO_LARGE"),
        (format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "y".repeat(1 << 20)), "431", "TOO_LARGE"),
        ("\x16\x03\x01\x02\x00\x01\r\n\r\n".to_owned(), "400", "INVALID_ARGS"),
        ("GET / HTTP/1.1\r\nHost : x\r\n\r\n".to_owned(), "400", "INVALID_ARGS"),
        ("GET / HTTP/1.1\r\nHost: x\r\nx: a\0b\r\n\r\n".to_owned(), "400", "INVALID_ARGS"),
        ("GET /\u{1} HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), "400", "INVALID_ARGS"),
        ("GET / HTTP/3.0\r\nHost: x\r\n\r\n".to_owned(), "400", "INVALID_ARGS"),
        (
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n".to_owned(),
            "400",
            "INVALID_ARGS",
        ),
        ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n".to_owned(), "400", "INVALID_ARGS"),
        ("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n".to_owned(), "400", "INVALID_ARGS"),
        ("POST / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(), "400", "INVALID_ARGS"),
    ] {
        let said = served.said_to(head.as_bytes()).await;
        let shown = &head[..head.len().min(60)];
        assert_eq!(error_of(&said), (status.to_owned(), code.to_owned()), "{shown:?}: {said}");
    }
    let mut after_another = served.connect().await;
    assert!(hello(&mut after_another).await);
    after_another.write_all(b"nonsense\r\n\r\n").await.unwrap();
    assert_eq!(error_of(&until_the_end(&mut after_another).await).0, "400");
}

#[tokio::test]
async fn a_fault_in_a_handler_ends_one_request_and_says_nothing_of_itself() {
    let served = Served::start(10).await;
    let said = served.said_to(b"GET /panic HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
    assert_eq!(error_of(&said), ("500".to_owned(), "INTERNAL".to_owned()), "{said}");
    assert!(!said.contains("canary"), "{said}");
    assert!(hello(&mut served.connect().await).await);
}

#[tokio::test]
async fn an_answer_to_a_body_that_is_not_read_is_not_lost() {
    let served = Served::start(10).await;
    let mut client = served.connect().await;
    let head = format!("POST /limited HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", 100 << 20);
    client.write_all(head.as_bytes()).await.unwrap();
    // What a client sends on while it is refused.
    let (mut hears, mut says) = client.into_split();
    let sending = tokio::spawn(async move { says.write_all(&vec![b'x'; 8 << 20]).await });
    let mut said = Vec::new();
    hears.read_to_end(&mut said).await.ok();
    assert_eq!(error_of(&String::from_utf8_lossy(&said)), ("413".to_owned(), "TOO_LARGE".to_owned()));
    sending.abort();
}

#[tokio::test]
async fn bodies_that_lie_or_never_end_are_refused() {
    let served = Served::start(10).await;
    let chunked = "POST /limited HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    let endless = format!("{chunked}{}", format!("10000\r\n{}\r\n", "x".repeat(0x10000)).repeat(20));
    assert_eq!(error_of(&served.said_to(endless.as_bytes()).await).0, "413");
    let nonsense = format!("{chunked}zz\r\nxx\r\n0\r\n\r\n");
    assert!(!served.said_to(nonsense.as_bytes()).await.starts_with("HTTP/1.1 200"));
    // It tells of more than it sends, then says that nothing more comes.
    let mut client = served.connect().await;
    client.write_all(b"POST /limited HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nshort").await.unwrap();
    client.shutdown().await.unwrap();
    assert!(!until_the_end(&mut client).await.starts_with("HTTP/1.1 200"));
    // It tells of more than it sends, and waits.
    let mut client = served.connect().await;
    client.write_all(b"POST /limited HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nshort").await.unwrap();
    tokio::time::pause();
    let said = timeout(Duration::from_secs(60), until_the_end(&mut client)).await.unwrap();
    assert_eq!(error_of(&said), ("408".to_owned(), "TIMEOUT".to_owned()), "{said}");
}

#[tokio::test]
async fn requests_one_behind_the_other_are_answered_in_order() {
    let served = Served::start(10).await;
    let both = b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET /none HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let said = served.said_to(both).await;
    let (first, second) = (said.find("HTTP/1.1 200").unwrap(), said.find("HTTP/1.1 404").unwrap());
    assert!(first < second, "{said}");
    // What a proxy could take for the body must not be taken for a request.
    let smuggled = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 60\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n\
                    GET /panic HTTP/1.1\r\nHost: x\r\n\r\n";
    let said = served.said_to(smuggled.as_bytes()).await;
    assert_eq!(said.matches("HTTP/1.1 ").count(), 1, "{said}");
}

#[tokio::test]
async fn whoever_asks_for_a_word_first_gets_it_only_where_the_body_is_wanted() {
    let served = Served::start(10).await;
    let head = |length: usize| {
        format!(
            "POST /limited HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
        )
    };
    let refused = served.said_to(head(2 << 20).as_bytes()).await;
    assert!(refused.starts_with("HTTP/1.1 413"), "{refused}");
    let mut client = served.connect().await;
    client.write_all(head(2).as_bytes()).await.unwrap();
    let mut word = [0; 25];
    client.read_exact(&mut word).await.unwrap();
    assert_eq!(&word, b"HTTP/1.1 100 Continue\r\n\r\n");
    client.write_all(b"{}").await.unwrap();
    assert!(until_the_end(&mut client).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn old_clients_are_answered() {
    let served = Served::start(10).await;
    let said = served.said_to(b"GET / HTTP/1.0\r\n\r\n").await;
    assert!(said.starts_with("HTTP/1.0 200") && said.ends_with("hello"), "{said}");
}

#[tokio::test]
async fn whoever_says_nothing_makes_room_for_others() {
    let served = Served::start(2).await;
    let (mut first, mut second) = (served.connect().await, served.connect().await);
    assert!(hello(&mut second).await, "both are there");
    let mut asks = served.connect().await;
    asks.write_all(b"GET /wait HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.unwrap();
    served.asked.notified().await;
    assert_eq!(until_the_end(&mut first).await, "", "the one that said nothing for the longest time has to go");
    assert!(hello(&mut second).await, "the other one may stay");
    let mut another = served.connect().await;
    assert!(hello(&mut another).await);
    assert!(!hello(&mut second).await, "then it was the next");
    served.go_on.notify_one();
    assert!(until_the_end(&mut asks).await.ends_with("waited"), "what is worked on stays");
}

#[tokio::test]
async fn when_all_are_busy_the_next_one_waits() {
    let served = Served::start(1).await;
    let mut busy = served.connect().await;
    busy.write_all(b"GET /wait HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.unwrap();
    served.asked.notified().await;
    let mut next = served.connect().await;
    next.write_all(HELLO).await.unwrap();
    let mut some = [0; 1];
    timeout(Duration::from_millis(200), next.peek(&mut some)).await.unwrap_err();
    served.go_on.notify_one();
    assert!(until_the_end(&mut busy).await.ends_with("waited"));
    drop(busy);
    assert!(timeout(LINGER * 2, next.peek(&mut some)).await.unwrap().unwrap() > 0);
}

#[tokio::test]
async fn it_ends_when_what_is_under_way_has_ended() {
    let served = Served::start(10).await;
    let (mut idle, mut busy) = (served.connect().await, served.connect().await);
    assert!(hello(&mut idle).await);
    busy.write_all(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    served.asked.notified().await;
    served.stop.cancel();
    assert_eq!(until_the_end(&mut idle).await, "");
    assert!(!served.ended.is_finished());
    served.go_on.notify_one();
    assert!(until_the_end(&mut busy).await.contains("waited"));
    timeout(Duration::from_secs(5), served.ended).await.unwrap().unwrap().unwrap();
}
