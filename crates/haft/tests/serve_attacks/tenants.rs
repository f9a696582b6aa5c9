//! Two tenants against each other, through every route: nothing of the other one is seen or changed.

use serde_json::{Map, Value, json};

use crate::{
    EVERY_SCOPE,
    http_client::{Gateway, event_stream::EventReader, person::Person, until, with_stdin},
    talk::{Reply, Talk},
    tenant, text, tool,
};

/// Stands in everything that belongs to the first tenant, and the other one never writes it.
const CANARY: &str = "canaryofacme";
/// The first tenant's name for what has a name, which the other one tries.
const NAME: &str = "nameofacme";

/// The first tenant: what it has, and by what that is called.
struct Acme<'a> {
    owner: Person<'a>,
    talk: Talk,
    /// Each thing with one of the same shape that never was.
    ids: Vec<(String, String)>,
}

impl<'a> Acme<'a> {
    fn new(served: &'a Gateway) -> Self {
        served.admin(&["tenant", "add", "acme", "--name", CANARY]);
        served.admin(&["workspace", "add", NAME, "--tenant", "acme", "--map", served.workspace().to_str().unwrap()]);
        let key = served.key_in(CANARY, "acme", EVERY_SCOPE, NAME);
        let owner = Person::added(served, &format!("{CANARY}@acme.example"), "acme", "owner");
        let mut acme = Self { owner, talk: Talk::by_key(served, &key), ids: Vec::new() };
        let key_id = key.split('_').nth(1).unwrap();
        acme.ids.push((key_id.to_owned(), format!("{}1b2C3d4E5f6", &key_id[..1])));
        acme.make_tools_and_calls(served);
        acme.make_the_rest(served);
        acme
    }

    /// Notes what something is called, and what nothing is.
    fn note(&mut self, id: &str) {
        let other = |letter: char| match letter {
            '0'..='8' => char::from(letter as u8 + 1),
            'b'..='e' => char::from(letter as u8 + 1),
            same => same,
        };
        let (begin, end) = id.split_at(id.len() - 6);
        let never: String = begin.chars().chain(end.chars().map(other)).collect();
        assert_ne!(id, never);
        self.ids.push((id.to_owned(), never));
    }

    fn make_tools_and_calls(&mut self, served: &Gateway) {
        std::fs::write(served.workspace().join("a.txt"), CANARY).unwrap();
        let (internal, waits) = (format!("{NAME}_in"), format!("{NAME}_out"));
        for (slug, kind, is_async) in [(&internal, "internal", false), (&waits, "external", true)] {
            let mut written = tool(slug, kind);
            written["isAsync"] = json!(is_async);
            written["description"] = json!(CANARY);
            assert_eq!(self.talk.post("/api/tools", &written).status, 201);
            self.ids.push((slug.clone(), slug.replace("acme", "zzzz")));
        }
        let read = json!({"input": {"path": "a.txt"}});
        let write = json!({"input": {"path": "b.txt", "content": CANARY}, "wait": 0});
        for (slug, body) in [("read_file", &read), ("write_file", &write), (waits.as_str(), &write)] {
            let made = self.talk.post(&format!("/api/tools/{slug}/calls"), body);
            assert!(made.status < 300, "{made:?}");
            self.note(&text(&made.json()["tool_call_id"]));
        }
        // A result that nobody waits for any more is in the inbox of whoever asked.
        let late = self.talk.post(&format!("/api/tools/{waits}/calls"), &json!({"input": {}})).json();
        let given = json!({"callId": late["tool_call_id"], "result": {"said": CANARY}});
        assert_eq!(self.talk.post("/api/tool-results", &given).status, 200);
        let inbox = self.talk.get("/api/inbox").json();
        self.note(&text(&inbox["items"][0]["id"]));
    }

    fn make_the_rest(&mut self, served: &Gateway) {
        with_stdin(served.haft(&["secret", "set", "ACMETOKEN0bcd01", "--tenant", "acme"]), CANARY);
        self.note("ACMETOKEN0bcd01");
        let posted = |acme: &Self, path: &str, body: Value| {
            let made = acme.owner.post(path, body);
            assert_eq!(made.status, 201, "{path}: {made:?}");
            made.body
        };
        let session = posted(self, "/api/sessions", json!({"title": CANARY}));
        self.note(&text(&session["id"]));
        let media = posted(self, &format!("/api/media?name={CANARY}.txt"), json!({"said": CANARY}));
        self.note(&text(&media["id"]));
        let grant = posted(self, "/api/grants", json!({"tool": "write_file", "workspace": NAME}));
        self.note(&text(&grant["id"]));
        let server = json!({"name": "acme0bcd01", "url": "https://acme.example/mcp"});
        posted(self, "/api/servers", server);
        self.note("acme0bcd01");
        let (person, sign_in) = (self.owner.id.clone(), self.owner.get("/api/me/sign-ins").body);
        self.note(&person);
        self.note(&text(&sign_in["items"][0]["id"]));
        let tenant = self.owner.get("/api/me").body["tenant"].clone();
        self.note(&text(&tenant["id"]));
        self.ids.push(("acme".to_owned(), "zzzz".to_owned()));
        let workspaces = self.owner.get("/api/workspaces").body;
        self.note(&text(&workspaces["items"][0]["id"]));
        self.ids.push((NAME.to_owned(), "nameofzzzz".to_owned()));
    }

    /// Everything that the first tenant sees of itself.
    fn state(&mut self) -> Value {
        let mut state = Map::new();
        let lists = "calls?limit=200 approvals approvals?state=answered tools?limit=200 keys people workspaces secrets \
                     sessions grants?all=true policy settings tenants me/sign-ins";
        for list in lists.split_whitespace() {
            let answer = self.owner.get(&format!("/api/{list}"));
            assert_eq!(answer.status, 200, "{list}: {answer:?}");
            state.insert(list.to_owned(), answer.body);
        }
        state.insert("inbox".to_owned(), self.talk.get("/api/inbox").json());
        for (id, _) in self.ids.clone() {
            for path in [format!("/api/calls/{id}"), format!("/api/approvals/{id}"), format!("/api/media/{id}")] {
                let found = self.owner.get(&path);
                state.insert(path, json!([found.status, found.body]));
            }
        }
        let mut state = Value::Object(state);
        forget(&mut state, &["lastUsedAt"]);
        state
    }
}

/// Takes out what changes by itself.
fn forget(value: &mut Value, names: &[&str]) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !names.contains(&name.as_str()));
            fields.values_mut().for_each(|inner| forget(inner, names));
        }
        Value::Array(items) => items.iter_mut().for_each(|inner| forget(inner, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// One route, and how it is asked.
struct Operation {
    method: String,
    path: String,
    query: Vec<String>,
    bodies: Vec<Value>,
}

/// Stands where an id goes.
const HERE: &str = "ID-GOES-HERE";

fn operations(document: &Value) -> Vec<Operation> {
    let mut all = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            // Whoever signs out, signs in or takes another password asks as somebody else afterwards; streams have a test of
            // their own.
            if ["/api/sign-out", "/api/sign-in", "/sign-in", "/api/me/password"].contains(&path.as_str())
                || path.ends_with("/events")
            {
                continue;
            }
            let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
            let query = parameters.iter().filter(|parameter| parameter["in"] == "query");
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            all.push(Operation {
                method: method.to_uppercase(),
                path: path.clone(),
                query: query.map(|parameter| text(&parameter["name"])).collect(),
                bodies: bodies(schema, &document["components"]["schemas"]),
            });
        }
    }
    all
}

/// Bodies that a schema lets pass, with an id in each place that takes a text.
fn bodies(schema: &Value, schemas: &Value) -> Vec<Value> {
    if schema.is_null() {
        return Vec::new();
    }
    let everywhere = sample(schema, schemas, &|_| json!(HERE));
    let mut all = vec![everywhere.clone()];
    for field in everywhere.as_object().into_iter().flat_map(|fields| fields.keys()) {
        all.push(sample(schema, schemas, &|name| if name == field { json!(HERE) } else { usual(name) }));
    }
    all
}

/// What usually stands in a field.
fn usual(name: &str) -> Value {
    match name {
        "scopes" => json!("tools:read"),
        "role" => json!("viewer"),
        // Each is somebody new.
        "email" => json!(format!("{HERE}@bolt.example")),
        "url" => json!("https://bolt.example/mcp"),
        "value" => json!("long enough for a secret"),
        "tool" => json!("wait_call"),
        "expiresAt" => json!("2100-01-01T00:00:00Z"),
        "for" => json!("8h"),
        _ => json!("usual"),
    }
}

fn sample(schema: &Value, schemas: &Value, text: &dyn Fn(&str) -> Value) -> Value {
    sample_of("", schema, schemas, text)
}

fn sample_of(name: &str, schema: &Value, schemas: &Value, text: &dyn Fn(&str) -> Value) -> Value {
    if let Some(reference) = schema["$ref"].as_str() {
        return sample_of(name, &schemas[reference.rsplit('/').next().unwrap()], schemas, text);
    }
    if let Some(first) = schema["enum"].get(0).or(schema["oneOf"][0].get("const")) {
        return first.clone();
    }
    if let Some(choice) = schema["anyOf"].as_array().or(schema["oneOf"].as_array()) {
        // A list before a single one is the larger of the two.
        return sample_of(name, &choice[0], schemas, text);
    }
    let kind = schema["type"].as_str().or(schema["type"][0].as_str()).unwrap_or("string");
    match kind {
        "object" => {
            let fields = schema["properties"].as_object().cloned().unwrap_or_default();
            let field = |(name, inner): (String, Value)| {
                let value = sample_of(&name, &inner, schemas, text);
                (name, value)
            };
            let mut fields: Map<String, Value> = fields.into_iter().map(field).collect();
            // No call needs to be waited for, and what is tried is tried for a moment.
            for (name, value) in [("wait", json!(0)), ("timeoutMs", json!(2000))] {
                fields.entry(name).and_modify(|known| *known = value);
            }
            if fields.is_empty() {
                fields.insert("callId".to_owned(), json!(HERE));
            }
            Value::Object(fields)
        }
        "array" => json!([sample_of(name, &schema["items"], schemas, text)]),
        "integer" | "number" => json!(1),
        "boolean" => json!(true),
        _ => text(name),
    }
}

/// The requests of an operation with an id wherever one can stand.
fn requests(operation: &Operation, id: &str) -> Vec<(String, Option<String>)> {
    let has_part = operation.path.contains('{');
    let path: String = operation
        .path
        .split('/')
        .map(|step| if step.starts_with('{') { id } else { step })
        .collect::<Vec<_>>()
        .join("/");
    let body = |body: &Value| body.to_string().replace(HERE, id);
    let mut all = Vec::new();
    match operation.bodies.as_slice() {
        [] if has_part => all.push((path.clone(), None)),
        [] => {}
        bodies => all.extend(bodies.iter().map(|given| (path.clone(), Some(body(given))))),
    }
    all.extend(operation.query.iter().map(|name| (format!("{path}?{name}={id}"), None)));
    all
}

/// What a reply says, whatever the id was.
fn words(reply: &Reply, id: &str) -> (u16, String) {
    let written = || reply.text.replace(id, HERE).replace(&id.to_lowercase(), HERE);
    let text = if reply.status < 400 { String::new() } else { written() };
    (reply.status, text)
}

#[test]
fn nothing_of_another_tenant_is_seen_or_changed_through_any_route() {
    let served = Gateway::start();
    let mut acme = Acme::new(&served);
    tenant(&served, "bolt");
    let mut bolt = {
        let person = Person::added(&served, "bolt@bolt.example", "bolt", "owner");
        Talk::with(&served, &[("Cookie", &person.cookie), ("X-CSRF-Token", &person.csrf)])
    };
    bolt.post("/api/tools", &tool("echo", "internal"));
    let before = acme.state();
    let operations = operations(&served.get("/openapi.json", None).body);
    assert!(operations.len() > 60, "{}", operations.len());
    let mut asked = 0;
    for operation in &operations {
        for (id, never) in &acme.ids {
            for ((path, body), (other_path, other_body)) in
                requests(operation, id).iter().zip(requests(operation, never))
            {
                let method = operation.method.as_str();
                let theirs = bolt.ask(method, path, body.as_deref().map(str::as_bytes));
                let nobodys = bolt.ask(method, &other_path, other_body.as_deref().map(str::as_bytes));
                let sent = format!("{method} {path} {body:?}");
                // Whoever types the codes of devices has to wait after a while, whatever they type.
                let has_to_wait = [&theirs, &nobodys].iter().any(|reply| reply.status == 429);
                assert!(has_to_wait || words(&theirs, id) == words(&nobodys, never), "{sent}: {theirs:?} {nobodys:?}");
                let told = theirs.text.replace(id.as_str(), "");
                assert!(!told.contains(CANARY), "{sent}: {told}");
                asked += 1;
            }
        }
    }
    calls_that_name(&mut bolt, &acme.ids);
    assert!(asked > 1500, "{asked}");
    assert_eq!(acme.state(), before);
}

/// Tools that are given an id of somebody else.
fn calls_that_name(bolt: &mut Talk, ids: &[(String, String)]) {
    let tools = ["wait_call", "undo_call", "commit_call", "discard_call", "result_query", "read_file", "echo"];
    for (id, never) in ids {
        for slug in tools {
            let outcome = |bolt: &mut Talk, id: &str| {
                let from = json!({"$from": format!("haft://result/{id}")});
                let input = match slug {
                    "read_file" => json!({"path": id}),
                    "echo" => json!({"value": from, "more": id}),
                    "wait_call" => json!({"callId": id, "timeoutMs": 1}),
                    _ => json!({"callId": id}),
                };
                let reply = bolt.post(&format!("/api/tools/{slug}/calls"), &json!({"input": input, "wait": 0}));
                assert!(!reply.text.replace(id, "").contains(CANARY), "{slug} {id}: {reply:?}");
                let told = reply.json();
                (reply.status, told["status"].clone(), told["error"].to_string().replace(id, HERE))
            };
            assert_eq!(outcome(bolt, id), outcome(bolt, never), "{slug} {id}");
        }
    }
}

#[test]
fn no_stream_tells_of_another_tenant() {
    let served = Gateway::start();
    let acme = Acme::new(&served);
    let key = tenant(&served, "bolt");
    let ids: Vec<&str> = acme.ids.iter().map(|(id, _)| id.as_str()).collect();
    let list = ids.join(",");
    let everything = ["types", "calls", "sessions", "spaces", "agents"].map(|name| format!("{name}={list}"));
    for path in [
        "/api/events?maxAge=1".to_owned(),
        format!("/api/events?maxAge=1&calls={list}"),
        format!("/api/events?maxAge=1&{}", everything.join("&")),
        format!("/api/runs/{}/events?maxAge=1", "acme-run"),
    ] {
        let headers = [("Authorization", format!("Bearer {key}")), ("Last-Event-ID", "0".to_owned())];
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let mut stream = EventReader::open(&served, &path, &headers);
        while let Some(frame) = stream.next() {
            assert_eq!(frame.event.as_deref(), Some("resync"), "{path}: {frame:?}");
        }
    }
    let mut bolt = Talk::by_key(&served, &key);
    for (id, never) in &acme.ids {
        for noun in ["calls", "runs", "sessions"] {
            let told = |talk: &mut Talk, id: &str| {
                let reply = talk.get(&format!("/api/{noun}/{id}/events?maxAge=1"));
                (reply.status, reply.text.replace(id, HERE))
            };
            assert_eq!(told(&mut bolt, id), told(&mut bolt, never), "{noun} {id}");
        }
    }
}

#[test]
fn whoever_lost_their_key_hears_no_more() {
    let served = Gateway::start();
    let key = tenant(&served, "acme");
    let other = served.key("other", "acme", EVERY_SCOPE);
    let mut stream = EventReader::by_key(&served, "/api/events", &key);
    served.admin(&["key", "remove", key.split('_').nth(1).unwrap(), "--tenant", "acme"]);
    let mut talk = Talk::by_key(&served, &other);
    assert_eq!(talk.post("/api/tools", &tool("echo", "internal")).status, 201);
    // It ends by itself, however much is told meanwhile.
    until(|| {
        talk.post("/api/tools/echo/calls", &json!({"input": {}}));
        stream.next().is_none().then_some(())
    });
    assert_eq!(Talk::by_key(&served, &key).get("/api/me").status, 401);
}
