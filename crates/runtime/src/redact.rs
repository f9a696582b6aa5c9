//! Secrets out of what is shown. The journal keeps everything exact; every view of it passes through here.

mod random;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, ops::Range, sync::LazyLock};

use regex::Regex;
use serde_json::Value;

use random::{is_random, is_varied};

/// What stands in the place of a secret.
const MARK: &str = "[redacted]";
/// Shorter registered values would blot out ordinary words.
const SHORTEST: usize = 4;

/// Words of a name that make its value a secret.
const WORDS: &[&str] = &[
    "password",
    "passwords",
    "passwd",
    "passphrase",
    "pwd",
    "secret",
    "secrets",
    "token",
    "apikey",
    "authorization",
    "credential",
    "credentials",
    "cookie",
    "bearer",
];
/// Two words that do so together, as in `api_key`, `apiKey` and `API-Key`.
const PAIRS: &[(&str, &str)] =
    &[("api", "key"), ("access", "key"), ("private", "key"), ("signing", "key"), ("encryption", "key")];
/// A last word that says the value is about the secret, not the secret itself.
const ABOUT: &[&str] = &[
    "count", "limit", "usage", "budget", "type", "url", "uri", "name", "names", "field", "path", "file", "ttl", "at",
    "expiry", "expires", "length", "size", "policy",
];

/// Texts that are or contain a secret, in the group `s`; where there is a group `k`, the name before it must be that of
/// a secret.
const PATTERNS: &[&str] = &[
    // Tokens that say what they are.
    r"\b(?P<s>(?:gh[pousr]_|github_pat_|glpat-|glsa_|xox[abeoprs]-|xapp-|sk-|[srp]k_(?:live|test)_|whsec_|npm_|pypi-|hf_|dop_v1_|shpat_|hvs\.|dckr_pat_|tskey-|gsk_|xai-|lin_api_|sbp_|r8_|ya29\.|SG\.)[A-Za-z0-9_.=-]{16,})",
    r"\b(?P<s>(?:AKIA|ASIA)[0-9A-Z]{16})\b",
    r"\b(?P<s>AIza[0-9A-Za-z_-]{35})",
    r"\b(?P<s>AGE-SECRET-KEY-1[0-9A-Z]{20,})",
    r"\b(?P<s>eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*)",
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?P<s>[^-]+)",
    // `https://name:password@host`
    r#"://[^\s/:@"']*:(?P<s>[^\s/@"']+)@"#,
    r"(?i)\b(?:bearer|basic)\s+(?P<s>[a-z0-9+/_.=~-]{8,})",
    // `password = "…"`, `{"apiKey": "…"}`, also inside a string that is itself quoted
    r#"(?P<k>[A-Za-z][A-Za-z0-9_.-]*)(?:\\?["'])?\s*(?:[:=]|=>)\s*\\?["'](?P<s>[^"'\\\r\n]{3,})"#,
    // `DB_PASSWORD=…`, `--token=…`, `?token=…&`
    r#"(?P<k>[A-Za-z][A-Za-z0-9_.-]*)=(?P<s>[^\s"'`,;&|()<>{}$\[\]][^\s"'`,;&|()<>{}]{2,})"#,
    // `--password …`
    r#"--(?P<k>[A-Za-z][A-Za-z0-9_-]*) +(?P<s>[^\s"'`\-$][^\s"'`]{2,})"#,
    r#"--(?P<k>[A-Za-z][A-Za-z0-9_-]*) +["'](?P<s>[^"'\r\n]{3,})"#,
    // `password: …`, where only a digit tells it from a type or a sentence
    r#"(?P<k>[A-Za-z][A-Za-z0-9_.-]*)(?:: *| = )(?P<s>[^\s"'`,;()<>{}$\[\]][^\s"'`,;()<>]*[0-9][^\s"'`,;()<>]*)"#,
];
/// The patterns whose match must also look as if a machine had made it.
const MADE_BY_A_MACHINE: &[usize] = &[0, 7];

static RULES: LazyLock<Vec<Regex>> =
    LazyLock::new(|| PATTERNS.iter().filter_map(|pattern| Regex::new(pattern).ok()).collect());
static LONG_RUNS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"[A-Za-z0-9+/_-]{32,}={0,2}").ok());

/// Takes secrets out of what is shown: by the names of their fields, by what they look like, and those it was told of.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    names: Vec<String>,
    values: Vec<String>,
}

impl Redactor {
    /// One that also knows these names of fields, and these secrets themselves.
    pub fn knowing(names: Vec<String>, values: Vec<String>) -> Self {
        Self { names, values: values.into_iter().filter(|value| value.len() >= SHORTEST).collect() }
    }

    /// The value without its secrets, at any depth.
    pub fn value(&self, value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                // The bytes of a picture, a sound or a file are no secret, however random they look.
                let picture = ["mimeType", "mime_type"].iter().any(|name| fields.contains_key(*name));
                // A schema names fields; what it says of them is no secret.
                let describes = fields.get("type").is_some_and(|kind| kind == "object");
                let shown = |name: &String, inner: &Value| {
                    if picture && (name == "data" || name == "blob") {
                        inner.clone()
                    } else if describes && name == "properties" {
                        self.described(inner)
                    } else if self.is_secret_name(name) {
                        hidden(inner)
                    } else {
                        self.value(inner)
                    }
                };
                Value::Object(fields.iter().map(|(name, inner)| (name.clone(), shown(name, inner))).collect())
            }
            Value::Array(items) => Value::Array(items.iter().map(|item| self.value(item)).collect()),
            Value::String(text) => Value::String(self.text(text).into_owned()),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    /// The fields of a schema, whatever they are called.
    fn described(&self, properties: &Value) -> Value {
        let Value::Object(fields) = properties else { return self.value(properties) };
        let shown = |name: &String, schema: &Value| match (self.is_secret_name(name), schema.get("type")) {
            (true, None) => hidden(schema),
            (true, Some(_)) => {
                let mut schema = self.value(schema);
                if let Some(default) = schema.get_mut("default") {
                    *default = hidden(default);
                }
                schema
            }
            (false, _) => self.value(schema),
        };
        Value::Object(fields.iter().map(|(name, schema)| (name.clone(), shown(name, schema))).collect())
    }

    /// Whether it was told of secrets themselves.
    pub fn knows_any(&self) -> bool {
        !self.values.is_empty()
    }

    /// The value without the secrets that it was told of, at any depth. Whatever else is in it stays.
    pub fn known_out_of(&self, value: Value) -> Value {
        match value {
            value if !self.knows_any() => value,
            Value::Object(fields) => {
                let told = |(name, inner): (String, Value)| (self.known(&name).into_owned(), self.known_out_of(inner));
                Value::Object(fields.into_iter().map(told).collect())
            }
            Value::Array(items) => Value::Array(items.into_iter().map(|item| self.known_out_of(item)).collect()),
            Value::String(text) => Value::String(self.known(&text).into_owned()),
            Value::Null | Value::Bool(_) | Value::Number(_) => value,
        }
    }

    /// The text without them.
    pub fn known<'t>(&self, text: &'t str) -> Cow<'t, str> {
        marked(text, self.known_spans(text))
    }

    /// The same for a text that comes in pieces: what is certain of it, and its end, which may begin a secret.
    pub fn known_so_far(&self, text: &str) -> (String, String) {
        let spans = self.known_spans(text);
        let longest = self.values.iter().map(String::len).max().unwrap_or(0);
        let near_the_end = text.char_indices().filter(|(at, _)| text.len() - at < longest);
        let begins =
            |at: usize| self.values.iter().any(|value| value.len() > text.len() - at && value.starts_with(&text[at..]));
        let mut certain = near_the_end.map(|(at, _)| at).find(|at| begins(*at)).unwrap_or(text.len());
        // A secret that is whole may be the beginning of a longer one.
        while let Some(span) = spans.iter().find(|span| span.start < certain && certain < span.end) {
            certain = span.start;
        }
        (self.known(&text[..certain]).into_owned(), text[certain..].to_owned())
    }

    /// The text without its secrets.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        marked(text, self.spans(text))
    }

    fn known_spans(&self, text: &str) -> Vec<Range<usize>> {
        let found = self.values.iter().flat_map(|value| text.match_indices(value.as_str()));
        found.map(|(at, secret)| at..at + secret.len()).collect()
    }

    fn spans(&self, text: &str) -> Vec<Range<usize>> {
        let mut spans = self.known_spans(text);
        for (number, rule) in RULES.iter().enumerate() {
            for found in rule.captures_iter(text) {
                let Some(secret) = found.name("s") else { continue };
                let named = found.name("k").is_none_or(|name| self.is_secret_name(name.as_str()));
                let varied = !MADE_BY_A_MACHINE.contains(&number) || is_varied(secret.as_str());
                if named && varied && secret.as_str() != MARK {
                    spans.push(secret.range());
                }
            }
        }
        for run in LONG_RUNS.iter().flat_map(|runs| runs.find_iter(text)) {
            if is_random(run.as_str(), &text[..run.start()]) {
                spans.push(run.range());
            }
        }
        spans
    }

    /// Whether a field of this name, in whatever spelling, holds a secret.
    fn is_secret_name(&self, name: &str) -> bool {
        if self.names.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            return true;
        }
        let words = words(name);
        if words.last().is_some_and(|last| ABOUT.contains(&last.as_str())) {
            return false;
        }
        let is_pair = |pair: &[String]| PAIRS.iter().any(|(first, second)| pair[0] == *first && pair[1] == *second);
        words.iter().any(|word| WORDS.contains(&word.as_str())) || words.windows(2).any(is_pair)
    }
}

/// How a secret may stand in a text: as it is, without the word before it (`Bearer abc` is told by `abc` alone), and as
/// JSON writes it.
pub fn secret_forms(secret: &str) -> Vec<String> {
    let token = secret.split_once(' ').map(|(_, token)| token);
    let mut forms: Vec<String> = std::iter::once(secret).chain(token).map(str::to_owned).collect();
    let quoted = Value::from(secret).to_string();
    forms.extend(quoted.get(1..quoted.len() - 1).filter(|inner| *inner != secret).map(str::to_owned));
    forms
}

/// The text with a mark in the place of each of these parts.
fn marked(text: &str, mut spans: Vec<Range<usize>>) -> Cow<'_, str> {
    if spans.is_empty() {
        return Cow::Borrowed(text);
    }
    spans.sort_by_key(|span| (span.start, span.end));
    let mut shown = String::with_capacity(text.len());
    let mut end = 0;
    for span in spans {
        if span.start >= end {
            shown.push_str(&text[end..span.start]);
            shown.push_str(MARK);
        }
        end = end.max(span.end);
    }
    shown.push_str(&text[end..]);
    Cow::Owned(shown)
}

/// Everything that could be the secret itself; its shape stays.
fn hidden(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(name, inner)| (name.clone(), hidden(inner))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(hidden).collect()),
        Value::String(_) | Value::Number(_) => Value::String(MARK.to_owned()),
        Value::Null | Value::Bool(_) => value.clone(),
    }
}

/// The words of a name: `X-Api-Key`, `apiKey`, `API_KEY` → api, key.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut before = '_';
    for letter in name.chars() {
        if !letter.is_alphanumeric() {
            before = letter;
            continue;
        }
        let begins = !before.is_alphanumeric() || (letter.is_uppercase() && before.is_lowercase());
        if begins || words.is_empty() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.extend(letter.to_lowercase());
        }
        before = letter;
    }
    words
}
