//! What is mounted inside a folder.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// The places beneath a folder at which something is mounted. A layer over the folder would show them empty.
pub fn mounts_within(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let table = std::fs::read("/proc/self/mountinfo")?;
    let points = table.split(|byte| *byte == b'\n').filter_map(|line| line.split(|byte| *byte == b' ').nth(4));
    let points = points.map(|point| PathBuf::from(OsString::from_vec(unescaped(point))));
    Ok(points.filter(|point| point != folder && point.starts_with(folder)).collect())
}

/// Spaces, tabs, newlines and backslashes are written as three octal digits.
fn unescaped(point: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(point.len());
    let mut rest = point;
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|digits| first == b'\\' && digits.iter().all(|d| (b'0'..=b'7').contains(d)));
        match digits {
            Some(digits) => {
                plain.push(digits.iter().fold(0_u8, |value, digit| value.wrapping_mul(8).wrapping_add(digit - b'0')));
                rest = &after[3..];
            }
            None => {
                plain.push(first);
                rest = after;
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_found_beneath_a_folder_only() {
        let of_root = mounts_within(Path::new("/")).unwrap();
        assert!(of_root.contains(&PathBuf::from("/proc")), "{of_root:?}");
        assert!(!mounts_within(Path::new("/proc")).unwrap().contains(&PathBuf::from("/proc")));
        assert_eq!(mounts_within(&std::env::temp_dir().join("no such folder")).unwrap(), Vec::<PathBuf>::new());
        assert_eq!(unescaped(br"/a\040b\134c\x"), br"/a b\c\x");
    }
}
