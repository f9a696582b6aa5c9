//! Lists that test themselves: every tool can be used by every client, and every export is the same each time.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use haft::{house, settings::Settings};
use haft_runtime::{Effect, ErrorCode, ToolSpec, Tools, faults_of_input, to_anthropic, to_mcp, to_openai};
use haft_store::{Durability, Store};
use serde_json::Value;
use std::sync::Arc;

async fn registry() -> (Arc<Tools>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings::defaults(folder.path().join("data"));
    let store = Store::open(&settings.data, Durability::Normal).await.unwrap();
    let house = house::open(settings, store, &folder.path().canonicalize().unwrap()).await.unwrap();
    (house.tools(), folder)
}

/// Every tool, listed or not, sorted by name.
fn all(registry: &Tools) -> Vec<ToolSpec> {
    let specs = registry.names().into_iter().map(|name| (registry.get(&name).unwrap().spec().clone(), name));
    specs.filter(|(spec, name)| spec.name == *name).map(|(spec, _)| spec).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_tool_can_be_used_by_every_client() {
    let (registry, _folder) = registry().await;
    let mut names = Vec::new();
    for spec in all(&registry) {
        assert!(
            faults_of_input(&spec.input_schema).is_empty(),
            "{}: {:?}",
            spec.name,
            faults_of_input(&spec.input_schema)
        );
        assert_eq!(spec.output_schema["type"], "object", "{}", spec.name);
        assert!(spec.description.len() > 40 && spec.description.ends_with('.'), "{}: {}", spec.name, spec.description);
        assert_eq!(spec.input_schema["additionalProperties"], false, "{} takes unknown fields", spec.name);
        for (field, schema) in spec.input_schema["properties"].as_object().unwrap() {
            assert!(schema["description"].is_string(), "{}.{field} has no description", spec.name);
        }
        let snake = |name: &str| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        assert!(snake(&spec.name), "workspace tools are verb_noun: {}", spec.name);
        names.push(spec.name);
    }
    let mut sorted = names.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!(names, sorted, "sorted, and each name once");
}

#[tokio::test(flavor = "multi_thread")]
async fn examples_stand_beside_the_schema_and_fit_it() {
    let (registry, _folder) = registry().await;
    for spec in all(&registry) {
        assert!(spec.input_schema.get("examples").is_none(), "{}: a model would pay for it", spec.name);
        let required = spec.input_schema.get("required").and_then(Value::as_array);
        let can_be_made_up = required.is_none_or(|fields| fields.iter().all(|field| field == "callId"));
        assert!(spec.example.is_some() || can_be_made_up, "{}: `some text` teaches nobody", spec.name);
        let Some(example) = &spec.example else { continue };
        assert!(!example.to_string().contains('\''), "{}: it stands between quotes", spec.name);
        for field in example.as_object().unwrap().keys() {
            assert!(spec.input_schema["properties"].get(field).is_some(), "{}.{field}", spec.name);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn descriptions_name_only_tools_that_exist() {
    let (registry, _folder) = registry().await;
    for spec in &all(&registry) {
        for word in spec.description.split('`').skip(1).step_by(2).filter(|word| word.contains('_')) {
            let known = registry.get(word).is_some() || spec.description.contains(&format!("the `{word}`"));
            assert!(known, "{} names `{word}`, which is no tool", spec.name);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn exports_are_sorted_and_the_same_each_time() {
    let (first, _one) = registry().await;
    let (second, _two) = registry().await;
    for export in [to_openai, to_anthropic, to_mcp] {
        let mut shuffled = second.specs();
        shuffled.reverse();
        assert_eq!(export(&first.specs()).to_string(), export(&shuffled).to_string());
    }
    let mcp = to_mcp(&first.specs());
    for (tool, spec) in mcp.as_array().unwrap().iter().zip(first.specs()) {
        assert_eq!(tool["annotations"]["readOnlyHint"], Value::Bool(spec.effect == Effect::Read));
        // What is not destructive only adds something, and no tool that changes anything can promise that.
        assert_eq!(tool["annotations"]["destructiveHint"], Value::Bool(spec.effect != Effect::Read));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions_cost_models_little() {
    let (registry, _stays) = registry().await;
    let listing = registry.listing();
    let cost = |counts: &dyn Fn(&str) -> bool| -> usize {
        listing.offered().iter().filter(|tool| counts(&tool.spec().category)).map(|tool| tool.tokens()).sum()
    };
    let (plain, repository) = (cost(&|of| !["lsp", "git"].contains(&of)), cost(&|of| of != "lsp"));
    assert!(plain <= 4500 && repository <= 5500, "{plain} tokens in a plain folder, {repository} in a repository");
    for tool in listing.offered() {
        let sent = to_anthropic(std::slice::from_ref(tool.spec())).to_string();
        assert_eq!(tool.tokens(), sent.len() / 4, "{}", tool.spec().name);
    }
}

#[test]
fn every_error_code_is_listed_once() {
    let mut codes: Vec<String> = ErrorCode::ALL.iter().map(ToString::to_string).collect();
    let all = codes.len();
    codes.sort();
    codes.dedup();
    assert_eq!(codes.len(), all);
}
