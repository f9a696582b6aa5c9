//! Attacks on a real `haft serve`: by other tenants, by those who may less, by strangers, by floods and by nonsense.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod http_client;

#[path = "serve_attacks/bombs.rs"]
mod bombs;
#[path = "serve_attacks/canaries.rs"]
mod canaries;
#[path = "serve_attacks/credentials.rs"]
mod credentials;
#[path = "serve_attacks/floods.rs"]
mod floods;
#[path = "serve_attacks/kills.rs"]
mod kills;
#[path = "serve_attacks/pages.rs"]
mod pages;
#[path = "serve_attacks/permissions.rs"]
mod permissions;
#[path = "serve_attacks/talk.rs"]
mod talk;
#[path = "serve_attacks/tenants.rs"]
mod tenants;
#[path = "serve_attacks/tools.rs"]
mod tools;

use serde_json::{Value, json};

use http_client::Gateway;

/// Every scope that a key can have.
const EVERY_SCOPE: &str = "tools:read,tools:execute,tools:write,approvals:decide,events:read,agents:read,agents:write,\
                           spaces:read,spaces:write,mcp:manage";

/// A tool that somebody writes.
fn tool(slug: &str, kind: &str) -> Value {
    let schema = json!({"type": "object", "properties": {}, "additionalProperties": true});
    json!({"slug": slug, "description": "does something", "inputSchema": schema, "executionType": kind})
}

/// A tenant with a key that may do everything that a key can.
fn tenant(served: &Gateway, slug: &str) -> String {
    served.admin(&["tenant", "add", slug]);
    served.key("full", slug, EVERY_SCOPE)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}
