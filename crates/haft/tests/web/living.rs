//! A haft that lives between calls: answers that still hold, and fetches that are stopped.

use std::{io::Write, path::Path, time::Duration};

use haft::{
    house::{self, House},
    settings::Settings,
};
use haft_runtime::{CallRequest, Outcome};
use haft_store::{Durability, Store};
use serde_json::{Value, json};

use crate::server::Server;

async fn living(folder: &Path, server: &Server) -> House {
    let mut settings = Settings::defaults(folder.join("data"));
    settings.web.allow = vec![server.address.to_string().parse().unwrap()];
    settings.web.allowlist = vec![server.address.to_string().parse().unwrap()];
    settings.web.silence = Duration::from_secs(60);
    let store = Store::open(&settings.data, Durability::Normal).await.unwrap();
    let work = folder.join("work");
    std::fs::create_dir(&work).unwrap();
    house::living(settings, store, &work.canonicalize().unwrap()).await.unwrap()
}

async fn fetch(house: &House, input: Value) -> Outcome {
    house.pipeline.call(CallRequest::new(house.caller.clone(), "web_fetch", input)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_given_again_as_long_as_its_host_says_that_it_holds() {
    for (headers, again) in [
        ("cache-control: max-age=600\r\n", true),
        ("", false),
        ("cache-control: no-store, max-age=600\r\n", false),
        ("cache-control: max-age=600\r\nage: 600\r\n", false),
        ("cache-control: max-age=600\r\nset-cookie: a=b\r\n", false),
    ] {
        let server = Server::new(move |_, stream| {
            let _gone = write!(stream, "HTTP/1.1 200 OK\r\n{headers}content-length: 2\r\n\r\nhi");
        });
        let folder = tempfile::tempdir().unwrap();
        let house = living(folder.path(), &server).await;
        let first = fetch(&house, json!({"url": server.url("/")})).await;
        assert_eq!((first.end.status(), first.cached), ("success", false));
        assert_eq!(fetch(&house, json!({"url": server.url("/")})).await.cached, again, "{headers}");
        assert!(!fetch(&house, json!({"url": server.url("/other")})).await.cached);
        let private = json!({"url": server.url("/"), "headers": {"Authorization": "Bearer x"}});
        fetch(&house, private.clone()).await;
        assert!(!fetch(&house, private).await.cached, "what is for one is for no other");
        house.close().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_its_host_still_stands_by_is_not_sent_twice() {
    for mark in ["etag: \"one\"", "last-modified: Sun, 06 Nov 1994 08:49:37 GMT"] {
        let server = Server::new(move |request, stream| {
            let asks = ["if-none-match: \"one\"", "if-modified-since: Sun, 06 Nov 1994 08:49:37 GMT"];
            let knows = request.lines().any(|line| asks.iter().any(|ask| line.eq_ignore_ascii_case(ask)));
            let _gone = match (request.contains(" /gone "), knows) {
                (false, true) => write!(stream, "HTTP/1.1 304 Not Modified\r\n{mark}\r\nx-now: yes\r\n\r\n"),
                (false, false) => write!(stream, "HTTP/1.1 200 OK\r\n{mark}\r\ncontent-length: 2\r\n\r\nhi"),
                (true, _) => write!(stream, "HTTP/1.1 200 OK\r\n{mark}\r\nvary: *\r\ncontent-length: 2\r\n\r\nhi"),
            };
        });
        let folder = tempfile::tempdir().unwrap();
        let house = living(folder.path(), &server).await;
        let read = async |input: Value| serde_json::to_value(fetch(&house, input).await).unwrap();
        let plain = json!({"url": server.url("/")});
        assert_eq!(read(plain.clone()).await["result"]["metadata"]["confirmed"], Value::Null);
        let again = read(plain.clone()).await;
        let said = &again["result"]["structured"];
        assert_eq!((&said["status"], &said["body"]), (&json!(200), &json!("hi")), "{mark}: {again}");
        assert_eq!(said["headers"]["x-now"], "yes", "{mark}: {again}");
        assert_eq!(again["result"]["metadata"]["confirmed"], true, "{mark}: {again}");
        let asks = json!({"url": server.url("/"), "headers": {"If-None-Match": "\"one\""}});
        assert_eq!(read(asks).await["result"]["structured"]["status"], 304, "who asks it itself is told so");
        for input in [json!({"url": server.url("/gone")}), json!({"url": server.url("/"), "headers": {"Cookie": "a"}})]
        {
            read(input.clone()).await;
            let twice = read(input).await;
            assert_eq!(twice["result"]["metadata"]["confirmed"], Value::Null, "{mark}: {twice}");
        }
        house.close().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fetch_that_is_stopped_ends_at_once() {
    let (_open, held) = std::sync::mpsc::channel::<()>();
    let held = std::sync::Mutex::new(held);
    let mute = Server::new(move |_, _| {
        let _never = held.lock().unwrap().recv_timeout(Duration::from_secs(60));
    });
    let folder = tempfile::tempdir().unwrap();
    let house = living(folder.path(), &mute).await;
    let request = CallRequest::new(house.caller.clone(), "web_fetch", json!({"url": mute.url("/")}));
    let cancel = request.cancel.clone();
    let (outcome, stopped) = tokio::join!(house.pipeline.call(request), async {
        let arrived = tokio::task::spawn_blocking(move || mute.request());
        arrived.await.unwrap();
        let stopped = std::time::Instant::now();
        cancel.cancel();
        stopped
    });
    assert_eq!(outcome.end.status(), "cancelled");
    assert!(stopped.elapsed() < Duration::from_millis(900), "{:?}", stopped.elapsed());
    house.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_that_broke_off_may_have_happened_and_is_not_sent_again() {
    let rude = Server::new(|_, _| {});
    let folder = tempfile::tempdir().unwrap();
    let house = living(folder.path(), &rude).await;
    let input = json!({"url": rude.url("/"), "method": "POST", "body": "x"});
    let mut request = CallRequest::new(house.caller.clone(), "web_fetch", input);
    request.auto_approve = haft_runtime::AutoApprove::Everything;
    let outcome = serde_json::to_value(house.pipeline.call(request).await).unwrap();
    assert_eq!(outcome["error"]["code"], "OUTCOME_UNKNOWN", "{outcome}");
    assert_eq!(rude.others(), 1);
    let read = serde_json::to_value(fetch(&house, json!({"url": rude.url("/")})).await).unwrap();
    assert_eq!((&read["error"]["code"], rude.others()), (&json!("NETWORK_ERROR"), 4), "a read is tried again: {read}");
    house.close().await.unwrap();
}
