//! Answers of calls that only read, given again as long as the tool's stamp says that they still hold.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::{Body, CallRequest, CallerId, CallerRef, Scope, Source, Stamp, ToolOutput, ToolSpec};

/// How long an answer is given again at the most, whatever its stamp says.
const LONGEST: Duration = Duration::from_secs(60);
const MOST_ENTRIES: usize = 1000;
const MOST_BYTES: usize = 64 << 20;

/// Which call an answer belongs to: the same caller, the same tool, an input that means the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CacheKey {
    scope: Scope,
    caller: (CallerId, Source),
    on_behalf_of: Vec<CallerRef>,
    tool: String,
    input: String,
}

impl CacheKey {
    pub(crate) fn of(request: &CallRequest, spec: &ToolSpec) -> Self {
        let caller = &request.caller;
        Self {
            scope: caller.scope.clone(),
            caller: (caller.id.clone(), caller.source),
            on_behalf_of: caller.via.on_behalf_of.clone(),
            tool: spec.name.clone(),
            input: canonical(with_defaults(&request.input, &spec.input_schema)).to_string(),
        }
    }
}

/// What is left out means the same as what the schema says then.
fn with_defaults(input: &Value, schema: &Value) -> Value {
    let mut input = input.clone();
    if let (Value::Object(fields), Some(Value::Object(known))) = (&mut input, schema.get("properties")) {
        for (name, field) in known {
            if let Some(default) = field.get("default").filter(|default| !default.is_null()) {
                fields.entry(name).or_insert_with(|| default.clone());
            }
        }
    }
    input
}

/// The same value with every object's keys in order.
fn canonical(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let sorted: BTreeMap<String, Value> =
                fields.into_iter().map(|(name, value)| (name, canonical(value))).collect();
            Value::Object(sorted.into_iter().collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(canonical).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

/// The answers of one process; the least recently used go first.
#[derive(Default)]
pub(crate) struct Cache(Mutex<CacheEntries>);

#[derive(Default)]
struct CacheEntries {
    answers: HashMap<CacheKey, CacheEntry>,
    /// Which answer was used when, so that the oldest is found.
    uses: BTreeMap<u64, CacheKey>,
    clock: u64,
    bytes: usize,
}

struct CacheEntry {
    stamp: Stamp,
    output: ToolOutput,
    since: Instant,
    used: u64,
    bytes: usize,
}

impl Cache {
    /// The answer, if it still holds.
    pub(crate) fn find(&self, key: &CacheKey, stamp: &Stamp) -> Option<ToolOutput> {
        let mut kept = self.lock();
        let answer = kept.answers.get(key)?;
        if answer.stamp != *stamp || answer.since.elapsed() >= LONGEST {
            kept.forget(key);
            return None;
        }
        let output = answer.output.clone();
        kept.use_now(key);
        Some(output)
    }

    /// Keeps an answer, and makes room for it.
    pub(crate) fn keep(&self, key: &CacheKey, stamp: Stamp, output: &ToolOutput) {
        // The key lies in both maps.
        let bytes = size(output) + 2 * key.input.len();
        if bytes > MOST_BYTES / 8 {
            return;
        }
        let mut kept = self.lock();
        kept.forget(key);
        kept.bytes += bytes;
        let answer = CacheEntry { stamp, output: output.clone(), since: Instant::now(), used: 0, bytes };
        kept.answers.insert(key.clone(), answer);
        kept.use_now(key);
        while kept.bytes > MOST_BYTES || kept.answers.len() > MOST_ENTRIES {
            let Some(oldest) = kept.uses.first_key_value().map(|(_, key)| key.clone()) else { return };
            kept.forget(&oldest);
        }
    }

    fn lock(&self) -> MutexGuard<'_, CacheEntries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CacheEntries {
    fn use_now(&mut self, key: &CacheKey) {
        self.clock += 1;
        let Some(answer) = self.answers.get_mut(key) else { return };
        self.uses.remove(&answer.used);
        answer.used = self.clock;
        self.uses.insert(self.clock, key.clone());
    }

    fn forget(&mut self, key: &CacheKey) {
        if let Some(answer) = self.answers.remove(key) {
            self.uses.remove(&answer.used);
            self.bytes -= answer.bytes;
        }
    }
}

/// About how much memory an output takes.
fn size(output: &ToolOutput) -> usize {
    let images: usize = output.images.iter().map(|image| image.data.len()).sum();
    let audio: usize = output.audio.iter().map(|audio| audio.data.len()).sum();
    let resources: usize = output.resources.iter().map(|one| one.uri.len() + body_size(&one.body)).sum();
    let shown = output.display_content.as_ref().map_or(0, String::len);
    let metadata: usize = output.metadata.iter().map(|(name, value)| name.len() + value_size(value)).sum();
    output.content.len() + shown + images + audio + resources + metadata + output.structured.text().len()
}

fn body_size(body: &Body) -> usize {
    match body {
        Body::Text(text) | Body::Blob(text) => text.len(),
    }
}

fn value_size(value: &Value) -> usize {
    let inside = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(value_size).sum(),
        Value::Object(fields) => fields.iter().map(|(name, value)| name.len() + value_size(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    inside + size_of::<Value>()
}

#[cfg(test)]
mod tests;
