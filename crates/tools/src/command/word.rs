//! One word of a command: what literally stands there, and what only a shell would know.

use std::{collections::BTreeMap, sync::Arc};

use tree_sitter::Node;

/// How much longer than its source a word may be, so that variables made of variables cannot grow without bound.
const GROWTH: usize = 1024;

/// What has been assigned so far; `None` where the value cannot be told.
pub(super) type Variables = BTreeMap<String, Option<Word>>;

/// One word; cheap to clone, for many commands have the same words around them.
#[derive(Clone, Debug)]
pub(super) struct Word {
    parts: Arc<[WordPart]>,
    source: Arc<str>,
}

/// A piece of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WordPart {
    /// Outside of quotes: `*`, `?`, `~` and braces have a meaning.
    Bare(String),
    /// As it stands.
    Quoted(String),
    /// `$HOME`.
    Home,
    /// `$PWD`.
    Here,
    /// Whatever a shell makes of this.
    Unknown(String),
}

impl Word {
    /// The word at a node of the tree.
    pub(super) fn read(node: Node<'_>, text: &str, variables: &Variables) -> Self {
        let mut parts = Vec::new();
        read_parts(node, text, variables, &mut parts);
        let source = &text[node.byte_range()];
        let length: usize = parts.iter().map(|part| part.text().len()).sum();
        if length > source.len() + GROWTH { Self::unknown(source) } else { Self::new(source, parts) }
    }

    /// A word that is certainly this text.
    pub(super) fn quoted(text: &str) -> Self {
        Self::new(text, vec![WordPart::Quoted(text.to_owned())])
    }

    /// A word as if it had been written without quotes.
    pub(super) fn bare(text: &str) -> Self {
        Self::new(text, vec![WordPart::Bare(text.to_owned())])
    }

    /// A word that only a shell knows.
    pub(super) fn unknown(source: &str) -> Self {
        Self::new(source, vec![WordPart::Unknown(source.to_owned())])
    }

    fn new(source: &str, parts: Vec<WordPart>) -> Self {
        Self { source: source.into(), parts: parts.into() }
    }

    pub(super) fn parts(&self) -> &[WordPart] {
        &self.parts
    }

    /// As it was written.
    pub(super) fn source(&self) -> &str {
        &self.source
    }

    /// The text, if a shell would make nothing else of it but to match names.
    pub(super) fn literal(&self) -> Option<String> {
        let literal = self.parts.iter().all(|part| matches!(part, WordPart::Bare(_) | WordPart::Quoted(_)));
        literal.then(|| self.parts.iter().map(WordPart::text).collect())
    }

    /// What a shell that is given this word as a script reads.
    pub(super) fn script(&self) -> String {
        self.parts.iter().map(WordPart::text).collect()
    }

    /// Whether every part of it is known before it runs.
    pub(super) fn is_known(&self) -> bool {
        !self.parts.iter().any(|part| matches!(part, WordPart::Unknown(_)))
    }
}

impl WordPart {
    /// Its text, or the text that a shell would look at.
    fn text(&self) -> &str {
        match self {
            Self::Bare(text) | Self::Quoted(text) | Self::Unknown(text) => text,
            Self::Home => "$HOME",
            Self::Here => "$PWD",
        }
    }

    /// The same inside of double quotes.
    fn quoted(self) -> Self {
        match self {
            Self::Bare(text) | Self::Quoted(text) => Self::Quoted(text),
            Self::Home => Self::Home,
            Self::Here => Self::Here,
            Self::Unknown(text) => Self::Unknown(text),
        }
    }
}

fn read_parts(node: Node<'_>, text: &str, variables: &Variables, parts: &mut Vec<WordPart>) {
    let source = &text[node.byte_range()];
    match node.kind() {
        "word" | "number" | "brace_expression" | "$" | "test_operator" | "extglob_pattern" => bare(source, parts),
        "``" => {}
        "raw_string" => parts.push(WordPart::Quoted(source.trim_matches('\'').to_owned())),
        "ansi_c_string" => parts.push(ansi_c(source)),
        "string" => string(node, text, variables, parts),
        "concatenation" | "command_name" | "translated_string" => {
            let dollar = usize::from(node.kind() == "translated_string");
            for child in node.children(&mut node.walk()).skip(dollar) {
                read_parts(child, text, variables, parts);
            }
        }
        "simple_expansion" | "expansion" => {
            let value = variable(node, text, variables);
            // A shell splits the value at blanks; then there is more than this one word.
            let splits = value.iter().any(|part| part.text().contains(char::is_whitespace));
            parts.extend(if splits { vec![WordPart::Unknown(source.to_owned())] } else { value });
        }
        _ => parts.push(WordPart::Unknown(source.to_owned())),
    }
}

/// Text outside of quotes, where a backslash quotes the next character.
fn bare(source: &str, parts: &mut Vec<WordPart>) {
    let mut plain = String::new();
    let mut letters = source.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            plain.push(letter);
            continue;
        }
        if !plain.is_empty() {
            parts.push(WordPart::Bare(std::mem::take(&mut plain)));
        }
        if let Some(escaped) = letters.next()
            && escaped != '\n'
        {
            parts.push(WordPart::Quoted(escaped.to_string()));
        }
    }
    if !plain.is_empty() {
        parts.push(WordPart::Bare(plain));
    }
}

/// `$'…'`: the common escapes; with others it is unknown.
fn ansi_c(source: &str) -> WordPart {
    let mut plain = String::new();
    let mut letters = source.strip_prefix("$'").and_then(|rest| rest.strip_suffix('\'')).unwrap_or_default().chars();
    while let Some(letter) = letters.next() {
        let meant = match letter {
            '\\' => match letters.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some(same @ ('\\' | '\'' | '"')) => same,
                Some(_) | None => return WordPart::Unknown(source.to_owned()),
            },
            other => other,
        };
        plain.push(meant);
    }
    WordPart::Quoted(plain)
}

/// `"…"`: everything between its expansions is text, blanks too.
fn string(node: Node<'_>, text: &str, variables: &Variables, parts: &mut Vec<WordPart>) {
    let mut from = node.start_byte() + 1;
    let closed = text[from..node.end_byte().max(from)].ends_with('"');
    let until = node.end_byte() - usize::from(closed);
    // An empty string is a word as well.
    parts.push(WordPart::Quoted(String::new()));
    for child in node.named_children(&mut node.walk()).filter(|child| child.kind() != "string_content") {
        parts.push(WordPart::Quoted(unescaped(&text[from..child.start_byte().max(from)])));
        let inside = match child.kind() {
            "simple_expansion" | "expansion" => variable(child, text, variables),
            _ => vec![WordPart::Unknown(text[child.byte_range()].to_owned())],
        };
        parts.extend(inside.into_iter().map(WordPart::quoted));
        from = child.end_byte();
    }
    parts.push(WordPart::Quoted(unescaped(&text[from..until.max(from)])));
}

fn unescaped(source: &str) -> String {
    let mut plain = String::with_capacity(source.len());
    let mut letters = source.chars().peekable();
    while let Some(letter) = letters.next() {
        match (letter, letters.peek()) {
            ('\\', Some('\n')) => drop(letters.next()),
            ('\\', Some('"' | '\\' | '$' | '`')) => plain.extend(letters.next()),
            _ => plain.push(letter),
        }
    }
    plain
}

/// `$NAME` and `${NAME}`, also with a default, which only counts where there is no value.
fn variable(node: Node<'_>, text: &str, variables: &Variables) -> Vec<WordPart> {
    let unknown = || vec![WordPart::Unknown(text[node.byte_range()].to_owned())];
    let name = node.named_child(0).filter(|child| child.kind() == "variable_name");
    let operator = node.child_by_field_name("operator").map(|operator| &text[operator.byte_range()]);
    let (Some(name), None | Some(":-" | "-" | ":?" | "?" | ":=" | "=")) = (name, operator) else { return unknown() };
    let name = &text[name.byte_range()];
    match (name, variables.get(name)) {
        (_, Some(Some(value))) => value.parts.to_vec(),
        ("HOME", None) => vec![WordPart::Home],
        ("PWD", None) => vec![WordPart::Here],
        (_, Some(None) | None) => unknown(),
    }
}
