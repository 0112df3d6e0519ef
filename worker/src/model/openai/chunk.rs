//! One chunk of a streamed chat completion, as OpenAI and compatible servers send it.
//!
//! Every field is optional, because each server omits different ones. A field of another type counts as absent, and
//! unknown fields are ignored.

use holdfast_shared::usage::Usage;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::wire_text::{WireContent, WireText};

#[derive(Deserialize)]
pub(super) struct CompletionChunk<'a> {
    #[serde(default, borrow, deserialize_with = "lenient")]
    pub choices: Option<Vec<LenientChoice<'a>>>,
    #[serde(default, deserialize_with = "lenient")]
    pub usage: Option<CompletionUsage>,
    /// The provider sends it in place of a piece when it fails in mid-answer.
    #[serde(default, borrow, deserialize_with = "lenient")]
    error: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "lenient")]
    object: Option<String>,
}

impl CompletionChunk<'_> {
    /// Returns whether the chunk reports an error.
    pub fn is_error(&self) -> bool {
        self.error.is_some_and(says_something) || self.object.as_deref() == Some("error")
    }
}

/// A choice, or `None` for a value of another type.
#[derive(Deserialize)]
pub(super) struct LenientChoice<'a>(#[serde(borrow, deserialize_with = "lenient")] pub Option<Choice<'a>>);

#[derive(Deserialize)]
pub(super) struct Choice<'a> {
    /// The worker asks for one choice, so it ignores those after the first.
    #[serde(default, deserialize_with = "lenient")]
    index: Option<f64>,
    #[serde(default, borrow, deserialize_with = "lenient")]
    pub delta: Option<ChoiceDelta<'a>>,
    /// The whole answer, or a piece of it from servers that know no `delta`.
    #[serde(default, borrow, deserialize_with = "lenient")]
    pub message: Option<ChoiceDelta<'a>>,
    #[serde(default, deserialize_with = "lenient")]
    pub finish_reason: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub usage: Option<CompletionUsage>,
    #[serde(default, borrow, deserialize_with = "lenient")]
    error: Option<&'a RawValue>,
}

impl Choice<'_> {
    pub fn is_first(&self) -> bool {
        self.index.is_none_or(|index| index == 0.0)
    }

    /// Returns the provider's error, as JSON.
    pub fn error(&self) -> Option<&str> {
        self.error.filter(|error| says_something(error)).map(RawValue::get)
    }
}

#[derive(Deserialize)]
pub(super) struct ChoiceDelta<'a> {
    #[serde(default, deserialize_with = "lenient")]
    pub content: Option<WireContent>,
    /// Why the model refuses; clients read it as the answer.
    #[serde(default, deserialize_with = "lenient")]
    pub refusal: Option<WireText>,
    // Two names of one field; a server in transition sends both.
    #[serde(default, deserialize_with = "lenient")]
    pub reasoning_content: Option<WireContent>,
    #[serde(default, deserialize_with = "lenient")]
    pub reasoning: Option<WireContent>,
    /// OpenRouter's form of reasoning, with the signatures of the providers behind it.
    #[serde(default, borrow, deserialize_with = "lenient")]
    pub reasoning_details: Option<Vec<&'a RawValue>>,
    /// OpenRouter's field for the pictures that a model draws.
    #[serde(default, borrow, deserialize_with = "lenient")]
    pub images: Option<Vec<&'a RawValue>>,
    #[serde(default, borrow, deserialize_with = "lenient")]
    pub tool_calls: Option<Vec<LenientCall<'a>>>,
}

/// A piece of a call, or `None` for a value of another type.
#[derive(Deserialize)]
pub(super) struct LenientCall<'a>(#[serde(borrow, deserialize_with = "lenient")] pub Option<CompletionToolCall<'a>>);

/// A piece of a tool call; `calls` finds the call that it belongs to.
#[derive(Deserialize)]
pub(super) struct CompletionToolCall<'a> {
    #[serde(default, deserialize_with = "lenient")]
    pub index: Option<f64>,
    #[serde(default, deserialize_with = "lenient")]
    pub id: Option<String>,
    #[serde(default, borrow, deserialize_with = "lenient")]
    pub function: Option<FunctionDelta<'a>>,
    /// Google's endpoint of this protocol puts thought signatures here.
    #[serde(default, borrow, deserialize_with = "lenient")]
    pub extra_content: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
pub(super) struct FunctionDelta<'a> {
    #[serde(default, deserialize_with = "lenient")]
    pub name: Option<String>,
    /// A string with a piece of JSON; some servers send the JSON itself.
    #[serde(default, borrow, deserialize_with = "lenient")]
    pub arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct CompletionUsage {
    #[serde(default, deserialize_with = "lenient")]
    prompt_tokens: Option<f64>,
    #[serde(default, deserialize_with = "lenient")]
    completion_tokens: Option<f64>,
    #[serde(default, deserialize_with = "lenient")]
    prompt_tokens_details: Option<PromptDetails>,
    #[serde(default, deserialize_with = "lenient")]
    completion_tokens_details: Option<CompletionDetails>,
    /// DeepSeek's name for the cached tokens.
    #[serde(default, deserialize_with = "lenient")]
    prompt_cache_hit_tokens: Option<f64>,
}

#[derive(Deserialize)]
struct PromptDetails {
    #[serde(default, deserialize_with = "lenient")]
    cached_tokens: Option<f64>,
}

#[derive(Deserialize)]
struct CompletionDetails {
    #[serde(default, deserialize_with = "lenient")]
    reasoning_tokens: Option<f64>,
}

impl From<CompletionUsage> for Usage {
    fn from(tokens: CompletionUsage) -> Self {
        // Some servers count in floats, and send -1 for a count that they do not know. The conversion saturates at 0.
        let count = |tokens: Option<f64>| tokens.unwrap_or(0.0) as u64;
        let cached = tokens.prompt_tokens_details.and_then(|details| details.cached_tokens);
        let reasoning = tokens.completion_tokens_details.and_then(|details| details.reasoning_tokens);
        Self {
            input_tokens: count(tokens.prompt_tokens),
            output_tokens: count(tokens.completion_tokens),
            cached_tokens: count(cached.or(tokens.prompt_cache_hit_tokens)),
            reasoning_tokens: count(reasoning),
        }
    }
}

/// Reads a field of this type; any other value, such as null, counts as absent.
fn lenient<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    let raw = <&'de RawValue>::deserialize(deserializer)?;
    Ok(if raw.get() == "null" { None } else { serde_json::from_str(raw.get()).ok() })
}

fn says_something(error: &RawValue) -> bool {
    !matches!(error.get(), "null" | "false" | "0" | "\"\"" | "{}" | "[]")
}
