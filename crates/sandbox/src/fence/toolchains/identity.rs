//! The user's name for git, read from the user's own settings and nothing else of them.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A larger file is nobody's git settings.
const LARGEST: u64 = 1 << 20;

/// Where git keeps the user's settings; a later file wins.
const FILES: [&str; 2] = [".config/git/config", ".gitconfig"];

/// What is taken over.
const KEYS: [(&str, &str); 3] = [("user", "name"), ("user", "email"), ("init", "defaultBranch")];

/// Git settings with the user's name, address and usual branch, if the user has told git any of them.
///
/// They are a file in the private home folder rather than variables: variables would win over the settings of the
/// repository, a file in the home folder does not.
pub(super) fn gitconfig(home: &Path) -> Option<String> {
    let mut values: [Option<String>; KEYS.len()] = Default::default();
    for file in FILES {
        let mut bytes = Vec::new();
        let read = File::open(home.join(file)).and_then(|file| file.take(LARGEST).read_to_end(&mut bytes));
        if read.is_ok() {
            take_over(&String::from_utf8_lossy(&bytes), &mut values);
        }
    }
    let mut written = String::new();
    for ((section, key), value) in KEYS.iter().zip(values) {
        if let Some(value) = value {
            written.push_str(&format!("[{section}]\n\t{key} = {}\n", quoted(&value)));
        }
    }
    (!written.is_empty()).then_some(written)
}

fn take_over(text: &str, values: &mut [Option<String>; KEYS.len()]) {
    let text = text.replace("\\\r\n", "").replace("\\\n", "");
    let mut section = String::new();
    for line in text.lines() {
        let mut line = line.trim_start_matches('\u{feff}').trim();
        if let Some(header) = line.strip_prefix('[') {
            let (name, rest) = header.split_once(']').unwrap_or((header, ""));
            section = name.trim().to_ascii_lowercase();
            line = rest.trim();
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        let wanted = |(of, name): &(&str, &str)| section == *of && key.trim().eq_ignore_ascii_case(name);
        if let Some(at) = KEYS.iter().position(wanted) {
            values[at] = Some(plain(value.trim())).filter(|value| !value.is_empty());
        }
    }
}

/// A value without its quotes, escapes and comment.
fn plain(value: &str) -> String {
    let mut plain = String::new();
    let mut quoted = false;
    // Spaces at the end count only where they are quoted.
    let mut counts = 0;
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => quoted = !quoted,
            '#' | ';' if !quoted => break,
            '\\' => match characters.next() {
                Some('n') => plain.push('\n'),
                Some('t') => plain.push('\t'),
                Some(other) => plain.push(other),
                None => break,
            },
            other => plain.push(other),
        }
        if quoted || !character.is_whitespace() {
            counts = plain.len();
        }
    }
    plain.truncate(counts);
    plain
}

fn quoted(value: &str) -> String {
    let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\t', "\\t");
    format!("\"{escaped}\"")
}
