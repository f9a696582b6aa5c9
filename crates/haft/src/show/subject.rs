//! What a call is about, in a few words: its path, its command, or the first thing that it was given.

use serde_json::Value;

/// Fields that say what a call is about, the most telling first.
const TELLING: &[&str] =
    &["command", "code", "pattern", "path", "from", "source", "query", "url", "message", "callId", "tool"];

/// The most telling of the arguments, on one line; `None` where nothing was given.
pub(crate) fn subject(input: &Value) -> Option<String> {
    let fields = input.as_object()?;
    let telling = TELLING.iter().find_map(|name| fields.get(*name).and_then(text));
    let told = telling.or_else(|| fields.values().find_map(text))?;
    let to = ["to", "dest"].iter().find_map(|name| fields.get(*name).and_then(text));
    let is_move = fields.contains_key("from") || fields.contains_key("source");
    Some(match to.filter(|_| is_move) {
        Some(to) => format!("{told} → {to}"),
        None => told,
    })
}

/// A value in one line; `None` where it would say nothing.
fn text(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.split_whitespace().collect::<Vec<_>>().join(" "),
        Value::Array(items) => items.iter().filter_map(text).collect::<Vec<_>>().join(" "),
        Value::Number(number) => number.to_string(),
        Value::Object(_) | Value::Bool(_) | Value::Null => return None,
    };
    Some(text).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::subject;

    #[test]
    fn the_most_telling_argument_is_named() {
        let told = |input| subject(&input).unwrap_or_default();
        assert_eq!(told(json!({"content": "x", "path": "a.txt"})), "a.txt");
        assert_eq!(told(json!({"path": "src", "pattern": "fn main"})), "fn main");
        assert_eq!(told(json!({"timeoutMs": 5, "command": "make\n  test"})), "make test");
        assert_eq!(told(json!({"from": "a", "to": "b"})), "a → b");
        assert_eq!(told(json!({"deep": {"a": 1}, "names": ["one", "two"]})), "one two");
        assert_eq!(told(json!({"recursive": true})), "");
        assert_eq!(told(json!({})), "");
    }
}
