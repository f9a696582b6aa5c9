//! One file per command.

pub(crate) mod always;
pub(crate) mod answer;
pub(crate) mod approvals;
pub(crate) mod arguments;
pub(crate) mod batch;
pub(crate) mod call;
pub(crate) mod cancel;
pub(crate) mod changes;
pub(crate) mod commit;
pub(crate) mod completions;
pub(crate) mod discard;
pub(crate) mod doctor;
pub(crate) mod flags;
pub(crate) mod grants;
pub(crate) mod log;
pub(crate) mod policy;
pub(crate) mod prompt;
pub(crate) mod stats;
pub(crate) mod status;
pub(crate) mod tools;
pub(crate) mod undo;
pub(crate) mod wait;
pub(crate) mod wishes;

use std::path::Path;

use anyhow::{Context, Result, bail};
use haft_runtime::{CallId, CallRecord, Journal, Scope, ToolError};
use haft_store::Store;

use crate::{
    cli::Everywhere,
    house::{self, House},
    settings::Settings,
    workspace,
};

/// The house of the workspace that a command is about.
pub(crate) async fn open(everywhere: &Everywhere) -> Result<House> {
    let settings = Settings::read()?;
    let folder = workspace::find(everywhere.workspace.as_deref())?;
    let store = Store::open(&settings.data, settings.sync).await.map_err(ToolError::from)?;
    house::solo(settings, store, &folder).await
}

/// A call that was named, and the house of the workspace it belongs to, wherever the command was typed.
pub(crate) async fn open_for(everywhere: &Everywhere, call: &str) -> Result<(House, CallRecord)> {
    let Some(id) = CallId::parse(call) else {
        bail!("`{call}` is not a call id: `tc_` and 32 hex digits; `haft log` lists the latest");
    };
    let settings = Settings::read()?;
    let folder = workspace::find(everywhere.workspace.as_deref())?;
    let store = Store::open(&settings.data, settings.sync).await.map_err(ToolError::from)?;
    let here = Scope::local(folder.to_string_lossy());
    let Some(record) = Journal::find(&store, &here.all_workspaces(), &id).await? else {
        bail!("there is no call {id}; `haft log` lists the latest");
    };
    let home = record.workspace.as_deref().map_or(folder.as_path(), Path::new);
    let house =
        house::solo(settings, store, home).await.with_context(|| format!("{id} belongs to {}", home.display()))?;
    // Recovery may just have ended it.
    let record = Journal::find(&house.store, &house.scope, &id).await?.unwrap_or(record);
    Ok((house, record))
}
