//! What a search tells beside its result.

use serde_json::{Map, Value};

use super::walk::SkippedFolders;

/// Sentences about what was not gone through.
pub(super) fn notes(passed_by: SkippedFolders) -> Vec<String> {
    let mut notes = Vec::new();
    match passed_by.sensitive {
        0 => {}
        1 => notes.push("(1 sensitive name was not searched)".to_owned()),
        many => notes.push(format!("({many} sensitive names were not searched)")),
    }
    match passed_by.unreadable {
        0 => {}
        1 => notes.push("(1 file or folder could not be read)".to_owned()),
        many => notes.push(format!("({many} files or folders could not be read)")),
    }
    notes
}

/// Facts beside the result.
pub(super) fn metadata(ran_out: bool, passed_by: SkippedFolders) -> Map<String, Value> {
    let mut facts = Map::new();
    if ran_out {
        facts.insert("timed_out".to_owned(), true.into());
    }
    for (name, many) in [("sensitive", passed_by.sensitive), ("unreadable", passed_by.unreadable)] {
        if many > 0 {
            facts.insert(name.to_owned(), many.into());
        }
    }
    facts
}
