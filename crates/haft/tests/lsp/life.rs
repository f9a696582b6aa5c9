//! When a server is started, waited for, kept and ended.

use std::{
    fs,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use haft::{house, settings::Settings};
use haft_runtime::{CallEvent, CallRequest, Category, ErrorCode};
use haft_store::{Durability, Store};
use haft_tools::LanguageServers;
use serde_json::{Value, json};

use crate::{
    bench::{Bench, ctx, fake, script, servers},
    fenced::Person,
    support::{Fixture, HAFT, LIMIT, until},
};

/// The made-up servers of a workspace that run.
fn running(fixture: &Fixture) -> usize {
    servers(fixture).len()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_waits_until_the_project_is_read() {
    let bench = Bench::fake(json!({ "mode": "loads" }));
    bench.fixture.put("a.fake", "word word word");
    let found = bench.ask("references", json!({ "path": "a.fake", "line": 1, "col": 1 })).await;
    assert_eq!((&found["total"], &found["ready"]), (&json!(3), &json!(true)));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_came_too_early_says_so() {
    let settings = LanguageServers { ready: Duration::from_millis(300), ..LanguageServers::default() };
    for mute in [false, true] {
        let bench = Bench::with(json!({ "mode": "loads for ever", "mute": mute }), settings.clone());
        bench.fixture.put("a.fake", "word bad");
        for (tool, text) in [("diagnostics", "a.fake: "), ("references", "a.fake:1:1")] {
            let input = if tool == "references" { HERE } else { r#"{"path": "a.fake"}"# };
            let found = bench.output(&ctx(), tool, serde_json::from_str(input).unwrap()).await.unwrap();
            assert_eq!(found.structured["ready"], json!(false));
            assert_eq!(found.structured["note"], json!("fake is still indexing (63 %), ask again"));
            assert!(found.content.starts_with(text), "{}", found.content);
            assert!(found.content.ends_with("(fake is still indexing (63 %), ask again)"), "{}", found.content);
        }
    }
}

/// The beginning of the made-up file.
const HERE: &str = r#"{"path": "a.fake", "line": 1, "col": 1}"#;

fn here() -> Value {
    serde_json::from_str(HERE).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_loads_is_not_ended_by_calls() {
    let settings = LanguageServers { ready: Duration::from_secs(2), ..LanguageServers::default() };
    let bench = Bench::with(json!({ "mode": "loads until told" }), settings);
    bench.fixture.put("a.fake", "word");
    let symbols = bench.ask("symbols", json!({ "path": "a.fake" })).await;
    assert_eq!((&symbols["symbols"][0]["name"], &symbols["ready"]), (&json!("word"), &json!(true)));
    let first = servers(&bench.fixture);
    // One of them does not answer while it loads, the others find nothing.
    for tool in ["hover", "definition", "references"] {
        let refused = bench.try_to(tool, here()).await.unwrap_err();
        assert_eq!((refused.code, refused.category), (ErrorCode::Unavailable, Category::Timeout), "{tool}");
        assert!(refused.recoverable, "{tool}: {refused}");
        assert!(refused.message.contains("still indexing (63 %), ask again"), "{tool}: {refused}");
    }
    let early = bench.output(&ctx(), "diagnostics", json!({ "path": "a.fake" })).await.unwrap();
    assert_eq!(early.structured["ready"], json!(false));
    assert!(early.content.starts_with("a.fake: not checked yet"), "{}", early.content);
    bench.fixture.put("loaded.fake", "");
    for tool in ["hover", "definition", "references"] {
        assert_eq!(bench.ask(tool, here()).await["ready"], json!(true), "{tool}");
    }
    let checked = bench.output(&ctx(), "diagnostics", json!({ "path": "a.fake" })).await.unwrap();
    assert_eq!(checked.content, "a.fake: nothing is wrong");
    assert_eq!(servers(&bench.fixture), first);
}

#[tokio::test(flavor = "multi_thread")]
async fn symbols_come_as_soon_as_a_server_that_loads_has_a_moment() {
    let settings = LanguageServers { ready: LIMIT, ..LanguageServers::default() };
    let bench = Bench::with(json!({ "mode": "loads for ever", "busy": true }), settings);
    bench.fixture.put("a.fake", "word");
    let began = Instant::now();
    let symbols = bench.ask("symbols", json!({ "path": "a.fake" })).await;
    assert_eq!((&symbols["symbols"][0]["name"], &symbols["ready"]), (&json!("word"), &json!(true)));
    assert!(began.elapsed() < LIMIT, "it was not waited for the whole project");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_slow_to_start_is_not_ended_by_calls() {
    let settings = LanguageServers { ready: Duration::from_millis(300), ..LanguageServers::default() };
    let bench = Bench::with(json!({ "mode": "begins when told" }), settings);
    bench.fixture.put("a.fake", "word");
    let refused = bench.try_to("hover", here()).await.unwrap_err();
    assert!(refused.recoverable && refused.message.contains("is still starting, ask again"), "{refused}");
    let first = servers(&bench.fixture);
    bench.fixture.put("begin", "");
    let began = Instant::now();
    while let Err(refused) = bench.try_to("hover", here()).await {
        assert!(refused.recoverable && began.elapsed() < LIMIT, "{refused}");
    }
    assert_eq!(servers(&bench.fixture), first);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_slow_but_alive_is_not_ended() {
    let settings = LanguageServers { timeout: Duration::from_millis(500), ..LanguageServers::default() };
    let bench = Bench::with(json!({ "mode": "slow" }), settings);
    bench.fixture.put("a.fake", "word");
    bench.ask("symbols", json!({ "path": "a.fake" })).await;
    let first = servers(&bench.fixture);
    let refused = bench.try_to("hover", here()).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::Timeout);
    assert!(refused.recoverable && refused.message.contains("is at work but did not answer within 0.5 s"), "{refused}");
    assert_eq!(servers(&bench.fixture), first);
}

/// Whoever asks once cannot ask again: the server ends with the call.
#[test]
fn a_single_call_waits_for_the_server_as_long_as_it_may() {
    let person = Person::us();
    let lines = format!(
        "sandbox.read = ['{0}']\nlsp.ready = '1ms'\n[lsp.servers.fake]\ncommand = ['python3', '{0}/fake.py']\n\
         extensions = ['fake']\ninit_options = {{ mode = 'MODE' }}\n",
        script().display()
    );
    person.put("a.fake", "word");
    person.put_home(".config/haft/haft.toml", lines.replace("MODE", "loads"));
    let (code, outcome) = person.call("definition", &here(), &[]);
    assert_eq!((code, &outcome["result"]["structured"]["ready"]), (0, &json!(true)), "{outcome:#}");
    person.put_home(".config/haft/haft.toml", lines.replace("MODE", "loads until told"));
    let (_, outcome) = person.call("definition", &here(), &["--timeout", "3000"]);
    let error = &outcome["error"];
    assert_eq!((&error["code"], &error["recoverable"]), (&json!("UNAVAILABLE"), &json!(true)), "{outcome:#}");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("still indexing (63 %), ask again with a longer `--timeout`"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_could_not_check_is_not_taken_for_one_that_found_nothing() {
    let status = |health: &str, message: &str| json!({ "health": health, "quiescent": true, "message": message });
    for (status, is_checked) in [
        (status("ok", ""), true),
        (status("warning", "the sources of the standard library are missing"), true),
        (status("warning", "something else\n\ncargo check failed to start: no lock"), false),
        (status("error", "no project was found"), false),
    ] {
        for text in ["word", "word bad"] {
            let bench = Bench::fake(json!({ "status": status }));
            bench.fixture.put("a.fake", text);
            let found = bench.output(&ctx(), "diagnostics", json!({ "path": "a.fake" })).await.unwrap();
            let (value, said) = (&found.structured, &found.content);
            assert_eq!(
                (&value["ready"], value.get("unchecked").is_none()),
                (&json!(is_checked), is_checked),
                "{value}"
            );
            assert_eq!(said.contains("not checked"), !is_checked, "{said}");
            assert_eq!(said.contains("nothing is wrong"), is_checked && text == "word", "{said}");
            assert_eq!(said.contains("shell_exec"), !is_checked, "{said}");
            assert!(!said.contains("still loading"), "{said}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_kept_and_ended_with_its_haft() {
    let bench = Bench::fake(json!({}));
    bench.fixture.put("a.fake", "word");
    let first = bench.output(&ctx(), "symbols", json!({ "path": "a.fake" })).await.unwrap();
    let again = bench.output(&ctx(), "symbols", json!({ "path": "a.fake" })).await.unwrap();
    let server = &first.metadata["server"];
    assert_eq!((&server["name"], &server["kept"], &server["language"]), (&json!("fake"), &json!(true), &json!("fake")));
    assert!(server["startedMs"].is_u64() && again.metadata["server"].get("startedMs").is_none());
    assert_eq!(running(&bench.fixture), 1);
    bench.workspace.end_background().await;
    assert_eq!(running(&bench.fixture), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_who_ask_at_once_share_one_server() {
    let bench = Bench::fake(json!({}));
    for number in 0..8 {
        bench.fixture.put(&format!("{number}.fake"), "word bad");
    }
    let ask = |number: usize| bench.ask("diagnostics", json!({ "path": format!("{number}.fake") }));
    let all = futures_util::future::join_all((0..8).map(ask)).await;
    assert!(all.iter().all(|one| one["counts"]["warning"] == 1 && one["ready"] == true), "{all:#?}");
    assert_eq!(running(&bench.fixture), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_asked_ends_and_comes_back() {
    let settings = LanguageServers { idle: Duration::from_millis(200), ..LanguageServers::default() };
    let bench = Bench::with(json!({}), settings);
    bench.fixture.put("a.fake", "word");
    for _ in 0..2 {
        let output = bench.output(&ctx(), "symbols", json!({ "path": "a.fake" })).await.unwrap();
        assert!(output.metadata["server"]["startedMs"].is_u64());
        until("the idle server has ended", || (running(&bench.fixture) == 0).then_some(()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_call_ends_at_once_and_leaves_the_server() {
    let bench = Bench::fake(json!({ "mode": "silent" }));
    bench.fixture.put("a.fake", "word");
    let ctx = ctx();
    let asking = bench.output(&ctx, "hover", json!({ "path": "a.fake", "line": 1, "col": 1 }));
    let cancelling = async {
        tokio::task::spawn_blocking({
            let workspace = bench.fixture.workspace.clone();
            move || until("the server runs", || is_in(&workspace).then_some(()))
        })
        .await
        .unwrap();
        ctx.cancel.cancel();
    };
    let (ended, ()) = tokio::join!(asking, cancelling);
    assert_eq!(ended.unwrap_err().code, ErrorCode::Cancelled);
    assert_eq!(bench.ask("symbols", json!({ "path": "a.fake" })).await["ready"], json!(true));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_takes_more_memory_than_it_may_is_ended() {
    let settings = LanguageServers { memory: 200_000_000, ..LanguageServers::default() };
    let bench = Bench::with(json!({ "mode": "grows" }), settings);
    bench.fixture.put("a.fake", "word");
    let error = bench.try_to("hover", json!({ "path": "a.fake", "line": 1, "col": 1 })).await.unwrap_err();
    assert!(error.message.contains("it took more than it may (memory; `lsp.memory`"), "{error:?}");
    assert_eq!(running(&bench.fixture), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_asks_hears_how_far_the_server_has_read() {
    let fixture = Fixture::new();
    fixture.put("a.fake", "word");
    let mut settings = Settings { program: HAFT.into(), ..Settings::defaults(fixture.data.clone()) };
    settings.sandbox.read.push(script());
    settings.lsp.servers.push(fake(json!({ "mode": "loads" })));
    let store = Store::open(&fixture.data, Durability::Normal).await.unwrap();
    let house = house::living(settings, store, &fixture.workspace).await.unwrap();
    let input = json!({ "path": "a.fake", "line": 1, "col": 1 });
    let mut request = CallRequest::new(house.caller.clone(), "references", input);
    let heard = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&heard);
    request.listener = Some(Arc::new(move |event| {
        if let CallEvent::Progress { progress, message, .. } = event {
            told.lock().unwrap().push((*progress, message.clone()));
        }
    }));
    let outcome = serde_json::to_value(house.pipeline.call(request).await).unwrap();
    assert_eq!(outcome["result"]["structured"]["ready"], true, "{outcome:#}");
    let heard = heard.lock().unwrap().clone();
    assert!(heard.iter().any(|(_, words)| words.starts_with("starting python3")), "{heard:?}");
    assert!(heard.contains(&(Some(63), "fake: Reading".to_owned())), "{heard:?}");
    house.close().await.unwrap();
}

fn is_in(workspace: &std::path::Path) -> bool {
    let here = workspace.canonicalize().unwrap();
    let cwds = fs::read_dir("/proc").unwrap().flatten().filter_map(|one| fs::read_link(one.path().join("cwd")).ok());
    cwds.into_iter().any(|cwd| cwd == here)
}

#[test]
fn a_server_ends_with_the_command_that_asked_it() {
    for person in Person::everyone() {
        let servers = person.fixture.home.join("servers");
        person.put_home("servers/fake.py", include_str!("fake.py"));
        let lines = format!(
            "sandbox.read = ['{0}']\n[lsp.servers.fake]\ncommand = ['python3', '{0}/fake.py']\nextensions = ['fake']\n",
            servers.display()
        );
        person.put_home(".config/haft/haft.toml", &lines);
        person.put("a.fake", "word bad");
        let (code, outcome) = person.call("diagnostics", &json!({ "path": "a.fake" }), &[]);
        assert_eq!((code, &outcome["status"]), (0, &json!("success")), "{outcome:#}");
        assert_eq!(outcome["result"]["structured"]["counts"]["warning"], json!(1));
        assert_eq!(outcome["result"]["metadata"]["server"]["kept"], json!(false));
        assert_eq!((&outcome["isolation"], running(&person.fixture)), (&json!("namespaces"), 0));
        // Nothing of it may be left either when its haft is killed.
        person.put_home(".config/haft/haft.toml", format!("{lines}init_options = {{ mode = 'silent' }}\n"));
        let mut asking = person.haft(&["call", "hover", r#"{"path": "a.fake", "line": 1, "col": 1}"#]).spawn().unwrap();
        until("the server runs", || (running(&person.fixture) == 1).then_some(()));
        asking.kill().unwrap();
        asking.wait().unwrap();
        let killed = Instant::now();
        until("the server has ended", || (running(&person.fixture) == 0).then_some(()));
        assert!(killed.elapsed() < Duration::from_secs(1), "it took {:?}", killed.elapsed());
    }
}
