//! People's own files, changed in one place: everything else stays as it was, comments and order included.

mod file;
pub(crate) mod json;
pub(crate) mod toml;

use std::ops::Range;

pub(crate) use file::{read, replace};

/// The text with other words in one place, whose lines end as those of the text do.
fn replaced(text: &str, range: Range<usize>, with: &str) -> String {
    let ends_in_two = text.split_once('\n').is_some_and(|(first, _)| first.ends_with('\r'));
    let with = if ends_in_two { with.replace('\n', "\r\n") } else { with.to_owned() };
    format!("{}{with}{}", &text[..range.start], &text[range.end..])
}
