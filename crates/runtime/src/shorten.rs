//! A long result as head and tail, with the whole of it kept for `result_query`.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::{Limits, ToolOutput};

/// The most that is told of where a value was cut.
const CUTS_TOLD: usize = 20;

/// How long the whole text is, in the metadata of a shortened output.
const TOTAL: &str = "total_chars";

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
    let structured = match value {
        Some((value, cuts)) => {
            metadata.insert("cut".to_owned(), cuts);
            Arc::new(value)
        }
        None => Arc::clone(&output.structured),
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
    (short, Some(capped(output, limits.kept_bytes)))
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
        output.structured = Arc::new(value);
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
fn pruned(value: &Value, most: usize) -> Option<(Value, Value)> {
    if weight(value) <= most {
        return None;
    }
    let mut cuts = Vec::new();
    let value = prune(value, most, "", &mut cuts);
    Some((value, Value::Array(cuts)))
}

fn prune(value: &Value, room: usize, pointer: &str, cuts: &mut Vec<Value>) -> Value {
    if weight(value) <= room {
        return value.clone();
    }
    match value {
        Value::String(text) => {
            let kept = &text[..text.floor_char_boundary(room)];
            tell(cuts, json!({"pointer": pointer, "kept": kept.chars().count(), "total": text.chars().count()}));
            kept.into()
        }
        Value::Array(items) => {
            let mut left = room;
            let fits = items.iter().take_while(|item| take(&mut left, weight(item))).count();
            tell(cuts, json!({"pointer": pointer, "kept": fits, "total": items.len()}));
            items[..fits].into()
        }
        Value::Object(fields) => {
            // The small ones stay whole; the large ones share what is left.
            let mut left = room.saturating_sub(fields.keys().map(String::len).sum());
            let mut sorted: Vec<(usize, &String, &Value)> =
                fields.iter().map(|(name, inner)| (weight(inner), name, inner)).collect();
            sorted.sort_by_key(|(weight, ..)| *weight);
            let count = sorted.len();
            let mut kept: Map<String, Value> = fields.keys().map(|name| (name.clone(), Value::Null)).collect();
            for (at, (_, name, inner)) in sorted.into_iter().enumerate() {
                let inner = prune(inner, left / (count - at), &format!("{pointer}/{}", escaped(name)), cuts);
                left = left.saturating_sub(weight(&inner));
                kept.insert(name.clone(), inner);
            }
            Value::Object(kept)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
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

/// About how many bytes a value takes as text.
fn weight(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => text.len() + 3,
        Value::Array(items) => 2 + items.iter().map(weight).sum::<usize>(),
        Value::Object(fields) => 2 + fields.iter().map(|(name, inner)| name.len() + 4 + weight(inner)).sum::<usize>(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        Limits { content_chars: 100, structured_bytes: 1000, kept_bytes: 5000, ..Limits::default() }
    }

    fn output(content: &str, structured: Value) -> ToolOutput {
        ToolOutput { content: content.to_owned(), structured: Arc::new(structured), ..ToolOutput::default() }
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
        assert!(weight(&short.structured) < 1200, "{}", weight(&short.structured));
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
    fn what_is_kept_has_an_end_that_is_marked() {
        let (_, whole) = shortened(output(&"ü".repeat(9000), json!({"a": "y".repeat(9000)})), &limits());
        let whole = whole.unwrap();
        assert_eq!((whole.content.len(), &whole.metadata["capped"]), (5000, &json!(true)));
        assert!(whole.structured["a"].as_str().unwrap().len() <= 5000);
        let (_, whole) = shortened(output(&"u".repeat(4000), json!(null)), &limits());
        assert_eq!(whole.unwrap().metadata.get("capped"), None);
    }
}
