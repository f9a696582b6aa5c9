//! Receipts: what a yes was about, signed, and checked without a server by haft and by others.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test that cannot go on fails, says why it skips a part, and starts programs itself"
)]

mod http_client;

use std::{path::Path, process::Command};

use base64::{Engine, engine::general_purpose::STANDARD};
use http_client::{Gateway, person::Person};
use serde_json::{Value, json};

const SCOPES: &str = "tools:read,tools:execute,tools:write,approvals:decide,events:read";

fn with_tools() -> (Gateway, String) {
    let served = Gateway::start();
    served.admin(&["tenant", "add", "acme"]);
    let key = served.key("operator", "acme", SCOPES);
    for (slug, effect, policy) in [("look", "read", "auto"), ("deploy", "write", "always_ask")] {
        let tool = json!({"slug": slug, "description": "For tests.", "inputSchema": {"type": "object"},
            "executionType": "internal", "effect": effect, "permissionPolicy": policy});
        assert_eq!(served.post("/api/tools", &tool, Some(&key)).status, 201);
    }
    (served, key)
}

fn call(served: &Gateway, key: &str, tool: &str, input: &Value) -> String {
    let path = format!("/api/tools/{tool}/calls");
    let answer = served.post(&path, &json!({"input": input, "wait": 0}), Some(key));
    answer.body["tool_call_id"].as_str().unwrap_or_else(|| panic!("{answer:?}")).to_owned()
}

/// Whether `haft receipt verify` holds it for true, and what it says.
fn verified(served: &Gateway, file: &Path, more: &[&str]) -> (bool, String) {
    let done = served.haft(&[&["receipt", "verify", file.to_str().unwrap()], more].concat()).output().unwrap();
    let said = [done.stdout, done.stderr].concat();
    (done.status.success(), String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn a_receipt_says_who_allowed_what_under_which_rules_and_any_other_byte_fails() {
    let (served, key) = with_tools();
    let eve = Person::added(&served, "eve@example.org", "acme", "owner");
    let ann = Person::added(&served, "ann@example.org", "acme", "admin");
    assert_eq!(eve.ask("PUT", "/api/policy", Some(json!({"rules": [], "version": 0}))).status, 200);
    let rules = json!([{"tool": "deploy", "count": 2, "notTheAuthor": true}]);
    assert_eq!(eve.ask("PUT", "/api/approval-rules", Some(json!({"rules": rules, "version": 0}))).status, 200);
    let id = call(&served, &key, "deploy", &json!({"to": "production"}));
    let path = format!("/api/calls/{id}/receipt");
    assert_eq!(eve.get(&path).status, 404, "nobody has said yes yet");
    for (person, answered) in [(&eve, false), (&ann, true)] {
        let yes = person.post(&format!("/api/approvals/{id}/approve"), json!({}));
        assert_eq!((yes.status, &yes.body["answered"]), (200, &json!(answered)), "{yes:?}");
    }
    let receipt = eve.get(&path).body;
    let who: Vec<&str> = receipt["answeredBy"].as_array().unwrap().iter().filter_map(|by| by["id"].as_str()).collect();
    let mut expected = vec![eve.id.as_str(), ann.id.as_str()];
    expected.sort_unstable();
    assert_eq!(who, expected);
    assert_eq!((&receipt["how"], &receipt["tool"], &receipt["callId"]), (&json!("user"), &json!("deploy"), &json!(id)));
    assert_eq!((&receipt["policyVersion"], &receipt["rulesVersion"]), (&json!(1), &json!(1)), "{receipt}");
    assert_eq!((&receipt["caller"]["kind"], &receipt["effect"]), (&json!("key"), &json!("write")));
    let digest = sha256(r#"{"to":"production"}"#);
    assert_eq!(receipt["inputDigest"], json!(digest));

    let printed = served.haft(&["receipt", &id]).output().unwrap();
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    let file = served.workspace().join("r.json");
    std::fs::write(&file, &printed.stdout).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&printed.stdout).unwrap(), receipt, "by every way the same");
    let (holds, said) = verified(&served, &file, &[]);
    assert!(holds && said.contains("allowed deploy"), "{said}");
    let key_text = served.get("/api/receipts/key", None).body["publicKey"].as_str().unwrap().to_owned();
    assert!(verified(&served, &file, &["--key", &key_text]).0, "offline, by whoever has the key");
    assert!(!verified(&served, &file, &["--key", &STANDARD.encode([7; 32])]).0, "not by another key");
    checked_by_others(&served.workspace(), &receipt, &key_text);

    let text = String::from_utf8(printed.stdout).unwrap();
    for (from, to) in
        [("deploy", "depLoy"), ("production", "staging"), ("\"user\"", "\"auto\""), (&digest[..9], "000000000")]
    {
        if text.contains(from) {
            std::fs::write(&file, text.replace(from, to)).unwrap();
            assert!(!verified(&served, &file, &[]).0, "{from} -> {to}");
        }
    }
    std::fs::write(&file, text.replacen('{', "{\n  \"tool\": \"look\",", 1)).unwrap();
    assert!(!verified(&served, &file, &[]).0, "nothing is added");
}

/// Checks a signature by OpenSSL, with nothing of haft.
fn checked_by_others(folder: &Path, receipt: &Value, key: &str) {
    if Command::new("openssl").arg("version").output().is_err() {
        println!("skipped: there is no openssl here");
        return;
    }
    let mut fields = receipt.as_object().unwrap().clone();
    let signature = STANDARD.decode(fields.remove("signature").unwrap().as_str().unwrap()).unwrap();
    // An Ed25519 public key in DER is these bytes and the key itself.
    let der =
        [&[0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00][..], &STANDARD.decode(key).unwrap()];
    let [message, sig, public] = ["message", "sig", "key.der"].map(|name| folder.join(name));
    std::fs::write(&message, in_order(&Value::Object(fields))).unwrap();
    std::fs::write(&sig, signature).unwrap();
    std::fs::write(&public, der.concat()).unwrap();
    let [message, sig, public] = [&message, &sig, &public].map(|path| path.to_str().unwrap());
    let args = [
        "pkeyutl", "-verify", "-pubin", "-keyform", "DER", "-inkey", public, "-rawin", "-in", message, "-sigfile", sig,
    ];
    let done = Command::new("openssl").args(args).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&[done.stdout, done.stderr].concat()));
}

/// JSON with its keys in order and no spaces.
fn in_order(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let mut names: Vec<&String> = fields.keys().collect();
            names.sort();
            let field = |name: &&String| format!("{}:{}", json!(name), in_order(&fields[*name]));
            format!("{{{}}}", names.iter().map(field).collect::<Vec<_>>().join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(in_order).collect::<Vec<_>>().join(",")),
        other => other.to_string(),
    }
}

fn sha256(text: &str) -> String {
    use sha2::{Digest, Sha256};
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn calls_that_nobody_was_asked_about_have_one_too_and_refused_ones_none() {
    let (served, key) = with_tools();
    let eve = Person::added(&served, "eve@example.org", "acme", "owner");
    served.admin(&["tenant", "add", "bolt"]);
    let bob = Person::added(&served, "bob@example.org", "bolt", "owner");
    let read = call(&served, &key, "look", &json!({}));
    let receipt = served.get(&format!("/api/calls/{read}/receipt"), Some(&key)).body;
    assert_eq!((&receipt["how"], &receipt["answeredBy"]), (&json!("auto"), &json!([])), "{receipt}");
    assert_eq!(bob.get(&format!("/api/calls/{read}/receipt")).status, 404, "another tenant's is not there");
    assert_eq!(served.get(&format!("/api/calls/{read}/receipt"), None).status, 401);
    let rejected = call(&served, &key, "deploy", &json!({}));
    assert_eq!(eve.post(&format!("/api/approvals/{rejected}/reject"), json!({})).status, 200);
    assert_eq!(eve.get(&format!("/api/calls/{rejected}/receipt")).status, 404);
    // Whoever edits the input says yes to the edited one.
    let edited = call(&served, &key, "deploy", &json!({}));
    let said = eve.post(&format!("/api/approvals/{edited}/approve"), json!({"input": {"to": "staging"}}));
    let child = said.body["outcome"]["tool_call_id"].as_str().unwrap_or_else(|| panic!("{said:?}"));
    let receipt = eve.get(&format!("/api/calls/{child}/receipt")).body;
    assert_eq!((&receipt["answeredBy"][0]["id"], &receipt["how"]), (&json!(eve.id), &json!("user")), "{receipt}");
    assert_eq!(receipt["inputDigest"], json!(sha256(r#"{"to":"staging"}"#)));
}
