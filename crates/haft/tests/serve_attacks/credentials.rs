//! Keys, cookies, links and tokens that are forged, cut off, used twice, out of date or of somebody else.

use serde_json::{Value, json};

use crate::{
    EVERY_SCOPE,
    http_client::{Gateway, event_stream::EventReader, person::Person},
    talk::Talk,
    tenant, text, tool,
};

/// What is answered to somebody with this credential.
fn asked_as(served: &Gateway, name: &str, value: &str) -> (u16, String) {
    let reply = Talk::with(served, &[(name, value)]).get("/api/me");
    (reply.status, reply.text)
}

/// The same text with another letter at a place.
fn changed(text: &str, place: usize) -> String {
    let letter = if text.as_bytes()[place] == b'a' { "b" } else { "a" };
    format!("{}{letter}{}", &text[..place], &text[place + 1..])
}

#[test]
fn only_the_whole_key_is_a_key_and_all_others_are_refused_alike() {
    let served = Gateway::start();
    let (key, other) = (tenant(&served, "acme"), tenant(&served, "bolt"));
    let elsewhere = tenant(&Gateway::start(), "acme");
    assert_eq!(asked_as(&served, "Authorization", &format!("Bearer {key}")).0, 200);
    let parts = |key: &str| key.splitn(3, '_').map(str::to_owned).collect::<Vec<_>>();
    let (own, others) = (parts(&key), parts(&other));
    let forged = [
        key[..key.len() - 1].to_owned(),
        format!("{key}a"),
        changed(&key, key.len() - 1),
        changed(&key, 6),
        key.to_uppercase(),
        format!("haft_{}_{}", own[1], others[2]),
        format!("haft_{}_", own[1]),
        format!("haft__{}", own[2]),
        "haft_".to_owned(),
        format!("hafts_{}", &key[5..]),
        format!("{key}, {other}"),
        "' or 1=1 --".to_owned(),
        elsewhere,
    ];
    let (status, words) = asked_as(&served, "Authorization", "Bearer nobody");
    assert_eq!(status, 401);
    for wrong in forged {
        assert_eq!(asked_as(&served, "Authorization", &format!("Bearer {wrong}")), (401, words.clone()), "{wrong}");
    }
    for way in [format!("Basic {key}"), key.clone(), format!("bearer: {key}"), String::new()] {
        assert_eq!(asked_as(&served, "Authorization", &way).0, 401, "{way}");
    }
    for (name, value) in [("X-Api-Key", key.as_str()), ("Cookie", &format!("haft={key}"))] {
        assert_eq!(asked_as(&served, name, value).0, 401, "{name}");
    }
    assert_eq!(served.get(&format!("/api/me?key={key}&access_token={key}"), None).status, 401);
    served.admin(&["key", "remove", &own[1], "--tenant", "acme"]);
    assert_eq!(asked_as(&served, "Authorization", &format!("Bearer {key}")), (401, words), "it was removed");
}

#[test]
fn only_the_cookie_of_a_sign_in_that_lasts_is_one() {
    let served = Gateway::start();
    served.admin(&["tenant", "add", "acme"]);
    let person = Person::added(&served, "ann@acme.example", "acme", "owner");
    let value = person.cookie.split_once('=').unwrap().1.to_owned();
    assert_eq!(asked_as(&served, "Cookie", &person.cookie).0, 200);
    let (_, words) = asked_as(&served, "Cookie", "haft=nobody");
    for wrong in [changed(&value, 0), changed(&value, value.len() - 1), value[1..].to_owned(), format!("{value}a")] {
        assert_eq!(asked_as(&served, "Cookie", &format!("haft={wrong}")), (401, words.clone()), "{wrong}");
    }
    assert_eq!(asked_as(&served, "Cookie", &format!("Haft={value}")).0, 401);
    assert_eq!(asked_as(&served, "Authorization", &format!("Bearer {value}")).0, 401, "a cookie is no key");
    // Nobody can choose what the cookie of somebody else's sign-in will be.
    let link = served.admin(&["person", "add", "bob@acme.example", "--tenant", "acme", "--role", "member"]);
    let planted =
        served.request("POST", "/api/sign-in", Some(&json!({"link": link["signIn"]})), &[("Cookie", "haft=planted")]);
    let given = planted.header("set-cookie").unwrap().to_owned();
    assert!(planted.status == 200 && !given.contains("planted"), "{planted:?}");
    assert_eq!(asked_as(&served, "Cookie", "haft=planted").0, 401);
    assert_eq!(person.post("/api/sign-out", json!({})).status, 200);
    assert_eq!(asked_as(&served, "Cookie", &person.cookie), (401, words.clone()), "it was ended");
    let bob = given.split(';').next().unwrap().to_owned();
    assert_eq!(asked_as(&served, "Cookie", &bob).0, 200);
    let again = served.start_again(&[], &[]);
    assert_eq!(asked_as(&again, "Cookie", &bob), (401, words), "on this machine it ends with the process");
}

#[test]
fn a_sign_in_that_is_out_of_date_is_none() {
    let served = Gateway::start();
    served.admin(&["tenant", "add", "acme"]);
    let person = Person::added(&served, "ann@acme.example", "acme", "owner");
    let link = served.admin(&["person", "add", "bob@acme.example", "--tenant", "acme", "--role", "member"]);
    let used = served.admin(&["person", "add", "eve@acme.example", "--tenant", "acme", "--role", "member"]);
    assert_eq!(served.post("/api/sign-in", &json!({"link": used["signIn"]}), None).status, 200);
    let twice = served.post("/api/sign-in", &json!({"link": used["signIn"]}), None);
    let code = text(&link["signIn"]).rsplit('#').next().unwrap().to_owned();
    for wrong in [changed(&code, 0), code[1..].to_owned(), String::new(), "x".to_owned()] {
        let refused = served.post("/api/sign-in", &json!({"link": wrong}), None);
        assert_eq!((refused.status, &refused.body), (401, &twice.body), "{wrong}");
    }
    let database = rusqlite::Connection::open(served.data().join("haft.db")).unwrap();
    let past = 1_577_836_800_000_000_i64;
    for table in ["sign_in_links", "sign_ins"] {
        let made = format!("update {table} set expires_at = ?1");
        assert!(database.execute(&made, [past]).unwrap() > 0, "{table}");
    }
    let late = served.post("/api/sign-in", &json!({"link": link["signIn"]}), None);
    assert_eq!((late.status, &late.body), (401, &twice.body), "after a quarter of an hour");
    assert_eq!(person.get("/api/me").status, 401);
}

/// A call that waits for its result, and the token that ends it.
fn waiting(served: &Gateway, key: &str) -> (String, String) {
    let mut talk = Talk::by_key(served, key);
    let mut written = tool("outside", "external");
    written["isAsync"] = json!(true);
    talk.post("/api/tools", &written);
    let mut events = EventReader::by_key(served, "/api/events?types=tool.pending", key);
    let made = talk.post("/api/tools/outside/calls", &json!({"input": {}}));
    assert_eq!(made.status, 202, "{made:?}");
    let told = events.next().unwrap();
    (text(&made.json()["tool_call_id"]), text(&told.data["submitToken"]))
}

fn submit(served: &Gateway, token: &str, call: &str) -> (u16, Value) {
    let reply = Talk::by_key(served, token).post("/api/tool-results", &json!({"callId": call, "result": 1}));
    (reply.status, reply.json())
}

#[test]
fn a_submit_token_ends_its_own_call_and_does_nothing_else() {
    let served = Gateway::start();
    let (key, other) = (tenant(&served, "acme"), tenant(&served, "bolt"));
    let (call, token) = waiting(&served, &key);
    let (second, _) = waiting(&served, &key);
    let (theirs, their_token) = waiting(&served, &other);
    let forged = [
        changed(&token, token.len() - 1),
        token[..token.len() - 1].to_owned(),
        token.replace(call.trim_start_matches("tc_"), second.trim_start_matches("tc_")),
        token.replacen(token.split('_').nth(1).unwrap(), their_token.split('_').nth(1).unwrap(), 1),
    ];
    for wrong in &forged {
        assert_eq!(submit(&served, wrong, &call).0, 401, "{wrong}");
    }
    let (never, _) = submit(&served, &token, "tc_00000000000070008000000000000000");
    for (token, call) in [(&token, &second), (&token, &theirs), (&their_token, &call)] {
        let (status, told) = submit(&served, token, call);
        assert!([403, 404].contains(&status), "{told}");
    }
    assert_eq!(never, 404);
    let mut holder = Talk::by_key(&served, &token);
    for path in ["/api/me", "/api/tools", "/api/calls", &format!("/api/calls/{call}"), "/api/inbox", "/api/events"] {
        assert_eq!(holder.get(path).status, 403, "{path}");
    }
    assert_eq!(holder.post("/api/tools/outside/calls", &json!({"input": {}})).status, 403);
    assert_eq!(holder.post(&format!("/api/calls/{call}/cancel"), &json!({})).status, 403);
    assert_eq!(holder.post("/mcp", &json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})).status, 403);
    let elsewhere = Gateway::start();
    assert_eq!(submit(&elsewhere, &token, &call).0, 401, "another server has another key");
    assert_eq!(submit(&served, &token, &call).0, 200);
    assert_eq!(submit(&served, &token, &call).0, 200, "the same once more changes nothing");
    let reply = Talk::by_key(&served, &token).post("/api/tool-results", &json!({"callId": call, "result": 2}));
    assert_eq!(reply.status, 409, "{reply:?}");
    let shown = Talk::by_key(&served, &key).get(&format!("/api/calls/{call}")).json();
    assert_eq!(shown["outcome"]["result"]["structured"], json!(1), "{shown}");
}

#[test]
fn nobody_changes_to_a_tenant_that_is_not_theirs() {
    let served = Gateway::start();
    served.admin(&["tenant", "add", "acme"]);
    served.admin(&["tenant", "add", "bolt"]);
    let person = Person::added(&served, "ann@acme.example", "acme", "owner");
    let bolt = Person::added(&served, "bob@bolt.example", "bolt", "owner").get("/api/me").body;
    let id = text(&bolt["tenant"]["id"]);
    let change = |slug: &str| person.post("/api/me/tenant", json!({"slug": slug}));
    let nobodys = change("zzzz");
    assert_eq!(nobodys.status, 404);
    for slug in ["bolt", "local", &id, "ACME", "acme ", "../bolt", ""] {
        let refused = change(slug);
        let words = refused.body.to_string().replace(&format!("`{slug}`"), "`zzzz`");
        assert_eq!((refused.status, words), (404, nobodys.body.to_string()), "{slug}");
    }
    for headers in [("X-Tenant", "bolt"), ("X-Forwarded-Host", "bolt.example"), ("Tenant", &id)] {
        let me = served.request("GET", "/api/me?tenant=bolt", None, &[("Cookie", &person.cookie), headers]);
        assert_eq!(me.body["tenant"]["slug"], "acme", "{me:?}");
    }
    let key = served.key("k", "acme", EVERY_SCOPE);
    let by_key = Talk::by_key(&served, &key).post("/api/me/tenant", &json!({"slug": "acme"}));
    assert_eq!(by_key.status, 403, "{by_key:?}");
}
