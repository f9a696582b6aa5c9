//! A long result as head and tail, with the whole of it kept for `result_query`.

use std::{fmt, ops::Range};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::{Value, json, value::RawValue};

use crate::{Limits, Structured, ToolOutput};

/// The most that is told of where a value was cut.
const CUTS_TOLD: usize = 20;

/// How long the whole text is, in the metadata of a shortened output.
const TOTAL: &str = "total_chars";

/// That the envelope has the value whole, in the metadata of what is kept beside it.
const IN_ENVELOPE: &str = "value_in_envelope";

/// The output within the limits, and the whole of it when something was cut.
/// The notice stands in the text for the model only, never inside the value: that stays what its schema says, with the
/// beginnings of its long texts and lists, and the metadata say which.
pub(crate) fn shortened(output: ToolOutput, limits: &Limits) -> (ToolOutput, Option<ToolOutput>) {
    let content = head_and_tail(&output.content, limits.content_chars);
    let value = pruned(&output.structured, limits.structured_bytes);
    if content.is_none() && value.is_none() {
        return (output, None);
    }
    let mut metadata = output.metadata.clone();
    metadata.insert("truncated".to_owned(), Value::Bool(true));
    metadata.insert(TOTAL.to_owned(), output.content.chars().count().into());
    let value_is_whole = value.is_none();
    let structured = match value {
        Some((value, cuts)) => {
            metadata.insert("cut".to_owned(), cuts);
            value
        }
        None => output.structured.clone(),
    };
    let cut = |text: &String| head_and_tail(text, limits.content_chars).unwrap_or_else(|| text.clone());
    let short = ToolOutput {
        content: content.unwrap_or_else(|| output.content.clone()),
        display_content: output.display_content.as_ref().map(cut),
        structured,
        images: output.images.clone(),
        audio: output.audio.clone(),
        resources: output.resources.clone(),
        metadata,
    };
    let mut whole = capped(output, limits.kept_bytes);
    // Only this file says so, whatever a tool has put there.
    whole.metadata.remove(IN_ENVELOPE);
    if value_is_whole {
        whole.structured = Structured::default();
        whole.metadata.insert(IN_ENVELOPE.to_owned(), Value::Bool(true));
    }
    (short, Some(whole))
}

impl ToolOutput {
    /// Whether its value is to be read from the envelope that it is kept beside: nothing long is kept twice.
    pub fn leaves_its_value(&self) -> bool {
        self.metadata.contains_key(IN_ENVELOPE)
    }

    /// The whole output with the value of its envelope.
    pub fn with_value_of(mut self, envelope: ToolOutput) -> ToolOutput {
        self.metadata.remove(IN_ENVELOPE);
        self.structured = envelope.structured;
        self
    }
}

/// Whether this is not the whole of an output. A tool may itself say `truncated`; only this file says how long it was.
pub(crate) fn is_shortened(output: &ToolOutput) -> bool {
    output.metadata.contains_key(TOTAL)
}

/// No more than so much is kept of text and value; what was longer is marked.
fn capped(mut output: ToolOutput, most: usize) -> ToolOutput {
    let value = pruned(&output.structured, most);
    if output.content.len() <= most && value.is_none() {
        return output;
    }
    output.metadata.insert("capped".to_owned(), Value::Bool(true));
    output.content.truncate(output.content.floor_char_boundary(most));
    if let Some((value, _)) = value {
        output.structured = value;
    }
    output
}

fn head_and_tail(text: &str, most: usize) -> Option<String> {
    // Bytes are never fewer than characters, so a short text is settled without counting.
    if text.len() <= most || text.chars().count() <= most {
        return None;
    }
    let head_end = text.char_indices().nth(most * 3 / 5).map_or(text.len(), |(at, _)| at);
    let tail_start = text.char_indices().rev().nth(most * 2 / 5).map_or(0, |(at, _)| at);
    let omitted = tail_start - head_end;
    Some(format!(
        "{}\n… {omitted} bytes omitted; `result_query` with this call's id reads them …\n{}",
        &text[..head_end],
        &text[tail_start..]
    ))
}

/// The value with its long texts and lists cut to their beginnings, and which they are; `None` when it fits.
fn pruned(value: &Structured, most: usize) -> Option<(Structured, Value)> {
    let whole = value.raw();
    if whole.get().len() <= most {
        return None;
    }
    let mut cuts = Vec::new();
    let mut kept = String::with_capacity(most);
    prune(whole, most, "", (&mut kept, &mut cuts));
    // What is put together from pieces of JSON is JSON.
    let kept = RawValue::from_string(kept).ok()?;
    Some((kept.into(), Value::Array(cuts)))
}

/// Works on the text: of what is left out, nothing is ever made.
fn prune(value: &RawValue, room: usize, pointer: &str, (kept, cuts): (&mut String, &mut Vec<Value>)) {
    let text = value.get();
    if text.len() <= room {
        return kept.push_str(text);
    }
    match Parts::of(value) {
        Parts::Text(text) => {
            let (mut end, mut fits, mut total) = (0, 0, 0);
            for letter in letters(text) {
                total += 1;
                if letter.end <= room {
                    (end, fits) = (letter.end, total);
                }
            }
            tell(cuts, json!({"pointer": pointer, "kept": fits, "total": total}));
            kept.extend(["\"", &text[..end], "\""]);
        }
        Parts::List(items) => {
            let mut left = room;
            let fits = items.iter().take_while(|item| take(&mut left, item.get().len() + 1)).count();
            tell(cuts, json!({"pointer": pointer, "kept": fits, "total": items.len()}));
            kept.push('[');
            kept.push_str(&items[..fits].iter().map(|item| item.get()).collect::<Vec<_>>().join(","));
            kept.push(']');
        }
        Parts::Fields(fields) => {
            let rooms = shared(&fields, room);
            for (at, ((name, inner), room)) in fields.iter().zip(rooms).enumerate() {
                kept.push(if at == 0 { '{' } else { ',' });
                kept.push_str(&Value::from(name.as_str()).to_string());
                kept.push(':');
                prune(inner, room, &format!("{pointer}/{}", escaped(name)), (&mut *kept, &mut *cuts));
            }
            kept.push('}');
        }
        Parts::None => kept.push_str(text),
    }
}

/// Where each letter lies in a text as JSON has it between quotes; a letter may be escaped.
fn letters(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = text.get(at..)?;
        let first = rest.chars().next()?;
        let length = match rest.as_bytes() {
            // Half a letter, the other half follows.
            [b'\\', b'u', b'd' | b'D', b'8' | b'9' | b'a' | b'b' | b'A' | b'B', _, _, b'\\', b'u', ..] => 12,
            [b'\\', b'u', ..] => 6,
            [b'\\', ..] => 2,
            _ => first.len_utf8(),
        };
        let begin = at;
        at += length.min(rest.len());
        Some(begin..at)
    })
}

/// How much room each field has: the small ones stay whole, the large ones share what is left.
fn shared(fields: &[(String, &RawValue)], room: usize) -> Vec<usize> {
    let mut left = room.saturating_sub(fields.iter().map(|(name, _)| name.len() + 4).sum());
    let mut by_length: Vec<usize> = (0..fields.len()).collect();
    by_length.sort_by_key(|at| fields[*at].1.get().len());
    let mut rooms = vec![0; fields.len()];
    for (done, at) in by_length.into_iter().enumerate() {
        let share = left / (fields.len() - done);
        rooms[at] = share;
        left -= share.min(fields[at].1.get().len());
    }
    rooms
}

/// What a value is made of, one level down.
enum Parts<'a> {
    /// What stands between the quotes.
    Text(&'a str),
    List(Vec<&'a RawValue>),
    Fields(Vec<(String, &'a RawValue)>),
    /// Nothing that could be left out.
    None,
}

impl<'a> Parts<'a> {
    fn of(value: &'a RawValue) -> Self {
        let text = value.get();
        let parts = match text.as_bytes().first() {
            Some(b'"') => Ok(Self::Text(&text[1..text.len() - 1])),
            Some(b'[') => serde_json::from_str(text).map(Self::List),
            Some(b'{') => serde_json::from_str(text).map(|Fields(fields)| Self::Fields(fields)),
            Some(_) | None => Ok(Self::None),
        };
        parts.unwrap_or(Self::None)
    }
}

/// The fields of an object in their order.
struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        from.deserialize_map(InOrder)
    }
}

fn take(left: &mut usize, wanted: usize) -> bool {
    let fits = wanted <= *left;
    *left = left.saturating_sub(wanted);
    fits
}

fn tell(cuts: &mut Vec<Value>, cut: Value) {
    if cuts.len() < CUTS_TOLD {
        cuts.push(cut);
    }
}

/// A name as a part of a JSON Pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        Limits { content_chars: 100, structured_bytes: 1000, kept_bytes: 5000, ..Limits::default() }
    }

    fn output(content: &str, structured: Value) -> ToolOutput {
        ToolOutput { content: content.to_owned(), structured: structured.into(), ..ToolOutput::default() }
    }

    #[test]
    fn what_fits_is_left_as_it_is() {
        let small = output("text", json!({"a": [1, 2, 3]}));
        assert_eq!(shortened(small.clone(), &limits()), (small, None));
    }

    #[test]
    fn a_large_value_keeps_its_shape_and_is_kept_whole_beside() {
        let large = json!({"path": "a", "content": "é".repeat(900), "lines": vec![json!({"n": "x".repeat(50)}); 40]});
        let (short, whole) = shortened(output("text", large.clone()), &limits());
        assert_eq!(*whole.unwrap().structured, large);
        assert!(short.structured.text().len() < 1200, "{}", short.structured.text().len());
        assert_eq!(short.structured["path"], "a");
        let kept = short.structured["lines"].as_array().unwrap().len();
        assert!(short.structured["content"].as_str().unwrap().chars().all(|letter| letter == 'é') && kept > 2);
        let cut = |pointer: &str| {
            let cuts = short.metadata["cut"].as_array().unwrap();
            cuts.iter().find(|cut| cut["pointer"] == pointer).unwrap().clone()
        };
        assert_eq!(cut("/lines"), json!({"pointer": "/lines", "kept": kept, "total": 40}));
        assert_eq!(cut("/content")["total"], 900);
        assert_eq!(short.metadata["truncated"], true);
    }

    #[test]
    fn a_value_that_fits_is_kept_once() {
        let long = output(&"text ".repeat(50), json!({"a": [1, 2, 3]}));
        let (short, whole) = shortened(long.clone(), &limits());
        let whole = whole.unwrap();
        assert!(whole.leaves_its_value() && whole.structured.is_null());
        assert_eq!(short.structured, long.structured);
        assert_eq!(whole.with_value_of(short), long);
    }

    #[test]
    fn no_tool_can_say_that_its_value_lies_elsewhere() {
        let mut long = output("text", json!({"a": "y".repeat(2000)}));
        long.metadata.insert(IN_ENVELOPE.to_owned(), json!(true));
        let whole = shortened(long.clone(), &limits()).1.unwrap();
        assert!(!whole.leaves_its_value() && whole.structured == long.structured);
    }

    #[test]
    fn letters_that_are_long_in_json_count_as_what_they_take() {
        let (short, _) = shortened(output("text", json!({"a": "\u{1}".repeat(900), "b": "\"".repeat(900)})), &limits());
        assert!(short.structured.text().len() < 1100, "{}", short.structured.text().len());
        let kept = |name: &str| short.structured[name].as_str().unwrap().len();
        assert!(kept("a") > 50 && kept("b") > 150, "{:?}", short.structured);
    }

    #[test]
    fn no_letter_is_cut_however_it_is_written() {
        let written = RawValue::from_string(r#""a\ud83d\uDE00\n\u00e9é\\\"z🦀""#.to_owned()).unwrap();
        let whole: String = serde_json::from_str(written.get()).unwrap();
        for room in 0..written.get().len() {
            let (mut kept, mut cuts) = (String::new(), Vec::new());
            prune(&written, room, "", (&mut kept, &mut cuts));
            let read: String = serde_json::from_str(&kept).unwrap();
            assert!(whole.starts_with(&read) && kept.len() <= room + 2, "{room}: {kept}");
            assert_eq!(cuts, [json!({"pointer": "", "kept": read.chars().count(), "total": 9})]);
        }
    }

    #[test]
    fn what_is_kept_has_an_end_that_is_marked() {
        let (_, whole) = shortened(output(&"ü".repeat(9000), json!({"a": "y".repeat(9000)})), &limits());
        let whole = whole.unwrap();
        assert_eq!((whole.content.len(), &whole.metadata["capped"]), (5000, &json!(true)));
        assert!(whole.structured["a"].as_str().unwrap().len() <= 5000);
        let (_, whole) = shortened(output(&"u".repeat(4000), json!(null)), &limits());
        assert_eq!(whole.unwrap().metadata.get("capped"), None);
    }
}
