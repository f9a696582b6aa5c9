//! `haft receipt`: what a yes was about, signed, and checking it without a server.

use std::path::PathBuf;

use anyhow::{Context, Result};
use haft_platform::{Platform, ReceiptKey};
use haft_runtime::{CallId, ToolError};
use haft_store::Store;
use serde_json::{Value, json};

use crate::{
    backend::Backend,
    cli::{Everywhere, ServerFlag},
    commands::{mistake, serve::of_user, which::open_named},
    exit::CliExit,
    house,
    master_key::master_key,
    show::Out,
};

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    /// The call that was allowed, or the beginning of its id
    #[arg(required = true)]
    call: Option<String>,
    #[command(flatten)]
    pub(crate) server: ServerFlag,
    #[command(subcommand)]
    command: Option<ReceiptCommand>,
}

#[derive(clap::Subcommand)]
enum ReceiptCommand {
    /// Check a receipt; nothing is asked of any server
    Verify {
        /// The file that the receipt was written to
        file: PathBuf,
        /// The public key of whoever signed it, as /api/receipts/key gives it [default: that of this machine]
        #[arg(long, value_name = "BASE64")]
        key: Option<String>,
    },
    /// Print the public key that receipts of this machine are checked by
    Key,
}

pub(crate) async fn run(everywhere: &Everywhere, out: &Out, args: &Args) -> Result<CliExit> {
    match (&args.command, &args.call) {
        (Some(ReceiptCommand::Verify { file, key }), _) => verify(out, file, key.as_deref()),
        (Some(ReceiptCommand::Key), _) => {
            let key = own_key()?;
            if out.json {
                out.document(&json!(key))
            } else {
                out.line(&key.public_key)
            }
            Ok(CliExit::Success)
        }
        (None, Some(call)) => show(everywhere, out, call).await,
        (None, None) => Err(mistake("name a call")),
    }
}

async fn show(everywhere: &Everywhere, out: &Out, call: &str) -> Result<CliExit> {
    if let (None, Some(call)) = (&everywhere.server, CallId::parse(call))
        && let Some(receipt) = of_any_tenant(&call).await?
    {
        return print(out, &receipt);
    }
    let (backend, record) = open_named(everywhere, call).await?;
    let receipt = match &backend {
        Backend::Here(house) => {
            let platform = Platform::new(house.store.clone(), house::whole(), master_key(&house.settings)?);
            platform.receipt(&record).await.map(|receipt| json!(receipt)).map_err(anyhow::Error::from)
        }
        Backend::There(remote) => remote.receipt(&record.call).await,
    };
    backend.leave().await?;
    print(out, &receipt?)
}

/// Whoever has the data has all of it. `None` where no tenant has the call.
async fn of_any_tenant(call: &CallId) -> Result<Option<Value>> {
    let settings = of_user(None)?;
    let store = Store::open(&settings.data, settings.store()).await.map_err(ToolError::from)?;
    let platform = Platform::new(store.clone(), house::whole(), master_key(&settings)?);
    let receipt = async {
        match platform.record_of(call).await? {
            Some(record) => platform.receipt(&record).await.map(Some),
            None => Ok(None),
        }
    };
    let receipt = receipt.await;
    store.leave().await.map_err(ToolError::from)?;
    Ok(receipt?.map(|receipt| json!(receipt)))
}

fn print(out: &Out, receipt: &Value) -> Result<CliExit> {
    out.line(&serde_json::to_string_pretty(receipt)?);
    Ok(CliExit::Success)
}

fn verify(out: &Out, file: &PathBuf, key: Option<&str>) -> Result<CliExit> {
    let key = match key {
        Some(text) => ReceiptKey::read(text)?,
        None => own_key()?,
    };
    let text = std::fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))?;
    let receipt = key.check(&text)?;
    if out.json {
        out.document(&json!({"holds": true, "keyId": key.key_id, "receipt": receipt}));
        return Ok(CliExit::Success);
    }
    let text = |field: &str| receipt[field].as_str().unwrap_or_default().to_owned();
    let people = receipt["answeredBy"].as_array().into_iter().flatten();
    let people: Vec<&str> = people.filter_map(|person| person["name"].as_str()).collect();
    let by = match people.as_slice() {
        [] => receipt["rule"].as_str().unwrap_or("the rules").to_owned(),
        people => people.join(" and "),
    };
    out.line(&format!("the receipt holds: {} allowed {} ({}) at {}", by, text("tool"), text("callId"), text("at")));
    Ok(CliExit::Success)
}

fn own_key() -> Result<ReceiptKey> {
    Ok(ReceiptKey::of(&master_key(&of_user(None)?)?)?)
}
