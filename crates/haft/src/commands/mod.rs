//! One file per command.

mod add_server;
pub(crate) mod admin;
mod alike;
pub(crate) mod always;
pub(crate) mod answer;
pub(crate) mod approvals;
pub(crate) mod arguments;
pub(crate) mod backup;
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
pub(crate) mod login;
pub(crate) mod mcp;
pub(crate) mod mcp_servers;
pub(crate) mod open;
pub(crate) mod policy;
pub(crate) mod prompt;
pub(crate) mod receipt;
mod remove_server;
pub(crate) mod restore;
pub(crate) mod secret;
pub(crate) mod serve;
pub(crate) mod server_login;
pub(crate) mod stats;
pub(crate) mod status;
pub(crate) mod store;
pub(crate) mod tools;
pub(crate) mod trust;
pub(crate) mod undo;
pub(crate) mod wait;
pub(crate) mod which;
pub(crate) mod wishes;

use std::path::Path;

use anyhow::Result;
use haft_runtime::{End, ErrorCode, Journal, Outcome, ToolError};
use haft_store::Store;

use crate::{
    backend::Backend,
    cli::Everywhere,
    house::{self, House},
    remote::Remote,
    settings::Settings,
    show::Out,
    workspace,
};

/// The house of the workspace that a command is about.
pub(crate) async fn open(everywhere: &Everywhere) -> Result<House> {
    let folder = workspace::find(everywhere.workspace.as_deref())?;
    let settings = read_settings(&folder)?;
    for note in settings.not_trusted.iter().chain(&settings.not_obeyed) {
        Out::warning(note);
    }
    open_in(settings, &folder).await
}

/// Where a command's calls are: at the gateway that was named, or in its folder.
pub(crate) async fn open_backend(everywhere: &Everywhere) -> Result<Backend> {
    match open_remote(everywhere).await? {
        Some(remote) => Ok(Backend::There(Box::new(remote))),
        None => Ok(Backend::here(open(everywhere).await?)),
    }
}

/// The gateway that was named.
pub(crate) async fn open_remote(everywhere: &Everywhere) -> Result<Option<Remote>> {
    match &everywhere.server {
        Some(url) => Remote::open(url, everywhere.workspace.as_deref()).await.map(Some),
        None => Ok(None),
    }
}

/// The settings that hold in a folder; what is wrong in them is a mistake of whoever wrote them.
pub(crate) fn read_settings(folder: &Path) -> Result<Settings> {
    Settings::read(folder).map_err(|err| mistake(format!("{err:#}")))
}

/// The user's own settings, without those of a workspace; the same holds of what is wrong in them.
pub(crate) fn user_settings() -> Result<Settings> {
    Settings::of_user().map_err(|err| mistake(format!("{err:#}")))
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

/// A mistake in what was typed or written, as programs and people are told of it.
pub(crate) fn mistake(message: impl Into<String>) -> anyhow::Error {
    ToolError::new(ErrorCode::InvalidArgs, message).into()
}
