//! Which house is built. All that differs between them stands behind this file.

use std::{path::Path, sync::Arc};

use anyhow::Result;
use haft_runtime::{Delivery, Only};
use haft_store::Store;

pub use crate::{
    gateway::TenantHouse,
    rooms::House,
    solo::{OwnerCallers, OwnerGuard},
};
pub(crate) use crate::{
    gateway::{build as of_tenants, wide as whole, written_tools},
    rooms::workspace,
    solo::{scope_of, wide},
};
use crate::{settings::Settings, solo};

/// The house of a folder; it lives for one command.
pub async fn open(settings: Settings, store: Store, folder: &Path) -> Result<House> {
    let workspace = workspace(&settings, folder)?;
    solo::build(settings, store, workspace, folder, ServingOptions::default()).await
}

/// The same house in a process that goes on living between calls.
pub async fn living(settings: Settings, store: Store, folder: &Path) -> Result<House> {
    serving(settings, store, folder, ServingOptions::default()).await
}

/// What somebody who is served wants of a house.
#[derive(Default)]
pub(crate) struct ServingOptions {
    /// Who else hears of its calls.
    pub(crate) others: Vec<Arc<dyn Delivery>>,
    /// The only tools that there are.
    pub(crate) only: Option<Only>,
}

/// A living house that serves somebody.
pub(crate) async fn serving(settings: Settings, store: Store, folder: &Path, served: ServingOptions) -> Result<House> {
    let workspace = workspace(&settings, folder)?.outliving_calls();
    let house = solo::build(settings, store, workspace, folder, served).await?;
    house.upstreams.meet_in_background();
    Ok(house)
}
