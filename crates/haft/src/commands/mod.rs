//! One file per command.

mod add_server;
mod alike;
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
pub(crate) mod fill;
pub(crate) mod flags;
pub(crate) mod gc;
pub(crate) mod grants;
pub(crate) mod help;
pub(crate) mod init;
pub(crate) mod log;
pub(crate) mod mcp;
pub(crate) mod mcp_servers;
pub(crate) mod policy;
pub(crate) mod prompt;
mod remove_server;
pub(crate) mod stats;
pub(crate) mod status;
pub(crate) mod store;
pub(crate) mod tools;
pub(crate) mod trust;
pub(crate) mod undo;
pub(crate) mod wait;
pub(crate) mod wishes;

use std::path::Path;

use anyhow::{Context, Result, bail};
use haft_runtime::{CallId, CallRecord, End, Journal, Outcome, ToolError};
use haft_store::Store;

use crate::{
    cli::Everywhere,
    house::{self, House},
    settings::Settings,
    show::{safe::safe, style::WARN},
    workspace,
};

/// The house of the workspace that a command is about.
pub(crate) async fn open(everywhere: &Everywhere) -> Result<House> {
    let folder = workspace::find(everywhere.workspace.as_deref())?;
    let settings = Settings::read(&folder)?;
    for note in settings.not_trusted.iter().chain(&settings.not_obeyed) {
        anstream::eprintln!("{WARN}haft:{WARN:#} {}", safe(note));
    }
    open_in(settings, &folder).await
}

/// The house of a folder, with these settings.
pub(crate) async fn open_in(settings: Settings, folder: &Path) -> Result<House> {
    let store = Store::open(&settings.data, settings.store()).await.map_err(ToolError::from)?;
    house::open(settings, store, folder).await
}

/// An outcome with the whole of its result. Only models need it short; people and scripts have pagers and pipes.
pub(crate) async fn whole(house: &House, outcome: Outcome) -> Outcome {
    let is_shortened = matches!(&outcome.end, End::Success { result } if result.is_shortened());
    if !is_shortened {
        return outcome;
    }
    match Journal::output(&house.store, &house.scope, &outcome.tool_call_id).await {
        Ok(Some(whole)) if !whole.is_shortened() => outcome.with_whole(whole),
        // What is there says that it is not all, and where the rest is.
        Ok(_) | Err(_) => outcome,
    }
}

/// A call that was named, and the house of the workspace it belongs to, wherever the command was typed.
pub(crate) async fn open_for(everywhere: &Everywhere, call: &str) -> Result<(House, CallRecord)> {
    let Some(id) = CallId::parse(call) else {
        bail!("`{call}` is not a call id: `tc_` and 32 hex digits; `haft log` lists the latest");
    };
    let folder = workspace::find(everywhere.workspace.as_deref())?;
    let settings = Settings::of_user()?.with_environment()?;
    let store = Store::open(&settings.data, settings.store()).await.map_err(ToolError::from)?;
    let here = house::scope_of(&folder);
    let Some(record) = Journal::find(&store, &here, &id).await? else {
        bail!("there is no call {id}; `haft log` lists the latest");
    };
    let home = record.scope.workspace().map_or(folder.as_path(), |workspace| Path::new(workspace.as_str()));
    let house = open_at_home(&settings, store, home).await;
    let house = house.with_context(|| format!("{id} belongs to {}", home.display()))?;
    // Recovery may just have ended it.
    let record = Journal::find(&house.store, &house.scope, &id).await?.unwrap_or(record);
    Ok((house, record))
}

/// The settings of a call's own workspace hold for it; they may want a store that is safer than the user's.
async fn open_at_home(of_user: &Settings, store: Store, home: &Path) -> Result<House> {
    let settings = Settings::read(home)?;
    if settings.sync == of_user.sync {
        return house::open(settings, store, home).await;
    }
    store.close().await.map_err(ToolError::from)?;
    open_in(settings, home).await
}
