//! A new server in the user's own list.

use haft_mcp::PinStore;
use std::path::Path;

use anyhow::{Context, Error, Result};
use haft_runtime::ToolError;
use serde_json::{Map, Value, json};

use crate::{
    commands::{
        mistake,
        prompt::{Person, TerminalLines},
        user_settings,
    },
    edits,
    settings::{
        McpServer, Settings,
        mcp::{self, USER_LIST, is_url, name_fault},
    },
    show::{
        as_tool_error,
        style::{STRONG, WARN},
    },
    upstreams::PinsFile,
};

/// What is written down.
#[derive(clap::Args)]
pub(crate) struct NewServer {
    /// What to call it; its tools become `mcp__NAME__TOOL`
    pub(crate) name: String,
    /// Let it reach the network, which is then any host, this machine included
    #[arg(long)]
    network: bool,
    /// A variable for it; write `secret:NAME` in the place of a secret
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// The program and its arguments, behind `--`
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Writes it down; everything else in the list stays as it is.
pub(crate) async fn add(new: &NewServer) -> Result<()> {
    if let Some(fault) = name_fault(&new.name) {
        return Err(mistake(format!("`{}` cannot be the name of a server: {fault}", new.name)));
    }
    let settings = user_settings()?;
    // What only adds to it in `haft.toml` is no server yet.
    let is_there = |server: &McpServer| server.name == new.name && !settings.mcp.adds_to_none(&new.name);
    let before = settings.mcp.servers().into_iter().find(is_there);
    if let Some(before) = &before
        && !has_never_worked(before, &settings)
    {
        return Err(mistake(format!(
            "there is a server `{}` already; choose another name, or change its entry",
            new.name
        )));
    }
    let config =
        settings.config.context("neither XDG_CONFIG_HOME nor HOME is set, so there is no place for your list")?;
    let (program, list) = (&new.command[0], config.join(USER_LIST));
    if is_url(program) {
        let entry = json!({ "mcpServers": { &new.name: { "url": program } } });
        return Err(mistake(format!(
            "`{program}` is a URL, and no program; write it into {} yourself: {entry}",
            list.display()
        )));
    }
    let mut entry = Map::new();
    entry.insert("command".to_owned(), json!(program));
    entry.insert("args".to_owned(), json!(new.command[1..]));
    if !new.env.is_empty() {
        entry.insert("env".to_owned(), variables(&new.env)?);
    }
    mcp::check(&Value::Object(entry.clone())).context("nothing was added")?;
    if new.network || ask_for_the_network(&new.command).await {
        entry.insert("network".to_owned(), json!(true));
    }
    write(&list, &new.name, &Value::Object(entry))?;
    if before.is_some() {
        anstream::eprintln!("{WARN}haft:{WARN:#} the entry `{}`, which never worked, is replaced", new.name);
    }
    Ok(())
}

/// Whether it was tried in vain and never met. One that stands in `haft.toml` is the user's own to change.
fn has_never_worked(server: &McpServer, settings: &Settings) -> bool {
    let known = PinsFile::of(server, Path::new("/"), &settings.data).read();
    known.accepted.is_none() && known.last_error.is_some() && settings.mcp.is_in_user_list(&server.name)
}

/// Why a server did not start, and what becomes of what was written down.
pub(crate) fn with_its_entry(err: &Error, name: &str) -> Error {
    let error = as_tool_error(err);
    let message = format!(
        "{}\nits entry stays in your {USER_LIST}; add `{name}` again to replace it, or change it there",
        error.message
    );
    ToolError { message, ..error }.into()
}

async fn ask_for_the_network(command: &[String]) -> bool {
    if Person::at_the_terminal() == Person::Absent {
        return false;
    }
    anstream::eprintln!(
        "Servers have no network unless you say so. Programs like npx and uvx need one to fetch what they run."
    );
    let prompt = format!("{STRONG}Let `{}` reach the network?{STRONG:#} [y]es [n]o ", command[0]);
    let answer = TerminalLines::new().next(&prompt).await.unwrap_or_default();
    matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}

fn variables(typed: &[String]) -> Result<Value> {
    let mut variables = Map::new();
    for pair in typed {
        let (name, value) =
            pair.split_once('=').with_context(|| format!("`{pair}` is no variable: write NAME=VALUE"))?;
        variables.insert(name.to_owned(), json!(value));
    }
    Ok(Value::Object(variables))
}

fn write(file: &Path, name: &str, entry: &Value) -> Result<()> {
    let before = edits::read(file)?.unwrap_or_default();
    let list = edits::json::put(&before, &["mcpServers", name], entry).with_context(|| file.display().to_string())?;
    edits::replace(file, &list)
}
