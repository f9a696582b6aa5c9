//! Names and what they stand for, and what is said when they stand for nothing.

use std::path::{Path, PathBuf};

use super::ResolvedSecrets;
use crate::settings::{
    Settings,
    mcp::{McpSettings, Reached},
};

/// A user with some variables, and one server that the user or a workspace has written down.
fn settings() -> Settings {
    let mut settings = Settings::defaults(PathBuf::from("/nowhere"));
    let pairs = [("TOKEN", "t0ken-of-the-user"), ("HOST", "x.org"), ("EMPTY", ""), ("TMP", "/tmp")];
    settings.variables = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    settings
}

fn revealed(entry: &str) -> Result<ResolvedSecrets, String> {
    let mut mcp = McpSettings::default();
    mcp.take("mcp.servers", &format!("{{ x = {entry} }}")).unwrap();
    mcp.servers()[0].revealed(&settings(), Path::new("/work")).map_err(|err| format!("{err:#}"))
}

/// The arguments that become of one.
fn argument(text: &str) -> Result<String, String> {
    let Reached::Command { command, .. } = revealed(&format!("{{ command = 'x', args = ['{text}'] }}"))?.reached else {
        panic!("it is started");
    };
    Ok(command[1].clone())
}

#[test]
fn variables_are_put_in_their_places() {
    for (text, expected) in [
        ("--host=${HOST}", "--host=x.org"),
        ("${env:HOST}/${HOST}", "x.org/x.org"),
        ("${NONE:-of old}", "of old"),
        ("${env:NONE:-}", ""),
        ("${HOST:-of old}", "x.org"),
        ("${EMPTY:-of old}", "of old"),
        ("<${EMPTY}>", "<>"),
        ("${workspaceFolder}/a", "/work/a"),
        ("$HOST ${} ${a b} ${1} ${#HOST} ${HOST", "$HOST ${} ${a b} ${1} ${#HOST} ${HOST"),
        ("${ ${HOST}", "${ ${HOST}"),
    ] {
        assert_eq!(argument(text).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn what_is_not_there_is_named() {
    assert!(argument("${NONE}").unwrap_err().contains("the variable `NONE` is not set"));
    assert!(argument("${input:key}").unwrap_err().contains("`${input:key}`"));
    let entry = "{ url = 'https://x.org', headers = { Authorization = 'Bearer ${NONE}' } }";
    let said = revealed(entry).unwrap_err();
    assert!(said.starts_with("its header `Authorization`: the variable `NONE` is not set"), "{said}");
    let said = revealed("{ url = '${TOKEN}/mcp' }").unwrap_err();
    assert!(said.contains("not a URL") && !said.contains("t0ken"), "{said}");
    assert!(revealed("{ command = '${HOST}/x' }").unwrap_err().contains("full path"));
}

#[test]
fn every_value_that_may_be_a_secret_is_known_as_one() {
    let entry = "{ url = 'https://${HOST}/mcp', headers = { Authorization = 'Bearer ${TOKEN}', X = 'abcd efgh' } }";
    let found = revealed(entry).unwrap();
    let Reached::Url { url, headers } = &found.reached else { panic!("it has a URL") };
    assert_eq!((url.as_str(), headers["Authorization"].as_str()), ("https://x.org/mcp", "Bearer t0ken-of-the-user"));
    for secret in ["t0ken-of-the-user", "Bearer t0ken-of-the-user", "abcd efgh", "efgh"] {
        assert!(found.secrets.iter().any(|known| known == secret), "{secret}: {:?}", found.secrets);
    }
    let entry =
        "{ command = 'x', env = { A = 'true', B = '/usr/bin', C = 'long-enough', D = '${TMP}', E = '${TOKEN}' } }";
    let known = revealed(entry).unwrap().secrets;
    assert!(known.contains(&"long-enough".to_owned()) && known.contains(&"t0ken-of-the-user".to_owned()), "{known:?}");
    assert!(!known.iter().any(|value| value == "true" || value.starts_with('/')), "{known:?}");
}

#[test]
fn a_workspace_gets_only_the_variables_that_the_user_names_for_it() {
    let mut mcp = McpSettings::default();
    let list = br#"{"mcpServers": {"x": {"command": "x", "args": ["${HOST:-of old}"], "env": {"T": "${TOKEN}"}}}}"#;
    mcp.take_workspace_list(list);
    let reveal = |mcp: &McpSettings| mcp.servers()[0].revealed(&settings(), Path::new("/work"));
    let said = format!("{:#}", reveal(&mcp).unwrap_err());
    assert!(said.starts_with("its variable `T`: this workspace wants your variable `TOKEN`"), "{said}");
    assert!(said.ends_with("[mcp.servers.x]\nvariables = [\"TOKEN\"]") && !said.contains("t0ken"), "{said}");
    mcp.take("mcp.servers", "{ x = { variables = ['TOKEN'] } }").unwrap();
    let Reached::Command { command, env, .. } = reveal(&mcp).unwrap().reached else { panic!("it is started") };
    assert_eq!((command[1].as_str(), env["T"].as_str()), ("of old", "t0ken-of-the-user"));
}
