//! Files as servers name them: `file:` addresses.

use std::{
    ffi::OsString,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Component, Path, PathBuf},
};

use haft_sandbox::{Root, WorkspacePath};

/// What of a path needs no escape.
const PLAIN: &[u8] = b"/-._~";

/// Where an address leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FileAddress {
    /// Into the workspace, as far as its name says.
    Inside(WorkspacePath),
    /// Somewhere else, which is shown and never opened.
    Outside(String),
}

/// The address of a path.
pub(super) fn of(path: &Path) -> String {
    let mut address = String::from("file://");
    for byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || PLAIN.contains(byte) {
            address.push(char::from(*byte));
        } else {
            address.push_str(&format!("%{byte:02X}"));
        }
    }
    address
}

/// Where an address leads.
pub(super) fn read(root: &Root, address: &str) -> FileAddress {
    let Some(path) = path_of(address) else { return FileAddress::Outside(address.to_owned()) };
    let outside = || FileAddress::Outside(haft_sandbox::show_name(path.as_os_str()));
    let Ok(within) = path.strip_prefix(root.path()) else { return outside() };
    let mut place = WorkspacePath::root();
    for part in within.components() {
        match part {
            Component::Normal(name) => place = place.join(name),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return outside(),
        }
    }
    FileAddress::Inside(place)
}

/// The path of a `file:` address.
fn path_of(address: &str) -> Option<PathBuf> {
    let rest = address.strip_prefix("file://")?;
    let path = rest.strip_prefix("localhost").unwrap_or(rest).as_bytes();
    let mut bytes = Vec::with_capacity(path.len());
    let mut at = 0;
    while at < path.len() {
        let escaped = path.get(at + 1..at + 3).filter(|_| path[at] == b'%');
        let escaped = escaped.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        bytes.push(escaped.unwrap_or(path[at]));
        at += if escaped.is_some() { 3 } else { 1 };
    }
    let is_path = bytes.first() == Some(&b'/') && !bytes.contains(&0);
    is_path.then(|| PathBuf::from(OsString::from_vec(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_leads_back_to_its_file_whatever_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(folder.path(), &[]).unwrap();
        for name in ["a.rs", "with space/ü 🦀.py", "100%.rs", "a#b?.rs", "%41"] {
            let address = of(&root.path().join(name));
            assert!(address.is_ascii() && !address.contains([' ', '#', '?']), "{address}");
            assert_eq!(read(&root, &address), FileAddress::Inside(root.place(name).unwrap()), "{address}");
        }
        let odd = root.path().join(OsString::from_vec(b"\xff.rs".to_vec()));
        assert!(matches!(read(&root, &of(&odd)), FileAddress::Inside(_)));
    }

    #[test]
    fn what_lies_elsewhere_is_only_named() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(folder.path(), &[]).unwrap();
        let up = format!("{}/../etc/passwd", of(root.path()));
        for (address, shown) in [("file:///usr/include/stdio.h", "/usr/include/stdio.h"), ("jdt://x/y", "jdt://x/y")] {
            assert_eq!(read(&root, address), FileAddress::Outside(shown.to_owned()));
        }
        for address in [up.as_str(), "file://etc", "file:///a%00b", ""] {
            assert!(matches!(read(&root, address), FileAddress::Outside(_)), "{address}");
        }
    }
}
