//! JSON that a process passes on as text, without parsing it.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, value::RawValue};

/// A JSON value as text, borrowed from an event's line or owned.
#[derive(Debug, Clone)]
pub struct RawJson<'a>(Cow<'a, RawValue>);

impl<'a> RawJson<'a> {
    /// Returns the JSON text.
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// Returns the JSON text, without a copy if the value is borrowed.
    pub fn into_text(self) -> Cow<'a, str> {
        match self.0 {
            Cow::Borrowed(raw) => raw.get().into(),
            Cow::Owned(raw) => String::from(Box::<str>::from(raw)).into(),
        }
    }

    /// Parses the value. A value that no `Value` can hold, because it nests too deep or has a number without bound, is its
    /// text.
    pub fn to_value(&self) -> Value {
        serde_json::from_str(self.get()).unwrap_or_else(|_| Value::String(self.get().to_owned()))
    }
}

impl From<&Value> for RawJson<'_> {
    fn from(value: &Value) -> Self {
        Self(Cow::Owned(serde_json::value::to_raw_value(value).expect("a Value is valid JSON")))
    }
}

impl From<Value> for RawJson<'_> {
    fn from(value: Value) -> Self {
        Self::from(&value)
    }
}

impl PartialEq for RawJson<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Serialize for RawJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for RawJson<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&'a RawValue>::deserialize(deserializer).map(|raw| Self(Cow::Borrowed(raw)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_that_no_value_holds_is_its_text() {
        let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
        for text in [deep.as_str(), "1e999"] {
            let raw = serde_json::from_str::<RawJson<'_>>(text).unwrap();
            assert_eq!(raw.to_value(), Value::String(text.to_owned()));
        }
    }
}
