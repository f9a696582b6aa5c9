//! The words after a program, told apart: options, and what they are about.

use super::word::Word;

/// Options and operands as GNU programs take them: mixed, until `--`.
#[derive(Debug)]
pub(super) struct Args<'a> {
    options: Vec<String>,
    pub(super) operands: Vec<&'a Word>,
}

impl<'a> Args<'a> {
    /// `valued` are the short options that take the next word for their value.
    pub(super) fn read(words: &'a [Word], valued: &str) -> Self {
        let mut args = Self { options: Vec::new(), operands: Vec::new() };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.literal() {
                Some(end) if end == "--" => break,
                Some(option) if option.len() > 1 && option.starts_with('-') => {
                    if takes_next(&option, valued, &[]) {
                        words.next();
                    }
                    args.options.push(option);
                }
                Some(_) | None => args.operands.push(word),
            }
        }
        args.operands.extend(words);
        args
    }

    /// Whether the option is there: by its letter, alone or among others, or by its long name.
    pub(super) fn has(&self, letter: char, long: &str) -> bool {
        let lettered = |option: &String| !option.starts_with("--") && option[1..].contains(letter);
        self.options.iter().any(lettered) || self.has_long(long)
    }

    /// Whether the long option is there, whole or shortened.
    pub(super) fn has_long(&self, long: &str) -> bool {
        let names = self.options.iter().filter_map(|option| option.strip_prefix("--"));
        names.map(|name| name.split('=').next().unwrap_or(name)).any(|name| !name.is_empty() && long.starts_with(name))
    }
}

/// The words from the first operand on, for programs that run the rest of their words.
pub(super) fn operands_of<'a>(words: &'a [Word], valued: &str, long_valued: &[&str]) -> &'a [Word] {
    let mut at = 0;
    while let Some(option) = words.get(at).and_then(Word::literal) {
        if option == "--" {
            return &words[at + 1..];
        }
        if option.len() < 2 || !option.starts_with('-') {
            break;
        }
        at += 1 + usize::from(takes_next(&option, valued, long_valued));
    }
    words.get(at..).unwrap_or_default()
}

/// Whether the value of an option is the next word: `-u root`, but not `-uroot` nor `--user=root`.
fn takes_next(option: &str, valued: &str, long_valued: &[&str]) -> bool {
    match option.strip_prefix("--") {
        Some(long) => long_valued.contains(&long),
        None => option.find(|letter| valued.contains(letter)).is_some_and(|at| at + 1 == option.len()),
    }
}
