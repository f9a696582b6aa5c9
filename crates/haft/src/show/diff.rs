//! A unified diff in colour.

use crate::show::{
    safe::safe,
    style::{ADDED, DIM, PLACE, REMOVED},
};

/// The diff with its lines coloured and made safe, cut after so many lines.
pub(crate) fn coloured(diff: &str, most: usize) -> String {
    let mut shown = String::new();
    let total = diff.lines().count();
    for line in diff.lines().take(most) {
        let text = safe(line);
        let style = match line.as_bytes() {
            [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => DIM,
            [b'+', ..] => ADDED,
            [b'-', ..] => REMOVED,
            [b'@', ..] => PLACE,
            _ => anstyle::Style::new(),
        };
        shown.push_str(&format!("{style}{text}{style:#}\n"));
    }
    if total > most {
        shown.push_str(&format!("{DIM}… {} more lines{DIM:#}\n", total - most));
    }
    shown
}
