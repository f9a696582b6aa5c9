//! A body, read as far as it may be.

use super::{client::Response, decode::Decoder, error::WebError};

/// How much more than its unpacked size a packed body may take, so that one that unpacks to nothing has an end too.
const OVERHEAD: usize = 64 << 10;

/// What was read of a body.
#[derive(Debug)]
pub struct ResponseBody {
    /// The bytes, unpacked.
    pub bytes: Vec<u8>,
    /// How it ended.
    pub end: BodyEnd,
}

/// How the reading of a body ended.
#[derive(Debug)]
pub enum BodyEnd {
    /// It is all there.
    Whole,
    /// It is longer than was asked for.
    Limit,
    /// The connection, the packing or the time was at an end before it was.
    Broken(String),
}

impl Response {
    /// Reads the body up to `most` unpacked bytes. What came before the connection broke is worth having; when nothing
    /// came, that is an error.
    pub async fn read(mut self, most: usize) -> Result<ResponseBody, WebError> {
        let mut decoder = Decoder::new(&self.headers, most);
        let mut packed = 0;
        let end = loop {
            let chunk = match self.chunk().await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => break BodyEnd::Whole,
                Err(error) if decoder.kept().bytes.is_empty() => return Err(error),
                Err(error) => break BodyEnd::Broken(error.to_string()),
            };
            packed += chunk.len();
            let (after, taken) = decoder.take(&chunk);
            decoder = after;
            match taken {
                Ok(()) if packed > most.saturating_add(OVERHEAD) => break BodyEnd::Limit,
                Ok(()) => {}
                Err(_) if decoder.kept().full => break BodyEnd::Limit,
                Err(err) => break BodyEnd::Broken(format!("it cannot be unpacked: {err}")),
            }
        };
        let (bytes, finished) = decoder.finish();
        let end = match (end, finished) {
            (BodyEnd::Whole, Err(err)) if packed > 0 => BodyEnd::Broken(format!("it cannot be unpacked: {err}")),
            (end, Ok(()) | Err(_)) => end,
        };
        Ok(ResponseBody { bytes, end })
    }
}
