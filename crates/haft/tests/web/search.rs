//! `web_search` with servers that speak each provider's language.

use std::{fs, io::Write, os::unix::fs::PermissionsExt};

use serde_json::{Value, json};

use crate::{
    server::{Server, settings},
    support::Fixture,
};

const KEY: &str = "k3y-that-nobody-may-see";

/// A haft that asks this server.
fn asking(provider: &str, server: &Server) -> Fixture {
    let fixture = Fixture::new();
    let key = if provider == "searxng" { "" } else { "key = 'secret:SEARCH'" };
    settings(&fixture, &format!("[web.search]\nprovider = '{provider}'\nurl = '{}'\n{key}\n", server.url("/base")));
    let secrets = fixture.data.join("secrets");
    fs::create_dir_all(&secrets).unwrap();
    fs::set_permissions(&fixture.data, fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(secrets.join("SEARCH"), KEY).unwrap();
    fs::set_permissions(secrets.join("SEARCH"), fs::Permissions::from_mode(0o600)).unwrap();
    fixture
}

fn answering(answer: &Value) -> Server {
    Server::page("application/json", answer.to_string())
}

fn found(fixture: &Fixture, input: &Value) -> Value {
    let (code, outcome) = fixture.call("web_search", input, &[]);
    assert_eq!((code, &outcome["approved_by"]), (0, &json!("auto")), "{outcome:#}");
    outcome["result"]["structured"].clone()
}

/// Nothing that haft keeps or says has the key in it.
fn nowhere(fixture: &Fixture) {
    let log = fixture.run(&["log", "--json"]).stdout;
    assert!(log.contains("web_search") && !log.contains(KEY), "{log}");
    for entry in fs::read_dir(&fixture.data).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let bytes = fs::read(&path).unwrap();
            assert!(!bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes()), "{}", path.display());
        }
    }
}

#[test]
fn exa_is_asked_in_its_language() {
    let server = answering(&json!({
        "requestId": "b5947044c4b78efa9552a7c89b306d95",
        "resolvedSearchType": "neural",
        "results": [{
            "id": "https://example.org/a", "title": "A page", "url": "https://example.org/a", "author": "Somebody",
            "publishedDate": "2026-01-02T00:00:00.000Z", "score": 0.4, "highlights": ["words of it"],
            "highlightScores": [0.3], "image": null
        }],
        "costDollars": {"total": 0.005}
    }));
    let fixture = asking("exa", &server);
    let input = json!({"query": "rust tls", "numResults": 3, "site": "example.org", "freshness": "week"});
    assert_eq!(
        found(&fixture, &input),
        json!({"provider": "exa", "results": [{
            "title": "A page", "url": "https://example.org/a", "snippet": "words of it",
            "publishedAt": "2026-01-02T00:00:00.000Z", "score": 0.4
        }]})
    );
    let request = server.request();
    assert!(
        request.starts_with("POST /base/search HTTP/1.1") && request.contains(&format!("x-api-key: {KEY}\r\n")),
        "{request}"
    );
    let body: Value = serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!((&body["query"], &body["numResults"]), (&json!("rust tls"), &json!(3)));
    assert_eq!(body["includeDomains"], json!(["example.org"]));
    assert!(body["startPublishedDate"].as_str().unwrap().ends_with('Z'), "{body}");
    nowhere(&fixture);
}

#[test]
fn brave_is_asked_in_its_language() {
    let result = |number: usize| {
        json!({
            "type": "search_result", "title": format!("Page {number}"), "url": format!("https://example.org/{number}"),
            "description": "words of it", "page_age": "2026-01-02T00:00:00", "age": "January 2, 2026", "family_friendly": true
        })
    };
    let results: Vec<Value> = (0..20).map(result).collect();
    let server = answering(
        &json!({"type": "search", "query": {"original": "x"}, "web": {"type": "search", "results": results}}),
    );
    let fixture = asking("brave", &server);
    let results = found(&fixture, &json!({"query": "a & b", "site": "docs.rs", "freshness": "month"}));
    assert_eq!(results["results"].as_array().unwrap().len(), 5, "no more than were wanted");
    assert_eq!(
        results["results"][0],
        json!({"title": "Page 0", "url": "https://example.org/0", "snippet": "words of it", "publishedAt": "2026-01-02T00:00:00"})
    );
    let request = server.request();
    let first = request.lines().next().unwrap();
    assert_eq!(
        first,
        "GET /base/res/v1/web/search?q=a+%26+b+site%3Adocs.rs&count=5&text_decorations=false&freshness=pm HTTP/1.1"
    );
    assert!(request.contains(&format!("x-subscription-token: {KEY}\r\n")), "{request}");
    nowhere(&fixture);
}

#[test]
fn searxng_is_asked_in_its_language() {
    let server = answering(&json!({
        "query": "x", "number_of_results": 0, "answers": [], "corrections": [], "infoboxes": [], "suggestions": [],
        "unresponsive_engines": [],
        "results": [{
            "url": "https://example.org/a", "title": "A page", "content": "words of it", "engine": "bing",
            "parsed_url": ["https", "example.org", "/a", "", "", ""], "template": "default.html", "engines": ["bing"],
            "positions": [1], "score": 1.0, "category": "general", "publishedDate": null
        }]
    }));
    let fixture = asking("searxng", &server);
    assert_eq!(
        found(&fixture, &json!({"query": "x", "freshness": "day"})),
        json!({"provider": "searxng", "results": [
            {"title": "A page", "url": "https://example.org/a", "snippet": "words of it", "score": 1.0}
        ]})
    );
    assert!(server.request().starts_with("GET /base/search?q=x&format=json&time_range=day HTTP/1.1"));
    let ran = fixture.run(&["call", "webSearch", "{\"query\": \"x\"}"]);
    assert_eq!(ran.stdout, "1. A page\n   https://example.org/a\n   words of it\n");
}

fn turned_down(provider: &str, status: u16, headers: &'static str, body: &'static str) -> (Value, usize) {
    let server = Server::new(move |_, stream| {
        let _gone = write!(stream, "HTTP/1.1 {status} X\r\n{headers}content-length: {}\r\n\r\n{body}", body.len());
    });
    let fixture = asking(provider, &server);
    let (code, outcome) = fixture.call("web_search", &json!({"query": "x"}), &["--timeout", "2000"]);
    assert_eq!(code, 1, "{outcome}");
    nowhere(&fixture);
    (outcome["error"].clone(), server.others())
}

#[test]
fn a_provider_that_says_no_is_told_of_and_shows_no_key() {
    let echo = "{\"error\": \"k3y-that-nobody-may-see is no key\"}";
    let (error, tries) = turned_down("exa", 401, "", echo);
    assert_eq!((&error["code"], tries), (&json!("UNAVAILABLE"), 1), "{error}");
    assert!(error["message"].as_str().unwrap().contains("web.search.key"), "{error}");
    let (error, _) = turned_down("exa", 400, "", echo);
    assert!(error["message"].as_str().unwrap().contains("[redacted] is no key"), "{error}");
    let (error, _) = turned_down("searxng", 403, "", "");
    assert!(error["message"].as_str().unwrap().contains("search.formats"), "{error}");
    let (error, tries) = turned_down("brave", 429, "retry-after: 3600\r\n", "");
    assert_eq!((&error["details"]["retryAfterMs"], tries), (&json!(3_600_000), 1), "{error}");
    let (error, tries) = turned_down("brave", 503, "", "");
    assert_eq!((&error["recoverable"], tries > 1), (&json!(true), true), "{error}");
    let (error, _) = turned_down("brave", 200, "", "<html>");
    assert_eq!(error["code"], "EXECUTION_ERROR", "{error}");
    let (error, _) = turned_down("brave", 302, "location: http://127.0.0.1/\r\n", "");
    assert!(error["message"].as_str().unwrap().contains("redirects are not followed"), "{error}");
}

#[test]
fn without_a_provider_it_is_not_listed_and_says_what_to_add() {
    let fixture = Fixture::new();
    let listed = |fixture: &Fixture| fixture.run(&["tools"]).stdout.contains("web_search");
    assert!(!listed(&fixture));
    let (code, outcome) = fixture.call("web_search", &json!({"query": "x"}), &[]);
    assert_eq!((code, &outcome["error"]["code"]), (1, &json!("UNAVAILABLE")), "{outcome}");
    let message = outcome["error"]["message"].as_str().unwrap();
    let lines: String = message.lines().skip(1).map(|line| format!("{line}\n")).collect();
    settings(&fixture, &lines);
    let (_, outcome) = fixture.call("web_search", &json!({"query": "x"}), &[]);
    assert!(outcome["error"]["message"].as_str().unwrap().contains("there is no secret `EXA_KEY`"), "{outcome}");
    assert!(!listed(&fixture));
    let server = answering(&json!({"results": []}));
    let fixture = asking("searxng", &server);
    assert!(listed(&fixture));
    assert_eq!(fixture.run(&["call", "web_search", "{\"query\": \"x\"}"]).stdout.trim_end(), "searxng found nothing.");
}

#[test]
fn whoever_has_chosen_nobody_is_told_which_file_is_read() {
    let fixture = Fixture::new();
    let elsewhere = fixture.workspace.with_file_name("elsewhere");
    for (config, file) in [
        (None, "~/.config/haft/haft.toml".to_owned()),
        (Some(fixture.home.join("mine")), "~/mine/haft/haft.toml".to_owned()),
        (Some(elsewhere.clone()), elsewhere.join("haft/haft.toml").display().to_string()),
    ] {
        let mut command = fixture.haft(&["call", "web_search", "--query", "x", "--json"]);
        command.envs(config.map(|config| ("XDG_CONFIG_HOME", config)));
        let said: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
        let message = said["error"]["message"].as_str().unwrap();
        assert!(message.contains(&format!("add to {file}:\n[web.search]")), "{message}");
    }
}
