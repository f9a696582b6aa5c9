//! Codex and Claude Code from end to end, as `agent` does with opencode; installed by `scripts/setup peers`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../support/mod.rs"]
mod support;

mod model;
mod story;

use std::fs;

use story::machine;

/// What Codex would otherwise fetch from elsewhere.
const CODEX_LEAVES_OUT: [&str; 6] =
    ["apps", "plugins", "remote_plugin", "tool_suggest", "skills", "api_key_model_discovery"];

#[test]
fn codex_reads_and_writes_after_a_yes_from_elsewhere() {
    let (fixture, model) = story::with("codex");
    let target = if cfg!(target_arch = "aarch64") { "aarch64" } else { "x86_64" };
    let program = story::installed(&format!(
        "npm/node_modules/codex-linux-{}/vendor/{target}-unknown-linux-musl/bin/codex",
        machine()
    ));
    let mut command = story::agent(&fixture, &model, program.to_str().unwrap());
    command.env("MODEL_KEY", "none").args(["exec", "--skip-git-repo-check", "do it"]);
    let file = fixture.home.join(".codex/config.toml");
    let installed = fs::read_to_string(&file).unwrap();
    let off: String = CODEX_LEAVES_OUT.iter().map(|feature| format!("{feature} = false\n")).collect();
    // Codex hands few variables on to servers.
    let settings = format!(
        "model = 'm'\nmodel_provider = 'local'\ncheck_for_update_on_startup = false\n{installed}\
         env = {{ HAFT_DATA_DIR = '{}' }}\n\
         [model_providers.local]\nname = 'local'\nbase_url = 'http://{}/v1'\nwire_api = 'responses'\n\
         env_key = 'MODEL_KEY'\n[analytics]\nenabled = false\n[features]\n{off}",
        fixture.data.display(),
        model.address,
    );
    fs::write(file, settings).unwrap();
    story::works(&fixture, &model, command, "codex-mcp-client");
    assert_eq!(model.heard().outside, [""; 0], "it spoke with nobody else");
}

#[test]
fn claude_code_reads_and_writes_after_a_yes_from_elsewhere() {
    let (fixture, model) = story::with("claude");
    let program = story::installed(&format!("npm/node_modules/@anthropic-ai/claude-code-linux-{}/claude", machine()));
    let mut command = story::agent(&fixture, &model, program.to_str().unwrap());
    command.env("ANTHROPIC_BASE_URL", format!("http://{}", model.address)).env("ANTHROPIC_API_KEY", "none");
    for quiet in ["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_TELEMETRY", "DISABLE_AUTOUPDATER"] {
        command.env(quiet, "1");
    }
    command.args(["-p", "do it", "--model", "m", "--mcp-config", ".mcp.json", "--strict-mcp-config"]);
    command.args(["--allowedTools", "mcp__haft__read_file,mcp__haft__write_file,mcp__haft__wait_call"]);
    story::works(&fixture, &model, command, "claude-code");
    assert_eq!(model.heard().outside, [""; 0], "it spoke with nobody else");
}
