//! A new server in the user's own list.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};

use crate::{
    commands::prompt::{Lines, Person},
    edits,
    settings::{
        Settings,
        mcp::{USER_LIST, name_fault},
    },
    show::style::STRONG,
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
        bail!("`{}` is no name for a server: {fault}", new.name);
    }
    let settings = Settings::of_user()?;
    if settings.mcp.servers().iter().any(|server| server.name == new.name) {
        bail!("there is a server `{}` already; choose another name, or change its entry", new.name);
    }
    let config =
        settings.config.context("neither XDG_CONFIG_HOME nor HOME is set, so there is no place for your list")?;
    let network = new.network || ask_for_the_network(&new.command).await;
    let mut entry = Map::new();
    entry.insert("command".to_owned(), json!(new.command[0]));
    entry.insert("args".to_owned(), json!(new.command[1..]));
    if !new.env.is_empty() {
        entry.insert("env".to_owned(), variables(&new.env)?);
    }
    if network {
        entry.insert("network".to_owned(), json!(true));
    }
    write(&config.join(USER_LIST), &new.name, &Value::Object(entry))
}

async fn ask_for_the_network(command: &[String]) -> bool {
    if Person::at_the_terminal() == Person::Absent {
        return false;
    }
    anstream::eprintln!(
        "Servers have no network unless you say so. Programs like npx and uvx need one to fetch what they run."
    );
    let prompt = format!("{STRONG}Let `{}` reach the network?{STRONG:#} [y]es [n]o ", command[0]);
    let answer = Lines::new().next(&prompt).await.unwrap_or_default();
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
