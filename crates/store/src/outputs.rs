//! The whole outputs of calls whose envelope holds only head and tail.

use haft_runtime::{CallId, End, Scope, ToolOutput};
use rusqlite::{Connection, params};

use crate::{Store, StoreError, columns::Columns};

const INSERT: &str = "insert into outputs (tenant, call, body) values (?, ?, ?) \
                      on conflict (tenant, call) do update set body = excluded.body";
const FIND: &str = "select body from outputs where tenant = $1 and call = $2";

/// Writes the output of a call, named by tenant and id.
pub(crate) fn insert(conn: &Connection, (tenant, call): (&str, &str), body: &str) -> Result<(), StoreError> {
    conn.prepare_cached(INSERT)?.execute(params![tenant, call, body])?;
    Ok(())
}

/// The whole output: the stored one, else what the envelope of a success holds.
pub(crate) async fn find(store: &Store, scope: &Scope, call: &CallId) -> Result<Option<ToolOutput>, StoreError> {
    let found = sqlx::query(FIND).bind(&scope.tenant.0).bind(call.as_str()).fetch_optional(store.reads()).await?;
    if let Some(row) = found {
        return Columns { of: call.as_str(), row: &row }.json("body").map(Some);
    }
    let Some(outcome) = store.ended_outcome(scope, call).await? else { return Ok(None) };
    match outcome.end {
        End::Success { result } => Ok(Some(result)),
        End::Error { .. } | End::Rejected { .. } | End::Pending { .. } | End::Cancelled { .. } => Ok(None),
    }
}
