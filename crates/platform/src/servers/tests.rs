//! What is a server of a tenant and what is none, whom its secrets are for, and who writes over whom.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use haft_runtime::{Caller, ErrorCode, HouseWide, Permissions, Scope, Source, TenantId, Within};
use haft_sandbox::web::WebRules;
use haft_store::{Durability, Store};
use serde_json::{Map, Value, json};

use super::{PinsChange, ServerDefinition, ServerReach, StdioCommand};
use crate::{MasterKey, Platform};

const SECRET: &str = "s3cr3t canary/value";

fn with(more: &Value) -> Value {
    let mut whole = json!({"name": "docs", "url": "https://docs.example/mcp"});
    whole.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    whole
}

fn fields(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

#[test]
fn what_is_no_server_is_refused_with_a_reason() {
    for (more, expected) in [
        (json!({"name": "Docs"}), "small letters"),
        (json!({"name": "do_cs"}), "small letters"),
        (json!({"name": ""}), "small letters"),
        (json!({"name": "d".repeat(33)}), "small letters"),
        (json!({"url": null}), "`url` is missing"),
        (json!({"url": "ftp://docs.example/"}), "http:// or https://"),
        (json!({"url": "https://docs.example/{{secret:A}}"}), "in a header only"),
        (json!({"url": "https://"}), "`url` is no URL"),
        (json!({"headers": {"Host": "x"}}), "`Host` cannot be set"),
        (json!({"headers": {"Mcp-Session-Id": "x"}}), "cannot be set"),
        (json!({"headers": {"X-A": "{{secret:1}}"}}), "must go on with a name"),
        (json!({"headers": {"X-A": "a\nb"}}), "none that can be sent"),
        (json!({"timeout": 0}), "`timeout`"),
        (json!({"timeout": 3_600_001}), "`timeout`"),
        (json!({"allowedTools": "echo"}), "this is no server"),
        (json!({"color": "red"}), "unknown field `color`"),
        (json!({"transport": "sse"}), "`transport` is `http`"),
        (json!({"transport": "stdio"}), "haft admin mcp add"),
        (json!({"command": "python3"}), "haft admin mcp add"),
        (json!({"deniedTools": ["x".repeat(70_000)]}), "64 KiB"),
    ] {
        let error = ServerDefinition::read(&with(&more)).unwrap_err();
        assert!(error.code == ErrorCode::InvalidArgs && error.message.contains(expected), "{more}: {error:?}");
    }
    ServerDefinition::read(&json!([])).unwrap_err();
}

#[test]
fn a_field_is_changed_or_taken_away_and_a_command_stays_the_operators() {
    let server = ServerDefinition::read(&with(&json!({"transport": "http", "deniedTools": ["rm"]}))).unwrap();
    assert!(server.enabled && !server.trusted && server.uses("ls") && !server.uses("rm"));
    assert_eq!(server.timeout().as_secs(), 30);
    let changed = server.changed(&fields(&json!({"deniedTools": null, "allowedTools": ["rm"], "timeout": 5}))).unwrap();
    assert!(changed.uses("rm") && !changed.uses("ls") && changed.timeout().as_millis() == 5);
    server.changed(&fields(&json!({"name": "other"}))).unwrap_err();
    server.changed(&fields(&json!({"url": null}))).unwrap_err();

    let command = StdioCommand { command: vec!["python3".into()], ..StdioCommand::default() };
    let started = ServerDefinition::started("files", &command).unwrap();
    let off = started.changed(&fields(&json!({"enabled": false, "trusted": true}))).unwrap();
    assert!(!off.enabled && off.trusted && off.reach == ServerReach::Stdio(command));
    started.changed(&fields(&json!({"url": "https://evil.example/"}))).unwrap_err();
    started.changed(&fields(&json!({"command": ["sh"]}))).unwrap_err();
    ServerDefinition::started("files", &StdioCommand::default()).unwrap_err();
    let env = |name: &str, value: &str| StdioCommand {
        command: vec!["python3".into()],
        env: [(name.to_owned(), value.to_owned())].into(),
        ..StdioCommand::default()
    };
    ServerDefinition::started("files", &env("1A", "x")).unwrap_err();
    ServerDefinition::started("files", &env("A", "secret:1")).unwrap_err();
}

async fn house() -> (tempfile::TempDir, Platform, Caller) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), Durability::Normal).await.unwrap();
    let platform = Platform::new(store, HouseWide::of_house(Within::Everything), MasterKey::new(&[7; 32]));
    platform.have_local_tenant().await.unwrap();
    let caller = Caller::owner("anna", Scope::of_house(TenantId::local(), None), Source::House);
    (folder, platform, caller)
}

#[tokio::test]
async fn a_secret_is_for_one_server_only() {
    let (_folder, platform, caller) = house().await;
    let (scope, rules) = (caller.scope.clone(), WebRules::default());
    platform.set_secret(&scope, "TOKEN", SECRET, &[]).await.unwrap();
    platform.set_secret(&scope, "OTHER", SECRET, &[]).await.unwrap();
    let header = json!({"headers": {"Authorization": "Bearer {{secret:TOKEN}}"}});
    let viewer = Caller { permissions: Permissions::none(), ..caller.clone() };
    let refused = platform.add_server(&viewer, &with(&header), &rules).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::Forbidden);
    let docs = platform.add_server(&caller, &with(&header), &rules).await.unwrap();
    assert_eq!(platform.secrets(&scope).await.unwrap()[1].hosts, ["docs.example"]);
    let given = platform.resolve_server(&scope, &docs.definition).await.unwrap();
    assert_eq!(given.headers, [("Authorization".to_owned(), format!("Bearer {SECRET}"))]);
    assert!(given.named.contains(&SECRET.to_owned()) && !docs.definition.secrets().is_empty());
    let mut evil = with(&header);
    (evil["name"], evil["url"]) = (json!("evil"), json!("https://evil.example/"));
    assert_eq!(platform.add_server(&caller, &evil, &rules).await.unwrap_err().code, ErrorCode::Forbidden);
    let to_evil = fields(&json!({"url": "https://evil.example/"}));
    let moved = platform.change_server(&caller, ("docs", &to_evil), &rules).await.unwrap_err();
    assert_eq!(moved.code, ErrorCode::Forbidden, "it takes no secret along to another host");

    let command = |name: &str| StdioCommand {
        command: vec!["python3".into()],
        env: [("KEY".to_owned(), format!("secret:{name}")), ("A".to_owned(), "b".to_owned())].into(),
        ..StdioCommand::default()
    };
    platform.add_started_server(&scope, "files", &command("TOKEN")).await.unwrap_err();
    let files = platform.add_started_server(&scope, "files", &command("OTHER")).await.unwrap();
    let given = platform.resolve_server(&scope, &files.definition).await.unwrap();
    assert_eq!((given.env["KEY"].as_str(), given.env["A"].as_str()), (SECRET, "b"));
    let second = platform.add_started_server(&scope, "more", &command("OTHER")).await.unwrap_err();
    assert!(second.message.contains("mcp:files"), "{second:?}");
}

#[tokio::test]
async fn an_address_that_is_not_public_is_refused_until_it_is_allowed() {
    let (_folder, platform, caller) = house().await;
    let platform = std::sync::Arc::new(platform);
    let web = haft_sandbox::web::WebClient::new(WebRules::default(), haft_sandbox::web::FetchLimits::default());
    let web = crate::TenantWeb::new(platform.clone(), web);
    let (scope, at_home) = (&caller.scope, with(&json!({"url": "http://127.0.0.1:9/mcp"})));
    let add = async || platform.add_server(&caller, &at_home, &web.rules(scope).await.unwrap()).await;
    let refused = add().await.unwrap_err();
    let hint = "haft admin tenant set local --allow 127.0.0.1:9";
    assert!(refused.code == ErrorCode::UrlNotAllowed && refused.message.contains(hint), "{refused:?}");
    let hosts = |text: &str| vec![text.to_owned()];
    platform.allow_hosts(scope, &hosts("http://x"), &[]).await.unwrap_err();
    platform.allow_hosts(scope, &[], &hosts("127.0.0.1")).await.unwrap_err();
    assert_eq!(platform.allow_hosts(scope, &hosts("127.0.0.1:9"), &[]).await.unwrap(), ["127.0.0.1:9"]);
    assert_eq!(platform.allow_hosts(scope, &hosts("127.0.0.1:9"), &[]).await.unwrap(), ["127.0.0.1:9"]);
    add().await.unwrap();
    assert_eq!(platform.allow_hosts(scope, &[], &hosts("127.0.0.1:9")).await.unwrap(), Vec::<String>::new());
    let rules = web.rules(scope).await.unwrap();
    let elsewhere = fields(&json!({"url": "http://127.0.0.1:10/mcp"}));
    let refused = platform.change_server(&caller, ("docs", &elsewhere), &rules).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::UrlNotAllowed);
    let off = fields(&json!({"enabled": false}));
    assert!(!platform.change_server(&caller, ("docs", &off), &rules).await.unwrap().definition.enabled);
}

#[tokio::test]
async fn a_change_of_what_is_known_is_made_anew_on_what_somebody_else_left() {
    let (_folder, platform, caller) = house().await;
    let scope = &caller.scope;
    platform.add_server(&caller, &with(&json!({})), &WebRules::default()).await.unwrap();
    let version = platform.look_at_version(scope).await.unwrap();
    let count = async || {
        let more = |pins: Option<&str>| pins.map_or(0, |pins| pins.parse::<u32>().unwrap()) + 1;
        platform
            .change_server_pins(scope, "docs", &mut |now| PinsChange::State(more(now.pins.as_deref()).to_string()))
            .await
            .unwrap()
    };
    let (on, off) = (fields(&json!({"trusted": true})), fields(&json!({"deniedTools": ["rm"]})));
    let change = async |fields| platform.change_server(&caller, ("docs", fields), &WebRules::default()).await.unwrap();
    tokio::join!(count(), count(), change(&on), count(), change(&off), count());
    let now = platform.server(scope, "docs").await.unwrap();
    assert_eq!(now.pins.as_deref(), Some("4"));
    assert!(now.definition.trusted && !now.definition.uses("rm"), "no change is lost: {now:?}");
    let version = version + 2;
    assert_eq!(platform.look_at_version(scope).await.unwrap(), version);
    platform.change_server_pins(scope, "docs", &mut |_| PinsChange::Tools("5".into())).await.unwrap();
    assert_eq!(platform.version(scope).await.unwrap(), version + 1, "it is known here at once");
    assert!(platform.change_server_pins(scope, "nobody", &mut |_| PinsChange::Nothing).await.is_err());
}
