//! Tools that are made, changed, switched off and deleted on one node are so on the others within a second.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{http_client::within, site::Site};

/// A second, and what a busy machine adds.
const SOON: Duration = Duration::from_secs(3);
const MODERN: &str = "2026-07-28";

/// Whether an MCP client of a node is shown the tool `fresh`.
fn is_listed(site: &Site, node: usize) -> bool {
    let prefix = "io.modelcontextprotocol/";
    let meta = json!({
        format!("{prefix}protocolVersion"): MODERN,
        format!("{prefix}clientCapabilities"): {},
        format!("{prefix}clientInfo"): {"name": "raw", "version": "1"},
    });
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}});
    let bearer = format!("Bearer {}", site.key);
    let headers = [
        ("Authorization", bearer.as_str()),
        ("MCP-Protocol-Version", MODERN),
        ("Mcp-Method", "tools/list"),
        ("Accept", "application/json, text/event-stream"),
    ];
    let listed = site.node(node).request("POST", "/mcp", Some(&body), &headers);
    let tools = listed.body["result"]["tools"].as_array().unwrap_or_else(|| panic!("{listed:?}"));
    tools.iter().any(|tool| tool["name"] == "fresh")
}

/// Asks every node until it says so, and how long that took at the most.
fn soon(site: &Site, what: &str, is_so: impl Fn(usize) -> bool) {
    let begun = Instant::now();
    for node in 0..site.nodes.len() {
        assert!(within(SOON, || is_so(node).then_some(())).is_some(), "node {node}: {what}");
    }
    println!("measured: {what} everywhere within {:?}", begun.elapsed());
}

#[test]
fn a_tool_is_made_changed_switched_off_and_deleted_everywhere() {
    let Some(site) = Site::of_two_nodes() else { return };
    // Every node knows the tenant's tools as they are now.
    for node in 0..2 {
        assert!(!is_listed(&site, node));
        assert_eq!(site.call(node, "fresh", 1, json!({})).status, 404);
    }
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let tool = json!({"slug": "fresh", "description": "One.", "inputSchema": schema, "executionType": "internal"});
    assert_eq!(site.post(0, "/api/tools", &tool).status, 201);
    soon(&site, "made", |node| site.call(node, "fresh", 1, json!({})).body["status"] == "success");
    soon(&site, "made for MCP", |node| is_listed(&site, node));
    assert_eq!(
        change(&site, &json!({"description": "Two.", "inputSchema": {"type": "object", "required": ["m"]}})),
        200
    );
    soon(&site, "changed", |node| site.get(node, "/api/tools/fresh").body["description"] == "Two.");
    soon(&site, "judged anew", |node| site.call(node, "fresh", 1, json!({})).body["error"]["code"] == "INVALID_ARGS");
    assert_eq!(change(&site, &json!({"enabled": false})), 200);
    soon(&site, "switched off", |node| site.call(node, "fresh", 1, json!({})).status >= 400);
    soon(&site, "switched off for MCP", |node| !is_listed(&site, node));
    assert_eq!(change(&site, &json!({"enabled": true})), 200);
    soon(&site, "switched on", |node| is_listed(&site, node));
    let bearer = format!("Bearer {}", site.key);
    let gone = site.node(1).request("DELETE", "/api/tools/fresh", None, &[("Authorization", &bearer)]);
    assert_eq!(gone.status, 200, "{gone:?}");
    soon(&site, "deleted", |node| site.call(node, "fresh", 1, json!({})).status == 404);
    soon(&site, "deleted for MCP", |node| !is_listed(&site, node));
}

fn change(site: &Site, fields: &Value) -> u16 {
    let bearer = format!("Bearer {}", site.key);
    site.node(0).request("PATCH", "/api/tools/fresh", Some(fields), &[("Authorization", &bearer)]).status
}
