//! The whole outputs of calls whose envelope holds only head and tail.

use haft_runtime::{CallId, End, Outcome, Scope, ToolOutput};
use rusqlite::{Connection, params};

use crate::{
    Store, StoreError,
    columns::Columns,
    packing::{read_envelope, unpacked},
};

const INSERT: &str = "insert into outputs (tenant, call, body) values (?, ?, ?) \
                      on conflict (tenant, call) do update set body = excluded.body";
const FIND: &str = "select body, outcome from outputs join calls on calls.tenant = outputs.tenant \
                    and calls.id = outputs.call where outputs.tenant = $1 and outputs.call = $2";

/// Writes the packed output of a call, named by tenant and id.
pub(crate) fn insert(conn: &Connection, (tenant, call): (&str, &str), body: &[u8]) -> Result<(), StoreError> {
    conn.prepare_cached(INSERT)?.execute(params![tenant, call, body])?;
    Ok(())
}

/// The whole output: the stored one, else what the envelope of a success holds.
pub(crate) async fn find(store: &Store, scope: &Scope, call: &CallId) -> Result<Option<ToolOutput>, StoreError> {
    let found = sqlx::query(FIND)
        .bind(scope.tenant().as_str())
        .bind(call.as_str())
        .fetch_optional(store.reads().await?)
        .await?;
    let Some(row) = found else { return Ok(store.ended_outcome(scope, call).await?.and_then(result_of)) };
    let columns = Columns { of: call.as_str(), row: &row };
    let whole = body(&columns)?;
    if !whole.leaves_its_value() {
        return Ok(Some(whole));
    }
    let envelope = read_envelope(&columns)?.and_then(result_of);
    Ok(envelope.map(|envelope| whole.with_value_of(envelope)))
}

fn body(columns: &Columns<'_>) -> Result<ToolOutput, StoreError> {
    let body: Vec<u8> = columns.plain("body")?;
    // Until version 3 outputs were kept as plain JSON.
    if body.starts_with(b"{") {
        return serde_json::from_slice(&body).map_err(|err| columns.damaged("body", err));
    }
    let text = unpacked(&body).map_err(|err| columns.damaged("body", err))?;
    serde_json::from_slice(&text).map_err(|err| columns.damaged("body", err))
}

fn result_of(outcome: Outcome) -> Option<ToolOutput> {
    match outcome.end {
        End::Success { result } => Some(result),
        End::Error { .. } | End::Rejected { .. } | End::Pending { .. } | End::Cancelled { .. } => None,
    }
}
