//! When a fetch is asked about, and what a yes covers.

use serde_json::{Value, json};

use crate::{
    server::{Server, reaching, settings},
    support::{ALL, Fixture},
};

/// A haft that may reach a server, but asks before it does.
fn asking(server: &Server) -> Fixture {
    let fixture = Fixture::new();
    settings(&fixture, &format!("web.silence = '10s'\nweb.allow = ['{}']\n", server.address));
    fixture
}

#[test]
fn a_host_that_is_not_listed_is_asked_about_and_nothing_is_sent_before_the_yes() {
    let server = Server::page("text/plain", "words");
    let fixture = asking(&server);
    let call = fixture
        .pending("web_fetch", &json!({"url": server.url("/"), "headers": {"Authorization": "Bearer abcdef123456"}}));
    assert_eq!(server.others(), 0);
    let card = fixture.run(&["approvals", &call]).stdout + &fixture.run(&["changes", &call]).stdout;
    assert!(card.contains(&format!("GET {}", server.url("/"))) && card.contains("headers: authorization"), "{card}");
    assert!(card.contains("not on the list") && !card.contains("abcdef123456"), "{card}");
    let outcome = fixture.json(&["approve", &call]);
    assert_eq!(outcome["result"]["structured"]["body"], "words");
    assert_eq!(server.others(), 1);

    let call = fixture.pending("web_fetch", &json!({"url": server.url("/no")}));
    assert_eq!(fixture.run(&["reject", &call]).code, Some(0));
    assert_eq!(server.others(), 0);
}

#[test]
fn what_is_listed_is_read_unasked_and_never_sent_to_unasked() {
    let server = Server::page("text/plain", "words");
    let fixture = reaching(&[&server]);
    let (code, outcome) = fixture.call("web_fetch", &json!({"url": server.url("/")}), &[]);
    assert_eq!((code, &outcome["approved_by"]), (0, &json!("auto")), "{outcome}");
    let post = json!({"url": server.url("/"), "method": "POST", "body": "{\"a\": 1}"});
    let call = fixture.pending("web_fetch", &post);
    assert_eq!(server.others(), 1);
    fixture.json(&["approve", &call]);
    let request = server.request();
    assert!(request.starts_with("POST / ") && request.ends_with("{\"a\": 1}"), "{request}");
    assert!(request.contains("content-type: application/json\r\n"), "{request}");
}

#[test]
fn always_may_mean_the_host() {
    let server = Server::page("text/plain", "words");
    let fixture = asking(&server);
    let call = fixture.pending("web_fetch", &json!({"url": server.url("/one")}));
    fixture.json(&["approve", &call, "--always", "bounds"]);
    let (code, outcome) = fixture.call("web_fetch", &json!({"url": server.url("/two")}), &[]);
    assert_eq!((code, &outcome["approved_by"]), (0, &json!("config")), "{outcome}");
    assert!(outcome["grant"].is_string(), "{outcome}");
    // What was granted is to read, not to send.
    fixture.pending("web_fetch", &json!({"url": server.url("/"), "method": "POST", "body": "x"}));
}

#[test]
fn rules_are_about_hosts() {
    let server = Server::page("text/plain", "words");
    let fixture = asking(&server);
    let rule = |decision: &str, host: &str| {
        let text = format!(
            "web.silence = '10s'\nweb.allow = ['{}']\n[[rule]]\ntool = 'web_fetch'\ndecision = '{decision}'\nbounds = {{ hosts = ['{host}'] }}\n",
            server.address
        );
        settings(&fixture, &text);
        let (code, outcome) = fixture.call("web_fetch", &json!({"url": server.url("/")}), &[]);
        (code, outcome["error"]["code"].clone())
    };
    assert_eq!(rule("allow", "127.0.0.*"), (0, Value::Null));
    assert_eq!(rule("allow", "*.example.org"), (4, Value::Null));
    assert_eq!(rule("deny", "127.0.0.1"), (1, json!("FORBIDDEN")));
    assert_eq!(rule("deny", "example.org"), (4, Value::Null));
    let (code, _) = fixture.call("web_fetch", &json!({"url": server.url("/")}), ALL);
    assert_eq!(code, 0);
    rule("ask", "127.0.0.1");
    let (code, _) = fixture.call("web_fetch", &json!({"url": server.url("/")}), ALL);
    assert_eq!(code, 4, "a rule that asks does so in every mode");
}

#[test]
fn the_policy_can_be_asked_why() {
    let server = Server::page("text/plain", "words");
    let fixture = asking(&server);
    let call = fixture.pending("web_fetch", &json!({"url": server.url("/")}));
    let told = fixture.run(&["policy", "explain", &call]);
    assert!(told.stdout.contains("not on the list"), "{told:?}");
}
