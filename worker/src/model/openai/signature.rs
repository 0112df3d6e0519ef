//! The signature of a call in this protocol: what the model wrote for itself and needs back with the call.

use serde_json::Value;

/// Google's endpoint puts thought signatures here, beside the function of a call.
pub(super) const EXTRA_CONTENT: &str = "extra_content";
/// The reasoning that led to the calls of an answer.
pub(super) const REASONING_CONTENT: &str = "reasoning_content";
/// OpenRouter's form of that reasoning, which it wants unchanged.
pub(super) const REASONING_DETAILS: &str = "reasoning_details";

/// Returns the field of a call's signature. Versions before this one stored nothing but the extra content.
pub(super) fn field<'a>(signature: Option<&'a Value>, name: &str) -> Option<&'a Value> {
    let fields = signature?.as_object()?;
    let has_names = [EXTRA_CONTENT, REASONING_CONTENT, REASONING_DETAILS].iter().any(|name| fields.contains_key(*name));
    if has_names { fields.get(name) } else { signature.filter(|_| name == EXTRA_CONTENT) }
}
