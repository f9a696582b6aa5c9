//! What bounds must know of a move: it has two ends, may take something's place, and a folder carries along what is in it.

use crate::{Change, ChangeKind};

/// The paths of a change; a rename has two.
pub(crate) fn touched(change: &Change) -> impl Iterator<Item = &str> {
    std::iter::once(change.path.as_str()).chain(change.from.as_deref())
}

/// Whether it is a moved folder, which is listed without what is in it.
pub(crate) fn carries(change: &Change) -> bool {
    change.from.is_some() && change.directory
}

/// The kinds that a permission must name. A rename onto something changes what is there, too.
pub(crate) fn kinds(change: &Change) -> impl Iterator<Item = ChangeKind> {
    std::iter::once(change.kind).chain(change.replaces.map(|_| ChangeKind::Changed))
}

/// Every single thing that is done to a path: a move also takes something away and puts something there.
pub(super) fn deeds(change: &Change) -> impl Iterator<Item = (&str, ChangeKind)> {
    let arrives = if change.replaces.is_some() { ChangeKind::Changed } else { ChangeKind::Created };
    let path = change.path.as_str();
    let ends = move |from| [(path, arrives), (from, change.kind), (from, ChangeKind::Deleted)];
    std::iter::once((path, change.kind)).chain(change.from.as_deref().into_iter().flat_map(ends))
}

/// Paths that stand for whatever a moved folder may hold at one end, of whatever name and depth.
pub(super) fn carried(end: &str) -> [String; 2] {
    [format!("{end}/\u{1}"), format!("{end}/\u{1}/\u{1}/\u{1}")]
}

/// Whether a glob could match something in a folder. Where a wildcard stands before the folder ends, it could.
pub(super) fn reaches_into(glob: &str, folder: &str) -> bool {
    let mut parts = glob.split('/');
    for name in folder.split('/') {
        match parts.next() {
            Some(part) if part.contains(['*', '?', '[', '{', '\\']) => return true,
            Some(part) if part == name => {}
            Some(_) | None => return false,
        }
    }
    parts.next().is_some()
}
