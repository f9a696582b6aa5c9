//! The tools of a tenant over REST: what is switched off or changed, what is tried, what is still named, and what it costs.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::needless_pass_by_value, reason = "values are written where they are passed")]

mod http_client;

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

use http_client::{Answer, Gateway};
use serde_json::{Value, json};

const WRITES: &str = "tools:read,tools:execute,tools:write,events:read";
const RUNS: &str = "tools:read,tools:execute";

/// Two tenants that each have a workspace with the same folder.
struct Tenants {
    served: Gateway,
    /// Keys of the first: one that may change tools, and one that may not.
    writer: String,
    runner: String,
    /// A key of the second.
    other: String,
}

impl Tenants {
    fn new() -> Self {
        let served = Gateway::start();
        let folder = served.workspace();
        std::fs::write(folder.join("a.txt"), "alpha\n").unwrap();
        for tenant in ["acme", "bolt"] {
            served.admin(&["tenant", "add", tenant]);
            served.admin(&["workspace", "add", "shop", "--tenant", tenant, "--map", folder.to_str().unwrap()]);
        }
        let writer = served.key_in("writer", "acme", WRITES, "shop");
        let runner = served.key_in("runner", "acme", RUNS, "shop");
        let other = served.key_in("other", "bolt", WRITES, "shop");
        Self { served, writer, runner, other }
    }

    fn send(&self, method: &str, path: &str, body: Option<&Value>, key: &str) -> Answer {
        self.served.request(method, path, body, &[("Authorization", &format!("Bearer {key}"))])
    }

    fn patch(&self, tool: &str, body: Value, key: &str) -> Answer {
        self.send("PATCH", &format!("/api/tools/{tool}"), Some(&body), key)
    }

    fn call(&self, tool: &str, input: Value, key: &str) -> Answer {
        let body = json!({"input": input, "wait": 0});
        self.served.post(&format!("/api/tools/{tool}/calls"), &body, Some(key))
    }

    fn names(&self, query: &str, key: &str) -> Vec<String> {
        let listed = self.served.get(&format!("/api/tools?limit=200&{query}"), Some(key));
        assert_eq!(listed.status, 200, "{listed:?}");
        listed.body["items"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    fn make(&self, slug: &str, more: &Value, key: &str) -> Answer {
        let mut tool = json!({"slug": slug, "description": "d", "inputSchema": {"type": "object"},
            "executionType": "internal"});
        for (name, value) in more.as_object().unwrap() {
            tool[name] = value.clone();
        }
        self.served.post("/api/tools", &tool, Some(key))
    }

    /// Somebody of the first tenant at a page: the headers of each request.
    fn person(&self, role: &str) -> [(String, String); 2] {
        let email = format!("{role}@example.org");
        let added = self.served.admin(&["person", "add", &email, "--tenant", "acme", "--role", role]);
        let signed_in = self.served.post("/api/sign-in", &json!({"link": added["signIn"]}), None);
        let cookie = signed_in.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        let csrf = signed_in.body["csrf"].as_str().unwrap().to_owned();
        [("Cookie".to_owned(), cookie), ("X-CSRF-Token".to_owned(), csrf)]
    }

    fn by(&self, person: &[(String, String)], method: &str, path: &str, body: Option<&Value>) -> Answer {
        let headers: Vec<(&str, &str)> = person.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        self.served.request(method, path, body, &headers)
    }
}

fn code(answer: &Answer) -> (u16, &str) {
    (answer.status, answer.body["error"]["code"].as_str().unwrap_or_default())
}

#[test]
fn what_a_tenant_switches_off_is_gone_for_it_alone() {
    let tenants = Tenants::new();
    let (writer, runner, other) = (&tenants.writer, &tenants.runner, &tenants.other);
    assert_eq!(code(&tenants.patch("read_file", json!({"enabled": false}), runner)), (403, "FORBIDDEN"));
    let off = tenants.patch("read_file", json!({"enabled": false}), writer);
    assert_eq!((off.status, &off.body["enabled"], &off.body["usable"]), (200, &json!(false), &json!(false)), "{off:?}");
    assert_eq!((&off.body["origin"], &off.body["kind"]), (&json!("code"), &json!("system_override")));
    let path = json!({"path": "a.txt"});
    assert_eq!(code(&tenants.call("read_file", path.clone(), runner)), (404, "TOOL_NOT_FOUND"));
    assert_eq!(code(&tenants.call("read_file", path.clone(), writer)), (404, "TOOL_NOT_FOUND"), "for everybody");
    assert_eq!(tenants.call("read_file", path.clone(), other).status, 200);
    assert!(!tenants.names("", runner).contains(&"read_file".to_owned()));
    assert_eq!(tenants.served.get("/api/tools/read_file", Some(runner)).status, 404);
    assert!(tenants.names("", writer).contains(&"read_file".to_owned()), "whoever may change it sees it");
    assert_eq!(tenants.names("enabled=false", writer), ["read_file"]);
    assert_eq!(tenants.names("kind=system_override", writer), ["read_file"]);
    assert!(!tenants.names("enabled=true", writer).contains(&"read_file".to_owned()));
    assert!(tenants.names("enabled=false", other).is_empty());

    let named = tenants.patch("read_file", json!({"enabled": true, "description": "Ours to read."}), writer);
    assert_eq!(named.body["description"], "Ours to read.", "{named:?}");
    assert_eq!(tenants.call("read_file", path, runner).status, 200);
    assert_ne!(tenants.served.get("/api/tools/read_file", Some(other)).body["description"], "Ours to read.");
    let versions = tenants.served.get("/api/tools/read_file/versions", Some(writer));
    assert_eq!(versions.body["items"].as_array().unwrap().len(), 2, "{versions:?}");
    assert_eq!(tenants.served.get("/api/tools/read_file/versions", Some(other)).status, 404);
    let restored = tenants.served.post("/api/tools/read_file/versions/1/restore", &json!({}), Some(writer));
    assert_eq!((restored.status, &restored.body["enabled"]), (200, &json!(false)), "{restored:?}");
    assert_eq!(tenants.send("DELETE", "/api/tools/read_file", None, writer).status, 200);
    let own = tenants.served.get("/api/tools/read_file", Some(runner));
    assert_eq!((own.status, &own.body["kind"], &own.body["enabled"]), (200, &json!("system"), &json!(true)), "{own:?}");
    assert_eq!(code(&tenants.send("DELETE", "/api/tools/read_file", None, writer)), (404, "NOT_FOUND"));
}

#[test]
fn what_may_be_changed_of_a_tool_that_is_code_and_by_whom() {
    let tenants = Tenants::new();
    let (writer, runner) = (&tenants.writer, &tenants.runner);
    for wrong in [json!({"inputSchema": {}}), json!({"execution": {}}), json!({"timeout": -1}), json!({"title": ""})] {
        assert_eq!(code(&tenants.patch("read_file", wrong.clone(), writer)), (400, "INVALID_ARGS"), "{wrong}");
    }
    let strict = tenants.patch("read_file", json!({"permissionPolicy": "always_ask", "timeout": 7000}), writer);
    assert_eq!((strict.status, &strict.body["asks"]), (200, &json!("always")), "{strict:?}");
    assert_eq!(strict.body["timeoutMs"], 7000);
    let asked = tenants.call("read_file", json!({"path": "a.txt"}), runner);
    assert_eq!((asked.status, &asked.body["status"]), (202, &json!("pending")), "{asked:?}");
    let auto = json!({"permissionPolicy": "auto"});
    assert_eq!(code(&tenants.patch("read_file", auto.clone(), writer)), (403, "FORBIDDEN"));
    assert_eq!(code(&tenants.send("DELETE", "/api/tools/read_file", None, writer)), (403, "FORBIDDEN"));
    let admin = tenants.person("admin");
    let loosened = tenants.by(&admin, "PATCH", "/api/tools/read_file", Some(&auto));
    assert_eq!(loosened.status, 200, "an admin may: {loosened:?}");
    assert_eq!(tenants.call("read_file", json!({"path": "a.txt"}), runner).status, 200);
}

#[test]
fn the_operator_switches_a_tool_off_for_all_tenants_at_once() {
    let tenants = Tenants::new();
    let (writer, other) = (&tenants.writer, &tenants.other);
    let path = json!({"path": "a.txt"});
    assert_eq!(tenants.call("read_file", path.clone(), writer).status, 200);
    assert_eq!(tenants.call("read_file", path.clone(), other).status, 200);
    let off = tenants.served.admin(&["tool", "disable", "read_file", "--all-tenants"]);
    assert_eq!(off, json!({"tool": "read_file", "tenant": null, "enabled": false}));
    for key in [writer, other] {
        assert_eq!(code(&tenants.call("read_file", path.clone(), key)), (404, "TOOL_NOT_FOUND"), "at once");
    }
    let on = tenants.patch("read_file", json!({"enabled": true}), writer);
    assert_eq!((on.status, &on.body["enabled"]), (200, &json!(false)), "no tenant takes that back: {on:?}");
    tenants.served.admin(&["tool", "enable", "read_file", "--all-tenants"]);
    assert_eq!(tenants.call("read_file", path.clone(), writer).status, 200);
    tenants.served.admin(&["tool", "disable", "read_file", "--tenant", "bolt"]);
    assert_eq!(tenants.call("read_file", path.clone(), writer).status, 200);
    assert_eq!(code(&tenants.call("read_file", path, other)), (404, "TOOL_NOT_FOUND"));

    assert_eq!(tenants.make("mine", &json!({}), writer).status, 201);
    tenants.served.admin(&["tool", "disable", "mine", "--tenant", "acme"]);
    assert_eq!(code(&tenants.call("mine", json!({}), writer)), (404, "TOOL_NOT_FOUND"));
    assert_eq!(tenants.patch("mine", json!({"enabled": true}), writer).status, 200);
    assert_eq!(tenants.call("mine", json!({}), writer).status, 200);
    let unknown = tenants.served.haft(&["admin", "tool", "disable", "mine", "--all-tenants"]).output().unwrap();
    assert!(!unknown.status.success(), "only what every tenant has is switched off for all");
    let unsaid = tenants.served.haft(&["admin", "tool", "disable", "read_file"]).output().unwrap();
    assert_eq!(unsaid.status.code(), Some(2), "for whom must be said");
}

#[test]
fn tools_are_found_by_where_they_come_from() {
    let tenants = Tenants::new();
    let (writer, other) = (&tenants.writer, &tenants.other);
    let made = tenants.make("invoice", &json!({"category": "billing", "description": "Writes an invoice."}), writer);
    assert_eq!((made.status, &made.body["origin"]), (201, &json!("tenant")), "{made:?}");
    assert_eq!(tenants.make("idle", &json!({"enabled": false}), writer).status, 201);
    assert_eq!(tenants.names("origin=tenant", writer), ["idle", "invoice"]);
    assert_eq!(tenants.names("kind=tenant_custom&enabled=true", writer), ["invoice"]);
    assert_eq!(tenants.names("q=invoice", writer), ["invoice"]);
    assert_eq!(tenants.names("category=billing", writer), ["invoice"]);
    assert!(tenants.names("origin=tenant", other).is_empty());
    let code = tenants.names("origin=code", writer);
    assert!(code.contains(&"read_file".to_owned()) && !code.contains(&"invoice".to_owned()));
    let all = tenants.names("", writer);
    let mut paged: Vec<String> = Vec::new();
    let mut after = String::new();
    loop {
        let page = tenants.served.get(&format!("/api/tools?limit=7{after}"), Some(writer)).body;
        let items = page["items"].as_array().unwrap();
        paged.extend(items.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()));
        let Some(next) = page["next"].as_str() else { break };
        after = format!("&after={next}");
    }
    assert_eq!(paged, all, "also those that are off, in their place");
}

#[test]
fn a_search_finds_only_what_one_may_use() {
    let tenants = Tenants::new();
    let admin = tenants.person("admin");
    let guarded = json!({"description": "Closes the books.", "requiredPermission": "policy.tenant.update"});
    assert_eq!(tenants.make("closeBooks", &guarded, &tenants.writer).status, 201);
    assert_eq!(tenants.make("openBooks", &json!({"description": "Opens the books."}), &tenants.writer).status, 201);
    let search = json!({"input": {"query": "books"}});
    let found = |answer: Answer| {
        let tools = answer.body["result"]["structured"]["tools"].as_array().unwrap().clone();
        let mut names: Vec<String> = tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
        names.sort();
        names
    };
    let by_key = found(tenants.served.post("/api/tools/find_tools/calls", &search, Some(&tenants.runner)));
    assert_eq!(by_key, ["openBooks"], "no description of what it may not use");
    let by_admin = found(tenants.by(&admin, "POST", "/api/tools/find_tools/calls", Some(&search)));
    assert_eq!(by_admin, ["closeBooks", "openBooks"]);
    assert_eq!(code(&tenants.call("closeBooks", json!({}), &tenants.runner)), (403, "FORBIDDEN"));
}

#[test]
fn a_tool_that_is_still_named_is_not_deleted() {
    let tenants = Tenants::new();
    let (writer, admin) = (&tenants.writer, tenants.person("admin"));
    assert_eq!(
        tenants.make("ship", &json!({"executionType": "external", "effect": "destructive"}), writer).status,
        201
    );
    let grant = json!({"tool": "ship", "bounds": {"input": {"to": "here"}}});
    let given = tenants.by(&admin, "POST", "/api/grants", Some(&grant));
    assert_eq!(given.status, 201, "{given:?}");
    let rule = json!({"rules": [{"tool": "ship", "decision": "ask"}], "version": 0});
    assert_eq!(tenants.by(&admin, "PUT", "/api/policy", Some(&rule)).status, 200);
    let refused = tenants.send("DELETE", "/api/tools/ship", None, writer);
    assert_eq!(code(&refused), (409, "CONFLICT"), "{refused:?}");
    let id = given.body["id"].as_str().unwrap();
    let referrers = json!([{"kind": "grant", "id": id}, {"kind": "rule", "id": "rule 1 of the tenant"}]);
    assert_eq!(refused.body["error"]["details"]["referrers"], referrers);
    assert_eq!(tenants.by(&admin, "DELETE", &format!("/api/grants/{id}"), None).status, 200);
    assert_eq!(tenants.send("DELETE", "/api/tools/ship", None, writer).status, 409, "a rule still names it");
    let none = json!({"rules": [], "version": 1});
    assert_eq!(tenants.by(&admin, "PUT", "/api/policy", Some(&none)).status, 200);
    assert_eq!(tenants.send("DELETE", "/api/tools/ship", None, writer).status, 200);
}

#[test]
fn a_draft_is_tried_and_saved_nowhere() {
    let tenants = Tenants::new();
    let (writer, runner) = (&tenants.writer, &tenants.runner);
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let draft = json!({"description": "d", "inputSchema": schema, "executionType": "internal"});
    let tried = json!({"input": {"n": 3}, "draft": draft});
    let done = tenants.served.post("/api/tools/sketch/test", &tried, Some(writer));
    assert_eq!((done.status, &done.body["status"]), (200, &json!("success")), "{done:?}");
    assert_eq!(done.body["result"]["structured"]["args"], json!({"n": 3}));
    assert_eq!(tenants.served.get("/api/tools/sketch", Some(writer)).status, 404);
    let call = done.body["tool_call_id"].as_str().unwrap();
    let shown = tenants.served.get(&format!("/api/calls/{call}"), Some(writer));
    assert_eq!((shown.status, &shown.body["test"], &shown.body["tool"]), (200, &json!(true), &json!("sketch")));
    let unfit = json!({"input": {"n": "x"}, "draft": draft});
    let unfit = tenants.served.post("/api/tools/sketch/test", &unfit, Some(writer));
    assert_eq!(unfit.body["error"]["code"], "INVALID_ARGS", "the draft's own schema counts: {unfit:?}");
    let broken = json!({"draft": {"description": "d", "executionType": "magic"}});
    assert_eq!(code(&tenants.served.post("/api/tools/sketch/test", &broken, Some(writer))), (400, "INVALID_ARGS"));
    assert_eq!(code(&tenants.served.post("/api/tools/sketch/test", &tried, Some(runner))), (403, "FORBIDDEN"));
    assert_eq!(code(&tenants.served.post("/api/tools/read_file/test", &tried, Some(writer))), (409, "ALREADY_EXISTS"));

    assert_eq!(tenants.make("sketch", &json!({}), writer).status, 201);
    let again = tenants.served.post("/api/tools/sketch/test", &json!({"input": {"n": "x"}}), Some(runner));
    assert_eq!(again.body["status"], "success", "the saved one takes anything: {again:?}");
    let unfit = json!({"input": {"n": "x"}, "draft": draft});
    let unfit = tenants.served.post("/api/tools/sketch/test", &unfit, Some(writer));
    assert_eq!(unfit.body["error"]["code"], "INVALID_ARGS", "a draft stands in its place: {unfit:?}");
}

#[test]
fn trials_are_no_part_of_history_and_numbers() {
    let tenants = Tenants::new();
    let (writer, runner, other) = (&tenants.writer, &tenants.runner, &tenants.other);
    for key in [writer, other] {
        assert_eq!(tenants.make("echo", &json!({}), key).status, 201);
    }
    let mut made = Vec::new();
    for number in 0..3 {
        let called = tenants.call("echo", json!({"n": number}), if number == 1 { writer } else { runner });
        made.push(called.body["tool_call_id"].clone());
    }
    tenants.served.post("/api/tools/echo/test", &json!({"input": {"n": 9}}), Some(writer));
    tenants.call("read_file", json!({"path": "missing.txt"}), writer);
    let runs = |query: &str, key: &str| tenants.served.get(&format!("/api/tools/echo/runs?{query}"), Some(key)).body;
    let all = runs("", writer);
    let ids: Vec<&Value> = all["items"].as_array().unwrap().iter().map(|run| &run["id"]).collect();
    assert_eq!(ids, made.iter().rev().collect::<Vec<_>>(), "{all}");
    let first = &all["items"][2];
    assert_eq!((&first["toolSlug"], &first["input"]), (&json!("echo"), &json!({"n": 0})));
    assert_eq!((&first["status"], &first["error"], &first["source"]), (&json!("success"), &json!(null), &json!("api")));
    assert_eq!(first["output"]["args"], json!({"n": 0}));
    assert!(first["durationMs"].is_u64() && first["callerId"].as_str().unwrap().starts_with("key:"));
    assert_eq!(first["sessionId"], json!(null));
    assert_eq!(runs("", runner)["items"].as_array().unwrap().len(), 2, "who may not see others' sees the own ones");
    let page = runs("limit=2", writer);
    let next = page["next"].as_str().unwrap();
    assert_eq!(runs(&format!("limit=2&after={next}"), writer)["items"][0]["id"], made[0]);
    assert_eq!(runs("", other)["items"], json!([]));

    let metrics = tenants.served.get("/api/metrics/tools", Some(writer));
    let of = |name: &str| {
        let items = metrics.body["items"].as_array().unwrap();
        items.iter().find(|tool| tool["toolName"] == name).unwrap().clone()
    };
    let (echo, read) = (of("echo"), of("read_file"));
    assert_eq!((&echo["totalCalls"], &echo["successCount"], &echo["lastError"]), (&json!(3), &json!(3), &json!(null)));
    assert!(echo["p50"].is_i64() && echo["p99"].is_i64() && echo["avgExecutionTimeMs"].is_number(), "{echo}");
    assert_eq!((&read["errorCount"], &read["lastError"]["code"]), (&json!(1), &json!("FILE_NOT_FOUND")), "{read}");
    assert_eq!(tenants.served.get("/api/metrics/tools", Some(other)).body["items"], json!([]));
    assert_eq!(code(&tenants.served.get("/api/metrics/tools", Some(runner))), (403, "FORBIDDEN"));
    assert_eq!(code(&tenants.served.get("/api/metrics/tools?since=noon", Some(writer))), (400, "INVALID_ARGS"));
    let later = tenants.served.get("/api/metrics/tools?since=2100-01-01T00:00:00Z", Some(writer));
    assert_eq!(later.body["items"], json!([]));
}

#[test]
fn a_trial_is_told_as_it_happens_and_ends_with_its_outcome() {
    let tenants = Tenants::new();
    assert_eq!(tenants.make("echo", &json!({}), &tenants.writer).status, 201);
    let body = json!({"input": {"n": 1}}).to_string();
    let address = tenants.served.url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let head = format!(
        "POST /api/tools/echo/test/stream HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        tenants.writer,
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut told = String::new();
    stream.read_to_string(&mut told).unwrap();
    assert!(told.starts_with("HTTP/1.1 200") && told.contains("text/event-stream"), "{told}");
    let events: Vec<&str> = told.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!(events.first().copied(), Some("tool.call"), "{told}");
    assert_eq!(&events[events.len() - 2..], ["tool.completed", "outcome"], "{told}");
    let data: Vec<Value> =
        told.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok()).collect();
    assert_eq!(data[0]["test"], true, "{}", data[0]);
    let outcome = data.last().unwrap();
    assert_eq!((&outcome["status"], &outcome["result"]["structured"]["args"]), (&json!("success"), &json!({"n": 1})));
    let refused = tenants.served.post("/api/tools/nothing/test/stream", &json!({}), Some(&tenants.writer));
    assert_eq!(code(&refused), (404, "TOOL_NOT_FOUND"));
}

/// How long a request takes while the machine does little else: one of ten is quicker.
fn undisturbed(mut request: impl FnMut() -> Answer) -> Duration {
    let mut took: Vec<Duration> = (0..100)
        .map(|_| {
            let begun = Instant::now();
            let answer = request();
            assert_eq!(answer.status, 200, "{answer:?}");
            begun.elapsed()
        })
        .collect();
    took.sort();
    took[took.len() / 10]
}

#[test]
fn what_a_request_costs_does_not_grow_with_tools_and_tenants() {
    let tenants = Tenants::new();
    let (served, key) = (&tenants.served, Some(tenants.writer.as_str()));
    for number in 0..10 {
        assert_eq!(tenants.make(&format!("tool_{number:05}"), &json!({}), &tenants.writer).status, 201);
    }
    let measure = || {
        let call = json!({"input": {"n": 1}});
        [
            undisturbed(|| served.get("/api/tools?limit=8&after=tool", key)),
            undisturbed(|| served.get("/api/tools/tool_00005", key)),
            undisturbed(|| served.post("/api/tools/tool_00005/calls", &call, key)),
        ]
    };
    let before = measure();
    // Ten thousand tools for one tenant, and fifty for each of two hundred others.
    let fill = "with recursive n(i) as (select 10 union all select i + 1 from n where i < 9999) \
                insert into tools select t.id, printf('tool_%05d', i), 'tenant_custom', 1, 1, \
                json_object('slug', printf('tool_%05d', i), 'description', 'Does one of ten thousand things.', \
                'inputSchema', json('{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}}}'), \
                'executionType', 'internal'), 'somebody', 0 from n, tenants t where t.slug = 'acme' or (i < 60 and \
                t.slug like 'more%')";
    let add = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 200) insert into tenants \
               select 'tn_more' || i, 'more' || i, 'More', 1, 0 from n";
    let database = rusqlite::Connection::open(served.data().join("haft.db")).unwrap();
    database.busy_timeout(Duration::from_secs(10)).unwrap();
    database.execute_batch(&format!("begin; {add}; {fill}; update tenants set version = version + 1; commit")).unwrap();
    let listed = served.get("/api/tools?limit=5&after=tool_09995", key);
    assert_eq!(listed.body["items"][3]["name"], "tool_09999", "all of them are there: {listed:?}");
    let after = measure();
    for (what, (before, after)) in ["list", "look-up", "call"].iter().zip(before.iter().zip(&after)) {
        assert!(*after < *before * 2 + Duration::from_millis(1), "a {what} took {before:?}, and takes {after:?}");
    }
}
