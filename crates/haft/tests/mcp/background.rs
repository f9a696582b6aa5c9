//! Servers in the background of a session: which session reaches them, and that none outlives it.

use std::{
    fs,
    time::{Duration, Instant},
};

use serde_json::json;

use crate::{
    client::{Client, Era, MUTE},
    support::{Fixture, text, until},
};

/// How many processes have this word in their command line.
fn alive(word: &str) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| fs::read_to_string(process.path().join("cmdline")).ok());
    lines.filter(|line| line.contains(word)).count()
}

#[test]
fn a_session_reaches_its_own_servers_and_leaves_none_when_it_is_killed() {
    let fixture = Fixture::new();
    let [mut first, mut second] =
        [(); 2].map(|()| Client::with(&fixture, Era::Initialize, MUTE, &["--auto-approve", "all"]));
    let port = 40_000 + std::process::id() % 20_000;
    let marker = format!("served-{port}-{}", std::process::id());
    // Both listen at the same port, each in a network of its own.
    for (client, word) in [(&mut first, "one"), (&mut second, "two")] {
        fixture.put(&format!("{marker}-{word}/word"), word);
        let command = format!("exec python3 -m http.server {port} --bind 127.0.0.1 --directory {marker}-{word}");
        assert_ne!(client.call("shell_background", &json!({"command": command}))["isError"], json!(true));
    }
    let fetch = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())";
    let fetch = json!({"language": "python", "code": fetch, "args": [format!("http://127.0.0.1:{port}/word")]});
    for (client, word) in [(&mut first, "one\n"), (&mut second, "two\n")] {
        let said = until("an answer", || {
            let result = client.call("run_code", &fetch);
            (result["structuredContent"]["exitCode"] == json!(0)).then(|| text(&result["structuredContent"]["stdout"]))
        });
        assert_eq!(said, word);
    }
    first.kill();
    let killed = Instant::now();
    until("the end of the first server", || (alive(&format!("{marker}-one")) == 0).then_some(()));
    assert!(killed.elapsed() < Duration::from_secs(1), "it took {:?}", killed.elapsed());
    let result = second.call("run_code", &fetch);
    assert_eq!(result["structuredContent"]["stdout"], json!("two\n"), "{result:#}");
    assert!(second.leave().success());
    assert_eq!(alive(&marker), 0);
}
