//! Rust source as the rules see it: code, and the texts in it, without comments and tests.

/// A source file, taken apart.
pub(super) struct SourceFile {
    /// The code, with every text empty and every comment gone.
    pub(super) code: String,
    /// The texts in it.
    pub(super) texts: Vec<String>,
}

impl SourceFile {
    /// Takes a file apart. Its tests are left out.
    pub(super) fn of(file: &str) -> Self {
        let file = file.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let mut source = Self { code: String::with_capacity(file.len()), texts: Vec::new() };
        let mut rest = file;
        while let Some(letter) = rest.chars().next() {
            rest = if rest.starts_with("//") {
                rest.find('\n').map_or("", |end| &rest[end..])
            } else if let Some(inner) = rest.strip_prefix("/*") {
                inner.split_once("*/").map_or("", |(_, after)| after)
            } else if let Some((text, after)) = text_at(rest, source.code.chars().last()) {
                source.code.push_str("\"\"");
                source.texts.push(text.to_owned());
                after
            } else if let Some(after) = letter_at(rest) {
                source.code.push_str("' '");
                after
            } else {
                source.code.push(letter);
                &rest[letter.len_utf8()..]
            };
        }
        source
    }

    /// The words of the code, each a name or a number.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        self.code.split(|letter: char| !letter.is_alphanumeric() && letter != '_').filter(|word| !word.is_empty())
    }

    /// The names of the types that it defines, outside of functions and traits.
    pub(super) fn types(&self) -> Vec<&str> {
        self.code.lines().filter_map(defined).collect()
    }
}

/// The name of the type that a line of code defines.
fn defined(line: &str) -> Option<&str> {
    let is_nested = line.starts_with(' ');
    let line = line.trim_start();
    let line = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ").map_or(rest, |(_, rest)| rest),
        Some(rest) => rest.trim_start(),
        None => line,
    };
    let (kind, rest) = line.split_once(' ')?;
    let is_type = match kind {
        "struct" | "enum" | "trait" => true,
        // An indented one belongs to a trait.
        "type" => !is_nested,
        _ => false,
    };
    let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(rest.len());
    let name = &rest[..end];
    (is_type && name.starts_with(|first: char| first.is_ascii_uppercase())).then_some(name)
}

/// The text that begins here, and what comes after it.
fn text_at(rest: &str, before: Option<char>) -> Option<(&str, &str)> {
    if let Some(inner) = rest.strip_prefix('"') {
        let mut escaped = false;
        for (place, letter) in inner.char_indices() {
            match letter {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => return Some((&inner[..place], &inner[place + 1..])),
                _ => {}
            }
        }
        return None;
    }
    let is_part_of_a_name = before.is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
    let raw = rest.strip_prefix('r').filter(|_| !is_part_of_a_name)?;
    let hashes = raw.len() - raw.trim_start_matches('#').len();
    let inner = raw[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    inner.split_once(end.as_str())
}

/// What comes after the letter in quotes that begins here; a lifetime is none.
fn letter_at(rest: &str) -> Option<&str> {
    let inner = rest.strip_prefix('\'')?;
    if let Some(escaped) = inner.strip_prefix('\\') {
        let mut letters = escaped.char_indices();
        letters.next()?;
        let end = letters.find(|(_, letter)| *letter == '\'')?.0;
        return Some(&escaped[end + 1..]);
    }
    let letter = inner.chars().next()?;
    inner[letter.len_utf8()..].strip_prefix('\'')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_texts_are_told_from_code() {
        let file = r##"let a = "solo \" // x"; // solo
            let b = r#"gateway "quoted""#; /* solo */ let c = '"'; let d: &'a str = "";
            let var = '\''; call(r"x");
            #[cfg(test)]
mod tests { solo }"##;
        let source = SourceFile::of(file);
        assert_eq!(source.texts, ["solo \\\" // x", "gateway \"quoted\"", "", "x"]);
        let words: Vec<&str> = source.words().collect();
        let expected = "let a let b let c let d a str let var call cfg";
        assert_eq!(words.join(" "), expected.replace(" cfg", ""), "{}", source.code);
    }

    #[test]
    fn defined_types_are_found() {
        let file = "pub(crate) struct One;\nenum Two { A }\n    type Inner = u8;\npub type Three = u8;\n    struct Four(u8);\n\
                    let structure = 1;\npub trait Five: Send {}\nstruct lower;\n";
        assert_eq!(SourceFile::of(file).types(), ["One", "Two", "Three", "Four", "Five"]);
    }
}
