//! `haft serve` from outside: who is let in, who is refused, and that every route refuses alike.

mod http_client;

use http_client::Gateway;
use serde_json::{Value, json};

const EVERYTHING: &str = "tools:read,tools:execute,tools:write,approvals:decide,events:read";

#[test]
fn it_says_where_it_listens_and_lets_its_owner_in_once() {
    let served = Gateway::start();
    let link = served.first["signIn"].as_str().unwrap().to_owned();
    assert!(link.starts_with(&served.url), "{link}");
    let signed_in = served.post("/api/sign-in", &json!({"link": link}), None);
    assert_eq!(signed_in.status, 200, "{signed_in:?}");
    let cookie = signed_in.header("set-cookie").unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite"), "{cookie}");
    assert_eq!(served.post("/api/sign-in", &json!({"link": link}), None).status, 401, "a link works once");
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let me = served.request("GET", "/api/me", None, &[("Cookie", &cookie)]);
    assert_eq!(me.body["tenant"]["slug"], "local", "{me:?}");
    let key = json!({"name": "mine", "scopes": ["tools:read"]});
    let by_cookie_alone = served.request("POST", "/api/keys", Some(&key), &[("Cookie", &cookie)]);
    assert_eq!(by_cookie_alone.status, 403, "{by_cookie_alone:?}");
    let csrf = signed_in.body["csrf"].as_str().unwrap();
    let made = served.request("POST", "/api/keys", Some(&key), &[("Cookie", &cookie), ("X-CSRF-Token", csrf)]);
    assert_eq!(made.status, 201, "{made:?}");
    assert_eq!(served.get("/api/tools", made.body["key"].as_str()).status, 200);
}

#[test]
fn every_route_refuses_a_stranger_and_a_key_without_the_permission() {
    let served = Gateway::start();
    served.admin(&["tenant", "add", "acme"]);
    let (idle, listener) = (served.key("idle", "acme", "mcp:manage"), served.key("listener", "acme", "events:read"));
    let document = served.get("/openapi.json", None).body;
    let mut looked_at = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            if operation["security"] == json!([]) {
                continue;
            }
            looked_at += 1;
            let (method, path) = (method.to_uppercase(), path.replace(['{', '}'], ""));
            let body = (method != "GET").then(|| json!({}));
            let stranger = served.request(&method, &path, body.as_ref(), &[]);
            assert_eq!(
                (stranger.status, &stranger.body["error"]["code"]),
                (401, &json!("UNAUTHORIZED")),
                "{method} {path}"
            );
            assert!(stranger.header("www-authenticate").is_some(), "{method} {path}");
            let Some(needs) = operation["x-permission"].as_str() else { continue };
            let key = if needs.starts_with("calls.") { &idle } else { &listener };
            let bearer = format!("Bearer {key}");
            let refused = served.request(&method, &path, body.as_ref(), &[("Authorization", &bearer)]);
            assert_eq!((refused.status, &refused.body["error"]["code"]), (403, &json!("FORBIDDEN")), "{method} {path}");
        }
    }
    assert!(looked_at > 15, "only {looked_at} routes were looked at");
}

#[test]
fn a_call_takes_the_line_and_another_tenant_never_sees_it() {
    let served = Gateway::start();
    served.admin(&["tenant", "add", "acme"]);
    served.admin(&["tenant", "add", "bolt"]);
    let folder = served.workspace();
    std::fs::write(folder.join("a.txt"), "alpha\n").unwrap();
    served.admin(&["workspace", "add", "shop", "--tenant", "acme", "--map", folder.to_str().unwrap()]);
    let key = served.key_in("full", "acme", EVERYTHING, "shop");
    let other = served.key("other", "bolt", EVERYTHING);
    let read = served.post("/api/tools/read_file/calls", &json!({"input": {"path": "a.txt"}}), Some(&key));
    assert_eq!((read.status, &read.body["status"]), (200, &json!("success")), "{read:?}");
    assert_eq!(read.body["result"]["structured"]["content"], "alpha\n");
    let asked = json!({"input": {"path": "w.txt", "content": "w"}, "wait": 0});
    let write = served.post("/api/tools/write_file/calls", &asked, Some(&key));
    assert_eq!((write.status, &write.body["status"]), (202, &json!("pending")), "{write:?}");
    assert!(!folder.join("w.txt").exists());
    for call in [&read, &write] {
        let path = format!("/api/calls/{}", call.body["tool_call_id"].as_str().unwrap());
        assert_eq!(served.get(&path, Some(&key)).status, 200);
        let (theirs, nobodys) = (served.get(&path, Some(&other)), served.get("/api/calls/tc_0", Some(&other)));
        assert_eq!((theirs.status, &theirs.body), (404, &nobodys.body), "another tenant's is as if it never was");
    }
    let listed = served.get("/api/calls?limit=100", Some(&other)).body;
    assert_eq!(listed["items"], json!([]), "{listed}");
}

#[test]
fn a_request_that_is_sent_twice_starts_one_call() {
    let served = Gateway::start();
    let folder = served.workspace();
    served.admin(&["tenant", "add", "acme"]);
    served.admin(&["workspace", "add", "shop", "--tenant", "acme", "--map", folder.to_str().unwrap()]);
    let bearer = format!("Bearer {}", served.key_in("full", "acme", EVERYTHING, "shop"));
    let send = |content: &str| {
        let body = json!({"input": {"path": "once.txt", "content": content}, "wait": 0});
        let headers = [("Authorization", bearer.as_str()), ("Idempotency-Key", "k1")];
        served.request("POST", "/api/tools/write_file/calls", Some(&body), &headers)
    };
    let (first, again, another) = (send("1"), send("1"), send("2"));
    assert_eq!((first.status, &first.body["tool_call_id"]), (202, &again.body["tool_call_id"]), "{first:?} {again:?}");
    assert_eq!((another.status, &another.body["error"]["code"]), (409, &json!("CONFLICT")), "{another:?}");
}

#[test]
fn other_names_and_other_pages_are_turned_away() {
    let served = Gateway::start();
    let rebound = served.request("GET", "/api/me", None, &[("Host", "evil.example")]);
    assert_eq!(rebound.status, 421, "{rebound:?}");
    let body: Value = json!({"link": "x"});
    let elsewhere = served.request("POST", "/api/sign-in", Some(&body), &[("Origin", "http://127.0.0.1:1")]);
    assert_eq!(elsewhere.status, 403, "{elsewhere:?}");
    assert_eq!(served.request("GET", "/healthz", None, &[("Host", "evil.example")]).status, 200);
}

#[test]
fn a_second_server_of_the_same_folder_says_where_the_first_one_is() {
    let served = Gateway::start();
    let second = served.haft(&["serve", "--listen", "127.0.0.1:0"]).output().unwrap();
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(!second.status.success() && said.contains(&served.url), "{said}");
}
