//! Everything in the database as it is at one moment, read page by page while others go on writing.

use std::sync::Arc;

use haft_runtime::HouseWide;

use crate::{
    Store, StoreError,
    columns::Columns,
    db::{Db, ReadSnapshot},
    sql::{Row, Statement},
    tenants,
};

/// What the database held at one moment. It holds a connection until it is dropped.
pub struct DatabaseSnapshot {
    db: Arc<Db>,
    held: ReadSnapshot,
}

impl Store {
    /// Everything as it is now.
    pub async fn snapshot(&self, _house: &HouseWide) -> Result<DatabaseSnapshot, StoreError> {
        let db = self.db();
        Ok(DatabaseSnapshot { held: db.snapshot().await?, db })
    }

    /// Writes page after page, as `Db::load` does.
    pub(crate) async fn load(
        &self,
        next_page: impl AsyncFnMut() -> Result<Option<Vec<Statement>>, StoreError>,
    ) -> Result<(), StoreError> {
        self.db().load(next_page).await
    }
}

impl DatabaseSnapshot {
    /// The number of the master key at that moment.
    pub(crate) async fn master_key_number(&self) -> Result<Option<i64>, StoreError> {
        let kept = self.read(&tenants::kept_key()).await?;
        kept.first().map(|row| Columns { of: "meta", row }.number("number")).transpose()
    }

    pub(crate) async fn read(&self, statement: &Statement) -> Result<Vec<Row>, StoreError> {
        self.db.read_within(&self.held, statement).await
    }
}
