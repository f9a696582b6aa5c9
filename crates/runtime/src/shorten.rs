//! A long result as head and tail, with the whole of it kept for `result_query`.

use std::{collections::HashMap, fmt, ops::Range};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};

use crate::{CallId, Limits, Structured, ToolError, ToolOutput, outcome::CAPPED, references};

/// The most that is told of where a value was cut.
const CUTS_TOLD: usize = 20;

/// A text this short may stand in a value twice: to tell of that would cost as much.
const SHORT: usize = 1000;

/// A value this small is told as it is, and not even looked into: most are.
const SMALL: usize = 8 << 10;

/// The most bytes that it takes to say how much is missing between two ends.
const OMITTED: usize = 50;

/// How long the whole text is, in the metadata of a shortened output.
const TOTAL: &str = "total_chars";

/// That some of a text or value is missing: in metadata, in the value itself and in the details of an error.
const TRUNCATED: &str = "truncated";

/// Which call has the whole of it, beside that.
const CALL_ID: &str = "callId";

/// That half of an output would be worth nothing, in its metadata. Its tool sees to it that it is not too long.
pub const INDIVISIBLE: &str = "indivisible";

/// That the envelope has the value whole, in the metadata of what is kept beside it.
const IN_ENVELOPE: &str = "value_in_envelope";

/// The output of a call within the limits, and the whole of it when something was cut.
/// Text and value each say whether they lack something, and which call has it. The value stays what its schema says, with
/// the beginnings of its long texts and lists, and the metadata say which.
/// What is handed on was shortened by the call that gave it, which keeps the whole.
pub(crate) fn shortened(output: ToolOutput, limits: &Limits, call: &CallId) -> (ToolOutput, Option<ToolOutput>) {
    if output.handed_on.is_some() || output.metadata.contains_key(INDIVISIBLE) {
        return (output, None);
    }
    let content = head_and_tail(&output.content, limits.content_chars, call);
    let value = pruned(&output.structured, limits.structured_bytes);
    if content.is_none() && value.is_none() {
        return (naming_its_call(output, call), None);
    }
    let mut metadata = output.metadata.clone();
    metadata.insert(TRUNCATED.to_owned(), Value::Bool(true));
    metadata.insert(TOTAL.to_owned(), output.content.chars().count().into());
    let value_is_whole = value.is_none();
    let structured = match value {
        Some((value, cuts)) => {
            metadata.insert("cut".to_owned(), cuts);
            value.marked_as_cut(call)
        }
        None => output.structured.clone(),
    };
    let cut = |text: &String| head_and_tail(text, limits.content_chars, call).unwrap_or_else(|| text.clone());
    let short = ToolOutput {
        content: content.unwrap_or_else(|| output.content.clone()),
        display_content: output.display_content.as_ref().map(cut),
        structured,
        images: output.images.clone(),
        audio: output.audio.clone(),
        resources: output.resources.clone(),
        metadata,
        handed_on: None,
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

/// A value that says of itself that it lacks something says in which call.
fn naming_its_call(mut output: ToolOutput, call: &CallId) -> ToolOutput {
    if output.structured.text().contains("\"truncated\":true") && output.structured[TRUNCATED] == Value::Bool(true) {
        output.structured = output.structured.marked_as_cut(call);
    }
    output
}

impl ToolOutput {
    /// Whether this is not the whole of an output. A tool may itself say `truncated`; only this file says how long it was.
    pub fn is_shortened(&self) -> bool {
        self.metadata.contains_key(TOTAL)
    }

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

/// No more than so much is kept of text and value; what was longer is marked.
fn capped(mut output: ToolOutput, most: usize) -> ToolOutput {
    let value = pruned(&output.structured, most);
    if output.content.len() <= most && value.is_none() {
        return output;
    }
    output.metadata.insert(CAPPED.to_owned(), Value::Bool(true));
    output.content.truncate(output.content.floor_char_boundary(most));
    if let Some((value, _)) = value {
        output.structured = value;
    }
    output
}

/// The details of an error within the room that the text of a result has; what is longer keeps its two ends, says which
/// call has the whole, and the whole of what the work had said is given back.
pub(crate) fn shorten_details(error: &mut ToolError, limits: &Limits, call: &CallId) -> Option<ToolOutput> {
    let details = Structured::from(Value::Object(error.details.clone()));
    if details.text().len() <= limits.content_chars {
        return None;
    }
    let (short, _) = Pruner::new(ShortenMode::Ends, limits.content_chars).whole(details.raw(), limits.content_chars)?;
    let content = error.said().map(|(name, said)| format!("[{name}]\n{}\n", said.trim_end_matches('\n'))).collect();
    if let Value::Object(mut short) = short.into_value() {
        short.insert(TRUNCATED.to_owned(), Value::Bool(true));
        short.insert(CALL_ID.to_owned(), call.as_str().into());
        error.details = short;
    }
    Some(capped(ToolOutput { content, structured: details, ..ToolOutput::default() }, limits.kept_bytes))
}

impl ToolError {
    /// Where the whole is of what the work had said, if some of it is missing here; a line for models.
    pub(crate) fn cut_note(&self) -> Option<String> {
        let call = self.details.get(TRUNCATED).and_then(|_| self.details.get(CALL_ID)?.as_str())?;
        Some(format!("[cut; `result_query` with `callId` {call} reads all of it]"))
    }
}

fn head_and_tail(text: &str, most: usize, call: &CallId) -> Option<String> {
    // Bytes are never fewer than characters, so a short text is settled without counting.
    if text.len() <= most || text.chars().count() <= most {
        return None;
    }
    let head_end = text.char_indices().nth(most * 3 / 5).map_or(text.len(), |(at, _)| at);
    let tail_start = text.char_indices().rev().nth(most * 2 / 5).map_or(0, |(at, _)| at);
    let omitted = tail_start - head_end;
    Some(format!(
        "{}\n… {omitted} bytes omitted; `result_query` with `callId` {call} reads them, and {} as an argument hands a part of \
         the whole value on …\n{}",
        &text[..head_end],
        references::example(call.as_str()),
        &text[tail_start..]
    ))
}

/// The value with its long texts and lists cut to their beginnings, and which they are; `None` when it fits.
fn pruned(value: &Structured, most: usize) -> Option<(Structured, Value)> {
    let whole = value.raw();
    if whole.get().len() <= most {
        return None;
    }
    Pruner::new(ShortenMode::Beginnings, most).whole(whole, most)
}

impl Structured {
    /// The value with a word that it lacks something, and which call has that. What is no object has no place for it.
    #[must_use]
    pub fn marked_as_cut(self, call: &CallId) -> Self {
        let mut value = self.into_value();
        if let Value::Object(fields) = &mut value {
            fields.insert(TRUNCATED.to_owned(), Value::Bool(true));
            fields.insert(CALL_ID.to_owned(), call.as_str().into());
        }
        value.into()
    }

    /// The value in about so many bytes, for somebody who reads all of it: a long text that stands beside its equal is
    /// left out, other long texts keep their two ends and lists their beginnings. With it comes a list of what was cut;
    /// `None` when nothing was.
    pub fn brief(&self, most: usize) -> Option<(Structured, Value)> {
        let whole = self.raw();
        if whole.get().len() <= most.min(SMALL) {
            return None;
        }
        let brief = Pruner::new(ShortenMode::Ends, most).whole(whole, most);
        brief.filter(|(_, cuts)| cuts.as_array().is_some_and(|cuts| !cuts.is_empty()))
    }
}

/// What is kept of what is too long.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ShortenMode {
    /// The beginnings of texts and lists.
    Beginnings,
    /// Both ends of texts, the beginnings of lists, and each long text once.
    Ends,
}

/// Puts a value together anew. It works on the text: of what is left out, nothing is ever made.
struct Pruner {
    keep: ShortenMode,
    kept: String,
    cuts: Vec<Value>,
}

impl Pruner {
    fn new(keep: ShortenMode, most: usize) -> Self {
        Self { keep, kept: String::with_capacity(most), cuts: Vec::new() }
    }

    fn whole(mut self, value: &RawValue, room: usize) -> Option<(Structured, Value)> {
        self.prune(value, room, "");
        // What is put together from pieces of JSON is JSON.
        let kept = RawValue::from_string(self.kept).ok()?;
        Some((kept.into(), Value::Array(self.cuts)))
    }

    fn prune(&mut self, value: &RawValue, room: usize, pointer: &str) {
        let text = value.get();
        let may_repeat = self.keep == ShortenMode::Ends && text.starts_with('{') && text.len() > SHORT;
        if text.len() <= room && !may_repeat {
            return self.kept.push_str(text);
        }
        match Parts::of(value) {
            Parts::Text(text) => self.text(text, room, pointer),
            Parts::List(items) => {
                let mut left = room;
                let fits = items.iter().take_while(|item| take(&mut left, item.get().len() + 1)).count();
                self.tell(json!({"pointer": pointer, "kept": fits, "total": items.len()}));
                self.kept.push('[');
                self.kept.push_str(&items[..fits].iter().map(|item| item.get()).collect::<Vec<_>>().join(","));
                self.kept.push(']');
            }
            Parts::Fields(fields) => self.fields(fields, room, pointer),
            Parts::None => self.kept.push_str(text),
        }
    }

    fn text(&mut self, text: &str, room: usize, pointer: &str) {
        let tail = match self.keep {
            ShortenMode::Beginnings => 0,
            ShortenMode::Ends => room.saturating_sub(OMITTED) * 2 / 5,
        };
        let head = if tail == 0 { room } else { room - OMITTED - tail };
        let (mut head_end, mut tail_start) = (0, text.len());
        let (mut fits, mut total) = (0, 0);
        for letter in letters(text) {
            total += 1;
            if letter.end <= head {
                (head_end, fits) = (letter.end, fits + 1);
            } else if letter.start + tail >= text.len() {
                (tail_start, fits) = (tail_start.min(letter.start), fits + 1);
            }
        }
        self.tell(json!({"pointer": pointer, "kept": fits, "total": total}));
        let omitted =
            if tail == 0 { String::new() } else { format!("\\n… {} characters omitted …\\n", total - fits) };
        self.kept.extend(["\"", &text[..head_end], &omitted, &text[tail_start..], "\""]);
    }

    fn fields(&mut self, fields: Vec<(String, &RawValue)>, room: usize, pointer: &str) {
        let at = |name: &str| format!("{pointer}/{}", escaped(name));
        let empty = to_raw_value("").unwrap_or_else(|_| RawValue::NULL.to_owned());
        let mut fields: Vec<(String, &RawValue)> = fields;
        if self.keep == ShortenMode::Ends {
            for (later, first) in copies(&fields) {
                self.tell(json!({"pointer": at(&fields[later].0), "same": at(&fields[first].0)}));
                fields[later].1 = &empty;
            }
        }
        let rooms = shared(&fields, room);
        for (number, ((name, inner), room)) in fields.iter().zip(rooms).enumerate() {
            self.kept.push(if number == 0 { '{' } else { ',' });
            self.kept.push_str(&Value::from(name.as_str()).to_string());
            self.kept.push(':');
            self.prune(inner, room, &at(name));
        }
        self.kept.push_str(if fields.is_empty() { "{}" } else { "}" });
    }

    fn tell(&mut self, cut: Value) {
        if self.cuts.len() < CUTS_TOLD {
            self.cuts.push(cut);
        }
    }
}

/// The long texts that have stood there before, each with the first of its equals.
fn copies(fields: &[(String, &RawValue)]) -> Vec<(usize, usize)> {
    let (mut firsts, mut found) = (HashMap::new(), Vec::new());
    for (at, (_, value)) in fields.iter().enumerate() {
        let text = value.get();
        if text.starts_with('"') && text.len() > SHORT {
            let first = *firsts.entry(text).or_insert(at);
            found.extend((first != at).then_some((at, first)));
        }
    }
    found
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

/// A name as a part of a JSON Pointer.
pub(crate) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        Limits { content_chars: 100, structured_bytes: 1000, kept_bytes: 5000, ..Limits::default() }
    }

    fn shortened(output: ToolOutput, limits: &Limits) -> (ToolOutput, Option<ToolOutput>) {
        super::shortened(output, limits, &CallId::new())
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
        assert!(short.structured.text().len() < 1300, "{}", short.structured.text().len());
        assert_eq!(short.structured["path"], "a");
        assert!(short.structured["truncated"] == true && short.structured["callId"].is_string());
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
        assert!(short.structured.text().len() < 1200, "{}", short.structured.text().len());
        let kept = |name: &str| short.structured[name].as_str().unwrap().len();
        assert!(kept("a") > 50 && kept("b") > 150, "{:?}", short.structured);
    }

    #[test]
    fn no_letter_is_cut_however_it_is_written() {
        let written = RawValue::from_string(r#""a\ud83d\uDE00\n\u00e9é\\\"z🦀""#.to_owned()).unwrap();
        let whole: String = serde_json::from_str(written.get()).unwrap();
        for room in 0..written.get().len() {
            let (kept, cuts) = Pruner::new(ShortenMode::Beginnings, room).whole(&written, room).unwrap();
            let read: String = serde_json::from_str(kept.text()).unwrap();
            assert!(whole.starts_with(&read) && kept.text().len() <= room + 2, "{room}: {kept}");
            assert_eq!(cuts, json!([{"pointer": "", "kept": read.chars().count(), "total": 9}]));
        }
    }

    #[test]
    fn who_reads_all_of_a_value_gets_both_ends_of_long_texts() {
        let said: String = (0..900).map(|line| format!("line {line} é\u{1}🦀\n")).collect();
        for room in [0, 40, 60, 61, 62, 63, 500, 3000] {
            let (brief, cuts) = Structured::from(json!({"said": said, "code": 0})).brief(room).unwrap();
            let kept = brief["said"].as_str().unwrap();
            assert!(brief.text().len() <= room + 40 && brief["code"] == 0, "{room}: {brief}");
            let (head, tail) = kept.split_once("\n… ").unwrap_or((kept, ""));
            let (omitted, tail) = tail.split_once(" characters omitted …\n").unwrap_or(("0", ""));
            assert!(said.starts_with(head) && said.ends_with(tail), "{room}: {kept}");
            let ends = head.chars().count() + tail.chars().count();
            assert_eq!(cuts, json!([{"pointer": "/said", "kept": ends, "total": said.chars().count()}]));
            if !tail.is_empty() {
                assert_eq!(ends + omitted.parse::<usize>().unwrap(), said.chars().count());
            }
        }
    }

    #[test]
    fn who_reads_all_of_a_value_gets_no_long_text_twice() {
        let (long, other) = ("x".repeat(2000), "y".repeat(2000));
        let value = json!({"a": long, "b": {"c": other, "d": long, "e": other}, "f": long, "g": "", "h": ""});
        let (brief, cuts) = Structured::from(value).brief(1 << 20).unwrap();
        assert_eq!(*brief, json!({"a": long, "b": {"c": other, "d": long, "e": ""}, "f": "", "g": "", "h": ""}));
        let told = |pointer: &str, same: &str| json!({"pointer": pointer, "same": same});
        assert_eq!(cuts, json!([told("/f", "/a"), told("/b/e", "/b/c")]));
        // What is short, or stands there once, stays as it is.
        for fine in [json!({"a": "x", "b": "x"}), json!({"a": long, "b": [long]}), json!([long, long]), json!({})] {
            assert!(Structured::from(fine.clone()).brief(1 << 20).is_none(), "{fine}");
        }
    }

    #[test]
    fn what_is_worth_nothing_in_part_stays_whole() {
        let mut long = output(&"text ".repeat(50), json!({"a": "y".repeat(2000)}));
        long.metadata.insert(INDIVISIBLE.to_owned(), json!(true));
        assert_eq!(shortened(long.clone(), &limits()), (long, None));
    }

    #[test]
    fn the_details_of_an_error_have_the_room_of_a_text() {
        let error = || ToolError::new(crate::ErrorCode::Timeout, "it took too long").with("limitHit", "time");
        let mut flooded = error().with("stdout", "é".repeat(9000)).with("stderr", "x".repeat(40));
        let call = CallId::new();
        let whole = shorten_details(&mut flooded, &Limits { content_chars: 1000, ..limits() }, &call).unwrap();
        assert!(whole.content.starts_with("[stdout]\né"), "{}", whole.content);
        assert!(flooded.cut_note().unwrap().contains(call.as_str()));
        assert!(Value::Object(flooded.details.clone()).to_string().len() < 1100, "{:?}", flooded.details);
        assert_eq!((&flooded.details["truncated"], &flooded.details["limitHit"]), (&json!(true), &json!("time")));
        assert!(flooded.details["stdout"].as_str().unwrap().contains(" characters omitted …"));
        let mut short = error();
        assert_eq!((shorten_details(&mut short, &limits(), &call), short.cut_note()), (None, None));
        assert_eq!(short, error());
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
