//! A real agent from end to end, with a model that follows a script and without any network: opencode, which is the
//! smallest to get. `agent_peers` does the same with others.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../support/mod.rs"]
mod support;

mod model;
mod story;

use std::fs;

use serde_json::json;

/// What opencode would otherwise fetch, send or look for.
const QUIET: [&str; 6] = [
    "OPENCODE_DISABLE_AUTOUPDATE",
    "OPENCODE_DISABLE_MODELS_FETCH",
    "OPENCODE_DISABLE_DEFAULT_PLUGINS",
    "OPENCODE_DISABLE_LSP_DOWNLOAD",
    "OPENCODE_DISABLE_SHARE",
    "OPENCODE_PURE",
];

#[test]
fn opencode_reads_and_writes_after_a_yes_from_elsewhere() {
    let (fixture, model) = story::with("opencode");
    let program = story::installed(&format!("agent/node_modules/opencode-linux-{}/bin/opencode", story::machine()));
    let mut command = story::agent(&fixture, &model, program.to_str().unwrap());
    command.envs(QUIET.map(|name| (name, "1"))).args(["run", "do it"]);
    let options = json!({"baseURL": format!("http://{}/v1", model.address), "apiKey": "none"});
    let provider = json!({"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"m": {}}});
    let settings = json!({"provider": {"local": provider}, "model": "local/m", "small_model": "local/m"});
    command.env("OPENCODE_CONFIG_CONTENT", settings.to_string());
    // It fetches what plugins would need, unless that is there already.
    let own = fixture.home.join(".config/opencode");
    fs::create_dir_all(own.join("node_modules")).unwrap();
    let lock = json!({"packages": {"": {"dependencies": {"@opencode-ai/plugin": "*"}}}});
    fs::write(own.join("package-lock.json"), lock.to_string()).unwrap();

    story::works(&fixture, &model, command, "opencode");
    assert_eq!(model.heard().outside, [""; 0], "it spoke with nobody else");
}
