//! A haft that lives on between calls, and the others beside it.

use haft::{house, settings::Settings};
use haft_runtime::{AutoApprove, CallRequest};
use haft_store::{Durability, Store};
use serde_json::{Value, json};

use crate::{
    bench::{Bench, server},
    client::{Client, Era, succeeded},
    support::{ALL, HAFT, LIMIT},
};

async fn call(house: &house::House, tool: &str, input: Value) -> Value {
    let mut request = CallRequest::new(house.caller.clone(), format!("mcp__fake__{tool}"), input);
    request.auto_approve = AutoApprove::Everything;
    serde_json::to_value(tokio::time::timeout(LIMIT, house.pipeline.call(request)).await.unwrap()).unwrap()
}

/// A haft that lives on.
async fn living(bench: &Bench) -> house::House {
    let fixture = &bench.0.fixture;
    let mut settings = Settings { program: HAFT.into(), ..Settings::defaults(fixture.data.clone()) };
    settings.home = fixture.home.clone();
    settings.mcp.take_user_list(&fixture.home.join(".config/haft/mcp.json"));
    let store = Store::open(&settings.data, Durability::Normal).await.unwrap();
    house::living(settings, store, &fixture.workspace).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_starts_slowly_goes_on_starting_for_the_next_call() {
    let bench = Bench::with(&json!({}));
    bench.does("act", &json!({}));
    bench.list(&json!({ "fake": server(&json!({ "begins_after": 3 })) }));
    let house = living(&bench).await;
    let mut request = CallRequest::new(house.caller.clone(), "mcp__fake__act", json!({}));
    (request.auto_approve, request.timeout) = (AutoApprove::Everything, Some(std::time::Duration::from_secs(1)));
    let late = serde_json::to_value(house.pipeline.call(request).await).unwrap();
    assert_eq!(late["error"]["code"], "TIMEOUT", "nothing was sent: {late:#}");
    let mut calls = 1;
    while call(&house, "act", json!({})).await["status"] != "success" {
        calls += 1;
        assert!(calls < 10);
    }
    assert_eq!(bench.counted("starts"), 2, "the start that was too slow for the first call served a later one");
    house.close().await.unwrap();
}

#[test]
fn two_hafts_with_the_same_server_leave_its_home_whole() {
    let bench = Bench::with(&json!({ "appends": true }));
    bench.0.put_home(".gitconfig", "[user]\nname = A\n");
    let new = || Client::with(&bench.0.fixture, Era::Initialize, "{}", ALL);
    let (mut first, mut second) = (new(), new());
    for client in [&mut first, &mut second] {
        succeeded(&client.call("mcp__fake__act", &json!({})));
    }
    for client in [&mut first, &mut second] {
        succeeded(&client.call("mcp__fake__append", &json!({})));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_process_restarts_or_accepts_counts_at_once() {
    let bench = Bench::with(&json!({ "changes_after": 1 }));
    let house = living(&bench).await;
    let said = call(&house, "echo", json!({ "text": "a" })).await;
    assert_eq!(said["result"]["content"], "a", "{said:#}");
    assert_eq!(call(&house, "act", json!({})).await["status"], "success");
    assert_eq!(bench.counted("starts"), 1, "one start for all calls");

    // The new one says something else, which the one that lives on hears of.
    assert_eq!(bench.servers(&["restart", "fake"]).code, Some(0));
    let held = call(&house, "echo", json!({ "text": "a" })).await;
    assert_eq!(held["error"]["code"], "TOOL_HELD", "{held:#}");
    assert_eq!(bench.servers(&["accept", "fake"]).code, Some(0));
    let said = call(&house, "echo", json!({ "text": "b" })).await;
    assert_eq!(said["result"]["content"], "b", "{said:#}");
    assert_eq!(bench.counted("starts"), 3, "its own was started anew, too");
    house.close().await.unwrap();
}
