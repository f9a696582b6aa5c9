//! Bounds and grants as people say them.

use haft_runtime::{CallerId, ChangeKind, Grant, GrantStatus, WrittenBounds};
use jiff::Timestamp;

use crate::show::{
    safe::safe,
    style::{DIM, PLACE, STRONG, WARN},
    table::{width, wrapped},
    time::{ago, bytes, from_now},
};

/// How many paths are named before the rest is counted.
const NAMED: usize = 3;

/// What bounds cover, in one line.
pub(crate) fn bounds_words(bounds: &WrittenBounds) -> String {
    let mut words = Vec::new();
    if bounds.input.is_some() {
        words.push("exactly this input".to_owned());
    }
    if let Some(paths) = &bounds.paths {
        words.push(format!("paths: {}", paths_words(paths)));
    }
    if let Some(kinds) = &bounds.kinds {
        let kinds = kinds.iter().map(|kind| kind_word(*kind)).collect::<Vec<_>>();
        words.push(format!("kinds of change: {}", kinds.join(", ")));
    }
    if let Some(most) = bounds.max_files {
        words.push(format!("at most {most} {}", if most == 1 { "path" } else { "paths" }));
    }
    if let Some(most) = bounds.max_bytes {
        words.push(format!("at most {}", bytes(most)));
    }
    if bounds.derived {
        words.push("only build output and caches".to_owned());
    }
    if bounds.executables {
        words.push("executables too".to_owned());
    }
    if let Some(hosts) = &bounds.hosts {
        words.push(format!("hosts: {}", hosts.join(", ")));
    }
    if words.is_empty() { "whatever it changes".to_owned() } else { safe(&words.join("; ")) }
}

fn paths_words(paths: &[String]) -> String {
    let named = paths.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    match paths.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more paths"),
    }
}

/// The word that settings and flags use.
pub(crate) fn kind_word(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Created => "created",
        ChangeKind::Changed => "changed",
        ChangeKind::Deleted => "deleted",
        ChangeKind::Mode => "mode",
        ChangeKind::Link => "link",
        ChangeKind::Renamed => "renamed",
    }
}

/// One grant: what it covers, and how long and how often still.
pub(crate) fn grant_text(grant: &Grant) -> String {
    let standing = grant.standing(Timestamp::now());
    let mut text = format!("{PLACE}{}{PLACE:#}  {STRONG}{}{STRONG:#}", grant.id, grant.tool);
    if standing != GrantStatus::Usable {
        text.push_str(&format!("  {WARN}{}{WARN:#}", standing.word()));
    }
    for line in wrapped(&bounds_words(grant.bounds.written()), width().saturating_sub(4)).lines() {
        text.push_str(&format!("\n    {line}"));
    }
    for line in wrapped(&lease_words(grant), width().saturating_sub(4)).lines() {
        text.push_str(&format!("\n    {DIM}{line}{DIM:#}"));
    }
    text
}

fn lease_words(grant: &Grant) -> String {
    let left = match grant.uses_left {
        None => "any number of uses".to_owned(),
        Some(1) => "1 use left".to_owned(),
        Some(left) => format!("{left} uses left"),
    };
    let until = grant.until.map_or_else(|| "no end".to_owned(), |until| format!("ends {}", from_now(until)));
    let used = match (grant.used, grant.last_used) {
        (0, _) | (_, None) => "never used".to_owned(),
        (1, Some(last)) => format!("used once, {}", ago(last)),
        (times, Some(last)) => format!("used {times} times, last {}", ago(last)),
    };
    let whom = match &grant.caller {
        None => "for anybody".to_owned(),
        Some(caller) if *caller == CallerId::owner() => "for the owner".to_owned(),
        Some(caller) => format!("for {}", safe(&caller.to_string())),
    };
    format!("{left}, {until}, {used}, {whom}")
}
