//! Whether anybody else uses the database, for those who are about to put another one in its place.

use std::path::Path;

use haft_runtime::HouseWide;

use crate::{Store, StoreError, sqlite};

/// The right to be alone with the database of a data folder, for as long as it is held.
pub struct LoneUse {
    _held: Option<rusqlite::Connection>,
}

impl LoneUse {
    /// Takes it; `None` while another process has the database open.
    pub fn take(_house: &HouseWide, data: &Path) -> Result<Option<Self>, StoreError> {
        let path = data.join("haft.db");
        if !path.exists() {
            return Ok(Some(Self { _held: None }));
        }
        Ok(sqlite::connect_alone(&path)?.map(|held| Self { _held: Some(held) }))
    }
}

impl Store {
    /// Lets others see that this process uses the database, also before it carries a call.
    pub async fn announce(&self, _house: &HouseWide) -> Result<(), StoreError> {
        self.node().hold().await
    }

    /// How many others have announced themselves, or carry calls.
    pub async fn others(&self, _house: &HouseWide) -> Result<usize, StoreError> {
        self.node().count_others().await
    }
}
