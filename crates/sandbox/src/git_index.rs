//! The names that git tracks, and what it says of them, read from a repository's index.

use std::{collections::BTreeSet, io::Read};

use sha2::{Digest, Sha256};

/// What stands before the name of an entry: times, numbers, mode, owner, size, hash and flags.
const FIXED: usize = 62;
/// Where in an entry its mode begins.
const MODE: usize = 24;
/// Where in an entry the hash of the content begins.
const HASH: usize = 40;
/// Where in an entry its flags begin.
const FLAGS: usize = 60;
/// What stands at the end of an index.
const CHECKSUM: usize = 20;
/// The length of the name in the flags, or all of these where it is longer.
const LENGTH: u16 = 0x0fff;
/// Says in the flags that two more bytes of them follow.
const EXTENDED: u16 = 0x4000;

/// The largest index that is read.
const LARGEST: u64 = 256 << 20;

/// What a submodule is in the mode of its entry.
const SUBMODULE: u32 = 0o16;

/// The paths in an index, relative to the repository; `None` when it is not one that we can read whole.
pub fn tracked(index: impl Read) -> Option<BTreeSet<Vec<u8>>> {
    let mut names = BTreeSet::new();
    let mut take = |entry: IndexEntry<'_>| {
        names.insert(entry.name.to_vec());
    };
    read(index, &mut take)?;
    Some(names)
}

/// What an index says, in short: two that are equal in this track the same content under the same names. What git only
/// remembers of files, to tell later whether they have changed, does not count. `None` when it is not one that we can
/// read whole.
pub(crate) fn meaning(index: impl Read) -> Option<String> {
    let mut digest = Sha256::new();
    let mut take = |IndexEntry { mode, hash, flags, name, .. }: IndexEntry<'_>| {
        for part in [mode, hash, flags, name] {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        }
    };
    let rest = read(index, &mut take)?;
    // What must be understood to read an index has a name in small letters: some of the content lies elsewhere then.
    let is_plain = rest.iter().all(|extension| extension[0].is_ascii_uppercase());
    is_plain.then(|| digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// One path of an index.
struct IndexEntry<'a> {
    kind: u32,
    mode: &'a [u8],
    hash: &'a [u8],
    flags: &'a [u8],
    name: &'a [u8],
}

/// The paths of the submodules in an index; `None` when it is not one that we can read whole.
pub fn submodules(index: impl Read) -> Option<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    let mut take = |entry: IndexEntry<'_>| {
        if entry.kind == SUBMODULE {
            found.push(entry.name.to_vec());
        }
    };
    read(index, &mut take)?;
    Some(found)
}

/// Gives each entry, then the names of what follows them.
fn read(index: impl Read, take: &mut dyn FnMut(IndexEntry<'_>)) -> Option<Vec<[u8; 4]>> {
    let mut bytes = Vec::new();
    index.take(LARGEST).read_to_end(&mut bytes).ok()?;
    entries(&bytes, take)
}

fn entries(index: &[u8], take: &mut dyn FnMut(IndexEntry<'_>)) -> Option<Vec<[u8; 4]>> {
    let (signature, version, count) = (index.get(..4)?, number(index, 4)?, number(index, 8)?);
    if signature != b"DIRC" || !(2..=4).contains(&version) {
        return None;
    }
    let mut at = 12;
    let mut name = Vec::new();
    for _ in 0..count {
        let kind = number(index, at + MODE)? >> 12;
        // A file, a link or a submodule; anything else says that this index has another shape, such as longer hashes.
        if !matches!(kind, 0o10 | 0o12 | SUBMODULE) {
            return None;
        }
        let flags = u16::from_be_bytes(index.get(at + FLAGS..at + FLAGS + 2)?.try_into().ok()?);
        let start = at + FIXED + if flags & EXTENDED == 0 { 0 } else { 2 };
        let entry = at;
        at = if version == 4 {
            read_shared(index, start, &mut name)?
        } else {
            let end = match flags & LENGTH {
                LENGTH => start + index.get(start..)?.iter().position(|byte| *byte == 0)?,
                length => start + usize::from(length),
            };
            name.clear();
            name.extend_from_slice(index.get(start..end)?);
            // Between one and eight zeros follow, up to a multiple of eight.
            at + (end - at) / 8 * 8 + 8
        };
        take(IndexEntry {
            kind,
            mode: index.get(entry + MODE..entry + MODE + 4)?,
            hash: index.get(entry + HASH..entry + FLAGS)?,
            flags: index.get(entry + FLAGS..start)?,
            name: &name,
        });
    }
    extensions(index, at)
}

/// The names of the extensions that follow the entries; `None` unless then a checksum of the length that we know follows.
/// In a repository with longer hashes it does not.
fn extensions(index: &[u8], mut at: usize) -> Option<Vec<[u8; 4]>> {
    let end = index.len().checked_sub(CHECKSUM)?;
    let mut names = Vec::new();
    while at < end {
        names.push(index.get(at..at + 4)?.try_into().ok()?);
        at = at.saturating_add(8).saturating_add(number(index, at + 4)? as usize);
    }
    (at == end).then_some(names)
}

/// A name that says how much of the one before it goes, and what comes instead; gives where it ends.
fn read_shared(index: &[u8], start: usize, name: &mut Vec<u8>) -> Option<usize> {
    let (mut at, mut goes) = (start, 0_usize);
    loop {
        let byte = *index.get(at)?;
        at += 1;
        goes = goes.checked_mul(128)?.checked_add(usize::from(byte & 127))?;
        if byte & 128 == 0 {
            break;
        }
        goes += 1;
    }
    let end = at + index.get(at..)?.iter().position(|byte| *byte == 0)?;
    name.truncate(name.len().checked_sub(goes)?);
    name.extend_from_slice(index.get(at..end)?);
    Some(end + 1)
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::{path::Path, process::Command};

    use super::*;

    #[expect(clippy::disallowed_methods, reason = "a test compares with git itself")]
    fn git(folder: &Path, arguments: &[&str]) {
        let ended = Command::new("git").args(arguments).current_dir(folder).output().unwrap();
        assert!(ended.status.success(), "{ended:?}");
    }

    #[test]
    fn every_version_of_an_index_is_read_as_git_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        git(here, &["init", "-q"]);
        let names = ["a", "a-much-longer-name", "deep/er/file", "deep/er/file2", "deep/x", "naïve", "with space"];
        for name in names {
            let file = here.join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, name).unwrap();
        }
        git(here, &["add", "."]);
        for version in ["2", "3", "4"] {
            git(here, &["update-index", "--index-version", version]);
            // Version 3 is written only where an entry needs it.
            git(here, &["update-index", "--skip-worktree", "a"]);
            let index = std::fs::read(here.join(".git/index")).unwrap();
            let expected: BTreeSet<Vec<u8>> = names.iter().map(|name| name.as_bytes().to_vec()).collect();
            assert_eq!(tracked(&index[..]), Some(expected), "version {version}");
            assert_eq!(submodules(&index[..]), Some(Vec::new()), "version {version}");
            for cut in 0..index.len().min(400) {
                // Whatever is missing, it ends.
                let _ = tracked(&index[..cut]);
            }
        }
    }

    #[test]
    fn submodules_are_told_from_files() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        git(here, &["init", "-q"]);
        std::fs::write(here.join("a"), "a").unwrap();
        git(here, &["add", "a"]);
        let entry = "160000,1234567890123456789012345678901234567890,deep/sub";
        git(here, &["update-index", "--add", "--cacheinfo", entry]);
        for version in ["2", "4"] {
            git(here, &["update-index", "--index-version", version]);
            let index = std::fs::File::open(here.join(".git/index")).unwrap();
            assert_eq!(submodules(index), Some(vec![b"deep/sub".to_vec()]), "version {version}");
        }
    }

    #[test]
    fn an_index_means_the_same_until_something_else_is_staged() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        let means = || meaning(std::fs::File::open(here.join(".git/index")).unwrap());
        let bytes = || std::fs::read(here.join(".git/index")).unwrap();
        git(here, &["init", "-q"]);
        std::fs::write(here.join("a"), "a").unwrap();
        git(here, &["add", "a"]);
        let (first, written) = (means(), bytes());
        assert!(first.is_some());
        let file = std::fs::File::options().write(true).open(here.join("a")).unwrap();
        file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000)).unwrap();
        git(here, &["update-index", "--refresh"]);
        assert_ne!(bytes(), written, "git remembers another file");
        assert_eq!(means(), first);
        for change in [vec!["update-index", "--chmod=+x", "a"], vec!["update-index", "--assume-unchanged", "a"]] {
            let before = means();
            git(here, &change);
            assert_ne!(means(), before, "{change:?}");
        }
        git(here, &["update-index", "--split-index"]);
        assert_eq!(means(), None, "the rest of it lies in another file");
    }

    #[test]
    fn what_is_no_index_of_ours_is_not_guessed_at() {
        assert_eq!(tracked(&b""[..]), None);
        assert_eq!(tracked(&b"DIRC\0\0\0\x09\0\0\0\0"[..]), None);
        let folder = tempfile::tempdir().unwrap();
        git(folder.path(), &["init", "-q", "--object-format=sha256"]);
        for name in ["one", "two", "three"] {
            std::fs::write(folder.path().join(name), name).unwrap();
        }
        git(folder.path(), &["add", "."]);
        assert_eq!(tracked(std::fs::File::open(folder.path().join(".git/index")).unwrap()), None);
    }
}
