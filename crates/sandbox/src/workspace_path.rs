//! A normalised path inside the workspace, and the text it is shown as.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use crate::error::PathError;

/// The longest path that is accepted, in bytes.
const LONGEST_PATH: usize = 4096;
/// The longest component that is accepted, in bytes.
const LONGEST_COMPONENT: usize = 255;

/// A workspace-relative path without `.` and `..`; empty for the workspace itself.
///
/// It is shown without loss: bytes that are not UTF-8 and characters that would disturb a terminal or the reading
/// order appear as `%XX`, and a `%` is written `%25` only where it would otherwise read as such an escape.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkspacePath(PathBuf);

impl WorkspacePath {
    /// The workspace folder itself.
    pub fn root() -> WorkspacePath {
        WorkspacePath(PathBuf::new())
    }

    /// Normalises a relative path lexically.
    pub(crate) fn relative(path: &Path, typed: &str) -> Result<WorkspacePath, PathError> {
        let mut parts = Vec::new();
        for component in path.components() {
            match component {
                Component::CurDir => {}
                Component::Normal(name) if is_too_long(name) => {
                    return Err(malformed(typed, "a component is longer than 255 bytes"));
                }
                Component::Normal(name) => parts.push(name),
                Component::ParentDir => {
                    parts.pop().ok_or_else(|| PathError::Outside { path: typed.to_owned() })?;
                }
                Component::RootDir | Component::Prefix(_) => {
                    return Err(PathError::Outside { path: typed.to_owned() });
                }
            }
        }
        Ok(WorkspacePath(parts.into_iter().collect()))
    }

    /// The place that `shown()` text stands for.
    pub(crate) fn from_shown(text: &str) -> Result<WorkspacePath, PathError> {
        let bytes = read_shown(text);
        if bytes.contains(&0) {
            return Err(malformed(text, "it contains a NUL byte"));
        }
        WorkspacePath::relative(Path::new(OsStr::from_bytes(&bytes)), text)
    }

    /// The place that is shown by the names of this one; `None` when none of them is what we show another name as.
    pub fn meant(&self) -> Option<WorkspacePath> {
        let mut differs = false;
        let mut read = |name: &OsStr| {
            let meant = meant_by(name);
            differs |= meant.is_some();
            meant.unwrap_or_else(|| name.to_owned())
        };
        let path = self.0.iter().map(&mut read).collect();
        differs.then_some(WorkspacePath(path))
    }

    /// A place from a path that is known to be relative and normalised.
    pub(crate) fn known(path: PathBuf) -> WorkspacePath {
        WorkspacePath(path)
    }

    /// The path relative to the workspace; empty for the workspace itself.
    pub fn as_path(&self) -> &Path {
        &self.0
    }

    /// Whether this is the workspace folder itself.
    pub fn is_root(&self) -> bool {
        self.0.as_os_str().is_empty()
    }

    /// An entry of this folder; `name` is one component as a listing gives it.
    pub fn join(&self, name: impl AsRef<OsStr>) -> WorkspacePath {
        let bytes = name.as_ref().as_bytes();
        if !bytes.contains(&b'/') && !matches!(bytes, b"" | b"." | b"..") {
            return WorkspacePath(self.0.join(name.as_ref()));
        }
        let mut parts: Vec<&OsStr> = self.0.iter().collect();
        parts.extend(Path::new(name.as_ref()).components().filter_map(|component| match component {
            Component::Normal(part) => Some(part),
            Component::CurDir | Component::ParentDir | Component::RootDir | Component::Prefix(_) => None,
        }));
        WorkspacePath(parts.into_iter().collect())
    }

    /// Goes down to an entry of this folder.
    pub(crate) fn enter(&mut self, name: &OsStr) {
        self.0.push(name);
    }

    /// Goes up to the folder that holds this place.
    pub(crate) fn leave(&mut self) {
        self.0.pop();
    }

    /// The folder that holds this place; `None` for the workspace itself.
    pub fn parent(&self) -> Option<WorkspacePath> {
        if self.is_root() {
            return None;
        }
        self.0.parent().map(|parent| WorkspacePath(parent.to_owned()))
    }

    /// The last component; `None` for the workspace itself.
    pub fn name(&self) -> Option<&OsStr> {
        self.0.file_name()
    }

    /// The places above this one, nearest first, without the workspace itself.
    pub(crate) fn ancestors(&self) -> impl Iterator<Item = &Path> {
        self.0.ancestors().skip(1).filter(|path| !path.as_os_str().is_empty())
    }

    /// What the kernel is given: `.` for the workspace itself.
    pub(crate) fn for_kernel(&self) -> &Path {
        if self.is_root() { Path::new(".") } else { &self.0 }
    }
}

impl fmt::Display for WorkspacePath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_root() {
            return formatter.write_str(".");
        }
        formatter.write_str(&show_name(self.0.as_os_str()))
    }
}

/// Whether no entry can be called that or be shown as that.
fn is_too_long(name: &OsStr) -> bool {
    name.len() > LONGEST_COMPONENT && meant_by(name).is_none_or(|meant| meant.len() > LONGEST_COMPONENT)
}

/// Refuses text that no path may consist of.
pub(crate) fn check_text(typed: &str) -> Result<(), PathError> {
    if typed.is_empty() {
        return Err(malformed(typed, "it is empty"));
    }
    if typed.len() > LONGEST_PATH {
        return Err(malformed(typed, "it is longer than 4096 bytes"));
    }
    if typed.contains('\0') {
        return Err(malformed(typed, "it contains a NUL byte"));
    }
    Ok(())
}

fn malformed(typed: &str, why: &'static str) -> PathError {
    let cut: String = typed.chars().take(200).collect();
    PathError::Malformed { path: show_name(OsStr::new(&cut)), why }
}

/// A name or path as readable text that `read_shown` turns back into the same bytes.
pub fn show_name(name: &OsStr) -> String {
    let plain = |byte: &u8| (b' '..=b'~').contains(byte) && *byte != b'%';
    if let Some(text) = name.to_str().filter(|text| text.as_bytes().iter().all(plain)) {
        return text.to_owned();
    }
    let mut text = String::with_capacity(name.len());
    let mut rest = name.as_bytes();
    for chunk in name.as_bytes().utf8_chunks() {
        for character in chunk.valid().chars() {
            rest = &rest[character.len_utf8()..];
            let escapes = disturbs(character) || (character == '%' && starts_with_two_hex(rest));
            if escapes {
                let mut buffer = [0; 4];
                escape(&mut text, character.encode_utf8(&mut buffer).as_bytes());
            } else {
                text.push(character);
            }
        }
        rest = &rest[chunk.invalid().len()..];
        escape(&mut text, chunk.invalid());
    }
    text
}

/// The bytes that a shown name stands for.
pub(crate) fn read_shown(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escaped = text.get(at + 1..at + 3).filter(|_| bytes[at] == b'%' && starts_with_two_hex(&bytes[at + 1..]));
        match escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    out
}

/// The name that a shown name stands for.
pub(crate) fn read_shown_name(text: &str) -> OsString {
    OsString::from_vec(read_shown(text))
}

/// The name that is shown as this one. Only what we write ourselves is read: `%2E` is no dot and `%2F` no slash, so that
/// it is one component as well.
fn meant_by(name: &OsStr) -> Option<OsString> {
    let text = name.to_str().filter(|text| text.contains('%'))?;
    let meant = read_shown_name(text);
    (meant != name && !meant.as_bytes().contains(&0) && show_name(&meant) == text).then_some(meant)
}

fn escape(text: &mut String, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in bytes {
        text.push('%');
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
}

fn starts_with_two_hex(bytes: &[u8]) -> bool {
    bytes.len() >= 2 && bytes[..2].iter().all(u8::is_ascii_hexdigit)
}

/// Control characters, line separators and marks that change the reading order.
fn disturbs(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
