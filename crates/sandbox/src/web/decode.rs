//! Unpacks a body as it comes, and stops where it has grown to its limit.

use std::io::{self, Write};

use brotli_decompressor::DecompressorWriter;
use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use hyper::{HeaderMap, header};

/// What a packed body is unpacked through before it is kept.
const BUFFER: usize = 16 << 10;

/// Unpacks what it is given and keeps as much of it as it may.
pub(super) enum Decoder {
    Plain(LimitedBytes),
    Gzip(MultiGzDecoder<LimitedBytes>),
    Zlib(ZlibDecoder<LimitedBytes>),
    Deflate(DeflateDecoder<LimitedBytes>),
    Brotli(Box<DecompressorWriter<LimitedBytes>>),
    /// `deflate`, of which only the first byte tells which of two things is meant.
    Undecided(LimitedBytes),
}

/// Bytes up to a limit.
pub(super) struct LimitedBytes {
    pub(super) bytes: Vec<u8>,
    most: usize,
    pub(super) full: bool,
}

impl Write for LimitedBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.most - self.bytes.len();
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if bytes.len() > room {
            self.full = true;
            return Err(io::ErrorKind::WriteZero.into());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Decoder {
    /// For a body that came with these headers. What is packed in a way that was not asked for is kept as it is.
    pub(super) fn new(headers: &HeaderMap, most: usize) -> Self {
        let kept = LimitedBytes { bytes: Vec::new(), most, full: false };
        let packed = headers.get(header::CONTENT_ENCODING).and_then(|packed| packed.to_str().ok()).unwrap_or_default();
        match packed.trim().to_ascii_lowercase().as_str() {
            "gzip" | "x-gzip" => Self::Gzip(MultiGzDecoder::new(kept)),
            "deflate" => Self::Undecided(kept),
            "br" => Self::Brotli(Box::new(DecompressorWriter::new(kept, BUFFER))),
            _ => Self::Plain(kept),
        }
    }

    /// Takes the next bytes. An error says that they cannot be unpacked, or that there is no more room.
    pub(super) fn take(self, bytes: &[u8]) -> (Self, io::Result<()>) {
        let mut decoder = self.decided(bytes);
        let taken = match &mut decoder {
            Self::Plain(kept) | Self::Undecided(kept) => kept.write_all(bytes),
            Self::Gzip(gzip) => gzip.write_all(bytes),
            Self::Zlib(zlib) => zlib.write_all(bytes),
            Self::Deflate(deflate) => deflate.write_all(bytes),
            Self::Brotli(brotli) => brotli.write_all(bytes),
        };
        (decoder, taken)
    }

    /// Raw deflate and the one with a header are both sent under the same name.
    fn decided(self, bytes: &[u8]) -> Self {
        match (self, bytes.first()) {
            (Self::Undecided(kept), Some(first)) if first & 0x0f == 8 => Self::Zlib(ZlibDecoder::new(kept)),
            (Self::Undecided(kept), Some(_)) => Self::Deflate(DeflateDecoder::new(kept)),
            (other, _) => other,
        }
    }

    /// What was kept so far.
    pub(super) fn kept(&self) -> &LimitedBytes {
        match self {
            Self::Plain(kept) | Self::Undecided(kept) => kept,
            Self::Gzip(gzip) => gzip.get_ref(),
            Self::Zlib(zlib) => zlib.get_ref(),
            Self::Deflate(deflate) => deflate.get_ref(),
            Self::Brotli(brotli) => brotli.get_ref(),
        }
    }

    /// Hands over what was kept, with what was still held back for the end, and whether that was the end.
    pub(super) fn finish(mut self) -> (Vec<u8>, io::Result<()>) {
        let finished = match &mut self {
            Self::Plain(kept) | Self::Undecided(kept) => kept.flush(),
            Self::Gzip(gzip) => gzip.try_finish(),
            Self::Zlib(zlib) => zlib.try_finish(),
            Self::Deflate(deflate) => deflate.try_finish(),
            Self::Brotli(brotli) => brotli.close(),
        };
        let kept = match &mut self {
            Self::Plain(kept) | Self::Undecided(kept) => kept,
            Self::Gzip(gzip) => gzip.get_mut(),
            Self::Zlib(zlib) => zlib.get_mut(),
            Self::Deflate(deflate) => deflate.get_mut(),
            Self::Brotli(brotli) => brotli.get_mut(),
        };
        (std::mem::take(&mut kept.bytes), finished)
    }
}
