//! One chunk of a streamed chat completion, as OpenAI and compatible servers send it.
//!
//! Every field is optional, because each server omits different ones. Unknown fields are ignored.

use holdfast_shared::usage::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
pub(super) struct CompletionChunk<'a> {
    #[serde(borrow)]
    pub choices: Option<Vec<Choice<'a>>>,
    pub usage: Option<CompletionUsage>,
    /// The provider sends it in place of a piece when it fails in mid-answer.
    #[serde(borrow)]
    pub error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct Choice<'a> {
    #[serde(borrow)]
    pub delta: Option<ChoiceDelta<'a>>,
    pub finish_reason: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct ChoiceDelta<'a> {
    pub content: Option<String>,
    /// Why the model refuses; clients read it as the answer.
    pub refusal: Option<String>,
    // Two names of one field; a server in transition sends both.
    pub reasoning_content: Option<String>,
    pub reasoning: Option<String>,
    #[serde(borrow)]
    pub tool_calls: Option<Vec<CompletionToolCall<'a>>>,
}

/// A piece of a tool call; `calls` finds the call that it belongs to.
#[derive(Deserialize)]
pub(super) struct CompletionToolCall<'a> {
    pub index: Option<u64>,
    pub id: Option<String>,
    #[serde(borrow)]
    pub function: Option<FunctionDelta<'a>>,
    /// Google's endpoint of this protocol puts thought signatures here.
    #[serde(borrow)]
    pub extra_content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct FunctionDelta<'a> {
    pub name: Option<String>,
    /// A string with a piece of JSON; some servers send the JSON itself.
    #[serde(borrow)]
    pub arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct CompletionUsage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptDetails>,
    completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Deserialize)]
struct PromptDetails {
    cached_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct CompletionDetails {
    reasoning_tokens: Option<u64>,
}

impl From<CompletionUsage> for Usage {
    fn from(tokens: CompletionUsage) -> Self {
        let cached = tokens.prompt_tokens_details.and_then(|details| details.cached_tokens);
        let reasoning = tokens.completion_tokens_details.and_then(|details| details.reasoning_tokens);
        Self {
            input_tokens: tokens.prompt_tokens.unwrap_or(0),
            output_tokens: tokens.completion_tokens.unwrap_or(0),
            cached_tokens: cached.unwrap_or(0),
            reasoning_tokens: reasoning.unwrap_or(0),
        }
    }
}
