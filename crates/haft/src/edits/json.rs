//! One entry of a JSON file, which may have comments and trailing commas.

mod scan;

use std::ops::Range;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value};

use super::replaced;
use scan::{JsonScanner, plain};

/// How far a file is indented that does not show it.
const INDENT: &str = "  ";

/// The text with this entry at this path, in the place of one that was there; all else stays as it is written.
pub(crate) fn put(text: &str, path: &[&str], entry: &Value) -> Result<String> {
    if text.trim().is_empty() {
        return Ok(pretty(&nested(path, entry), "", INDENT) + "\n");
    }
    let before = parse(text)?;
    if at(&before, path) == Some(entry) {
        return Ok(text.to_owned());
    }
    let edited = edit(text, path, entry)?;
    let mut wanted = before;
    set(&mut wanted, path, entry)?;
    ensure!(
        parse(&edited).ok().as_ref() == Some(&wanted),
        "it is written in a way that haft does not change by itself"
    );
    Ok(edited)
}

/// The same, but only what the entry says is set: what else stands in an object that is there already, stays.
pub(crate) fn merge(text: &str, path: &[&str], entry: &Value) -> Result<String> {
    let is_there = || parse(text).is_ok_and(|before| at(&before, path).is_some_and(Value::is_object));
    match entry.as_object().filter(|_| is_there()) {
        Some(fields) => fields.iter().try_fold(text.to_owned(), |text, (key, value)| {
            merge(&text, &path.iter().copied().chain([key.as_str()]).collect::<Vec<_>>(), value)
        }),
        None => put(text, path, entry),
    }
}

/// The text without the entry at this path, and without the comma that it needed; all else stays as it is written.
pub(crate) fn remove(text: &str, path: &[&str]) -> Result<String> {
    let mut wanted = parse(text)?;
    let (key, parents) = path.split_last().context("there is nothing to remove")?;
    let parent = parents.iter().try_fold(&mut wanted, |value, key| value.get_mut(key));
    let removed = parent.and_then(Value::as_object_mut).and_then(|fields| fields.shift_remove(*key));
    ensure!(removed.is_some(), "it has no `{key}`");
    let mut object = JsonScanner { text, at: 0 }.next_token().context("it is empty")?;
    let unreadable = || format!("what should hold `{key}` is not an object");
    for parent in parents {
        let members = members(text, object).with_context(unreadable)?;
        let member = members.list.iter().find(|member| member.key == *parent).with_context(unreadable)?;
        object = member.value.start;
    }
    let edited = members(text, object).and_then(|members| members.without(key)).with_context(unreadable)?;
    ensure!(
        parse(&edited).ok().as_ref() == Some(&wanted),
        "it is written in a way that haft does not change by itself"
    );
    Ok(edited)
}

/// What stands at a path.
pub(crate) fn at<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, key| value.get(key))
}

/// The value, without comments and trailing commas.
pub(crate) fn parse(text: &str) -> Result<Value> {
    let value: Value = serde_json::from_str(&plain(text)).context("it is not JSON")?;
    ensure!(value.is_object(), "it is not a JSON object");
    Ok(value)
}

fn set(value: &mut Value, path: &[&str], entry: &Value) -> Result<()> {
    let Some((key, rest)) = path.split_first() else {
        *value = entry.clone();
        return Ok(());
    };
    let fields = value.as_object_mut().with_context(|| format!("what should hold `{key}` is not an object"))?;
    set(fields.entry(*key).or_insert_with(|| Value::Object(Map::new())), rest, entry)
}

fn nested(path: &[&str], entry: &Value) -> Value {
    path.iter().rev().fold(entry.clone(), |inner, key| Value::Object(Map::from_iter([((*key).to_owned(), inner)])))
}

fn edit(text: &str, path: &[&str], entry: &Value) -> Result<String> {
    let root = JsonScanner { text, at: 0 }.next_token().context("it is empty")?;
    let unit = indent_of_first_member(text, root).unwrap_or(INDENT);
    let mut object = root;
    for (depth, key) in path.iter().enumerate() {
        let members = members(text, object).with_context(|| format!("what should hold `{key}` is not an object"))?;
        match members.list.iter().find(|member| member.key == *key) {
            Some(member) if depth + 1 == path.len() => {
                let written = if begins_its_line(text, member.start) {
                    pretty(entry, indent(text, member.start), unit)
                } else {
                    entry.to_string()
                };
                return Ok(replaced(text, member.value.clone(), &written));
            }
            Some(member) => object = member.value.start,
            None => return Ok(members.with(key, &nested(&path[depth + 1..], entry), unit)),
        }
    }
    bail!("there is nothing to set")
}

/// The members of one object, and where it begins and ends.
struct JsonMembers<'a> {
    text: &'a str,
    open: usize,
    list: Vec<JsonMember>,
    /// After the last comma, when nothing but the end follows it.
    trailing: Option<usize>,
    close: usize,
}

struct JsonMember {
    key: String,
    start: usize,
    value: Range<usize>,
}

impl JsonMembers<'_> {
    /// The whole text with one more member. What is remarked behind the last one stays with it.
    fn with(&self, key: &str, value: &Value, unit: &str) -> String {
        let Self { text, open, .. } = *self;
        let named = |value: String| format!("{}: {value}", Value::from(key));
        let Some(last) = self.list.last() else {
            let outer = indent(text, open);
            let inner = format!("{outer}{unit}");
            let member = named(pretty(value, &inner, unit));
            let remarked = text[..self.close].trim_end().len();
            return replaced(text, remarked..self.close, &format!("\n{inner}{member}\n{outer}"));
        };
        let end = self.trailing.unwrap_or(last.value.end);
        let (comma, trailing) = if self.trailing.is_some() { ("", ",") } else { (",", "") };
        let remarked = JsonScanner { text, at: end }.end_of_remarks();
        let ends_its_line = text[remarked..].trim_start_matches([' ', '\t']).starts_with(['\r', '\n']);
        let member = if ends_its_line || begins_its_line(text, last.start) {
            let indent = indent(text, last.start);
            format!("\n{indent}{}", named(pretty(value, indent, unit)))
        } else {
            format!(" {}", named(value.to_string()))
        };
        let added = replaced(text, remarked..remarked, &format!("{member}{trailing}"));
        replaced(&added, end..end, comma)
    }
}

impl JsonMembers<'_> {
    /// The whole text without one member.
    fn without(&self, key: &str) -> Option<String> {
        let text = self.text;
        let index = self.list.iter().position(|member| member.key == key)?;
        let (member, next) = (&self.list[index], self.list.get(index + 1));
        let before = text[..member.start].trim_end_matches([' ', '\t', '\r', '\n']).len();
        let end = match next {
            Some(_) => self.comma_after(member)? + 1,
            None => self.trailing.unwrap_or(member.value.end),
        };
        let cut = replaced(text, before..end, "");
        // The comma behind the one before it is left over.
        let left = self.list[..index].last().filter(|_| next.is_none() && self.trailing.is_none());
        match left {
            Some(last) => self.comma_after(last).map(|comma| replaced(&cut, comma..comma + 1, "")),
            None => Some(cut),
        }
    }

    fn comma_after(&self, member: &JsonMember) -> Option<usize> {
        JsonScanner { text: self.text, at: member.value.end }.next_token()
    }
}

fn members(text: &str, open: usize) -> Option<JsonMembers<'_>> {
    let mut scan = JsonScanner { text, at: open };
    scan.take(b'{')?;
    let mut found = JsonMembers { text, open, list: Vec::new(), trailing: None, close: 0 };
    loop {
        let start = scan.next_token()?;
        if scan.take(b'}').is_some() {
            found.close = start;
            return Some(found);
        }
        let key = scan.skip_value()?;
        let key = serde_json::from_str(&text[key]).ok()?;
        scan.next_token()?;
        scan.take(b':')?;
        scan.next_token()?;
        let value = scan.skip_value()?;
        found.list.push(JsonMember { key, start, value });
        scan.next_token()?;
        found.trailing = scan.take(b',').map(|()| scan.at);
    }
}

fn pretty(value: &Value, indent: &str, unit: &str) -> String {
    let formatter = serde_json::ser::PrettyFormatter::with_indent(unit.as_bytes());
    let mut bytes = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    // A value that was made from JSON can be written as JSON.
    let _ = serde::Serialize::serialize(value, &mut serializer);
    String::from_utf8_lossy(&bytes).replace('\n', &format!("\n{indent}"))
}

fn indent_of_first_member(text: &str, root: usize) -> Option<&str> {
    let first = members(text, root)?.list.first()?.start;
    begins_its_line(text, first).then(|| indent(text, first)).filter(|indent| !indent.is_empty())
}

/// The white space that the line of this place begins with.
fn indent(text: &str, at: usize) -> &str {
    let line = &text[text[..at].rfind('\n').map_or(0, |end| end + 1)..];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

fn begins_its_line(text: &str, at: usize) -> bool {
    let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
    line > 0 && text[line..at].trim().is_empty()
}

#[cfg(test)]
mod tests;
