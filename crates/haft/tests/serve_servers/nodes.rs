//! Two nodes on one PostgreSQL: what one of them saves, meets or accepts counts on the other within a second.
#![allow(clippy::print_stdout, reason = "a test that has nothing to do says so")]

use std::time::{Duration, Instant};

use serde_json::json;

use crate::{EVERYTHING, Member, http_client::Gateway, mcp_peer::McpPeer, until};

#[path = "../stories/database.rs"]
mod database;

#[test]
fn a_server_is_the_same_on_every_node() {
    let folder = tempfile::tempdir().unwrap();
    let Some(url) = database::create(folder.path()) else {
        println!("skipped: two nodes need a PostgreSQL server");
        return;
    };
    let shared = [("HAFT_STORE_URL", url.as_str()), ("HAFT_SECRET_KEY", "0123456789abcdef0123456789abcdef")];
    let (first, second) = (Gateway::start_among("", &shared), Gateway::start_among("", &shared));
    let peer = McpPeer::start();
    let here = Member::of(&first, "acme", &[&peer.host()]);
    let there = Member { served: &second, key: first.key("there", "acme", EVERYTHING) };
    here.adds("docs", &peer);
    let begun = Instant::now();
    until("tool on the other node", || there.tools().first().cloned());
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert_eq!(there.says("mcp__docs__echo", &json!({"text": "hi"})), "hi");
    peer.describe("Something else.");
    here.refresh("docs");
    assert_eq!(there.get("/api/servers/docs")["tools"][0]["held"], true);
    assert_eq!(there.send("POST", "/api/servers/docs/accept", &json!({})).status, 200);
    until("accepted tool", || {
        (here.call("mcp__docs__echo", &json!({"text": "x"}))["status"] == "success").then_some(())
    });
    there.change("docs", &json!({"enabled": false}));
    let begun = Instant::now();
    until("end of the tools", || here.tools().is_empty().then_some(()));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}
