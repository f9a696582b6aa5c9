//! The audit log: no administrative act without its row, and no row that can be changed unseen.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod http_client;

use std::collections::BTreeSet;

use http_client::{Gateway, person::Person};
use serde_json::{Value, json};

/// Every route that changes something by an administrative act, with the act that it writes down.
const ACTS: [(&str, &str); 35] = [
    ("POST /api/tools", "tool.saved"),
    ("PATCH /api/tools/{slug}", "tool.saved"),
    ("DELETE /api/tools/{slug}", "tool.removed"),
    ("POST /api/tools/{slug}/versions/{n}/restore", "tool.saved"),
    ("POST /api/grants", "grant.given"),
    ("DELETE /api/grants/{id}", "grant.revoked"),
    ("POST /api/keys", "key.added"),
    ("POST /api/keys/{id}/rotate", "key.rotated"),
    ("DELETE /api/keys/{id}", "key.removed"),
    ("POST /api/sign-in", "sign_in.began"),
    ("POST /sign-in", "sign_in.began"),
    ("POST /api/sign-out", "sign_in.ended"),
    ("POST /api/me/tenant", "sign_in.moved"),
    ("POST /api/me/password", "password.set"),
    ("DELETE /api/me/sign-ins/{id}", "sign_in.ended"),
    ("POST /api/oauth/consents", "program.let_in"),
    ("POST /api/oauth/devices", "program.let_in"),
    ("POST /oauth/revoke", "program.ended"),
    ("DELETE /api/me/programs/{id}", "program.ended"),
    ("POST /api/people", "person.added"),
    ("PATCH /api/people/{id}", "role.changed"),
    ("DELETE /api/people/{id}", "person.removed"),
    ("PUT /api/policy", "setting.changed"),
    ("PUT /api/approval-rules", "setting.changed"),
    ("PUT /api/settings", "setting.changed"),
    ("PUT /api/notices", "setting.changed"),
    ("PUT /api/me/notices", "setting.changed"),
    ("PUT /api/secrets/{name}", "secret.set"),
    ("DELETE /api/secrets/{name}", "secret.removed"),
    ("POST /api/servers", "server.added"),
    ("PATCH /api/servers/{name}", "server.changed"),
    ("DELETE /api/servers/{name}", "server.removed"),
    ("POST /api/servers/{name}/accept", "server.accepted"),
    ("DELETE /api/servers/{name}/login", "server.logged_out"),
    ("POST /api/workspaces", "workspace.added"),
];
const MORE_ACTS: [(&str, &str); 1] = [("DELETE /api/workspaces/{name}", "workspace.removed")];

/// Every other route that is no GET: calls and answers, which the journal holds, and what changes nothing that others have.
const OTHERS: [&str; 33] = [
    "POST /mcp",
    "POST /approve",
    "POST /reject",
    "POST /a/{token}",
    "POST /a/{token}/confirm",
    "POST /api/approvals/answer",
    "POST /api/approvals/{id}/approve",
    "POST /api/approvals/{id}/fill",
    "POST /api/approvals/{id}/preview",
    "POST /api/approvals/{id}/reject",
    "POST /api/calls/batch",
    "POST /api/calls/{id}/cancel",
    "POST /api/calls/{id}/commit",
    "POST /api/calls/{id}/discard",
    "POST /api/calls/{id}/redo",
    "POST /api/calls/{id}/undo",
    "POST /api/inbox/{id}/consume",
    "POST /api/media",
    "POST /api/media/{id}/sign",
    "DELETE /api/media/{id}",
    "POST /api/notices/test",
    "POST /api/policy/replay",
    "POST /api/runs/{runId}/tool-results",
    "POST /api/servers/{name}/refresh",
    // What has been begun is an act when it is ended.
    "POST /api/servers/{name}/login",
    "POST /api/sessions",
    "POST /api/tool-results",
    "POST /api/tools/{slug}/calls",
    "POST /api/tools/{slug}/test",
    "POST /api/tools/{slug}/test/stream",
    // A program that nobody has let in yet may nothing, and codes and tokens hang on the yes that let it in.
    "POST /oauth/device",
    "POST /oauth/register",
    "POST /oauth/token",
];

#[test]
fn every_route_that_changes_something_is_an_act_or_said_to_be_none() {
    let served = Gateway::start();
    let document = served.get("/openapi.json", None).body;
    let mut routes = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys().filter(|method| !["get", "head"].contains(&method.as_str())) {
            routes.insert(format!("{} {path}", method.to_uppercase()));
        }
    }
    let acts = ACTS.iter().chain(&MORE_ACTS).map(|(route, _)| *route);
    for route in &routes {
        let known = acts.clone().chain(OTHERS).filter(|known| known == route).count();
        assert_eq!(known, 1, "`{route}`: put it on the list of acts, or on that of the others");
    }
    for known in acts.chain(OTHERS).filter(|known| *known != "POST /mcp") {
        assert!(routes.contains(known), "there is no route `{known}` any more");
    }
}

/// Rows of the log as a key of the operator's tenant tools sees them, newest first.
fn rows(served: &Gateway, tenant: &str, more: &[&str]) -> Vec<Value> {
    let done = served.haft(&[&["admin", "audit", "--json", "--tenant", tenant], more].concat()).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let lines = String::from_utf8(done.stdout).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn ok(answer: &http_client::Answer) -> Value {
    assert!((200..300).contains(&answer.status), "{answer:?}");
    answer.body.clone()
}

#[test]
fn each_act_is_one_row_that_says_who_and_holds_no_secret() {
    let served = Gateway::start();
    for tenant in ["acme", "bolt"] {
        served.admin(&["tenant", "add", tenant]);
    }
    let eve = Person::added(&served, "eve@example.org", "acme", "owner");
    served.admin(&["person", "add", "eve@example.org", "--tenant", "bolt", "--role", "viewer"]);
    let tool = json!({"slug": "deploy", "description": "For tests.", "inputSchema": {"type": "object"},
        "executionType": "internal", "effect": "write"});
    ok(&eve.post("/api/tools", tool));
    ok(&eve.ask("PATCH", "/api/tools/deploy", Some(json!({"description": "For more tests."}))));
    ok(&eve.post("/api/tools/deploy/versions/1/restore", json!({})));
    let grant = ok(&eve.post("/api/grants", json!({"tool": "deploy"})));
    ok(&eve.ask("DELETE", &format!("/api/grants/{}", grant["id"].as_str().unwrap()), None));
    ok(&eve.ask("DELETE", "/api/tools/deploy", None));
    let key = ok(&eve.post("/api/keys", json!({"name": "ci", "scopes": ["tools:read"]})));
    ok(&eve.post(&format!("/api/keys/{}/rotate", key["id"].as_str().unwrap()), json!({})));
    ok(&eve.ask("DELETE", &format!("/api/keys/{}", key["id"].as_str().unwrap()), None));
    let ann = ok(&eve.post("/api/people", json!({"email": "ann@example.org", "role": "member"})));
    let ann = format!("/api/people/{}", ann["id"].as_str().unwrap());
    ok(&eve.ask("PATCH", &ann, Some(json!({"role": "admin", "name": "Ann"}))));
    ok(&eve.ask("DELETE", &ann, None));
    ok(&eve.ask("PUT", "/api/policy", Some(json!({"rules": [], "version": 0}))));
    ok(&eve.ask("PUT", "/api/approval-rules", Some(json!({"rules": [], "version": 0}))));
    ok(&eve.ask("PUT", "/api/settings", Some(json!({"signInHours": 5}))));
    ok(&eve.ask("PUT", "/api/secrets/TOKEN", Some(json!({"value": "swordfish-swordfish", "hosts": ["a.example"]}))));
    ok(&eve.ask("DELETE", "/api/secrets/TOKEN", None));
    ok(&eve.post("/api/servers", json!({"name": "files", "url": "https://files.example/mcp"})));
    ok(&eve.ask("PATCH", "/api/servers/files", Some(json!({"url": "https://files.example/other"}))));
    ok(&eve.ask("DELETE", "/api/servers/files", None));
    ok(&eve.post("/api/workspaces", json!({"name": "shop"})));
    ok(&eve.ask("DELETE", "/api/workspaces/shop", None));
    ok(&eve.post("/api/me/password", json!({"password": "correct horse battery"})));
    let wrong = json!({"email": "eve@example.org", "password": "hunter2hunter2"});
    assert_eq!(served.post("/api/sign-in", &wrong, None).status, 401);
    let nobody = json!({"email": "typed-a-password-here", "password": "hunter2hunter2"});
    assert_eq!(served.post("/api/sign-in", &nobody, None).status, 401);
    let again = Person::by_password(&served, "eve@example.org", "correct horse battery");
    ok(&again.post("/api/me/tenant", json!({"slug": "bolt"})));
    ok(&again.post("/api/sign-out", json!({})));

    let acme = rows(&served, "acme", &[]);
    let bolt = rows(&served, "bolt", &[]);
    let seen: BTreeSet<&str> = acme.iter().chain(&bolt).filter_map(|row| row["action"].as_str()).collect();
    // What needs a program or a server at the other end is driven where those are.
    let elsewhere = ["program.let_in", "program.ended", "server.accepted", "server.logged_out"];
    for (route, act) in ACTS.iter().chain(&MORE_ACTS).filter(|(_, act)| !elsewhere.contains(act)) {
        assert!(seen.contains(act), "{route} writes {act}: {seen:?}");
    }
    for act in ["tenant.added", "link.made", "person.renamed", "sign_in.failed"] {
        assert!(seen.contains(act), "{act}: {seen:?}");
    }

    let eve_id = format!("person:{}", eve.id);
    rows_say_who(&acme, &eve_id);
    let unknown = rows(&served, "local", &["--action", "sign_in.failed"]);
    assert_eq!(unknown[0]["on"], "person:unknown", "{unknown:?}");
    let all = format!("{acme:?}{bolt:?}{unknown:?}");
    for secret in ["swordfish", "hunter2", "correct horse", "typed-a-password", key["key"].as_str().unwrap()] {
        assert!(!all.contains(secret), "{secret}");
    }
}

/// What the rows of one tenant say of whoever did it.
fn rows_say_who(acme: &[Value], eve_id: &str) {
    let of = |action: &str| acme.iter().find(|row| row["action"] == action).unwrap();
    let changed = of("role.changed");
    assert_eq!(changed["change"], json!({"before": {"role": "member"}, "after": {"role": "admin"}}));
    assert_eq!((&changed["by"]["id"], &changed["by"]["via"]), (&json!(eve_id), &json!("page")));
    assert_eq!((&changed["by"]["source"], &changed["by"]["address"]), (&json!("web"), &json!("127.0.0.1")));
    assert_eq!(of("sign_in.began")["by"]["id"], json!(eve_id), "whoever signs in is known by it");
    assert_eq!(of("tenant.added")["by"]["source"], "cli");
    assert_eq!((&of("sign_in.failed")["on"], &of("sign_in.failed")["by"]["id"]), (&json!(eve_id), &Value::Null));
}

#[test]
fn the_log_is_read_by_those_who_may_page_by_page() {
    let served = Gateway::start();
    for tenant in ["acme", "bolt"] {
        served.admin(&["tenant", "add", tenant]);
    }
    let eve = Person::added(&served, "eve@example.org", "acme", "owner");
    let member = Person::added(&served, "mia@example.org", "acme", "member");
    let other = Person::added(&served, "bob@example.org", "bolt", "owner");
    for number in 0..5 {
        ok(&eve.post("/api/keys", json!({"name": format!("k{number}"), "scopes": ["tools:read"]})));
    }
    assert_eq!(member.get("/api/audit").status, 403);
    let first = ok(&eve.get("/api/audit?action=key.added&limit=3"));
    assert_eq!(first["items"].as_array().unwrap().len(), 3);
    let second =
        ok(&eve.get(&format!("/api/audit?action=key.added&limit=3&after={}", first["next"].as_str().unwrap())));
    let names: Vec<&Value> = first["items"]
        .as_array()
        .unwrap()
        .iter()
        .chain(second["items"].as_array().unwrap())
        .map(|row| &row["change"]["after"]["name"])
        .collect();
    assert_eq!(json!(names), json!(["k4", "k3", "k2", "k1", "k0"]), "newest first, none twice");
    assert_eq!(second.get("next"), None);
    let by = ok(&eve.get(&format!("/api/audit?by=person:{}&action=key.added", eve.id)));
    assert_eq!(by["items"].as_array().unwrap().len(), 5);
    assert_eq!(ok(&eve.get("/api/audit?by=person:nobody"))["items"], json!([]));
    assert_eq!(ok(&eve.get("/api/audit?since=2999-01-01T00:00:00Z"))["items"], json!([]));
    let theirs = ok(&other.get("/api/audit")).to_string();
    assert!(!theirs.contains("k0") && !theirs.contains(&eve.id), "{theirs}");
    for wrong in ["action=key.aded", "since=yesterday", "after=x", "limit=0", "format=xml", "colour=red"] {
        assert_eq!(eve.get(&format!("/api/audit?{wrong}")).status, 400, "{wrong}");
    }
    let headers = [("Cookie", eve.cookie.as_str()), ("Accept", "application/x-ndjson")];
    for (path, headers) in [("/api/audit?limit=2", &headers[..]), ("/api/audit?limit=2&format=jsonl", &headers[..1])] {
        let lines = served.request("GET", path, None, headers);
        assert_eq!((lines.status, lines.header("content-type")), (200, Some("application/x-ndjson")), "{lines:?}");
        assert!(lines.header("x-next").is_some());
    }
}

#[test]
fn a_row_that_somebody_changes_removes_or_adds_is_found() {
    let mut served = Gateway::start();
    served.admin(&["tenant", "add", "acme"]);
    for name in ["a", "b", "c", "d"] {
        served.key(name, "acme", "tools:read");
    }
    let verify = |served: &Gateway| {
        let done = served.haft(&["admin", "audit", "verify", "--tenant", "acme", "--json"]).output().unwrap();
        let told: Value = serde_json::from_slice(&done.stdout).unwrap();
        (done.status.success(), told["items"][0].clone())
    };
    let (whole, told) = verify(&served);
    assert!(whole, "{told}");
    assert_eq!((&told["first"], &told["last"]), (&json!(1), &json!(5)));
    served.kill();
    let file = served.data().join("haft.db");
    for (change, back, broken) in [
        (
            "update audit set actor_name = 'x' || actor_name where seq = 3",
            "update audit set actor_name = substr(actor_name, 2) where seq = 3",
            3,
        ),
        ("update audit set at = at + 1 where seq = 2", "update audit set at = at - 1 where seq = 2", 2),
        ("update audit set seq = 99 where seq = 4", "update audit set seq = 4 where seq = 99", 5),
        (
            "update audit set previous = 'x' || previous where seq = 5",
            "update audit set previous = substr(previous, 2) where seq = 5",
            5,
        ),
    ] {
        let database = rusqlite::Connection::open(&file).unwrap();
        database.execute(change, []).unwrap();
        drop(database);
        let (whole, told) = verify(&served);
        assert!(!whole && told["broken"] == broken, "{change}: {told}");
        let database = rusqlite::Connection::open(&file).unwrap();
        database.execute(back, []).unwrap();
        drop(database);
        assert!(verify(&served).0, "{back}");
    }
}

#[test]
fn acts_are_followed_as_they_come_and_outlive_their_tenant() {
    use std::io::{BufRead, BufReader};
    let served = Gateway::start();
    served.admin(&["tenant", "add", "acme"]);
    let id = served.admin(&["tenant", "show", "acme"])["tenant"]["id"].as_str().unwrap().to_owned();
    let mut following = served
        .haft(&["admin", "audit", "--follow", "--json", "--tenant", "acme", "--action", "key.added"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    served.key("first", "acme", "tools:read");
    let told: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!((&told["action"], &told["change"]["after"]["name"]), (&json!("key.added"), &json!("first")));
    following.kill().unwrap();
    following.wait().unwrap();
    served.admin(&["tenant", "remove", "acme"]);
    let left = rows(&served, &id, &[]);
    assert_eq!(left.last().unwrap()["action"], "tenant.removed", "{left:?}");
    let told = served.haft(&["admin", "audit", "--tenant", "acme"]).output().unwrap();
    assert!(!told.status.success(), "by its name it is gone");
}
