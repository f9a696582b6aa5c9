//! How long a tenant keeps what is past: as it says itself, and never longer than the operator does.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod http_client;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http_client::{Gateway, person::Person};
use rusqlite::Connection;
use serde_json::{Value, json};

const DAY: u64 = 24 * 3600;

/// An id of a call that was made so many days ago.
fn made_before(days: u64) -> String {
    let then = SystemTime::now() - Duration::from_secs(days * DAY);
    format!("tc_{:012x}700080000000000000{days:02x}", then.duration_since(UNIX_EPOCH).unwrap().as_millis())
}

/// Two ended calls of each tenant, 45 and 120 days old, and media, acts and inbox items of 45 days.
fn age(served: &Gateway, tenants: &[&str]) {
    let database = Connection::open(served.data().join("haft.db")).unwrap();
    for slug in tenants {
        let id: String = database.query_row("select id from tenants where slug = ?", [slug], |row| row.get(0)).unwrap();
        let mut calls = database.prepare("select id from calls where tenant = ? order by id").unwrap();
        let calls: Vec<String> = calls.query_map([&id], |row| row.get(0)).unwrap().flatten().collect();
        for (call, days) in calls.iter().zip([45, 120]) {
            let old = made_before(days);
            database.execute("update calls set id = ?3 where tenant = ?1 and id = ?2", [&id, call, &old]).unwrap();
            database
                .execute("update entries set call = ?3 where tenant = ?1 and call = ?2", [&id, call, &old])
                .unwrap();
        }
        let then = i64::try_from(45 * DAY * 1_000_000).unwrap();
        for aging in [
            "update media set created_at = created_at - ?2 where tenant = ?1",
            "update sessions set created_at = created_at - ?2 where tenant = ?1",
        ] {
            database.execute(aging, rusqlite::params![id, then]).unwrap();
        }
    }
}

fn of<'a>(told: &'a Value, tenant: &str) -> &'a Value {
    let all = told["tenants"].as_array().unwrap();
    all.iter().find(|swept| swept[0] == tenant).map(|swept| &swept[1]).unwrap_or_else(|| panic!("{told}"))
}

#[test]
fn a_tenant_keeps_what_is_past_as_long_as_it_says_and_no_longer_than_the_operator() {
    let served = Gateway::start();
    let mut owners = Vec::new();
    for tenant in ["acme", "bolt"] {
        served.admin(&["tenant", "add", tenant]);
        let owner = Person::added(&served, &format!("eve@{tenant}.example"), tenant, "owner");
        let tool =
            json!({"slug": "look", "description": "d", "inputSchema": {"type": "object"}, "executionType": "internal"});
        assert_eq!(owner.post("/api/tools", tool).status, 201);
        for _ in 0..3 {
            assert_eq!(owner.post("/api/tools/look/calls", json!({"input": {}})).status, 200);
        }
        assert_eq!(owner.post("/api/media?name=a", json!("some text")).status, 201);
        assert_eq!(owner.post("/api/sessions", json!({"title": "empty"})).status, 201);
        owners.push(owner);
    }
    age(&served, &["acme", "bolt"]);
    let settings = json!({"retention": {"journalDays": 30, "mediaDays": 30, "inboxDays": 3650}});
    assert_eq!(owners[0].ask("PUT", "/api/settings", Some(settings.clone())).status, 200);
    assert_eq!(owners[0].get("/api/settings").body["retention"], settings["retention"]);
    for wrong in [json!({"journalDays": 0}), json!({"mediaDays": 3651}), json!({"auditDays": 1})] {
        let answer = owners[0].ask("PUT", "/api/settings", Some(json!({"retention": wrong})));
        assert_eq!(answer.status, 400, "{answer:?}");
    }
    let gc = |flags: &[&str]| -> Value {
        let done = served.haft(&[&["gc", "--json"], flags].concat()).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        serde_json::from_slice(&done.stdout).unwrap()
    };
    let would = gc(&["--dry-run"]);
    let counts = |told: &Value, tenant: &str| {
        let swept = of(told, tenant);
        ["calls", "media", "sessions", "acts"].map(|name| swept[name].as_u64().unwrap())
    };
    // The operator keeps calls 90 days, and media and acts longer than these are old.
    assert_eq!((counts(&would, "acme"), counts(&would, "bolt")), ([2, 1, 1, 0], [1, 0, 0, 0]), "{would}");
    let calls = |owner: &Person<'_>| owner.get("/api/calls").body["items"].as_array().unwrap().len();
    assert_eq!((calls(&owners[0]), calls(&owners[1])), (3, 3), "a dry run touches nothing");
    let done = gc(&[]);
    assert_eq!((counts(&done, "acme"), counts(&done, "bolt")), ([2, 1, 1, 0], [1, 0, 0, 0]), "{done}");
    assert_eq!((calls(&owners[0]), calls(&owners[1])), (1, 2));
    let again = gc(&[]);
    assert_eq!((counts(&again, "acme"), counts(&again, "bolt")), ([0; 4], [0; 4]), "{again}");
    let shown = served.haft(&["gc", "--dry-run"]).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("would delete of tenants") && shown.contains("acme"), "{shown}");
}

#[test]
fn acts_go_only_after_the_time_that_the_operator_sets_and_their_chain_stays_whole() {
    let served = Gateway::start();
    served.admin(&["tenant", "add", "acme"]);
    for name in ["a", "b", "c"] {
        served.key(name, "acme", "tools:read");
    }
    let gc = |audit: &str| {
        let done = served.haft(&["gc", "--json"]).env("HAFT_RETENTION_AUDIT", audit).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        of(&serde_json::from_slice(&done.stdout).unwrap(), "acme")["acts"].as_u64().unwrap()
    };
    assert_eq!(gc("400d"), 0);
    assert_eq!(gc("1ms"), 3, "the last one stays");
    let done = served.haft(&["admin", "audit", "--json", "--tenant", "acme"]).output().unwrap();
    let text = String::from_utf8(done.stdout).unwrap();
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let acts: Vec<(i64, &str)> =
        rows.iter().map(|row| (row["seq"].as_i64().unwrap(), row["action"].as_str().unwrap())).collect();
    assert_eq!(acts, [(4, "key.added"), (5, "audit.forgotten")]);
    assert!(served.haft(&["admin", "audit", "verify", "--tenant", "acme"]).output().unwrap().status.success());
}
