//! `haft admin mcp`: MCP servers of a tenant that are started on this machine.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use haft_platform::{Platform, ServerReach, ServerRecord, StdioCommand};
use haft_server::server_view;
use serde_json::{Value, json};

use super::{Told, scope};
use crate::{commands::mistake, show::safe::safe};

#[derive(clap::Subcommand)]
pub(super) enum AdminMcpCommand {
    /// Add a server that is started here, in the sandbox with a home of its own
    ///
    /// It sees no folder of this machine but the one that `--map` names, and reaches no network without `--network`. Its
    /// tools become `mcp__NAME__TOOL` for everybody in the tenant who may use tools. Servers that are reached over HTTP
    /// are added by the tenant, at /api/servers.
    Add {
        /// What to call it: small letters, digits and -
        name: String,
        /// The tenant
        #[arg(long)]
        tenant: String,
        /// Let it reach the network, which is then any host, this machine included
        #[arg(long)]
        network: bool,
        /// A folder of this machine that it works in, and may read
        #[arg(long, value_name = "DIR")]
        map: Option<PathBuf>,
        /// Let it write into that folder too, which nobody can undo
        #[arg(long, requires = "map")]
        write: bool,
        /// A variable for it; write `secret:NAME` in the place of a secret of the tenant
        #[arg(long, value_name = "NAME=VALUE")]
        env: Vec<String>,
        /// The program and its arguments, behind `--`
        #[arg(last = true, required = true, value_name = "COMMAND")]
        command: Vec<String>,
    },
    /// List the MCP servers of a tenant
    List {
        /// The tenant
        #[arg(long)]
        tenant: String,
    },
    /// Show a server, how it is started, and its tools
    Show {
        /// Its name
        name: String,
        /// The tenant
        #[arg(long)]
        tenant: String,
    },
    /// Remove a server; its folder and its home stay
    Remove {
        /// Its name
        name: String,
        /// The tenant
        #[arg(long)]
        tenant: String,
    },
}

pub(super) async fn run(platform: &Platform, command: AdminMcpCommand) -> Result<Told> {
    Ok(match command {
        AdminMcpCommand::Add { name, tenant, network, map, write, env, command } => {
            let map = map.as_deref().map(mapped).transpose()?;
            let started = StdioCommand { command, env: variables(&env)?, network, map, writes: write };
            let added = platform.add_started_server(&scope(platform, &tenant).await?, &name, &started).await?;
            let sentence = format!("MCP server {name} is there; its tools are listed once it has started");
            Told::One(view(&added), sentence)
        }
        AdminMcpCommand::List { tenant } => {
            let scope = scope(platform, &tenant).await?;
            let mut all = Vec::new();
            for listed in platform.servers(&scope).await? {
                all.push(view(&platform.server(&scope, &listed.definition.name).await?));
            }
            Told::List(all, &["name", "state", "transport", "reason"])
        }
        AdminMcpCommand::Show { name, tenant } => {
            let found = view(&platform.server(&scope(platform, &tenant).await?, &name).await?);
            let sentence = sentence(&found);
            Told::One(found, sentence)
        }
        AdminMcpCommand::Remove { name, tenant } => {
            platform.remove_server(&scope(platform, &tenant).await?, &name).await?;
            Told::One(json!({"removed": name}), format!("MCP server {name} is gone with its tools"))
        }
    })
}

/// A folder of this machine, as it is really called.
fn mapped(folder: &Path) -> Result<String> {
    let real = folder.canonicalize().with_context(|| format!("cannot open {}", folder.display()))?;
    if !real.is_dir() {
        return Err(mistake(format!("{} is no folder", folder.display())));
    }
    real.to_str().map(str::to_owned).ok_or_else(|| mistake(format!("{} is no text", folder.display())))
}

fn variables(typed: &[String]) -> Result<BTreeMap<String, String>> {
    let pair = |pair: &String| {
        let (name, value) =
            pair.split_once('=').ok_or_else(|| mistake(format!("`{pair}` is no variable: write NAME=VALUE")))?;
        Ok((name.to_owned(), value.to_owned()))
    };
    typed.iter().map(pair).collect()
}

/// A server as the operator sees it: also how it is started, but no value of a variable.
fn view(record: &ServerRecord) -> Value {
    let mut view = server_view(record, None);
    if let ServerReach::Stdio(started) = &record.definition.reach {
        let shown = |value: &String| if value.starts_with("secret:") { value.clone() } else { "…".to_owned() };
        let env: BTreeMap<&String, String> = started.env.iter().map(|(name, value)| (name, shown(value))).collect();
        view["command"] = json!(started.command);
        view["env"] = json!(env);
        view["network"] = json!(started.network);
        view["map"] = json!(started.map);
        view["write"] = json!(started.writes);
    }
    view
}

fn sentence(view: &Value) -> String {
    let text = |name: &str| view[name].as_str().unwrap_or_default();
    let mut sentence = format!("{} ({}): {}", text("name"), text("transport"), text("state"));
    if !text("reason").is_empty() {
        sentence.push_str(&format!("\n{}", safe(text("reason"))));
    }
    for tool in view["tools"].as_array().into_iter().flatten() {
        let held = if tool["held"] == true { "  held: what it says of itself has changed" } else { "" };
        let (name, effect) = (tool["name"].as_str().unwrap_or_default(), tool["effect"].as_str().unwrap_or_default());
        sentence.push_str(&format!("\n  {}  {effect}{held}", safe(name)));
    }
    sentence
}
