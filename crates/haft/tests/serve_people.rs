//! `haft serve` as its people see it: who is let in, what each may do, and when that ends.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod http_client;

use std::time::{Duration, Instant};

use http_client::{Answer, Gateway, person::Person};
use serde_json::{Value, json};

/// Asks until something is so.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let patience = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < patience, "{what} took too long");
        std::thread::yield_now();
    }
}

fn code(answer: &Answer) -> (u16, &str) {
    (answer.status, answer.body["error"]["code"].as_str().unwrap_or_default())
}

fn with_acme() -> Gateway {
    let served = Gateway::start();
    served.admin(&["tenant", "add", "acme"]);
    served
}

#[test]
fn people_are_added_changed_and_taken_out_and_the_last_owner_stays() {
    let served = with_acme();
    let eve = Person::added(&served, "eve@example.org", "acme", "owner");
    let added = eve.post("/api/people", json!({"email": "Ann@Example.org", "role": "admin", "name": "Ann A."}));
    assert_eq!(added.status, 201, "{added:?}");
    assert_eq!((&added.body["email"], &added.body["name"]), (&json!("ann@example.org"), &json!("Ann A.")));
    let ann = Person::by_link(&served, added.body["signIn"].as_str().unwrap());
    assert_eq!(ann.id, added.body["id"].as_str().unwrap());
    let again = eve.post("/api/people", json!({"email": "ann@example.org", "role": "owner"}));
    assert_eq!(code(&again), (409, "ALREADY_EXISTS"), "nobody is made more by being added again: {again:?}");
    for (role, expected) in [("owner", 403), ("agent", 400), ("king", 400), ("member", 201)] {
        let body = json!({"email": "bob@example.org", "role": role});
        assert_eq!(ann.post("/api/people", body).status, expected, "an admin adds a {role}");
    }
    let listed = ann.get("/api/people").body;
    let bob = listed["items"].as_array().unwrap().iter().find(|person| person["email"] == "bob@example.org").unwrap();
    let bob = format!("/api/people/{}", bob["id"].as_str().unwrap());
    let owner = format!("/api/people/{}", eve.id);
    for (who, method, path, body, expected) in [
        (&ann, "PATCH", &owner, Some(json!({"role": "viewer"})), (403, "FORBIDDEN")),
        (&ann, "DELETE", &owner, None, (403, "FORBIDDEN")),
        (&ann, "PATCH", &bob, Some(json!({"role": "owner"})), (403, "FORBIDDEN")),
        (&eve, "PATCH", &owner, Some(json!({"role": "admin"})), (409, "CONFLICT")),
        (&eve, "DELETE", &owner, None, (409, "CONFLICT")),
        (&ann, "PATCH", &bob, Some(json!({"name": "Bob\n"})), (200, "")),
        (&ann, "PATCH", &"/api/people/pe_none".to_owned(), Some(json!({"role": "viewer"})), (404, "NOT_FOUND")),
        (&ann, "DELETE", &bob, None, (200, "")),
        (&ann, "DELETE", &bob, None, (404, "NOT_FOUND")),
    ] {
        let answer = who.ask(method, path, body);
        assert_eq!(code(&answer), expected, "{method} {path}: {answer:?}");
    }
    let second = eve.ask("PATCH", &format!("/api/people/{}", ann.id), Some(json!({"role": "owner"})));
    assert_eq!((second.status, &second.body["role"]), (200, &json!("owner")), "{second:?}");
    assert_eq!(ann.get("/api/me").status, 401, "with another role she signs in again");
    assert_eq!(eve.ask("PATCH", &owner, Some(json!({"role": "member"}))).status, 200, "there is another owner now");
    assert_eq!(eve.get("/api/me").status, 200, "whoever changes their own role stays");
    assert_eq!(code(&eve.post("/api/people", json!({"email": "x@example.org", "role": "viewer"}))), (403, "FORBIDDEN"));
}

#[test]
fn nobody_becomes_somebody_of_another_tenant() {
    let served = with_acme();
    served.admin(&["tenant", "add", "bolt"]);
    let victim = Person::added(&served, "kim@bolt.example", "bolt", "owner");
    let eve = Person::added(&served, "eve@example.org", "acme", "owner");
    let taken = eve.post("/api/people", json!({"email": "kim@bolt.example", "role": "viewer"}));
    assert_eq!((code(&taken), taken.body.get("signIn")), ((409, "CONFLICT"), None), "{taken:?}");
    let tenants = victim.get("/api/tenants").body;
    assert_eq!(tenants["items"].as_array().unwrap().len(), 1, "{tenants}");
    let theirs = format!("/api/people/{}", victim.id);
    for (method, body) in [("PATCH", Some(json!({"name": "X"}))), ("DELETE", None)] {
        assert_eq!(code(&eve.ask(method, &theirs, body)), (404, "NOT_FOUND"));
    }
    assert_eq!(code(&eve.get("/api/tenants/bolt")), (404, "NOT_FOUND"));
    assert_eq!(eve.get("/api/tenants/acme").body["slug"], "acme");
    assert_eq!(code(&eve.post("/api/me/tenant", json!({"slug": "bolt"}))), (404, "NOT_FOUND"));
    // The operator may bring tenants together; then neither renames the other's.
    served.admin(&["person", "add", "kim@bolt.example", "--tenant", "acme", "--role", "member"]);
    assert_eq!(code(&eve.ask("PATCH", &theirs, Some(json!({"name": "X"})))), (409, "CONFLICT"));
    assert_eq!(victim.post("/api/me/tenant", json!({"slug": "acme"})).status, 200);
    assert_eq!(victim.get("/api/me").body["tenant"]["slug"], "acme");
}

#[test]
fn a_key_may_what_its_maker_may_now_and_ends_with_them() {
    let served = with_acme();
    let eve = Person::added(&served, "eve@example.org", "acme", "owner");
    let bob = Person::added(&served, "bob@example.org", "acme", "member");
    let made = bob.post("/api/keys", json!({"name": "mine", "scopes": ["tools:execute", "tools:write"]}));
    assert_eq!(made.status, 201, "{made:?}");
    let key = made.body["key"].as_str();
    let (tool, call) = (json!({}), json!({"input": {"callId": format!("tc_{}", "0".repeat(32))}}));
    assert_eq!(served.post("/api/tools", &tool, key).status, 403, "a member writes no tools, and neither does the key");
    assert_eq!(served.post("/api/tools/wait_call/calls", &call, key).status, 200);
    until("the use of the key is noted", || eve.get("/api/keys").body["items"][0]["lastUsedAt"].is_string());
    let path = format!("/api/people/{}", bob.id);
    assert_eq!(eve.ask("PATCH", &path, Some(json!({"role": "viewer"}))).status, 200);
    assert_eq!(served.post("/api/tools/wait_call/calls", &call, key).status, 403, "he may only look now");
    assert_eq!(served.get("/api/tools", key).status, 200);
    assert_eq!(bob.get("/api/me").status, 401, "he signs in again");
    assert_eq!(eve.ask("DELETE", &path, None).status, 200);
    let (gone, wrong) = (served.get("/api/tools", key), served.get("/api/tools", Some("haft_a_b")));
    assert_eq!((gone.status, &gone.body), (401, &wrong.body), "gone is refused as what never was");
    served.admin(&["person", "add", "bob@example.org", "--tenant", "acme", "--role", "member"]);
    assert_eq!(served.get("/api/tools", key).status, 401, "also when he comes back");
}

#[test]
fn a_key_ends_by_itself() {
    let served = with_acme();
    let eve = Person::added(&served, "eve@example.org", "acme", "owner");
    let make =
        |expires: Value| eve.post("/api/keys", json!({"name": "k", "scopes": ["tools:read"], "expiresAt": expires}));
    assert_eq!(code(&make(json!("2001-01-01T00:00:00Z"))), (400, "INVALID_ARGS"));
    assert_eq!(code(&make(json!("soon"))), (400, "INVALID_ARGS"));
    let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_millis(1500);
    let made = make(json!(soon.to_string()));
    let key = made.body["key"].as_str();
    assert_eq!((made.status, served.get("/api/tools", key).status), (201, 200), "{made:?}");
    until("the key ends", || served.get("/api/tools", key).status == 401);
    assert_eq!(served.get("/api/tools", key).body, served.get("/api/tools", Some("haft_a_b")).body);
    assert_eq!(eve.ask("PUT", "/api/settings", Some(json!({"keyDays": 7}))).status, 200);
    let late = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(24 * 8);
    assert_eq!(code(&make(json!(late.to_string()))), (400, "INVALID_ARGS"), "the tenant lets keys last a week");
    assert_eq!(make(Value::Null).status, 201);
    let keys = eve.get("/api/keys").body;
    assert!(keys["items"].as_array().unwrap().iter().all(|key| key["expiresAt"].is_string()), "{keys}");
}

#[test]
fn a_password_is_changed_by_whoever_knows_it_and_ends_what_was_signed_in_before() {
    let served = with_acme();
    let ann = Person::added(&served, "ann@example.org", "acme", "member");
    let set = |who: &Person<'_>, body: Value| who.post("/api/me/password", body);
    assert_eq!(set(&ann, json!({"password": "short"})).status, 400);
    assert_eq!(set(&ann, json!({"password": "correct horse"})).status, 200);
    let other = Person::by_password(&served, "Ann@example.org ", "correct horse");
    let signed_in = other.get("/api/me/sign-ins").body;
    let ids: Vec<&str> = signed_in["items"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 2, "{signed_in}");
    assert!(ids.iter().all(|id| id.starts_with("si_") && id.len() < 40), "{ids:?}");
    assert_eq!(code(&set(&ann, json!({"password": "battery staple"}))), (400, "INVALID_ARGS"), "the old one is needed");
    let wrong = json!({"password": "battery staple", "oldPassword": "correct house"});
    assert_eq!(code(&set(&ann, wrong)), (403, "FORBIDDEN"));
    let right = json!({"password": "battery staple", "oldPassword": "correct horse"});
    assert_eq!(set(&ann, right).status, 200);
    assert_eq!((ann.get("/api/me").status, other.get("/api/me").status), (200, 401), "all others must sign in again");
    let known = json!({"email": "ann@example.org", "password": "correct horse"});
    assert_eq!(served.post("/api/sign-in", &known, None).status, 401);
    let again = Person::by_password(&served, "ann@example.org", "battery staple");
    let here = again.get("/api/me/sign-ins").body;
    let elsewhere = here["items"].as_array().unwrap().iter().find(|one| one["current"] == false).unwrap();
    let path = format!("/api/me/sign-ins/{}", elsewhere["id"].as_str().unwrap());
    assert_eq!(again.ask("DELETE", &path, None).status, 200);
    assert_eq!((ann.get("/api/me").status, again.get("/api/me").status), (401, 200));
}

#[test]
fn guessing_is_counted_alike_whether_or_not_there_is_such_an_address() {
    let served = with_acme();
    let ann = Person::added(&served, "ann@example.org", "acme", "member");
    ann.post("/api/me/password", json!({"password": "correct horse"}));
    let guess =
        |email: &str, password: &str| served.post("/api/sign-in", &json!({"email": email, "password": password}), None);
    let tried = |email: &str| (0..11).map(|_| guess(email, "wrong wrong")).collect::<Vec<_>>();
    let (known, unknown) = (tried("ann@example.org"), tried("nobody@example.org"));
    for (known, unknown) in known.iter().zip(&unknown) {
        assert_eq!((known.status, &known.body["error"]["code"]), (unknown.status, &unknown.body["error"]["code"]));
    }
    let (last, first) = (&known[10], &known[0]);
    assert_eq!((code(first), code(last)), ((401, "UNAUTHORIZED"), (429, "RATE_LIMITED")));
    let wait: u64 = last.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    assert_eq!(guess("ann@example.org", "correct horse").status, 429, "also with the right one");
    assert_eq!(ann.get("/api/me").status, 200, "whoever is signed in stays so");
    let change =
        |old: &str| ann.post("/api/me/password", json!({"password": "battery staple", "oldPassword": old})).status;
    assert_eq!((0..11).map(|_| change("wrong")).collect::<Vec<_>>()[9..], [403, 429]);
}

#[test]
fn sign_ins_last_as_long_as_the_tenant_says() {
    let served = with_acme();
    let eve = Person::added(&served, "eve@example.org", "acme", "owner");
    assert_eq!(eve.get("/api/settings").body, json!({"signInHours": 720}));
    for wrong in [json!({"signInHours": 0}), json!({"signInHours": 721}), json!({"keyDays": 0}), json!({"x": 1})] {
        assert_eq!(code(&eve.ask("PUT", "/api/settings", Some(wrong))), (400, "INVALID_ARGS"));
    }
    let hours = |person: &Person<'_>| {
        let own = person.get("/api/me/sign-ins").body;
        let time = |name: &str| own["items"][0][name].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
        time("until").duration_since(time("since")).as_hours()
    };
    assert!((719..=720).contains(&hours(&eve)), "{}", hours(&eve));
    assert_eq!(eve.ask("PUT", "/api/settings", Some(json!({"signInHours": 2}))).body, json!({"signInHours": 2}));
    let ann = Person::added(&served, "ann@example.org", "acme", "member");
    assert!(hours(&ann) <= 2, "{}", hours(&ann));
    assert_eq!(code(&ann.get("/api/settings")), (403, "FORBIDDEN"));
}

#[test]
fn secrets_are_set_and_never_shown() {
    let served = with_acme();
    let eve = Person::added(&served, "eve@example.org", "acme", "owner");
    let ann = Person::added(&served, "ann@example.org", "acme", "member");
    let put = |name: &str, body: Value| eve.ask("PUT", &format!("/api/secrets/{name}"), Some(body));
    let set = put("TOKEN", json!({"value": "s3cr3t-canary", "hosts": ["API.example.org"]}));
    let shown: Vec<&String> = set.body.as_object().unwrap().keys().collect();
    assert_eq!((set.status, shown), (200, ["name", "hosts", "setAt", "usedBy"].map(str::to_owned).iter().collect()));
    assert_eq!((&set.body["name"], &set.body["hosts"]), (&json!("TOKEN"), &json!(["api.example.org"])));
    let rotated = put("TOKEN", json!({"value": "s3cr3t-canary-2"}));
    assert_eq!(rotated.body["hosts"], json!(["api.example.org"]), "a new value goes where the old one went");
    for (name, body) in [
        ("TOKEN", json!({"value": 1234567890123_i64})),
        ("TOKEN", json!({"value": "short"})),
        ("TOKEN", json!({"value": {"s3cr3t-canary": "s3cr3t-canary"}})),
        ("9", json!({"value": "s3cr3t-canary"})),
        ("TOKEN", json!({"value": "s3cr3t-canary", "hosts": ["a b"]})),
    ] {
        let refused = put(name, body.clone());
        assert_eq!(code(&refused), (400, "INVALID_ARGS"), "{body}");
        let said = refused.body.to_string();
        assert!(!said.contains("canary") && !said.contains("1234567890123"), "{said}");
    }
    let listed = eve.get("/api/secrets").body;
    assert_eq!(listed["items"], json!([rotated.body]));
    assert_eq!(code(&ann.get("/api/secrets")), (403, "FORBIDDEN"));
    assert_eq!(eve.ask("DELETE", "/api/secrets/TOKEN", None).status, 200);
    assert_eq!(code(&eve.ask("DELETE", "/api/secrets/TOKEN", None)), (404, "NOT_FOUND"));
}

#[test]
fn a_workspace_that_haft_keeps_holds_no_more_than_it_may() {
    let served = Gateway::start_with("[serve]\nworkspace_quota = \"100KB\"\n");
    served.admin(&["tenant", "add", "acme"]);
    let eve = Person::added(&served, "eve@example.org", "acme", "owner");
    let made = eve.post("/api/workspaces", json!({"name": "shop"}));
    assert_eq!((made.status, &made.body["kind"]), (201, &json!("managed")), "{made:?}");
    assert_eq!(code(&eve.post("/api/workspaces", json!({"name": "shop"}))), (409, "ALREADY_EXISTS"));
    let mapped = json!({"name": "host", "folder": "/etc"});
    assert_eq!(code(&eve.post("/api/workspaces", mapped)), (400, "INVALID_ARGS"), "no folder of the host by HTTP");
    let write = |name: &str, size: usize| {
        let input = json!({"path": name, "content": "x".repeat(size)});
        let asked = eve.post("/api/tools/write_file/calls", json!({"input": input, "workspace": "shop", "wait": 0}));
        assert_eq!(asked.status, 200, "a person's own form is its own yes: {asked:?}");
        asked.body
    };
    assert_eq!(write("a", 60_000)["status"], "success");
    let refused = write("b", 60_000);
    assert_eq!(refused["error"]["code"], "RESOURCE_LIMIT", "{refused}");
    let listed = eve.get("/api/workspaces").body;
    assert_eq!(listed["items"][0]["name"], "shop", "{listed}");
    assert_eq!(eve.ask("DELETE", "/api/workspaces/shop", None).status, 200);
    let gone = eve.post("/api/tools/read_file/calls", json!({"input": {"path": "a"}, "workspace": "shop"}));
    assert_eq!(code(&gone), (404, "NOT_FOUND"), "{gone:?}");
}

#[test]
fn everybody_sees_what_roles_may_do_and_programs_see_no_people() {
    let served = with_acme();
    let ann = Person::added(&served, "ann@example.org", "acme", "viewer");
    let roles = ann.get("/api/roles").body;
    let names: Vec<&str> = roles["items"].as_array().unwrap().iter().map(|one| one["role"].as_str().unwrap()).collect();
    assert_eq!(names, ["owner", "admin", "member", "viewer", "agent"]);
    let of = |role: usize| roles["items"][role]["permissions"].as_array().unwrap().len();
    assert!(of(0) > of(2) && of(2) > of(3), "{roles}");
    assert_eq!(ann.get("/api/people").body["items"][0]["email"], "ann@example.org");
    let key = served.key("k", "acme", "tools:read,events:read");
    assert_eq!(code(&served.get("/api/people", Some(&key))), (403, "FORBIDDEN"));
    assert_eq!(served.get("/api/tenants", Some(&key)).body["items"][0]["slug"], "acme");
}
