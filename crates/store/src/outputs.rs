//! The whole outputs of calls whose envelope holds only head and tail.

use std::io::Read;

use haft_runtime::{CallId, End, Outcome, Scope, ToolOutput};
use lz4_flex::frame::{BlockMode, BlockSize, FrameDecoder, FrameEncoder, FrameInfo};
use rusqlite::{Connection, params};

use crate::{Store, StoreError, columns::Columns};

const INSERT: &str = "insert into outputs (tenant, call, body) values (?, ?, ?) \
                      on conflict (tenant, call) do update set body = excluded.body";
const FIND: &str = "select body, outcome from outputs join calls on calls.tenant = outputs.tenant \
                    and calls.id = outputs.call where outputs.tenant = $1 and outputs.call = $2";

/// An output as it is kept. It is compressed while it is put into words, so that these never lie in memory as a whole.
pub(crate) fn packed(output: &ToolOutput) -> Result<Vec<u8>, StoreError> {
    let in_small_blocks = FrameInfo::new().block_size(BlockSize::Max64KB).block_mode(BlockMode::Linked);
    let mut packer = FrameEncoder::with_frame_info(in_small_blocks, Vec::new());
    serde_json::to_writer(&mut packer, output)?;
    Ok(packer.finish().map_err(|err| serde_json::Error::io(err.into()))?)
}

/// Writes the packed output of a call, named by tenant and id.
pub(crate) fn insert(conn: &Connection, (tenant, call): (&str, &str), body: &[u8]) -> Result<(), StoreError> {
    conn.prepare_cached(INSERT)?.execute(params![tenant, call, body])?;
    Ok(())
}

/// The whole output: the stored one, else what the envelope of a success holds.
pub(crate) async fn find(store: &Store, scope: &Scope, call: &CallId) -> Result<Option<ToolOutput>, StoreError> {
    let found = sqlx::query(FIND).bind(&scope.tenant.0).bind(call.as_str()).fetch_optional(store.reads()).await?;
    let Some(row) = found else { return Ok(store.ended_outcome(scope, call).await?.and_then(result_of)) };
    let columns = Columns { of: call.as_str(), row: &row };
    let whole = unpacked(&columns)?;
    if !whole.leaves_its_value() {
        return Ok(Some(whole));
    }
    let envelope = columns.json_or_none("outcome")?.and_then(result_of);
    Ok(envelope.map(|envelope| whole.with_value_of(envelope)))
}

fn unpacked(columns: &Columns<'_>) -> Result<ToolOutput, StoreError> {
    let body: Vec<u8> = columns.plain("body")?;
    // Until version 3 outputs were kept as plain JSON.
    if body.starts_with(b"{") {
        return serde_json::from_slice(&body).map_err(|err| columns.damaged("body", err));
    }
    let mut text = Vec::new();
    FrameDecoder::new(&*body).read_to_end(&mut text).map_err(|err| columns.damaged("body", err))?;
    serde_json::from_slice(&text).map_err(|err| columns.damaged("body", err))
}

fn result_of(outcome: Outcome) -> Option<ToolOutput> {
    match outcome.end {
        End::Success { result } => Some(result),
        End::Error { .. } | End::Rejected { .. } | End::Pending { .. } | End::Cancelled { .. } => None,
    }
}
