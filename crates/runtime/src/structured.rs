//! The value of a result: text, as it is recorded and handed on, and a tree once somebody looks into it.

use std::{
    fmt,
    ops::Deref,
    sync::{Arc, OnceLock},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};

/// A value that may be long and is kept in several places: sharing it costs nothing, and neither of its two forms is
/// made before somebody needs it. It reads like the [`Value`] that it is.
#[derive(Clone, Default)]
pub struct Structured(Arc<Forms>);

// Invariant: at least one of the two is there, but for `null`, which needs none.
#[derive(Default)]
struct Forms {
    text: OnceLock<Box<RawValue>>,
    tree: OnceLock<Value>,
}

impl Structured {
    /// What something is as JSON.
    pub fn of(thing: &impl Serialize) -> Result<Self, serde_json::Error> {
        to_raw_value(thing).map(Self::from)
    }

    /// The value as compact JSON.
    pub fn text(&self) -> &str {
        self.raw().get()
    }

    /// The value itself. If somebody else holds it too, the tree that is read from its text is not left with them.
    pub fn into_value(self) -> Value {
        match Arc::try_unwrap(self.0) {
            Ok(Forms { text, tree }) => tree.into_inner().unwrap_or_else(|| read(&text)),
            Err(shared) => shared.tree.get().cloned().unwrap_or_else(|| read(&shared.text)),
        }
    }

    pub(crate) fn raw(&self) -> &RawValue {
        let written = || self.0.tree.get().and_then(|tree| to_raw_value(tree).ok()).unwrap_or_else(null);
        self.0.text.get_or_init(written)
    }

    fn tree(&self) -> &Value {
        self.0.tree.get_or_init(|| read(&self.0.text))
    }
}

/// Text that was made from a value can be read again, unless it is nested deeper than readers of JSON go.
fn read(text: &OnceLock<Box<RawValue>>) -> Value {
    text.get().and_then(|text| text.get().parse().ok()).unwrap_or_default()
}

fn null() -> Box<RawValue> {
    RawValue::NULL.to_owned()
}

impl From<Value> for Structured {
    fn from(tree: Value) -> Self {
        Self(Arc::new(Forms { tree: tree.into(), text: OnceLock::new() }))
    }
}

impl From<Box<RawValue>> for Structured {
    fn from(text: Box<RawValue>) -> Self {
        Self(Arc::new(Forms { text: text.into(), tree: OnceLock::new() }))
    }
}

impl Deref for Structured {
    type Target = Value;

    fn deref(&self) -> &Value {
        self.tree()
    }
}

impl PartialEq for Structured {
    fn eq(&self, other: &Self) -> bool {
        self.tree() == other.tree()
    }
}

impl fmt::Display for Structured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl fmt::Debug for Structured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl Serialize for Structured {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.raw().serialize(to)
    }
}

impl<'de> Deserialize<'de> for Structured {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Value::deserialize(from).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Structured;

    #[test]
    fn text_and_tree_are_the_same_value() {
        let value = json!({"b": [1, 2.5, -3], "a": "ü\n", "c": null, "d": {"e": true}});
        let (written, parsed) = (Structured::of(&value).unwrap(), Structured::from(value.clone()));
        assert_eq!((written.text(), parsed.text()), (value.to_string().as_str(), value.to_string().as_str()));
        assert_eq!(*written, value);
        assert_eq!(written, parsed);
        assert_eq!(written.clone().into_value(), value);
        assert_eq!(written.into_value(), value);
    }

    #[test]
    fn it_stands_in_other_values_like_any_other() {
        let inside = json!({"value": Structured::of(&json!({"n": 1})).unwrap()});
        assert_eq!(inside, json!({"value": {"n": 1}}));
        assert_eq!(serde_json::from_value::<Structured>(inside["value"].clone()).unwrap(), json!({"n": 1}).into());
        assert_eq!(serde_json::to_string(&Structured::default()).unwrap(), "null");
        assert!(Structured::default().is_null());
    }
}
