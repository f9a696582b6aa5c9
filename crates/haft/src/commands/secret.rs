//! `haft secret`

use std::io::Read;

use anyhow::Result;
use haft_platform::{Platform, SecretView};
use haft_runtime::{Scope, ToolError};
use haft_store::Store;
use serde_json::json;

use crate::{
    commands::{mistake, serve::of_user},
    exit::CliExit,
    house,
    master_key::{self, master_key},
    show::{Out, table::table, time::ago},
};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: SecretCommand,
}

#[derive(clap::Subcommand)]
enum SecretCommand {
    /// Set a secret, or give it another value; the value is read from standard input
    ///
    /// A new value counts from the next use on, and the hosts stay as they are. The value is kept encrypted and is never shown again. Tools name it by `{{secret:NAME}}`, and it is sent to its
    /// hosts only. Without `--hosts` that is the host of the first tool that uses it.
    Set(SetArgs),
    /// List the secrets of a tenant with their last use and what names them, without their values
    List(TenantArgs),
    /// Remove a secret
    Remove(RemoveArgs),
}

#[derive(clap::Args)]
struct SetArgs {
    /// What tools name it by
    name: String,
    #[command(flatten)]
    of: TenantArgs,
    /// The hosts that it may be sent to, with commas between
    #[arg(long, value_name = "HOSTS", value_delimiter = ',')]
    hosts: Vec<String>,
}

#[derive(clap::Args)]
struct RemoveArgs {
    /// Which one
    name: String,
    #[command(flatten)]
    of: TenantArgs,
}

#[derive(clap::Args)]
struct TenantArgs {
    /// The tenant that it belongs to
    #[arg(long, value_name = "TENANT", default_value = "local")]
    tenant: String,
}

pub(crate) async fn run(out: &Out, args: &Args) -> Result<CliExit> {
    match &args.what {
        SecretCommand::Set(args) => {
            let mut value = String::new();
            std::io::stdin()
                .read_to_string(&mut value)
                .map_err(|err| mistake(format!("the value is no text: {err}")))?;
            let value = value.strip_suffix('\n').unwrap_or(&value);
            let value = value.strip_suffix('\r').unwrap_or(value);
            let (platform, scope) = open(&args.of).await?;
            let set = platform.set_secret(&scope, &args.name, value, &args.hosts).await?;
            told(out, &set);
            close(platform).await
        }
        SecretCommand::List(of) => {
            let (platform, scope) = open(of).await?;
            let all = platform.secrets(&scope).await?;
            if out.json {
                out.document(&json!({"items": all}));
            } else {
                listed(out, &all);
            }
            close(platform).await
        }
        SecretCommand::Remove(args) => {
            let (platform, scope) = open(&args.of).await?;
            platform.remove_secret(&scope, &args.name).await?;
            if out.json {
                out.document(&json!({"removed": args.name}));
            } else {
                out.line(&format!("removed {}", args.name));
            }
            close(platform).await
        }
    }
}

fn told(out: &Out, secret: &SecretView) {
    if out.json {
        out.document(&json!(secret));
        return;
    }
    let hosts = match secret.hosts.as_slice() {
        [] => "the host of the first tool that uses it".to_owned(),
        hosts => hosts.join(", "),
    };
    out.line(&format!("{}  for {hosts}", secret.name));
}

fn listed(out: &Out, secrets: &[SecretView]) {
    if secrets.is_empty() {
        out.line("none yet");
        return;
    }
    let row = |one: &SecretView| {
        let used = one.last_used_at.map_or_else(|| "never".to_owned(), ago);
        vec![one.name.clone(), one.hosts.join(", "), ago(one.set_at), used, one.used_by.join(", ")]
    };
    let rows: Vec<Vec<String>> = secrets.iter().map(row).collect();
    out.text(&table(&["name", "hosts", "set", "last used", "named by"], &rows));
}

async fn open(of: &TenantArgs) -> Result<(Platform, Scope)> {
    let settings = of_user(None)?;
    master_key(&settings)?;
    let store = Store::open(&settings.data, settings.store()).await.map_err(ToolError::from)?;
    // What another key had sealed nobody could open.
    let key = master_key::checked(&settings, &store).await?;
    let platform = Platform::new(store, house::whole(), key);
    platform.have_local_tenant().await?;
    let scope = platform.tenant(&of.tenant).await?.scope;
    Ok((platform, scope))
}

async fn close(platform: Platform) -> Result<CliExit> {
    platform.store().leave().await.map_err(ToolError::from)?;
    Ok(CliExit::Success)
}
