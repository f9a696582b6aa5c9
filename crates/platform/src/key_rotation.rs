//! Another master key: everything that the old one has sealed is sealed anew, all or nothing.

use haft_runtime::{ErrorCode, HouseWide, ToolError};
use haft_store::{SealedRow, Store};

use crate::{MasterKey, platform::mistake};

/// What a change of the master key came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyRotation {
    /// So many values are sealed by the new key now.
    Done(usize),
    /// The new key was in use already.
    DoneBefore,
}

/// Seals everything anew and notes the new key, in one transaction. Until that is committed the old key holds, afterwards the
/// new one.
pub async fn rotate_master_key(
    store: &Store,
    house: &HouseWide,
    (old, new): (&MasterKey, &MasterKey),
) -> Result<KeyRotation, ToolError> {
    if store.master_key_number(house).await? == Some(new.number()) {
        reseal_stragglers(store, house, (old, new)).await?;
        return Ok(KeyRotation::DoneBefore);
    }
    store.check_master_key(house, old.number()).await?;
    let rows = store.sealed_rows(house).await?;
    let anew = rows.into_iter().map(|row| resealed(row, (old, new))).collect::<Result<Vec<_>, _>>()?;
    if !store.reseal(house, (old.number(), new.number()), &anew).await? {
        return Err(ToolError::new(ErrorCode::Conflict, "somebody else has changed the master key meanwhile"));
    }
    reseal_stragglers(store, house, (old, new)).await?;
    Ok(KeyRotation::Done(anew.len()))
}

fn resealed(row: SealedRow, (old, new): (&MasterKey, &MasterKey)) -> Result<(SealedRow, Vec<u8>), ToolError> {
    let text = old.open(&row.sealed_as, &row.sealed).map_err(|_| {
        mistake(format!("`{}` cannot be opened by the old key: set or remove it, then try again", row.sealed_as))
    })?;
    let sealed = new.seal(&row.sealed_as, &text)?;
    Ok((row, sealed))
}

/// What was sealed by the old key in the moment before the new one counted.
async fn reseal_stragglers(
    store: &Store,
    house: &HouseWide,
    (old, new): (&MasterKey, &MasterKey),
) -> Result<(), ToolError> {
    let rows = store.sealed_rows(house).await?;
    let left = rows.into_iter().filter(|row| new.open(&row.sealed_as, &row.sealed).is_err());
    let anew: Vec<_> = left.filter_map(|row| resealed(row, (old, new)).ok()).collect();
    if !anew.is_empty() {
        store.reseal(house, (new.number(), new.number()), &anew).await?;
    }
    Ok(())
}
