//! Upstream servers that want a login, through a real `haft serve`: how people log in there, whose token is sent, and what an
//! attacker gets.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "serve_login/attacks.rs"]
mod attacks;
mod guarded_peer;
mod http_client;
#[path = "serve_login/refresh.rs"]
mod refresh;

use guarded_peer::{GuardedPeer, entry, path_of, said_yes};
use http_client::{Answer, Gateway, clients_python, person::Person};
use serde_json::{Value, json};

const EVERYTHING: &str = "tools:read,tools:execute,tools:write,mcp:manage";
const WHOAMI: &str = "/api/tools/mcp__docs__whoami/calls";

/// A gateway with a tenant that may reach a server.
pub(crate) fn site(peer: &GuardedPeer) -> Gateway {
    let served = Gateway::start();
    served.admin(&["tenant", "add", "acme"]);
    served.admin(&["tenant", "set", "acme", "--allow", &peer.host()]);
    served
}

/// Adds the server, so that people of the tenant can log in there.
pub(crate) fn added(person: &Person<'_>, peer: &GuardedPeer, oauth: &Value) {
    let added = person.post("/api/servers", entry(peer, oauth));
    assert_eq!(added.status, 201, "{added:?}");
}

pub(crate) fn link(person: &Person<'_>) -> String {
    let begun = person.post("/api/servers/docs/login", json!({}));
    assert_eq!(begun.status, 200, "{begun:?}");
    begun.body["url"].as_str().unwrap().to_owned()
}

/// Goes where the link leads, says yes there as somebody, and comes back.
pub(crate) fn log_in(person: &Person<'_>, name: &str) -> Answer {
    person.get(&path_of(&said_yes(&link(person), name)))
}

pub(crate) fn logged_in(person: &Person<'_>, name: &str) {
    let back = log_in(person, name);
    let page = text(&back);
    assert!(back.status == 200 && page.contains("You are logged in at docs."), "{page}");
}

pub(crate) fn text(answer: &Answer) -> String {
    answer.body.as_str().map_or_else(|| answer.body.to_string(), str::to_owned)
}

pub(crate) fn state(person: &Person<'_>) -> Value {
    person.get("/api/servers/docs").body["state"].clone()
}

pub(crate) fn whoami(person: &Person<'_>) -> Value {
    person.post(WHOAMI, json!({"input": {}})).body
}

pub(crate) fn is_nobody(outcome: &Value) {
    assert_eq!(outcome["error"]["code"], "NEEDS_LOGIN", "{outcome}");
    let said = outcome["error"]["message"].as_str().unwrap();
    assert!(said.contains("needs a login") && said.contains("`POST /api/servers/docs/login`"), "{said}");
}

#[test]
fn each_person_logs_in_for_themselves_and_nobody_uses_the_login_of_another() {
    let peer = GuardedPeer::start();
    let served = site(&peer);
    let [ann, bob] =
        ["ann", "bob"].map(|name| Person::added(&served, &format!("{name}@acme.example"), "acme", "admin"));
    added(&ann, &peer, &json!({}));
    ann.post("/api/servers/docs/refresh", json!({}));
    assert_eq!((state(&ann), state(&bob)), (json!("needs_login"), json!("needs_login")));
    is_nobody(&whoami(&ann));

    logged_in(&ann, "ann-there");
    assert_eq!((state(&ann), state(&bob)), (json!("ready"), json!("needs_login")));
    assert_eq!(whoami(&ann)["result"]["content"], "ann-there");
    assert!(ann.get("/api/tools?category=mcp").body.to_string().contains("mcp__docs__whoami"));
    assert!(bob.get("/api/tools?category=mcp").body.to_string().contains("mcp__docs__whoami"), "it stays listed");
    is_nobody(&whoami(&bob));
    logged_in(&bob, "bob-there");
    for _ in 0..3 {
        assert_eq!(whoami(&ann)["result"]["content"], "ann-there");
        assert_eq!(whoami(&bob)["result"]["content"], "bob-there");
    }

    // A key acts with the person behind it, and one of the operator with nobody.
    let made = ann.post("/api/keys", json!({"name": "k", "scopes": ["tools:read", "tools:execute"]}));
    let key = made.body["key"].as_str().unwrap_or_else(|| panic!("{made:?}")).to_owned();
    assert_eq!(served.post(WHOAMI, &json!({"input": {}}), Some(&key)).body["result"]["content"], "ann-there");
    let of_operator = served.key("op", "acme", EVERYTHING);
    is_nobody(&served.post(WHOAMI, &json!({"input": {}}), Some(&of_operator)).body);
    assert_eq!(served.post("/api/servers/docs/login", &json!({}), Some(&of_operator)).status, 403);

    // What the server tells of its token is passed on to nobody.
    let told = ann.post("/api/tools/mcp__docs__tell/calls", json!({"input": {}})).body;
    assert!(told["result"]["content"].as_str().unwrap().starts_with("it came with "), "{told}");
    let everything = [
        told.to_string(),
        ann.get("/api/servers/docs").body.to_string(),
        ann.get("/api/calls?limit=50").body.to_string(),
        ann.get("/api/audit").body.to_string(),
        served.log(),
    ];
    let tokens = peer.tokens();
    assert!(tokens.len() >= 4, "{tokens:?}");
    for token in &tokens {
        assert!(!everything.iter().any(|text| text.contains(token)), "{token}");
        assert!(!is_in_files(&served.data(), token), "{token} lies open in the data folder");
    }

    assert_eq!(ann.ask("DELETE", "/api/servers/docs/login", None).status, 200);
    assert_eq!((peer.count("revoke"), state(&ann), state(&bob)), (1, json!("needs_login"), json!("ready")));
    is_nobody(&whoami(&ann));
    assert_eq!(whoami(&bob)["result"]["content"], "bob-there");
    assert_eq!(ann.ask("DELETE", "/api/servers/docs/login", None).status, 404);
    assert_eq!((served.acts("acme", "server.logged_in"), served.acts("acme", "server.logged_out")), (2, 1));
    assert_eq!(peer.count("foreign"), 0, "nothing else was ever sent as a token");
}

/// Whether a text lies in a file of a folder as it is.
fn is_in_files(folder: &std::path::Path, text: &str) -> bool {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let holds = |file: &std::path::Path| {
        let bytes = std::fs::read(file).unwrap_or_default();
        bytes.windows(text.len()).any(|part| part == text.as_bytes())
    };
    entries.into_iter().any(|path| if path.is_dir() { is_in_files(&path, text) } else { holds(&path) })
}

#[test]
fn one_login_for_the_whole_tenant_is_made_by_whoever_manages_servers() {
    let peer = GuardedPeer::start();
    let served = site(&peer);
    let ann = Person::added(&served, "ann@acme.example", "acme", "admin");
    let bob = Person::added(&served, "bob@acme.example", "acme", "member");
    added(&ann, &peer, &json!({"for": "tenant", "scopes": ["read", "admin"]}));
    is_nobody(&whoami(&bob));
    let refused = bob.post("/api/servers/docs/login", json!({}));
    assert!(refused.status == 403 && refused.body.to_string().contains("mcp.tenant.manage"), "{refused:?}");
    assert_eq!(bob.ask("DELETE", "/api/servers/docs/login", None).status, 403);
    logged_in(&ann, "all-of-acme");
    assert_eq!(whoami(&bob)["result"]["content"], "all-of-acme");
    let of_operator = served.key("op", "acme", EVERYTHING);
    let by_key = served.post(WHOAMI, &json!({"input": {}}), Some(&of_operator)).body;
    assert_eq!(by_key["result"]["content"], "all-of-acme", "{by_key}");
    assert_eq!(bob.post("/api/tools/mcp__docs__admin/calls", json!({"input": {}})).body["status"], "success");
    // Another tenant has nothing of it, at the same server by the same name.
    served.admin(&["tenant", "add", "bolt"]);
    served.admin(&["tenant", "set", "bolt", "--allow", &peer.host()]);
    let eve = Person::added(&served, "eve@bolt.example", "bolt", "admin");
    added(&eve, &peer, &json!({"for": "tenant"}));
    is_nobody(&whoami(&eve));
    // Where the server is somewhere else, the login is none.
    let elsewhere = GuardedPeer::start();
    served.admin(&["tenant", "set", "acme", "--allow", &elsewhere.host()]);
    assert_eq!(ann.ask("PATCH", "/api/servers/docs", Some(json!({"url": elsewhere.url()}))).status, 200);
    is_nobody(&whoami(&bob));
    assert_eq!((elsewhere.count("foreign"), peer.count("foreign")), (0, 0));
}

#[test]
fn a_tool_that_needs_more_rights_asks_for_them_once() {
    let peer = GuardedPeer::start();
    let served = site(&peer);
    let ann = Person::added(&served, "ann@acme.example", "acme", "admin");
    added(&ann, &peer, &json!({}));
    logged_in(&ann, "ann");
    let admin = || ann.post("/api/tools/mcp__docs__admin/calls", json!({"input": {}})).body;
    let refused = admin();
    assert_eq!(refused["error"]["code"], "NEEDS_LOGIN", "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("with more rights (admin)"), "{refused}");
    assert_eq!(whoami(&ann)["result"]["content"], "ann", "the rest works as before");
    let wanted = link(&ann);
    assert!(wanted.contains("scope=read+admin"), "{wanted}");
    logged_in(&ann, "ann");
    assert_eq!(admin()["result"]["content"], "admin ann");
    assert_eq!(peer.count("register"), 1, "haft is registered once");
}

#[test]
fn a_real_server_with_a_login_is_used() {
    let peer = GuardedPeer::running(clients_python().as_os_str(), "serve_login/fast_login.py");
    let served = site(&peer);
    let ann = Person::added(&served, "ann@acme.example", "acme", "admin");
    added(&ann, &peer, &json!({}));
    is_nobody(&whoami(&ann));
    let back = log_in(&ann, "ann");
    assert_eq!(back.status, 200, "{back:?}");
    let called = ann.post("/api/tools/mcp__docs__add/calls", json!({"input": {"a": 2, "b": 3}})).body;
    assert_eq!(called["result"]["content"], "5", "{called}");
    assert_eq!(ann.ask("DELETE", "/api/servers/docs/login", None).status, 200);
    let called = ann.post("/api/tools/mcp__docs__add/calls", json!({"input": {"a": 2, "b": 3}})).body;
    is_nobody(&called);
}

#[test]
fn where_people_reach_haft_by_https_it_describes_itself_instead_of_registering() {
    let peer = GuardedPeer::start();
    let mut served = Gateway::start_as(&["--public-url", "https://haft.example"], &[]);
    served.url = format!("http://127.0.0.1:{}", served.listening_port());
    served.admin(&["tenant", "add", "acme"]);
    served.admin(&["tenant", "set", "acme", "--allow", &peer.host()]);
    let ann = Person::added(&served, "ann@acme.example", "acme", "admin");
    added(&ann, &peer, &json!({}));
    peer.fault(&json!({"takes_documents": true}));
    let link = link(&ann);
    assert!(link.contains("client_id=https%3A%2F%2Fhaft.example%2Fservers%2Fclient.json"), "{link}");
    assert!(link.contains("redirect_uri=https%3A%2F%2Fhaft.example%2Fservers%2Flogin"), "{link}");
    let described = served.get("/servers/client.json", None).body;
    assert_eq!(described["client_id"], "https://haft.example/servers/client.json");
    assert_eq!(described["redirect_uris"], json!(["https://haft.example/servers/login"]));
    assert_eq!(described["token_endpoint_auth_method"], "none");
    assert_eq!(peer.count("register"), 0);
}
