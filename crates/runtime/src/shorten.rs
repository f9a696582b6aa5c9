//! A long result as head and tail, with the whole of it kept for `result_query`.

use serde_json::Value;

use crate::ToolOutput;

/// The output cut to so many characters of text, and the whole of it when something was cut.
/// The notice stands in the text for the model only, never inside the value.
pub(crate) fn shortened(output: ToolOutput, most: usize) -> (ToolOutput, Option<ToolOutput>) {
    let Some(content) = head_and_tail(&output.content, most) else { return (output, None) };
    let mut short = ToolOutput { content, images: output.images.clone(), ..ToolOutput::default() };
    short.structured = output.structured.clone();
    short.metadata = output.metadata.clone();
    short.metadata.insert("truncated".to_owned(), Value::Bool(true));
    short.metadata.insert("total_chars".to_owned(), output.content.chars().count().into());
    (short, Some(output))
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
