//! Statements and rows as plain data.
//!
//! # The dialect
//!
//! Every statement exists once and runs on SQLite, on PostgreSQL and on databases that speak PostgreSQL's protocol. So it
//! uses only what all of them have:
//!
//! - Values are texts, whole numbers (64 bit) and bytes. A flag is 0 or 1, a time is microseconds since the epoch, the rest
//!   is JSON in a text.
//! - Placeholders are `$1`, `$2`, …; each may be used several times.
//! - No JSON operators: what is searched is a column.
//! - No sequences, triggers, savepoints, temporary tables, advisory locks, `listen` or `notify`, and no state of a session.
//! - The clock is ours, not the database's. (The lease of a node is the exception, see `nodes.rs`.)
//! - A claim is one conditional `update … returning`; whether a statement changed something is told by its `returning`.
//! - `/*index NAME*/` after a table is a comment that tells SQLite which index leads to the fewest rows.
//! - Sums are cast to `bigint`; PostgreSQL would make them decimals.
//!
//! Each statement is checked against the forbidden words when it is made in a debug build, and the sources by a test.

use std::{borrow::Cow, sync::Arc};

/// One value, in a row or for a placeholder. `None` is null; each null has a type, which PostgreSQL wants to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Text(Option<String>),
    Int(Option<i64>),
    Bytes(Option<Vec<u8>>),
}

/// One statement with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Statement {
    pub(crate) sql: Cow<'static, str>,
    pub(crate) args: Vec<Value>,
}

impl Statement {
    /// A statement without arguments.
    pub(crate) fn new(sql: impl Into<Cow<'static, str>>) -> Self {
        let sql = sql.into();
        debug_assert_eq!(forbidden_word(&sql), None, "{sql}");
        Self { sql, args: Vec::new() }
    }

    /// The same with one more argument, for `$1` and so on.
    pub(crate) fn bind(mut self, value: impl Into<Value>) -> Self {
        self.args.push(value.into());
        self
    }

    /// The same with more text at its end.
    pub(crate) fn push(mut self, sql: &str) -> Self {
        debug_assert_eq!(forbidden_word(sql), None, "{sql}");
        self.sql.to_mut().push_str(sql);
        self
    }

    /// The same with more text and one more argument, whose placeholder follows the text.
    pub(crate) fn push_bind(self, sql: &str, value: impl Into<Value>) -> Self {
        let mut next = self.push(sql).bind(value);
        let place = format!("${}", next.args.len());
        next.sql.to_mut().push_str(&place);
        next
    }

    /// The same with a list of values in parentheses, for `in`. An empty list holds nothing.
    pub(crate) fn push_list<'a>(mut self, values: impl IntoIterator<Item = &'a str>) -> Self {
        let mut separator = "(";
        for value in values {
            self = self.push_bind(separator, value);
            separator = ", ";
        }
        self.push(if separator == "(" { "(null)" } else { ")" })
    }
}

/// One row of an answer.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) columns: Arc<[String]>,
    pub(crate) values: Vec<Value>,
}

impl Row {
    /// The value of a column; `None` when there is no such column.
    pub(crate) fn get(&self, column: &str) -> Option<&Value> {
        let place = self.columns.iter().position(|name| name == column)?;
        self.values.get(place)
    }
}

/// Words that not every database understands, or that keep state outside the tables. See the dialect above.
const FORBIDDEN: [&str; 21] = [
    "listen",
    "notify",
    "pg_advisory",
    "sequence",
    "nextval",
    "serial",
    "autoincrement",
    "temp",
    "temporary",
    "savepoint",
    "trigger",
    "json",
    "jsonb",
    "json_each",
    "now",
    "clock_timestamp",
    "current_timestamp",
    "for update",
    "last_insert_rowid",
    "rowid",
    "ctid",
];
const FORBIDDEN_SIGNS: [&str; 3] = ["->", "::", "?"];

/// The first word of a statement that the dialect does not have.
pub(crate) fn forbidden_word(sql: &str) -> Option<&'static str> {
    let text = sql.to_ascii_lowercase();
    let is_word = |found: usize, word: &str| {
        let part_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        !text[..found].ends_with(part_of_name) && !text[found + word.len()..].starts_with(part_of_name)
    };
    let has_word = |word: &&&str| text.match_indices(**word).any(|(found, word)| is_word(found, word));
    let word = FORBIDDEN.iter().find(has_word);
    word.or_else(|| FORBIDDEN_SIGNS.iter().find(|sign| text.contains(**sign))).copied()
}

impl From<String> for Value {
    /// PostgreSQL keeps no zero bytes in texts. Outside of JSON, which escapes them, they can only come from a caller that
    /// makes names up.
    fn from(text: String) -> Self {
        Self::Text(Some(if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text }))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<Option<String>> for Value {
    fn from(text: Option<String>) -> Self {
        text.map_or(Self::Text(None), Self::from)
    }
}

impl From<Option<&str>> for Value {
    fn from(text: Option<&str>) -> Self {
        text.map_or(Self::Text(None), Self::from)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Int(Some(number))
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Int(Some(number.into()))
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Int(Some(flag.into()))
    }
}

impl From<Option<i64>> for Value {
    fn from(number: Option<i64>) -> Self {
        Self::Int(number)
    }
}

impl From<Option<u32>> for Value {
    fn from(number: Option<u32>) -> Self {
        Self::Int(number.map(i64::from))
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(Some(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_outside_the_dialect_are_found_and_names_that_hold_them_are_not() {
        assert_eq!(forbidden_word("select body ->> '$.a' from questions"), Some("->"));
        assert_eq!(forbidden_word("create trigger t"), Some("trigger"));
        assert_eq!(forbidden_word("select id from calls for update"), Some("for update"));
        assert_eq!(forbidden_word("select now()"), Some("now"));
        assert_eq!(forbidden_word("select known, attempts from template where id = $1"), None);
    }

    /// Statements that are only made when something goes wrong are checked here, too.
    #[test]
    fn no_source_of_the_store_leaves_the_dialect() {
        // Those who know that there are two databases, and this file, which names the words.
        const EXEMPT: [&str; 4] = ["sql.rs", "db.rs", "sqlite.rs", "postgres.rs"];
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut read = 0;
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if path.is_dir() || EXEMPT.contains(&name.as_str()) {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            for literal in text.split('"').skip(1).step_by(2).filter(|literal| is_statement(literal)) {
                read += 1;
                assert_eq!(forbidden_word(literal), None, "{name}: {literal}");
            }
        }
        assert!(read > 40, "only {read} statements were found");
    }

    fn is_statement(literal: &str) -> bool {
        ["select ", "insert ", "update ", "delete ", "from ", "where ", "and "]
            .iter()
            .any(|verb| literal.starts_with(verb))
    }

    #[test]
    fn a_list_binds_each_of_its_values() {
        let statement = Statement::new("select id from calls where id in ").push_list(["a", "b"]);
        assert_eq!(statement.sql, "select id from calls where id in ($1, $2)");
        assert_eq!(statement.args.len(), 2);
        assert!(Statement::new("in ").push_list([]).sql.ends_with("in (null)"));
    }
}
