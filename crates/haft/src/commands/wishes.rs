//! The calls of a batch as they are written: JSON Lines, read one by one and never far ahead.

use std::{
    fs::File,
    io::{self, BufRead, BufReader},
};

use anyhow::{Context, Result};
use futures_util::{Stream, stream};
use haft_runtime::{ErrorCode, ToolError};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use crate::commands::arguments::{LARGEST_INPUT, too_large};

/// How many lines are read before their turn.
const AHEAD: usize = 8;

/// One line that is not blank.
pub(crate) struct BatchLine {
    /// Which line, from 1.
    pub(crate) number: u64,
    /// What the writer calls it by.
    pub(crate) id: Option<Value>,
    /// The call, or why it is none.
    pub(crate) call: Result<BatchCall, ToolError>,
}

/// A call as it is written.
#[derive(Deserialize)]
#[serde(rename = "Call", deny_unknown_fields)]
pub(crate) struct BatchCall {
    pub(crate) tool: String,
    #[serde(default = "nothing")]
    pub(crate) input: Value,
    #[serde(default, rename = "id")]
    _id: Option<Value>,
}

fn nothing() -> Value {
    Value::Object(Map::new())
}

/// Where the lines come from: a file, or `-` for standard input.
pub(crate) fn open(file: &str) -> Result<Box<dyn BufRead + Send>> {
    if file == "-" {
        return Ok(Box::new(BufReader::new(io::stdin())));
    }
    let opened = File::open(file).with_context(|| format!("cannot read the calls from `{file}`"))?;
    Ok(Box::new(BufReader::new(opened)))
}

/// The lines as they come, read on a thread of their own so that nothing else waits for them.
pub(crate) fn read(mut source: Box<dyn BufRead + Send>) -> impl Stream<Item = BatchLine> {
    let (read, mut lines) = mpsc::channel(AHEAD);
    std::thread::spawn(move || {
        let mut number = 0;
        while let Some(text) = next(&mut source) {
            number += 1;
            let goes_on = !matches!(text, Err(BatchReadError::Io(_)));
            if let Some(line) = parsed(number, text)
                && read.blocking_send(line).is_err()
            {
                return;
            }
            if !goes_on {
                return;
            }
        }
    });
    stream::poll_fn(move |context| lines.poll_recv(context))
}

/// Why a line could not be read.
enum BatchReadError {
    TooLong,
    Io(io::Error),
}

/// The bytes of the next line; of one that is too long nothing is kept.
fn next(source: &mut impl BufRead) -> Option<Result<Vec<u8>, BatchReadError>> {
    let mut line = Vec::new();
    let mut length = 0;
    loop {
        let bytes = match source.fill_buf() {
            Ok(bytes) => bytes,
            Err(err) if err.kind() == io::ErrorKind::Interrupted => continue,
            Err(err) => return Some(Err(BatchReadError::Io(err))),
        };
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let taken = end.unwrap_or(bytes.len());
        let at_the_end = bytes.is_empty();
        length += taken as u64;
        if length > LARGEST_INPUT {
            line = Vec::new();
        } else {
            line.extend_from_slice(&bytes[..taken]);
        }
        source.consume(taken + usize::from(end.is_some()));
        if at_the_end && length == 0 {
            return None;
        }
        if at_the_end || end.is_some() {
            return Some(if length > LARGEST_INPUT { Err(BatchReadError::TooLong) } else { Ok(line) });
        }
    }
}

/// `None` for a blank line.
fn parsed(number: u64, text: Result<Vec<u8>, BatchReadError>) -> Option<BatchLine> {
    let unreadable = |error| Some(BatchLine { number, id: None, call: Err(error) });
    let bad = |why: String| ToolError::new(ErrorCode::InvalidArgs, format!("line {number} {why}"));
    let text = match text {
        Ok(text) if text.trim_ascii().is_empty() => return None,
        Ok(text) => text,
        Err(BatchReadError::TooLong) => return unreadable(too_large().with("line", number)),
        Err(BatchReadError::Io(err)) => return unreadable(bad(format!("and what follows cannot be read: {err}"))),
    };
    let wanted = "write each call as {\"tool\": \"read_file\", \"input\": {\"path\": \"README.md\"}}";
    let value: Value = match serde_json::from_slice(&text) {
        Ok(value) => value,
        Err(err) => return unreadable(bad(format!("is not JSON (column {}); {wanted}", err.column()))),
    };
    let id = value.get("id").filter(|id| !id.is_null()).cloned();
    let call = BatchCall::deserialize(value).map_err(|err| bad(format!("is not a call: {err}; {wanted}")));
    Some(BatchLine { number, id, call })
}
