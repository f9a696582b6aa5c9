//! The tray: first entries of calls, each durable as one row until it is filed where it is looked for.
//!
//! Filing an entry touches the newest page of each index, and a caller would wait for all of them. Laying it into the tray
//! touches one. Whoever laid it there files it a moment later, many at once; whoever wants to read or change calls
//! before that files what it finds, whichever process has laid it there.

use std::sync::Arc;

use rusqlite::{Connection, params};

use crate::{StoreError, addition::Addition};

/// Longer entries are filed at once: in the tray they would be written twice for nothing.
const LONGEST: usize = 16 << 10;

/// How many digits of an id say where its entry lies: nearly all of those that are left to chance.
const DIGITS: usize = 15;

/// A call that is known already is none to begin.
const LAY: &str = "insert into tray (place, tenant, call, refused, entry) select $1, $2, $3, false, $4 \
                   where not exists (select 1 from calls where tenant = $2 and id = $3)";
const TAKE: &str = "delete from tray where place = ? and tenant = ? and call = ?";
const LYING: &str = "select place, tenant, call, entry from tray where not refused order by tenant, call";
const REFUSE: &str = "update tray set refused = true where place = ?";
/// Whether anything waits to be filed.
pub(crate) const FILLED: &str = "select exists (select 1 from tray where not refused)";
/// How many entries could not be filed.
pub(crate) const REFUSED: &str = "select count(*) from tray where refused";

/// Lays an entry into the tray, and says whether it lies there: a long one does not, nor one of a call that is known.
/// Fails where another one lies in its place.
pub(crate) fn lay(conn: &Connection, call: (&str, &str), entry: &Addition) -> Result<bool, StoreError> {
    let Some(place) = place(call.1) else { return Ok(false) };
    let text = serde_json::to_string(entry)?;
    Ok(text.len() <= LONGEST && conn.prepare_cached(LAY)?.execute(params![place, call.0, call.1, text])? > 0)
}

/// Takes the entry of a call out, and says whether it still lay there.
pub(crate) fn take(conn: &Connection, call: (&str, &str)) -> Result<bool, StoreError> {
    Ok(conn.prepare_cached(TAKE)?.execute(params![place(call.1), call.0, call.1])? > 0)
}

/// Where the entry of a call lies.
fn place(call: &str) -> Option<i64> {
    i64::from_str_radix(call.get(call.len().checked_sub(DIGITS)?..)?, 16).ok()
}

/// Files everything that lies in the tray, within the transaction of the connection. What the journal does not accept
/// stays behind, and is counted as lost.
pub(crate) fn file_all(conn: &Connection) -> Result<(), StoreError> {
    let mut lying = conn.prepare_cached(LYING)?;
    let rows = lying.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
    let rows: Vec<(i64, String, String, String)> = rows.collect::<Result<_, _>>()?;
    for (place, tenant, call, text) in &rows {
        let call = (tenant.as_str(), call.as_str());
        conn.execute_batch("savepoint filing")?;
        match file(conn, call, text) {
            Err(err) if err.is_of_one_entry() => {
                conn.execute_batch("rollback to filing")?;
                conn.prepare_cached(REFUSE)?.execute([place])?;
            }
            filed => filed?,
        }
        conn.execute_batch("release filing")?;
    }
    Ok(())
}

fn file(conn: &Connection, call: (&str, &str), text: &str) -> Result<(), StoreError> {
    let damaged = |err| StoreError::Row { of: call.1.to_owned(), column: "entry", source: Arc::new(err) };
    let entry: Addition = serde_json::from_str(text).map_err(damaged)?;
    take(conn, call)?;
    entry.write(conn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_a_place_and_nothing_else_has() {
        assert_eq!(place("tc_01a1e16a4b907c51bd6c52e07ee40f3a"), Some(0xd6c_52e0_7ee4_0f3a));
        assert_eq!(place("tc_ffffffffffffffffffffffffffffffff"), Some(0xfff_ffff_ffff_ffff));
        assert_eq!([place("tc_x"), place(""), place("tc_zzzzzzzzzzzzzzzzzzzz")], [None; 3]);
    }

    #[test]
    fn what_is_laid_or_taken_is_found_by_its_call() {
        crate::schema::tests::assert_quick(&[LAY, TAKE, REFUSE]);
    }
}
