//! Servers that want a login, and the user who has one.

use std::{
    io::{BufRead, BufReader, Read},
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};

use crate::{
    bench::Bench,
    guarded_peer::{GuardedPeer, said_yes, sent},
};

fn bench(peer: &GuardedPeer) -> Bench {
    let bench = Bench::new();
    bench.settings(&format!("[mcp.servers.fake]\nurl = '{}'\n", peer.url()));
    bench
}

/// `haft mcp-servers login` under way, and the link that it prints.
fn begun(bench: &Bench) -> (Child, String) {
    let mut command: Command = bench.0.haft(&["mcp-servers", "login", "fake", "--print"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut link = String::new();
    let mut lines = BufReader::new(child.stdout.as_mut().unwrap());
    lines.read_line(&mut link).unwrap();
    assert!(link.starts_with("http"), "{link}{}", {
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        said
    });
    (child, link.trim().to_owned())
}

fn log_in(bench: &Bench, name: &str) -> (u16, String) {
    let (child, link) = begun(bench);
    let (status, _, page) = sent("GET", &said_yes(&link, name), "");
    let ended = child.wait_with_output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    (status, page)
}

fn state(bench: &Bench) -> Value {
    bench.0.json(&["mcp-servers"])[0]["state"].clone()
}

#[test]
fn a_login_is_made_in_the_browser_used_by_all_and_given_up() {
    let peer = GuardedPeer::start();
    let bench = bench(&peer);
    let (code, said) = bench.fails("whoami", &json!({}));
    assert!(code == "NEEDS_LOGIN" && said.contains("run `haft mcp-servers login fake`"), "{code}: {said}");
    assert_eq!(state(&bench), "needs login");
    let listed = bench.servers(&[]).stdout;
    assert!(listed.contains("needs login") && listed.contains("haft mcp-servers login fake"), "{listed}");

    let (child, link) = begun(&bench);
    let back = said_yes(&link, "me");
    let forged = back.replace("state=", "state=x");
    assert_eq!(sent("GET", &forged, "").0, 404, "another's answer is none");
    let (status, _, page) = sent("GET", &back, "");
    assert!(status == 200 && page.contains("You are logged in."), "{page}");
    assert!(child.wait_with_output().unwrap().status.success());
    assert_eq!(state(&bench), "ready");
    assert_eq!(bench.does("whoami", &json!({}))["content"], "me");
    let told = bench.does("tell", &json!({}))["content"].as_str().unwrap().to_owned();
    let said = told + &bench.0.run(&["log", "--json"]).said() + &bench.servers(&["--json"]).said();
    assert!(!peer.tokens().iter().any(|token| said.contains(token)), "{said}");

    assert_eq!(bench.servers(&["logout", "fake"]).code, Some(0));
    assert_eq!((peer.count("revoke"), state(&bench)), (1, json!("needs login")));
    assert_eq!(bench.fails("whoami", &json!({})).0, "NEEDS_LOGIN");
    assert_eq!(bench.servers(&["logout", "fake"]).code, Some(1));
}

#[test]
fn ten_processes_fetch_one_token() {
    let peer = GuardedPeer::start();
    let bench = bench(&peer);
    log_in(&bench, "me");
    peer.fault(&json!({"forget": true}));
    std::thread::scope(|scope| {
        let calls: Vec<_> = (0..10).map(|_| scope.spawn(|| bench.does("whoami", &json!({})))).collect();
        for call in calls {
            assert_eq!(call.join().unwrap()["content"], "me");
        }
    });
    assert_eq!(peer.count("refresh"), 1, "one request for all of them");
}

#[test]
fn a_login_that_is_refused_says_so() {
    let peer = GuardedPeer::start();
    let bench = bench(&peer);
    peer.fault(&json!({"iss": "https://other.example"}));
    let (child, link) = begun(&bench);
    let (_, _, page) = sent("GET", &said_yes(&link, "me"), "");
    assert!(page.contains("You are not logged in."), "{page}");
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(!ended.status.success() && said.contains("another authorization server answered"), "{said}");
    let started = bench.servers(&["login", "nothing"]);
    assert!(started.said().contains("there is no server `nothing`"), "{}", started.said());
}
