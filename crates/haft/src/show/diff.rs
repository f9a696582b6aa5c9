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

/// The patch of a commit. Where it has more lines than these, the files that fit are shown whole, and of every other one
/// its beginning or its name, with how many lines are left out.
pub(crate) fn patch(text: &str, most: usize) -> String {
    if text.lines().count() <= most {
        return coloured(text, usize::MAX);
    }
    let mut room = most;
    let (mut shown, mut left_out) = (String::new(), String::new());
    for part in files(text) {
        let lines = part.lines().count();
        if lines <= room {
            shown.push_str(&coloured(part, usize::MAX));
            room -= lines;
        } else if shown.is_empty() {
            shown.push_str(&coloured(part, room));
            room = 0;
        } else {
            let name = part.lines().next().unwrap_or_default().trim_start_matches("diff --git ");
            left_out.push_str(&format!("{DIM}… {}: {}{DIM:#}\n", safe(name), count(lines, "line")));
        }
    }
    shown + &left_out
}

/// The parts of a patch, one for each file. What stands before the first is a part of its own.
fn files(patch: &str) -> Vec<&str> {
    let starts = patch.match_indices("\ndiff --git ").map(|(at, _)| at + 1);
    let mut bounds: Vec<usize> = std::iter::once(0).chain(starts).collect();
    bounds.push(patch.len());
    bounds.windows(2).map(|pair| &patch[pair[0]..pair[1]]).filter(|part| !part.trim().is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_a_long_patch_is_shown_whole_or_counted() {
        let file = |name: &str, lines: usize| {
            format!("diff --git a/{name} b/{name}\n@@ -0,0 +1,{lines} @@\n{}", "+x\n".repeat(lines))
        };
        let text = format!(
            "Cargo.lock: 9 lines added, 1 removed (generated)\n\n{}",
            file("a", 3) + &file("b", 90) + &file("c", 1)
        );
        let plain = |most| anstream::adapter::strip_str(&patch(&text, most)).to_string();
        assert_eq!(plain(200).lines().count(), text.lines().count());
        let short = plain(20);
        assert!(short.starts_with("Cargo.lock: 9") && short.contains("diff --git a/a b/a\n"), "{short}");
        assert!(short.contains("diff --git a/c b/c\n") && short.ends_with("… a/b b/b: 92 lines\n"), "{short}");
        let first = anstream::adapter::strip_str(&patch(&file("b", 90), 20)).to_string();
        assert!(first.ends_with("+x\n… 72 more lines\n"), "{first}");
    }
}
