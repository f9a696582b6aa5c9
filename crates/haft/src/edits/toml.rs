//! One table or one key of a TOML file.

use std::ops::Range;

use anyhow::{Context, Result, ensure};
use toml::{
    Spanned, Table, Value,
    de::{DeTable, DeValue},
};

use super::replaced;

/// The text with these keys in a table. What else the table says stays as it is written, as all else does.
pub(crate) fn put_table(text: &str, path: [&str; 2], keys: &[(&str, Value)]) -> Result<String> {
    let before = parse(text)?;
    let mut table = at(&before, path).and_then(Value::as_table).cloned().unwrap_or_default();
    let mut edited = text.to_owned();
    let mut above = None;
    for (key, value) in keys {
        if table.insert((*key).to_owned(), value.clone()).as_ref() != Some(value) {
            edited = with_key(&edited, path, (key, value), above);
        }
        above = Some(*key);
    }
    checked(edited, before, path, Value::Table(table))
}

/// A new key stands beneath the one that comes before it, or beneath the header, which may be new, too.
fn with_key(text: &str, [outer, inner]: [&str; 2], (key, value): (&str, &Value), above: Option<&str>) -> String {
    if let Some(old) = span(text, &[outer, inner, key]) {
        return replaced(text, old, &value.to_string());
    }
    let line = format!("{key} = {value}");
    let above = above.and_then(|above| span(text, &[outer, inner, above]));
    match above.or_else(|| header(text, &[outer, inner])) {
        Some(above) => beneath(text, above.end, &line),
        None => at_the_end(text, &format!("[{outer}.{inner}]\n{line}\n")),
    }
}

/// The text with this value of a key in a section, in the place of one that was there.
pub(crate) fn put_key(text: &str, path: [&str; 2], value: &Value) -> Result<String> {
    let before = parse(text)?;
    if at(&before, path) == Some(value) {
        return Ok(text.to_owned());
    }
    let [table, key] = path;
    let edited = match (span(text, &path), header(text, &[table])) {
        (Some(old), _) => replaced(text, old, &value.to_string()),
        (None, Some(header)) => beneath(text, header.end, &format!("{key} = {value}")),
        (None, None) => before_all_headers(text, &format!("{table}.{key} = {value}\n")),
    };
    checked(edited, before, path, value.clone())
}

/// Whether something stands at a path.
pub(crate) fn has(text: &str, path: &[&str]) -> bool {
    span(text, path).is_some()
}

/// All that it says.
fn parse(text: &str) -> Result<Table> {
    text.parse().context("it is not TOML")
}

/// What stands at a path.
fn at<'a>(table: &'a Table, [first, second]: [&str; 2]) -> Option<&'a Value> {
    table.get(first)?.as_table()?.get(second)
}

/// Only what says what it should, and all that it said before, is written.
fn checked(edited: String, mut before: Table, [first, second]: [&str; 2], value: Value) -> Result<String> {
    let outer = before.entry(first).or_insert_with(|| Value::Table(Table::new()));
    if let Some(outer) = outer.as_table_mut() {
        outer.insert(second.to_owned(), value);
    }
    let after = parse(&edited).ok();
    ensure!(after.as_ref() == Some(&before), "it is written in a way that haft does not change by itself");
    Ok(edited)
}

/// Where the value at a path is written.
fn span(text: &str, path: &[&str]) -> Option<Range<usize>> {
    find(&DeTable::parse(text).ok()?, path).map(Spanned::span)
}

/// Where the header of the table at a path is written, if it has one.
fn header(text: &str, path: &[&str]) -> Option<Range<usize>> {
    let document = DeTable::parse(text).ok()?;
    let found = find(&document, path).filter(|found| found.get_ref().is_table())?;
    Some(found.span()).filter(|span| text[span.clone()].starts_with('['))
}

fn find<'a, 'i>(document: &'a Spanned<DeTable<'i>>, path: &[&str]) -> Option<&'a Spanned<DeValue<'i>>> {
    let (last, outer) = path.split_last()?;
    let table = outer.iter().try_fold(document.get_ref(), |table, key| table.get(*key)?.get_ref().as_table())?;
    table.get(*last)
}

/// One more line after the one of this place, whose comment stays with it.
fn beneath(text: &str, at: usize, line: &str) -> String {
    let rest = text[at..].split('\n').next().unwrap_or_default();
    let end = at + rest.trim_end_matches('\r').len();
    replaced(text, end..end, &format!("\n{line}"))
}

/// The lines after an empty one.
fn at_the_end(text: &str, lines: &str) -> String {
    let ended = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    let has_empty = text.trim().is_empty() || text.ends_with("\n\n") || text.ends_with("\n\r\n");
    let empty = if has_empty { "" } else { "\n" };
    replaced(text, text.len()..text.len(), &format!("{ended}{empty}{lines}"))
}

/// The line before the first header and the comments that lead over to it.
fn before_all_headers(text: &str, line: &str) -> String {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let says_something = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with('#');
    let before = match lines.iter().position(|line| line.trim().starts_with('[')) {
        Some(header) => lines[..header].iter().rposition(says_something).map_or(0, |last| last + 1),
        None => lines.len(),
    };
    let end = lines[..before].iter().map(|line| line.len()).sum();
    let ended = if end == 0 || text[..end].ends_with('\n') { "" } else { "\n" };
    replaced(text, end..end, &format!("{ended}{line}"))
}

#[cfg(test)]
mod tests {
    use toml::Value;

    use super::{put_key, put_table};

    fn entry() -> [(&'static str, Value); 2] {
        [("command", Value::from("/bin/haft")), ("args", Value::from(vec!["mcp"]))]
    }

    const WRITTEN: &str = "[mcp_servers.haft]\ncommand = \"/bin/haft\"\nargs = [\"mcp\"]\n";

    fn put(text: &str) -> String {
        let once = put_table(text, ["mcp_servers", "haft"], &entry()).unwrap();
        assert_eq!(put_table(&once, ["mcp_servers", "haft"], &entry()).unwrap(), once, "twice is once");
        once
    }

    #[test]
    fn a_table_is_added_at_the_end() {
        assert_eq!(put(""), WRITTEN);
        assert_eq!(put("a = 1 # one\n"), format!("a = 1 # one\n\n{WRITTEN}"));
        assert_eq!(put("[mcp_servers.x] # x\na = 1"), format!("[mcp_servers.x] # x\na = 1\n\n{WRITTEN}"));
    }

    #[test]
    fn only_our_keys_of_a_table_are_set_where_it_stands() {
        let old = "# top\n[ mcp_servers . \"haft\" ] # mine\n# why\nenv = { A = '1' }\ncommand = 'old' # here\nslow = 600 # keep\n\n# of x\n[x]\nb = 2\n";
        let new = old.replace("'old' # here\n", "\"/bin/haft\" # here\nargs = [\"mcp\"]\n");
        assert_eq!(put(old), new);
        let long = "[mcp_servers.haft]\nargs = [ # all\n  'old',\n] # args\ncommand = '/bin/haft'";
        let new = "[mcp_servers.haft]\nargs = [\"mcp\"] # args\ncommand = '/bin/haft'";
        assert_eq!(put(long), new);
        let inline = "mcp_servers = { haft = { command = 'x', args = [], a = 1 } }";
        assert_eq!(put(inline), "mcp_servers = { haft = { command = \"/bin/haft\", args = [\"mcp\"], a = 1 } }");
    }

    #[test]
    fn a_table_beneath_it_stays_wherever_it_stands() {
        let alone = "[mcp_servers.haft.env]\nA = 'b'\n";
        assert_eq!(put(alone), format!("{alone}\n{WRITTEN}"));
        let first = format!("{alone}\n[mcp_servers.haft]\ncommand = 'old'\n\n[z]\na = 1\n");
        assert_eq!(put(&first), format!("{alone}\n{WRITTEN}\n[z]\na = 1\n"));
        let last = format!("[mcp_servers.haft]\n\n{alone}");
        assert_eq!(put(&last), format!("{WRITTEN}\n{alone}"));
    }

    #[test]
    fn lines_end_as_the_others_do() {
        let ends_in_two = |text: &str| text.replace('\n', "\r\n");
        for old in
            ["a = 1\n", "a = 1\n\n", "[mcp_servers.haft] # mine\nb = 1\n", "[mcp_servers.haft]\ncommand = 1 # c\n"]
        {
            assert_eq!(put(&ends_in_two(old)), ends_in_two(&put(old)));
        }
        for old in ["a = 1\n\n[b]\n", "[mcp]\nb = 1\n", "[mcp]\nmay = 1 # c\n"] {
            let put = |text: &str| put_key(text, ["mcp", "may"], &Value::from("safe")).unwrap();
            assert_eq!(put(&ends_in_two(old)), ends_in_two(&put(old)));
        }
    }

    #[test]
    fn what_cannot_be_changed_for_certain_is_left() {
        for odd in [
            "mcp_servers = { haft = { command = 'x' } }",
            "mcp_servers.haft.command = 'x'",
            "[[mcp_servers]]",
            "[[mcp_servers.haft]]",
            "[mcp_servers.haft.args]",
            "a = [",
            "mcp_servers = 1",
        ] {
            assert!(put_table(odd, ["mcp_servers", "haft"], &entry()).is_err(), "{odd}");
        }
        let quoted = "a = '''\n[mcp_servers.haft]\n'''\n";
        assert_eq!(put(quoted), format!("{quoted}\n{WRITTEN}"), "what only looks like a header is none");
    }

    #[test]
    fn a_key_is_set_in_its_section_or_before_all() {
        let put = |text: &str| {
            let once = put_key(text, ["mcp", "may"], &Value::from("safe")).unwrap();
            assert_eq!(put_key(&once, ["mcp", "may"], &Value::from("safe")).unwrap(), once);
            once
        };
        assert_eq!(put(""), "mcp.may = \"safe\"\n");
        assert_eq!(put("mcp.may = 'none'\nb = 1\n"), "mcp.may = \"safe\"\nb = 1\n");
        assert_eq!(put("# me\n[a]\nb = 1\n"), "mcp.may = \"safe\"\n# me\n[a]\nb = 1\n");
        assert_eq!(put("z = 1\n\n[a]\nb = 1\n"), "z = 1\nmcp.may = \"safe\"\n\n[a]\nb = 1\n");
        assert_eq!(put("[mcp]\npins = []\n"), "[mcp]\nmay = \"safe\"\npins = []\n");
        assert_eq!(put("[mcp]\n# why\nmay = 'all'\n[b]\n"), "[mcp]\n# why\nmay = \"safe\"\n[b]\n");
        assert_eq!(put("[mcp.servers.x]\na = 1\n"), "mcp.may = \"safe\"\n[mcp.servers.x]\na = 1\n");
        assert_eq!(put("[mcp]\nmay = 'all' # why\n"), "[mcp]\nmay = \"safe\" # why\n");
        assert_eq!(put("mcp = { may = 'all' }"), "mcp = { may = \"safe\" }");
        assert!(put_key("mcp = { pins = [] }", ["mcp", "may"], &Value::from("safe")).is_err());
    }
}
