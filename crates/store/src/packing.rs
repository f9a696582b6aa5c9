//! Long JSON in fewer bytes: on its way to the disk it is copied several times.

use std::{
    io::{self, BufWriter, Read},
    thread,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use haft_runtime::{End, Isolation, Outcome};
use lz4_flex::frame::{BlockMode, BlockSize, FrameDecoder, FrameEncoder, FrameInfo};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::{StoreError, columns::Columns};

/// What is put into words in many small pieces is packed in large ones.
const PIECE: usize = 64 << 10;
/// A longer envelope is packed.
const LONG: usize = 32 << 10;
/// How a packed envelope begins, and no other.
const BEGIN: &str = r#"{"isolation":"#;

/// A long envelope as it lies in its column: still JSON, with what lists look for beside it.
#[derive(Deserialize, Serialize)]
struct Packed {
    isolation: Isolation,
    packed: String,
}

/// A value as packed JSON, which never lies in memory as a whole.
fn packed(value: &impl Serialize) -> Result<Vec<u8>, StoreError> {
    let in_small_blocks = FrameInfo::new().block_size(BlockSize::Max64KB).block_mode(BlockMode::Linked);
    let mut pieces = BufWriter::with_capacity(PIECE, FrameEncoder::with_frame_info(in_small_blocks, Vec::new()));
    serde_json::to_writer(&mut pieces, value)?;
    let packer = pieces.into_inner().map_err(|err| serde_json::Error::io(err.into_error()))?;
    Ok(packer.finish().map_err(|err| serde_json::Error::io(err.into()))?)
}

/// Packs what is long while something else is done: both take about as long, and whoever called waits for both.
pub(crate) fn packed_beside<T>(
    value: &(impl Serialize + Sync),
    other: impl FnOnce() -> T,
) -> (Result<Vec<u8>, StoreError>, T) {
    let pack = || packed(value);
    thread::scope(|scope| match thread::Builder::new().spawn_scoped(scope, pack) {
        Ok(packing) => {
            let done = other();
            // One that broke off is tried again, for its error.
            (packing.join().unwrap_or_else(|_| pack()), done)
        }
        Err(_) => (pack(), other()),
    })
}

/// The JSON that was packed.
pub(crate) fn unpacked(body: &[u8]) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    FrameDecoder::new(body).read_to_end(&mut text)?;
    Ok(text)
}

/// The envelope of a call as it lies in its column.
pub(crate) fn envelope(outcome: &Outcome) -> Result<Box<RawValue>, StoreError> {
    if length(outcome) <= LONG {
        let text = to_raw_value(outcome)?;
        if text.get().len() <= LONG {
            return Ok(text);
        }
    }
    let packed = Packed { isolation: outcome.isolation, packed: BASE64_STANDARD.encode(packed(outcome)?) };
    Ok(to_raw_value(&packed)?)
}

/// About how long a result is as JSON.
fn length(outcome: &Outcome) -> usize {
    match &outcome.end {
        End::Success { result } => result.content.len() + result.structured.text().len(),
        End::Error { .. } | End::Rejected { .. } | End::Pending { .. } | End::Cancelled { .. } => 0,
    }
}

/// The envelope in the column `outcome`, if there is one.
pub(crate) fn read_envelope(columns: &Columns<'_>) -> Result<Option<Outcome>, StoreError> {
    let column = "outcome";
    let Some(text) = columns.plain::<Option<String>>(column)? else { return Ok(None) };
    let damaged = |err| columns.damaged(column, err);
    if !text.starts_with(BEGIN) {
        return serde_json::from_str(&text).map(Some).map_err(damaged);
    }
    let Packed { packed, .. } = serde_json::from_str(&text).map_err(damaged)?;
    let body = BASE64_STANDARD.decode(packed).map_err(|err| columns.damaged(column, err))?;
    let text = unpacked(&body).map_err(|err| columns.damaged(column, err))?;
    serde_json::from_slice(&text).map(Some).map_err(damaged)
}
