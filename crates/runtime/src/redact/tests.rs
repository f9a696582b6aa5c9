//! What is taken out, and what must stay readable.

use serde_json::{Value, json};

use super::{PATTERNS, RULES, Redactor};

fn shown(text: &str) -> String {
    Redactor::default().text(text).into_owned()
}

#[test]
fn every_pattern_is_one() {
    assert_eq!(RULES.len(), PATTERNS.len());
    assert!(super::LONG_RUNS.is_some());
}

#[test]
fn tokens_are_known_by_what_they_look_like() {
    for secret in [
        "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        "github_pat_11ABCDEFG0aBcDeFgHiJkL_mNoPqRsTuVwXyZ0123456789",
        "glpat-x8Yz12AbCdEfGhIjKlMn",
        "sk-proj-Ab3dEf6hIj9kLm2nOp5qRs8tUv",
        "sk_live_51H8xYzAbCdEfGhIjKlMnOp",
        "xoxb-2401234567-2401234567890-AbCdEfGhIjKlMnOpQrStUvWx",
        "AKIAIOSFODNN7EXAMPLE",
        "AIzaSyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
        "mV3xT9/kQ2wZ8bN4pL7+rJ1yC6hG0dF5sA3eU8iO",
        "9hX2kQ7vLm4Rt8Zp3Wc6Yb1Nd5Jf0GsT",
        "p7k2m9x4q8w3z6v1t5r0n2h7j4g9f3d8s6",
    ] {
        let text = format!("curl -H 'x: {secret}' https://example.org");
        assert_eq!(shown(&text), text.replace(secret, "[redacted]"), "{secret}");
    }
}

#[test]
fn what_only_looks_random_stays() {
    for plain in [
        "74a61ea8f0c3b1d2e4f5a6b7c8d9e0f1a2b3c4d5",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "550e8400-e29b-41d4-a716-446655440000",
        "tc_01a1e16a4b907c51bd6c52e07ee40f3a",
        "haft://result/tc_01a1ee55d5e072408071d93701ea2ea8#/args/q",
        "ow_01a1e16a4b907c51bd6c52e07ee40f3a",
        "crates/runtime/src/stage/approve.rs",
        "/home/anna/Projects2026/HaftServer2/crates/runtime/src/Stage3/Approve.rs",
        "the_first_answer_wins_and_a_later_one_is_told_what_was_decided",
        "AbstractSingletonProxyFactoryBean2Implementation3Test",
        "feature-2026-11-16-retention-of-outputs-v2-0001",
        "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==",
        "golang.org/x/sys v0.1.0 h1:kunALQeHf1/185U1i0GOB/fy1IPRDDpuoOOqRReG57U=",
        "SHA256:uNiVztksCsDhcc0u9e8BgrJXVGDRxrgqVYPSkq7zQFs",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
        "sk-learn-is-a-python-library-for-people",
        "let token = parser.next_token(); password: String, secret: Option<String>,",
        "max_tokens=4096 tokenizer: cl100k_base2 token_type=bearer_v2",
        "basic understanding of bearer bonds",
        "https://example.org:8080/path?page=2",
        "user@example.org:22",
    ] {
        assert_eq!(shown(plain), plain);
    }
}

#[test]
fn names_give_secrets_away_in_text_too() {
    for (text, expected) in [
        ("DB_PASSWORD=correcthorse\nUSER=anna", "DB_PASSWORD=[redacted]\nUSER=anna"),
        ("api_key = \"abc\" # mine", "api_key = \"[redacted]\" # mine"),
        (r#"{"apiKey": "abcdef", "n": 1}"#, r#"{"apiKey": "[redacted]", "n": 1}"#),
        (r#"{\"password\":\"hunter2\"}"#, r#"{\"password\":\"[redacted]\"}"#),
        ("password: hunter2, user: anna", "password: [redacted], user: anna"),
        ("deploy --token s3cr3tword --to prod", "deploy --token [redacted] --to prod"),
        ("deploy --password 'correct horse' x", "deploy --password '[redacted]' x"),
        ("GET /?access_token=abcd1234&page=2", "GET /?access_token=[redacted]&page=2"),
        ("Authorization: Bearer abcdefgh12345678", "Authorization: Bearer [redacted]"),
        ("postgres://anna:hunter2@db/main", "postgres://anna:[redacted]@db/main"),
    ] {
        assert_eq!(shown(text), expected);
    }
    let pem = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\nabc\n-----END OPENSSH PRIVATE KEY-----";
    assert!(!shown(pem).contains("b3Blbn") && shown(pem).contains("END OPENSSH"), "{}", shown(pem));
}

#[test]
fn fields_are_hidden_by_name_at_any_depth() {
    let value = json!({
        "url": "https://example.org", "X-Api-Key": "k", "headers": {"Authorization": ["Bearer x", "Basic y"]},
        "list": [{"db": {"adminPassword": 1234, "ok": true, "secret": null}}], "tokenCount": 5, "max_tokens": 9,
        "secret_name": "main", "private_key": {"n": "1", "e": 3}, "monkey": "see", "tokens": 7});
    let expected = json!({
        "url": "https://example.org", "X-Api-Key": "[redacted]",
        "headers": {"Authorization": ["[redacted]", "[redacted]"]},
        "list": [{"db": {"adminPassword": "[redacted]", "ok": true, "secret": null}}], "tokenCount": 5,
        "max_tokens": 9, "secret_name": "main", "private_key": {"n": "[redacted]", "e": "[redacted]"},
        "monkey": "see", "tokens": 7});
    assert_eq!(Redactor::default().value(&value), expected);
}

#[test]
fn pictures_are_left_alone() {
    let data: String = "9hX2kQ7vLm4Rt8Zp3Wc6Yb1Nd5Jf0GsT".repeat(3);
    let picture = json!({"images": [{"mimeType": "image/png", "data": data}]});
    assert_eq!(Redactor::default().value(&picture), picture);
    assert_ne!(Redactor::default().value(&json!({"data": data})), json!({"data": data}));
}

#[test]
fn registered_names_and_values_are_hidden() {
    let redactor = Redactor::knowing(vec!["Badge".into()], vec!["open sesame".into(), "xy".into()]);
    assert_eq!(redactor.text("say open sesame, xy"), "say [redacted], xy");
    assert_eq!(redactor.value(&json!({"badge": "7", "note": "open sesame"}))["badge"], "[redacted]");
    assert_eq!(redactor.value(&json!({"note": "open sesame!"}))["note"], "[redacted]!");
}

#[test]
fn redacting_twice_changes_nothing_more() {
    let value = json!({"password": "hunter2", "text": "token=abc123 and password: \"x y z\" ghp_16C7e42F292c6912E7710c838347Ae178B4a"});
    let once = Redactor::default().value(&value);
    assert_eq!(Redactor::default().value(&once), once);
    let Value::String(text) = &once["text"] else { panic!() };
    assert!(!text.contains("abc123") && !text.contains("x y z") && !text.contains("16C7"), "{text}");
}

#[test]
fn a_schema_may_name_a_secret_and_a_value_may_not() {
    let form = json!({"type": "object", "properties": {"password": {"type": "string", "minLength": 3}}});
    assert_eq!(Redactor::default().value(&form), form);
    for kind in ["object", "other"] {
        let given = json!({"type": kind, "properties": {"password": "hunter22"}});
        let shown = json!({"type": kind, "properties": {"password": "[redacted]"}});
        assert_eq!(Redactor::default().value(&given), shown);
    }
    let default = json!({"type": "object", "properties": {"password": {"type": "string", "default": "hunter22"}}});
    assert!(!Redactor::default().value(&default).to_string().contains("hunter22"));
}

#[test]
fn a_secret_that_comes_in_pieces_is_taken_out_whole() {
    let secrets = ["abab-1234", "abab", "Bearer grün+x", "grün+x"].map(str::to_owned).to_vec();
    let redactor = Redactor::knowing(Vec::new(), secrets);
    let text = "x abab-1234 y ababab Bearer grün+x, grün aba";
    for size in 1..text.len() {
        let (mut shown, mut held) = (String::new(), String::new());
        let letters: Vec<char> = text.chars().collect();
        for piece in letters.chunks(size) {
            held.extend(piece);
            let (certain, rest) = redactor.known_so_far(&held);
            shown.push_str(&certain);
            held = rest;
        }
        shown.push_str(&redactor.known(&held));
        assert_eq!(shown, "x [redacted] y [redacted]ab [redacted], grün aba", "in pieces of {size}");
    }
}

#[test]
fn a_secret_is_known_in_every_form_that_it_may_be_told_in() {
    assert_eq!(super::secret_forms("plain"), ["plain"]);
    assert_eq!(super::secret_forms("Bearer a\"b"), ["Bearer a\"b", "a\"b", "Bearer a\\\"b"]);
}
