//! Packs: many objects in one file, most of them as the difference from another.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use flate2::read::ZlibDecoder;
use rustix::fs::OFlags;

use super::objects::{LARGEST, ObjectKind, ObjectName, open_plain};
use crate::beneath::{self, Links};

/// More packs than are looked into.
const MOST_PACKS: usize = 4096;
/// More differences than stand between an object and a whole one.
const DEEPEST: usize = 4096;
/// What the index of a pack begins with.
const INDEX: [u8; 8] = *b"\xfftOc\0\0\0\x02";
/// Where the names in it begin: after a count for each first byte.
const NAMES: u64 = 8 + 256 * 4;
/// The numbers of the two ways to name what an object differs from.
const BY_OFFSET: u8 = 6;
const BY_NAME: u8 = 7;

/// The packs of a repository.
pub(super) struct Packs(Vec<Pack>);

struct Pack {
    index: File,
    objects: File,
}

impl Packs {
    /// Opens the packs among a repository's objects; what is none is left out.
    pub(super) fn open(objects: &OwnedFd) -> Packs {
        let folder = Path::new("pack");
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let names = beneath::open(objects, folder, flags, Links::Refuse).and_then(beneath::names).unwrap_or_default();
        let indexes = names.iter().map(Path::new).filter(|name| name.extension() == Some(OsStr::new("idx")));
        let pack = |name: &Path| {
            let objects_file = open_plain(objects, &folder.join(name.with_extension("pack")))?;
            Some(Pack { index: open_plain(objects, &folder.join(name))?, objects: objects_file })
        };
        Packs(indexes.take(MOST_PACKS).filter_map(pack).collect())
    }

    /// An object, which may be a difference from another one that lies `depth` differences deeper than what is wanted.
    pub(super) fn read(&self, name: &ObjectName, depth: usize) -> Option<(ObjectKind, Vec<u8>)> {
        let (pack, offset) = self.0.iter().find_map(|pack| Some((pack, pack.offset_of(name)?)))?;
        self.read_at(pack, offset, name.length(), depth)
    }

    fn read_at(&self, pack: &Pack, at: u64, name_length: usize, depth: usize) -> Option<(ObjectKind, Vec<u8>)> {
        let mut differences = Vec::new();
        let mut at = at;
        let (kind, mut content) = loop {
            if depth + differences.len() > DEEPEST {
                return None;
            }
            let mut reader = BufReader::new(ReadFrom { file: &pack.objects, at });
            let (number, length) = header(&mut reader)?;
            match number {
                BY_OFFSET => {
                    let back = distance(&mut reader)?;
                    differences.push(inflate(reader, length)?);
                    at = at.checked_sub(back).filter(|_| back > 0)?;
                }
                BY_NAME => {
                    let mut base = vec![0; name_length];
                    reader.read_exact(&mut base).ok()?;
                    differences.push(inflate(reader, length)?);
                    break self.read(&ObjectName::from_bytes(&base)?, depth + differences.len())?;
                }
                number => break (ObjectKind::from_number(number)?, inflate(reader, length)?),
            }
        };
        while let Some(difference) = differences.pop() {
            content = apply(&content, &difference)?;
        }
        Some((kind, content))
    }
}

impl Pack {
    /// Where an object begins.
    fn offset_of(&self, name: &ObjectName) -> Option<u64> {
        let mut head = [0; 8];
        self.index.read_exact_at(&mut head, 0).ok()?;
        if head != INDEX {
            return None;
        }
        let count = |first: u64| self.number(8 + first * 4);
        let first = u64::from(*name.bytes().first()?);
        let mut from = if first == 0 { 0 } else { u64::from(count(first - 1)?) };
        let mut to = u64::from(count(first)?);
        let (all, length) = (u64::from(count(255)?), name.length() as u64);
        let mut found = vec![0; name.length()];
        while from < to {
            let middle = from + (to - from) / 2;
            self.index.read_exact_at(&mut found, NAMES + middle * length).ok()?;
            match found.as_slice().cmp(name.bytes()) {
                std::cmp::Ordering::Less => from = middle + 1,
                std::cmp::Ordering::Equal => return self.offset_at(middle, all, length),
                std::cmp::Ordering::Greater => to = middle,
            }
        }
        None
    }

    /// The offset in the list of short ones, after names and checksums; or in that of long ones, which follows.
    fn offset_at(&self, at: u64, all: u64, length: u64) -> Option<u64> {
        let short = NAMES + all * (length + 4);
        let offset = self.number(short + at * 4)?;
        if offset >> 31 == 0 {
            return Some(offset.into());
        }
        let mut long = [0; 8];
        let at = short + all * 4 + u64::from(offset & 0x7fff_ffff) * 8;
        self.index.read_exact_at(&mut long, at).ok()?;
        Some(u64::from_be_bytes(long))
    }

    fn number(&self, at: u64) -> Option<u32> {
        let mut bytes = [0; 4];
        self.index.read_exact_at(&mut bytes, at).ok()?;
        Some(u32::from_be_bytes(bytes))
    }
}

/// Reads a file from somewhere on.
struct ReadFrom<'f> {
    file: &'f File,
    at: u64,
}

impl Read for ReadFrom<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

fn byte(reader: &mut impl Read) -> Option<u8> {
    let mut one = [0];
    reader.read_exact(&mut one).ok()?;
    Some(one[0])
}

/// The kind of an object as a number, and how long its content is.
fn header(reader: &mut impl Read) -> Option<(u8, u64)> {
    let first = byte(reader)?;
    let (number, mut length, mut shift) = ((first >> 4) & 7, u64::from(first & 15), 4);
    let mut more = first & 0x80 != 0;
    while more {
        let next = byte(reader)?;
        length |= u64::from(next & 0x7f).checked_shl(shift)?;
        shift += 7;
        more = next & 0x80 != 0 && shift < 57;
    }
    (length <= LARGEST).then_some((number, length))
}

/// How far back in the pack another object begins.
fn distance(reader: &mut impl Read) -> Option<u64> {
    let mut next = byte(reader)?;
    let mut back = u64::from(next & 0x7f);
    while next & 0x80 != 0 {
        next = byte(reader)?;
        back = back.checked_add(1)?.checked_mul(128)? | u64::from(next & 0x7f);
    }
    Some(back)
}

fn inflate(reader: impl Read, length: u64) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    ZlibDecoder::new(reader).take(length + 1).read_to_end(&mut content).ok()?;
    (content.len() as u64 == length).then_some(content)
}

/// What a difference makes of what it differs from.
fn apply(base: &[u8], difference: &[u8]) -> Option<Vec<u8>> {
    let mut steps = difference;
    if size(&mut steps)? != base.len() as u64 {
        return None;
    }
    let length = size(&mut steps).filter(|length| *length <= LARGEST)?;
    let mut made = Vec::new();
    while let Some(step) = next(&mut steps) {
        if step & 0x80 != 0 {
            let mut number = |bits: std::ops::Range<u8>| {
                let mut number = 0_usize;
                for (place, bit) in bits.enumerate() {
                    if step & (1 << bit) != 0 {
                        number |= usize::from(next(&mut steps)?) << (8 * place);
                    }
                }
                Some(number)
            };
            let (from, length) = (number(0..4)?, number(4..7)?);
            let length = if length == 0 { 0x1_0000 } else { length };
            made.extend_from_slice(base.get(from..from.checked_add(length)?)?);
        } else {
            let (new, rest) = steps.split_at_checked(usize::from(step)).filter(|_| step != 0)?;
            made.extend_from_slice(new);
            steps = rest;
        }
        if made.len() as u64 > length {
            return None;
        }
    }
    (made.len() as u64 == length).then_some(made)
}

fn next(steps: &mut &[u8]) -> Option<u8> {
    let (first, rest) = steps.split_first()?;
    *steps = rest;
    Some(*first)
}

fn size(steps: &mut &[u8]) -> Option<u64> {
    let (mut size, mut shift) = (0_u64, 0);
    loop {
        let byte = next(steps)?;
        size |= u64::from(byte & 0x7f).checked_shl(shift)?;
        shift += 7;
        if byte & 0x80 == 0 {
            return Some(size);
        }
        if shift > 56 {
            return None;
        }
    }
}
