//! Results as arguments: `{"$from": "haft://result/<call id>#/pointer"}` in an input stands for a part of a stored result.

use std::collections::{BTreeMap, btree_map::Entry as Slot};

use serde_json::{Value, json};

use crate::{CallId, Caller, Doors, ErrorCode, Structured, ToolError, issues::cut, outcome::CAPPED, shorten::escaped};

/// The one field of a reference.
const FROM: &str = "$from";
/// How its text begins.
const RESULT: &str = "haft://result/";
/// The most references in one input.
const MOST: usize = 64;
/// How deep an input may be nested with what it refers to. What is deeper could not be read from the journal again.
const DEEPEST: usize = 100;

/// How a part of a result is referred to.
pub(crate) fn example(call: &str) -> String {
    format!("{{\"{FROM}\": \"{RESULT}{call}#/pointer\"}}")
}

/// Whether an input refers to results.
pub(crate) fn has_any(input: &Value) -> bool {
    match input {
        Value::Object(fields) => refers(input) || fields.values().any(has_any),
        Value::Array(items) => items.iter().any(has_any),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// The input of a tool with a copy of what each reference names in its place.
pub(crate) async fn filled(doors: &Doors, caller: &Caller, tool: &str, mut input: Value) -> Result<Value, ToolError> {
    let mut places = Vec::new();
    collect(&input, "", &mut places);
    if places.len() > MOST {
        return Err(refused(tool, "", &format!("has {} references, and may have {MOST}", places.len())));
    }
    let most = doors.limits.kept_bytes;
    let (mut results, mut room) = (BTreeMap::new(), most);
    for place in places {
        let Some(into) = input.pointer_mut(&place) else { continue };
        let (call, pointer) = read(into).ok_or_else(|| {
            refused(tool, &place, &format!("is no reference; write it like {} and add nothing", example("tc_…")))
        })?;
        let because = |why: String| refused(tool, &place, &format!("refers to {call}, {why}"));
        let result = match results.entry(call.clone()) {
            Slot::Occupied(known) => known.into_mut(),
            Slot::Vacant(unknown) => unknown.insert(result_of(doors, caller, &call).await?.map_err(because)?),
        };
        let part =
            result.pointer(&pointer).ok_or_else(|| because(format!("which has nothing at `{}`", cut(&pointer))))?;
        let left = room.checked_sub(part.to_string().len());
        room = left.ok_or_else(|| because(format!("and an input takes {} MiB of results at most", most >> 20)))?;
        *into = part.clone();
    }
    if is_deeper(&input, DEEPEST) {
        return Err(refused(tool, "", &format!("is nested deeper than {DEEPEST} with what it refers to")));
    }
    Ok(input)
}

/// Which call a reference names, and which part of its result; `None` when it is not well written.
fn read(value: &Value) -> Option<(CallId, String)> {
    let fields = value.as_object().filter(|fields| fields.len() == 1)?;
    let text = fields.get(FROM)?.as_str()?.strip_prefix(RESULT)?;
    let (call, pointer) = text.split_once('#').unwrap_or((text, ""));
    let is_pointer = pointer.is_empty() || pointer.starts_with('/');
    Some((CallId::parse(call).filter(|_| is_pointer)?, pointer.to_owned()))
}

/// The whole value of a call that the caller may see, or why there is none.
async fn result_of(doors: &Doors, caller: &Caller, call: &CallId) -> Result<Result<Structured, String>, ToolError> {
    let record = doors.journal.find(&caller.scope, call).await?;
    // Whoever may not see a call does not learn that there is one.
    let Some(mut record) = record.filter(|record| caller.may_see(record)) else {
        return Ok(Err("and there is no such call".to_owned()));
    };
    while let Some(next) = record.continued_as() {
        let Some(next) = doors.journal.find(&caller.scope, next).await? else { break };
        record = next;
    }
    let Some(output) = doors.journal.output(&caller.scope, &record.call).await? else {
        return Ok(Err("which has no result: it has not ended with success".to_owned()));
    };
    if output.is_shortened() {
        let kept_by = output.handed_on.map(|of| format!("which hands on the result of {}; refer to that", of.call));
        return Ok(Err(
            kept_by.unwrap_or_else(|| "whose whole result is not kept any more; use its tool again".to_owned())
        ));
    }
    if output.metadata.contains_key(CAPPED) {
        return Ok(Err("whose result is longer than haft keeps".to_owned()));
    }
    // What has no value has its text.
    Ok(Ok(if output.structured.is_null() { Value::from(output.content).into() } else { output.structured }))
}

/// The places of all references in a value, as pointers.
fn collect(value: &Value, place: &str, places: &mut Vec<String>) {
    if refers(value) {
        return places.push(place.to_owned());
    }
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(name, inner)| collect(inner, &format!("{place}/{}", escaped(name)), places));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, inner)| collect(inner, &format!("{place}/{at}"), places));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Whether a value is meant as a reference, well written or not.
fn refers(value: &Value) -> bool {
    value.get(FROM).and_then(Value::as_str).is_some_and(|text| text.starts_with(RESULT))
}

fn is_deeper(value: &Value, most: usize) -> bool {
    let inside = |inner: &Value| most == 0 || is_deeper(inner, most - 1);
    match value {
        Value::Object(fields) => fields.values().any(inside),
        Value::Array(items) => items.iter().any(inside),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Told like everything else that does not fit.
fn refused(tool: &str, place: &str, why: &str) -> ToolError {
    let message = format!("`{tool}{}` {why}", place.replace('/', "."));
    let issue = json!({"path": place, "code": "reference", "message": format!("`{place}` {why}")});
    ToolError::new(ErrorCode::InvalidArgs, message).with("issues", vec![issue])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_found_wherever_they_stand() {
        let call = CallId::new();
        let reference = json!({"$from": format!("haft://result/{call}#/a/0")});
        let input =
            json!({"a": [1, reference], "b/c": {"d": reference}, "$from": "haft://elsewhere", "e": {"$from": 3}});
        let mut places = Vec::new();
        collect(&input, "", &mut places);
        assert_eq!(places, ["/a/1", "/b~1c/d"]);
        assert!(has_any(&input) && !has_any(&json!({"$from": "somewhere", "a": ["haft://result/"]})));
        assert_eq!(read(&reference), Some((call.clone(), "/a/0".to_owned())));
        assert_eq!(read(&json!({"$from": format!("haft://result/{call}")})), Some((call.clone(), String::new())));
        for wrong in
            [format!("haft://result/{call}#a"), "haft://result/tc_1#/a".to_owned(), "haft://result/".to_owned()]
        {
            assert_eq!(read(&json!({"$from": wrong})), None, "{wrong}");
        }
        assert_eq!(read(&json!({"$from": format!("haft://result/{call}"), "more": 1})), None);
    }

    #[test]
    fn depth_is_counted() {
        let nested = (0..5).fold(json!(1), |inner, _| json!([inner]));
        assert!(is_deeper(&nested, 4) && !is_deeper(&nested, 5) && !is_deeper(&json!(1), 0));
    }
}
