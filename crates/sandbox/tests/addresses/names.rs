//! Names, and what they lead to.

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use haft_sandbox::web::{Bytes, FetchLimits, HeaderMap, Method, Request, Resolver, WebClient, WebError, WebRules};
use tokio::time::Instant;

use crate::servers::Server;

fn answers(answers: &'static [&'static str]) -> Resolver {
    Resolver::new(move |_| Ok(answers.iter().map(|answer| answer.parse::<IpAddr>().unwrap()).collect()))
}

async fn send(client: &WebClient, url: &str) -> Result<u16, WebError> {
    let target = client.target(url).unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    let request =
        Request { target, method: Method::GET, headers: HeaderMap::new(), body: Bytes::new(), until, silence: None };
    client.send(&request).await.map(|response| response.status.as_u16())
}

#[tokio::test]
async fn one_bad_answer_spoils_all() {
    for bad in [
        &["127.0.0.1"][..],
        &["8.8.8.8", "127.0.0.1"],
        &["10.0.0.1", "8.8.8.8"],
        &["169.254.169.254"],
        &["::1"],
        &["::ffff:127.0.0.1"],
        &["64:ff9b::7f00:1"],
        &["fd00:ec2::254"],
        &["2606:4700:4700::1111", "fe80::1"],
        &["0.0.0.0"],
        &["100.100.100.200"],
    ] {
        let client = WebClient::new(WebRules::default(), FetchLimits::default()).resolving_with(answers(bad));
        let refused = send(&client, "http://rebind.example.org/").await;
        assert!(matches!(refused, Err(WebError::Refused(_))), "{bad:?}: {refused:?}");
    }
}

#[tokio::test]
async fn what_was_checked_is_what_is_dialled() {
    let server = Server::saying("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    let port = server.address.port();
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    // The first answer is good, and every later one is bad: whoever looks a second time is led astray.
    let rebinding = Resolver::new(move |_| {
        let first = counted.fetch_add(1, Ordering::SeqCst) == 0;
        Ok(vec![if first { "127.0.0.1" } else { "127.0.0.2" }.parse().unwrap()])
    });
    let rules = WebRules { ports: vec![port], allowed: vec!["127.0.0.1".parse().unwrap()], ..WebRules::default() };
    let client = WebClient::new(rules, FetchLimits::default()).resolving_with(rebinding);
    let url = format!("http://rebind.example.org:{port}/");
    assert_eq!(send(&client, &url).await.unwrap(), 200);
    assert_eq!((asked.load(Ordering::SeqCst), server.hits()), (1, 1));
    assert!(server.request().contains(&format!("host: rebind.example.org:{port}\r\n")));
    let refused = send(&client, &url).await;
    assert!(matches!(refused, Err(WebError::Refused(_))), "{refused:?}");
    assert_eq!(server.hits(), 1);
}

#[tokio::test]
async fn a_named_host_may_lead_anywhere_and_an_address_is_not_looked_up() {
    let server = Server::saying("HTTP/1.1 204 X\r\n\r\n");
    let port = server.address.port();
    let rules = WebRules { allowed: vec![format!("wiki:{port}").parse().unwrap()], ..WebRules::default() };
    let client = WebClient::new(rules, FetchLimits::default()).resolving_with(answers(&["127.0.0.1"]));
    assert_eq!(send(&client, &format!("http://wiki:{port}/")).await.unwrap(), 204);
    assert!(client.target(&format!("http://127.0.0.1:{port}/")).is_err());

    let rules = WebRules { allowed: vec![server.address.to_string().parse().unwrap()], ..WebRules::default() };
    let never = Resolver::new(|name| panic!("{name} was looked up"));
    let client = WebClient::new(rules, FetchLimits::default()).resolving_with(never);
    assert_eq!(send(&client, &server.url("/")).await.unwrap(), 204);
}

#[tokio::test]
async fn a_resolver_that_takes_for_ever_or_knows_nothing_is_told_of() {
    let limits = FetchLimits { connect: Duration::from_millis(50), ..FetchLimits::default() };
    let (_open, held) = std::sync::mpsc::channel::<()>();
    let held = std::sync::Mutex::new(held);
    let slow = Resolver::new(move |_| {
        let _waited = held.lock().unwrap().recv_timeout(Duration::from_secs(2));
        Ok(Vec::new())
    });
    let client = WebClient::new(WebRules::default(), limits).resolving_with(slow);
    let late = send(&client, "http://example.org/").await;
    assert!(matches!(late, Err(WebError::SlowToConnect { .. })), "{late:?}");
    let client = WebClient::new(WebRules::default(), FetchLimits::default()).resolving_with(answers(&[]));
    let unknown = send(&client, "http://example.org/").await;
    assert!(matches!(unknown, Err(WebError::Unresolved { .. })), "{unknown:?}");
}
