//! Reads a word that only a newer version knows as a known one, so that the rest of an event or a message stays readable.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, de::IntoDeserializer, de::value::Error};

/// A set of words that may grow, each spelled as a text.
pub trait Growing: for<'de> Deserialize<'de> {
    /// The word that an unknown one is read as.
    const UNKNOWN: Self;
}

/// Deserializes a text or null. Fails only if the JSON is neither.
pub fn optional_word<'de, D: Deserializer<'de>, T: Growing>(deserializer: D) -> Result<Option<T>, D::Error> {
    let Some(text) = Option::<Cow<'de, str>>::deserialize(deserializer)? else { return Ok(None) };
    let known: Result<T, Error> = T::deserialize(text.as_ref().into_deserializer());
    Ok(Some(known.unwrap_or(T::UNKNOWN)))
}

/// Deserializes a text. Fails only if the JSON is no text.
pub fn word<'de, D: Deserializer<'de>, T: Growing>(deserializer: D) -> Result<T, D::Error> {
    let text = Cow::<'de, str>::deserialize(deserializer)?;
    let known: Result<T, Error> = T::deserialize(text.as_ref().into_deserializer());
    Ok(known.unwrap_or(T::UNKNOWN))
}
