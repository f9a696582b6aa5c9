//! A tenant with its key, and the servers that it is reached at.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::{
    database,
    http_client::{Answer, Gateway, event_stream::EventReader, until},
};

pub(crate) const EVERYTHING: &str = "tools:read,tools:execute,tools:write,approvals:decide,events:read";
const SECRET: &str = "a-secret-key-for-tests-of-nodes-only";

/// The servers of one database, and a key of one tenant that may do everything there. Its tool `echo` only reads.
pub(crate) struct Site {
    pub(crate) nodes: Vec<Gateway>,
    pub(crate) key: String,
    _folder: Option<TempDir>,
}

impl Site {
    /// Two nodes on a PostgreSQL database of their own; `None` where there is no server for it.
    pub(crate) fn of_two_nodes() -> Option<Self> {
        let (folder, url) = new_database()?;
        Some(Self { _folder: Some(folder), ..Self::on(&[&url, &url]) })
    }

    /// One node for each address of the same database.
    pub(crate) fn on(addresses: &[&str]) -> Self {
        Self::with(addresses.iter().map(|url| start(url, &[])).collect())
    }

    /// One server on SQLite, and the tenant of this machine's own user, who may use every command beside it.
    pub(crate) fn on_a_file() -> Self {
        let served = Gateway::start();
        let key = served.key("local", "local", EVERYTHING);
        Self::of_tenant(vec![served], key)
    }

    /// These servers of one new database.
    pub(crate) fn with(nodes: Vec<Gateway>) -> Self {
        nodes[0].admin(&["tenant", "add", "acme"]);
        let key = nodes[0].key("full", "acme", EVERYTHING);
        Self::of_tenant(nodes, key)
    }

    /// The tenant of a key that may do everything.
    fn of_tenant(nodes: Vec<Gateway>, key: String) -> Self {
        let site = Self { nodes, key, _folder: None };
        site.tool("echo", "internal", json!({"effect": "read"}));
        site
    }

    /// The node that comes after the others, again and again.
    pub(crate) fn node(&self, number: usize) -> &Gateway {
        &self.nodes[number % self.nodes.len()]
    }

    /// Makes a tool, and waits until every node has it.
    #[expect(clippy::needless_pass_by_value, reason = "what is written in its place reads best")]
    pub(crate) fn tool(&self, slug: &str, kind: &str, more: Value) {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
        let tool = json!({"slug": slug, "description": "For tests.", "inputSchema": schema, "executionType": kind});
        let tool = Value::Object(merged(&tool, &more));
        let made = self.post(0, "/api/tools", &tool);
        assert_eq!(made.status, 201, "{made:?}");
        for number in 0..self.nodes.len() {
            until(|| (self.get(number, &format!("/api/tools/{slug}")).status == 200).then_some(()));
        }
    }

    /// Calls a tool on a node, with more beside the input.
    #[expect(clippy::needless_pass_by_value, reason = "what is written in its place reads best")]
    pub(crate) fn call(&self, node: usize, tool: &str, n: usize, more: Value) -> Answer {
        let body = Value::Object(merged(&json!({"input": {"n": n}}), &more));
        self.post(node, &format!("/api/tools/{tool}/calls"), &body)
    }

    pub(crate) fn get(&self, node: usize, path: &str) -> Answer {
        self.node(node).get(path, Some(&self.key))
    }

    pub(crate) fn post(&self, node: usize, path: &str, body: &Value) -> Answer {
        self.node(node).post(path, body, Some(&self.key))
    }

    /// The same to a node that may be gone before it answers.
    pub(crate) fn try_post(&self, node: usize, path: &str, body: &Value) -> Option<Answer> {
        let bearer = format!("Bearer {}", self.key);
        self.node(node).try_request("POST", path, Some(body), &[("Authorization", &bearer)]).ok()
    }

    /// Gives the result of a call.
    pub(crate) fn submit(&self, node: usize, call: &str, result: &Value) -> Answer {
        self.post(node, "/api/tool-results", &json!({"callId": call, "result": result}))
    }

    pub(crate) fn approve(&self, node: usize, call: &str) -> Answer {
        self.post(node, &format!("/api/approvals/{call}/approve"), &json!({}))
    }

    /// One call as a node shows it.
    pub(crate) fn shown(&self, node: usize, call: &str) -> Value {
        self.get(node, &format!("/api/calls/{call}")).body
    }

    /// A call once it has ended.
    pub(crate) fn ended(&self, node: usize, call: &str) -> Value {
        until(|| Some(self.shown(node, call)).filter(|shown| shown["state"] == "ended"))
    }

    /// The open questions of one tool, as a node lists them.
    pub(crate) fn open(&self, node: usize, tool: &str) -> Vec<String> {
        let listed = self.get(node, "/api/approvals?limit=200").body;
        let items = listed["items"].as_array().cloned().unwrap_or_default();
        items.iter().filter(|item| item["tool"] == tool).map(|item| text(&item["callId"])).collect()
    }

    /// Every item of the key's inbox, by call.
    pub(crate) fn inbox(&self, node: usize) -> BTreeMap<String, Vec<Value>> {
        let (mut found, mut after) = (BTreeMap::<String, Vec<Value>>::new(), String::new());
        loop {
            let page = self.get(node, &format!("/api/inbox?limit=200{after}")).body;
            for item in page["items"].as_array().unwrap() {
                found.entry(text(&item["callId"])).or_default().push(item["body"].clone());
            }
            match page["next"].as_str() {
                Some(next) => after = format!("&after={next}"),
                None => return found,
            }
        }
    }

    /// Everything that happened until now, from the beginning: number, name, data.
    pub(crate) fn history(&self, node: usize) -> Vec<(i64, String, Value)> {
        let last = id(&self.call(node, "echo", 0, json!({})));
        let mut stream = self.events(node, "/api/events", Some(0));
        let mut heard = Vec::new();
        loop {
            let frame = stream.next().unwrap();
            let (id, name) = (frame.id.unwrap().parse().unwrap(), frame.event.unwrap());
            if frame.data["toolCallId"] == last {
                return heard;
            }
            heard.push((id, name, frame.data));
        }
    }

    pub(crate) fn events(&self, node: usize, path: &str, after: Option<i64>) -> EventReader {
        let (bearer, after) = (format!("Bearer {}", self.key), after.map(|after| after.to_string()));
        let mut headers = vec![("Authorization", bearer.as_str())];
        headers.extend(after.as_deref().map(|after| ("Last-Event-ID", after)));
        EventReader::open(self.node(node), path, &headers)
    }
}

/// A new database on the server, and the folder that it is named after.
pub(crate) fn new_database() -> Option<(TempDir, String)> {
    let folder = tempfile::tempdir().unwrap();
    let Some(url) = database::create(folder.path()) else {
        println!("skipped: only PostgreSQL serves several nodes");
        return None;
    };
    Some((folder, url))
}

/// A node on a database, with more variables.
pub(crate) fn start(url: &str, more: &[(&str, &str)]) -> Gateway {
    Gateway::start_as(&["--database", url], &[&variables(url)[..], more].concat())
}

/// What every command needs that uses the database.
pub(crate) fn variables(url: &str) -> [(&str, &str); 2] {
    [("HAFT_STORE_URL", url), ("HAFT_SECRET_KEY", SECRET)]
}

/// Does something with each number, so many at once.
pub(crate) fn for_each(numbers: usize, at_once: usize, work: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= numbers {
                        break;
                    }
                    work(number);
                }
            });
        }
    });
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

pub(crate) fn id(answer: &Answer) -> String {
    answer.body["tool_call_id"].as_str().unwrap_or_else(|| panic!("{answer:?}")).to_owned()
}

fn merged(one: &Value, more: &Value) -> Map<String, Value> {
    let mut all = one.as_object().unwrap().clone();
    all.extend(more.as_object().unwrap().clone());
    all
}

/// Whether an event ends its call. A late result comes after that.
pub(crate) fn is_end(name: &str, data: &Value) -> bool {
    let ends = ["tool.completed", "tool.failed", "tool.cancelled", "tool.rejected", "tool.interrupted"];
    ends.contains(&name) && data["late"] != true
}

/// Random enough, and the same in every run.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 11) % u64::try_from(end).unwrap()).unwrap()
    }
}
