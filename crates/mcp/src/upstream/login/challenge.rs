//! What a server says when it wants to know who asks: the header `WWW-Authenticate`.

use haft_sandbox::web::{HeaderMap, header};

/// What a server wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Challenge {
    /// Where it says who gives tokens for it.
    pub(crate) resource_metadata: Option<String>,
    /// The scopes that it wants.
    pub(crate) scopes: Vec<String>,
    /// What is wrong with the token.
    pub(crate) error: Option<String>,
}

impl Challenge {
    /// The challenge for a bearer token, if there is one.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let values = headers.get_all(header::WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
        values.filter_map(Self::read).next()
    }

    /// Whether the token is good, but allows less than is wanted.
    pub(crate) fn wants_more(&self) -> bool {
        self.error.as_deref() == Some("insufficient_scope")
    }

    fn read(value: &str) -> Option<Self> {
        let mut found = None::<Self>;
        let mut rest = value;
        while let Some(part) = next_part(&mut rest) {
            match part {
                Part::Scheme(_) if found.is_some() => break,
                Part::Scheme(scheme) if scheme.eq_ignore_ascii_case("bearer") => found = Some(Self::default()),
                Part::Scheme(_) => {}
                Part::Parameter(name, value) => {
                    if let Some(found) = &mut found {
                        found.take(name, value);
                    }
                }
            }
        }
        found
    }

    fn take(&mut self, name: &str, value: String) {
        match name.to_ascii_lowercase().as_str() {
            "resource_metadata" => self.resource_metadata = Some(value),
            "scope" => self.scopes = value.split_whitespace().map(str::to_owned).collect(),
            "error" => self.error = Some(value),
            _ => {}
        }
    }
}

enum Part<'a> {
    Scheme(&'a str),
    Parameter(&'a str, String),
}

/// The next scheme or parameter; whatever cannot be read ends it.
fn next_part<'a>(rest: &mut &'a str) -> Option<Part<'a>> {
    let text = rest.trim_start_matches([' ', '\t', ',']);
    let end = text.find([' ', '\t', ',', '=']).unwrap_or(text.len());
    let (word, after) = text.split_at(end);
    if word.is_empty() {
        return None;
    }
    let Some(value) = after.trim_start_matches([' ', '\t']).strip_prefix('=') else {
        *rest = after;
        return Some(Part::Scheme(word));
    };
    let value = value.trim_start_matches([' ', '\t']);
    let (value, after) = match value.strip_prefix('"') {
        Some(quoted) => unquoted(quoted)?,
        None => {
            let end = value.find([' ', '\t', ',']).unwrap_or(value.len());
            (value[..end].to_owned(), &value[end..])
        }
    };
    *rest = after;
    Some(Part::Parameter(word, value))
}

fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(letters.next()?.1),
            letter => value.push(letter),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::Challenge;

    #[test]
    fn a_challenge_is_read_wherever_it_stands() {
        let read = |text: &str| Challenge::read(text);
        let wanted = Challenge {
            resource_metadata: Some("https://a.example/x, y".to_owned()),
            scopes: vec!["a:b".to_owned(), "c".to_owned()],
            error: Some("insufficient_scope".to_owned()),
        };
        let plain = r#"Bearer error="insufficient_scope", scope="a:b c", resource_metadata="https://a.example/x, y""#;
        assert_eq!(read(plain), Some(wanted.clone()));
        assert_eq!(read(&format!("Basic realm=\"a\", {plain}, DPoP algs=\"ES256\", error=\"x\"")), Some(wanted));
        assert_eq!(read("bearer"), Some(Challenge::default()));
        assert_eq!(read("Bearer scope=one").map(|one| one.scopes), Some(vec!["one".to_owned()]));
        assert_eq!(read(r#"Bearer realm="a \" b", error=x"#).and_then(|one| one.error), Some("x".to_owned()));
        for none in ["", "Basic realm=\"bearer\"", "=", "\"", "Basic x=\"unended"] {
            assert_eq!(read(none), None, "{none}");
        }
    }
}
