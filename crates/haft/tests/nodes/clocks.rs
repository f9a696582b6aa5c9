//! Nodes whose clocks are wrong: what expires does so by the database's clock.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::{
    http_client::until,
    site::{Site, id, new_database, start},
};

/// The library that makes a program's clock wrong, wherever Debian puts it on this machine.
fn libfaketime() -> Option<String> {
    let of_machine = std::fs::read_dir("/usr/lib").unwrap().flatten().map(|entry| entry.path());
    let library =
        of_machine.map(|folder| folder.join("faketime/libfaketimeMT.so.1")).find(|library| library.exists())?;
    Some(library.to_str().unwrap().to_owned())
}

#[test]
fn a_node_whose_clock_is_an_hour_off_ends_nothing_too_early_or_too_late() {
    let Some((_folder, url)) = new_database() else { return };
    let Some(library) = libfaketime() else {
        println!("skipped: libfaketime is not installed");
        return;
    };
    let off = |by: &str| start(&url, &[("LD_PRELOAD", &library), ("FAKETIME", by), ("DONT_FAKE_MONOTONIC", "1")]);
    let site = Site::with(vec![start(&url, &[]), off("+3600"), off("-3600")]);
    site.tool("tea", "external", json!({"isAsync": true, "expiresAfter": 1_800_000}));
    site.tool("egg", "external", json!({"isAsync": true, "expiresAfter": 700}));
    let begun = Instant::now();
    let open: Vec<String> = (0..3).map(|node| id(&site.call(node, "tea", node, json!({})))).collect();
    for node in 0..3 {
        let asked = Instant::now();
        let call = id(&site.call(node, "egg", node, json!({})));
        let ended = site.ended(node, &call);
        assert_eq!(ended["outcome"]["error"]["code"], "EXPIRED", "{ended}");
        println!("measured: what expires after 700 ms on node {node} ended after {:?}", asked.elapsed());
        assert!(asked.elapsed() >= Duration::from_millis(700));
    }
    // Every node has looked for what is overdue by now.
    until(|| (begun.elapsed() > Duration::from_secs(3)).then_some(()));
    for (node, call) in open.iter().enumerate() {
        assert_eq!(site.shown(node, call)["state"], "waiting");
        let given = site.submit(node + 1, call, &json!(node));
        assert_eq!(given.status, 200, "asked on node {node}, given on the next: {given:?}");
    }
}
