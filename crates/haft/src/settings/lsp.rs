//! Which language servers are asked, and how much of the machine they may use.

use anyhow::{Context, Result, bail};
use haft_tools::{LanguageServer, LanguageServers};
use serde_json::Value;

use super::values::{argv, duration, size};

/// `false` when the key is none of these.
pub(super) fn take(servers: &mut LanguageServers, key: &str, value: &str) -> Result<bool> {
    match key {
        "lsp.memory" => servers.memory = size(value)?,
        "lsp.ready" => servers.ready = duration(value)?,
        "lsp.timeout" => servers.timeout = duration(value)?,
        "lsp.idle" => servers.idle = duration(value)?,
        "lsp.servers" => servers.servers = read(value)?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn read(text: &str) -> Result<Vec<LanguageServer>> {
    let servers: toml::Value = text.parse().context("it is not a table of servers")?;
    let servers = servers.as_table().context("it is not a table of servers")?;
    servers.iter().map(|(language, server)| one(language, server).with_context(|| format!("`{language}`"))).collect()
}

fn one(language: &str, server: &toml::Value) -> Result<LanguageServer> {
    let server = server.as_table().context("a server is a table with `command` and `extensions`")?;
    let known = ["command", "extensions", "init_options", "settings"];
    if let Some(other) = server.keys().find(|key| !known.contains(&key.as_str())) {
        bail!("a server has no `{other}`: it has {}", known.join(", "));
    }
    let part = |name: &str| server.get(name).map(toml::Value::to_string);
    let command = argv(&part("command").context("`command` is missing: the program and its arguments")?)?;
    if command.is_empty() {
        bail!("`command` is empty: name the program and its arguments");
    }
    let extensions = server.get("extensions").context("`extensions` is missing, such as [\"rs\"]")?;
    let extensions: Vec<String> = extensions.clone().try_into().context("`extensions` is not an array of text")?;
    if let Some(odd) = extensions.iter().find(|extension| extension.is_empty() || extension.contains(['.', '/'])) {
        bail!("`{odd}` is not the end of a name: write `rs`, not `.rs`");
    }
    let json = |name: &str| serde_json::to_value(server.get(name)).context("it cannot be told as JSON");
    let (init_options, settings): (Value, Value) = (json("init_options")?, json("settings")?);
    Ok(LanguageServer { language: language.to_owned(), command, extensions, init_options, settings })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_read_with_all_that_it_is_told() {
        let mut servers = LanguageServers::default();
        let text = "{ zig = { command = ['zls', '--x'], extensions = ['zig'], init_options = { a = [1, true] } } }";
        assert!(take(&mut servers, "lsp.servers", text).unwrap());
        let zig = &servers.servers[0];
        assert_eq!(
            (zig.language.as_str(), zig.command.len(), &zig.extensions[..]),
            ("zig", 2, &["zig".to_owned()][..])
        );
        assert_eq!((&zig.init_options, &zig.settings), (&serde_json::json!({ "a": [1, true] }), &Value::Null));
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_a_reason() {
        let mut servers = LanguageServers::default();
        for (value, expected) in [
            ("[]", "table of servers"),
            ("{ x = 1 }", "table with `command`"),
            ("{ x = { extensions = ['x'] } }", "`command` is missing"),
            ("{ x = { command = [], extensions = ['x'] } }", "`command` is empty"),
            ("{ x = { command = ['./x'], extensions = ['x'] } }", "full path"),
            ("{ x = { command = ['x'] } }", "`extensions` is missing"),
            ("{ x = { command = ['x'], extensions = ['.x'] } }", "write `rs`"),
            ("{ x = { command = ['x'], extensions = ['x'], initOptions = {} } }", "no `initOptions`"),
        ] {
            let said = format!("{:#}", take(&mut servers, "lsp.servers", value).unwrap_err());
            assert!(said.contains(expected), "{value}: {said}");
        }
        assert_eq!(servers, LanguageServers::default());
    }
}
