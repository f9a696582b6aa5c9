//! A unified diff in colour.

use crate::show::{
    plain::folded,
    safe::safe,
    style::{ADDED, DIM, PLACE, REMOVED},
    table::width,
    time::count,
};

/// The diff with its lines coloured and made safe, cut after so many lines. A line that is too long goes on beneath,
/// indented, so that no content begins where haft's own words do.
pub(crate) fn coloured(diff: &str, most: usize) -> String {
    let mut shown = String::new();
    let total = diff.lines().count();
    for line in diff.lines().take(most) {
        let style = match line.as_bytes() {
            [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => DIM,
            [b'+', ..] => ADDED,
            [b'-', ..] => REMOVED,
            [b'@', ..] => PLACE,
            _ => anstyle::Style::new(),
        };
        let parts = folded(&safe(line), width().saturating_sub(2)).join(&format!("{style:#}\n  {style}"));
        shown.push_str(&format!("{style}{parts}{style:#}\n"));
    }
    if total > most {
        shown.push_str(&format!("{DIM}… {}{DIM:#}\n", count(total - most, "more line")));
    }
    shown
}
