//! `haft admin master-key`

use anyhow::{Context, Result};
use haft_platform::{KeyRotation, MasterKey, rotate_master_key};
use haft_runtime::ToolError;
use haft_store::Store;
use serde_json::json;

use super::Told;
use crate::{
    commands::{mistake, serve::RunningServer},
    house,
    master_key::{GivenKey, NEW_SECRET_KEY, SECRET_KEY, checked, make_new_file, use_new_file, variable},
    settings::Settings,
};

#[derive(clap::Subcommand)]
pub(super) enum MasterKeyCommand {
    /// Seal every secret anew with another master key
    ///
    /// Where the key is the file secret.key of the data folder, a new one is made. Where it is the variable
    /// HAFT_SECRET_KEY, set HAFT_SECRET_KEY_NEW to the new one, and HAFT_SECRET_KEY to it afterwards. End every server
    /// first. It happens in one transaction: if it is killed, either the old key holds or the new one. What was derived
    /// from the old key stops working: signed addresses of media, tokens by which programs end a call, states of MCP
    /// requests that wait for an answer, and receipts for whoever asks this haft to check them.
    Rotate,
}

pub(super) async fn run(settings: &Settings, command: &MasterKeyCommand) -> Result<Told> {
    match command {
        MasterKeyCommand::Rotate => rotate(settings).await,
    }
}

async fn rotate(settings: &Settings) -> Result<Told> {
    let given = GivenKey::of(settings)?.filter(|given| is_in_use(settings, given));
    let given = given.ok_or_else(|| match settings.store_url {
        Some(_) => mistake(format!("set {SECRET_KEY} to the key in use, and {NEW_SECRET_KEY} to the new one")),
        None => mistake("there is no master key yet: nothing is sealed"),
    })?;
    let running = || mistake("haft serves this data: end every server first, and start them again with the new key");
    let _no_server = RunningServer::lock(&settings.data)?.ok_or_else(running)?;
    let store = Store::open(&settings.data, settings.store()).await.map_err(ToolError::from)?;
    if store.others(&house::whole()).await.map_err(ToolError::from)? > 0 {
        return Err(running());
    }
    let rotated = seal_anew(settings, &store, &given).await;
    let started = store.others(&house::whole()).await.map_err(ToolError::from)? > 0;
    store.close().await.map_err(ToolError::from)?;
    let (rotation, new, is_file) = rotated?;
    Ok(told(rotation, &new, is_file, started))
}

/// On a server that several nodes share, a file is nobody's key.
fn is_in_use(settings: &Settings, given: &GivenKey) -> bool {
    settings.store_url.is_none() || matches!(given, GivenKey::Variable(_))
}

async fn seal_anew(settings: &Settings, store: &Store, given: &GivenKey) -> Result<(KeyRotation, MasterKey, bool)> {
    let house = house::whole();
    let old = match given {
        // A rotation that was killed half-way is finished first: its new key is in no other place.
        GivenKey::File(_) => checked(settings, store).await?,
        GivenKey::Variable(_) => given.key()?,
    };
    let named = variable(settings, NEW_SECRET_KEY)?;
    let (new, is_file) = match (given, named) {
        (_, Some(text)) => (GivenKey::Variable(text).key()?, false),
        (GivenKey::File(_), None) => (make_new_file(settings)?, true),
        (GivenKey::Variable(_), None) => {
            return Err(mistake(format!("set {NEW_SECRET_KEY} to the new key, at least 32 random characters")));
        }
    };
    if new.number() == old.number() {
        return Err(mistake(format!("{NEW_SECRET_KEY} is the key in use already")));
    }
    let rotation = rotate_master_key(store, &house, (&old, &new)).await.context("the old key is still in use")?;
    if is_file {
        use_new_file(settings)?;
    }
    Ok((rotation, new, is_file))
}

fn told(rotation: KeyRotation, new: &MasterKey, is_file: bool, started: bool) -> Told {
    let fingerprint = format!("{:012x}", new.number());
    let (count, mut sentence) = match rotation {
        KeyRotation::Done(count) => (count, format!("{count} secrets are sealed by the new key ({fingerprint})")),
        KeyRotation::DoneBefore => (0, format!("the new key ({fingerprint}) is in use already")),
    };
    if !is_file {
        sentence.push_str(&format!("; set {SECRET_KEY} to it on every node before you start haft"));
    }
    sentence.push_str(
        "\nsigned addresses of media, tokens by which programs end a call, and states of MCP requests from before no longer work; receipts from before are checked only by the public key that they were given with",
    );
    if started {
        sentence.push_str("\na haft was started meanwhile: start it again");
    }
    Told::One(json!({"fingerprint": fingerprint, "resealed": count, "restartNeeded": started}), sentence)
}
