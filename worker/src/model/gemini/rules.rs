//! Gemini's rules, as its documents and its refusals state them. A rule that changes is one line here.

use holdfast_shared::finish_reason::FinishReason;

/// How a model is asked to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GeminiThinking {
    Never,
    /// With a budget of tokens.
    Budget,
    /// By a level's name.
    Level,
}

/// The rules of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GeminiRules {
    pub thinking: GeminiThinking,
    /// Whether the first call of each answer must come back with a signature.
    pub demands_signatures: bool,
    /// Whether a request may ask for JSON and offer tools.
    pub joins_json_and_tools: bool,
}

/// The rules of the models whose names begin so; the first line that fits counts.
const MODELS: [(&str, GeminiRules); 4] = [
    ("gemini-1", rules(GeminiThinking::Never)),
    ("gemini-2.0", rules(GeminiThinking::Never)),
    ("gemini-3", GeminiRules { thinking: GeminiThinking::Level, demands_signatures: true, joins_json_and_tools: true }),
    ("gemma-4", rules(GeminiThinking::Level)),
];

/// The rules of the other models.
const OTHERS: GeminiRules = rules(GeminiThinking::Budget);

const fn rules(thinking: GeminiThinking) -> GeminiRules {
    GeminiRules { thinking, demands_signatures: false, joins_json_and_tools: false }
}

/// The signature of a call that another model has made; the provider does not check it.
pub const FOREIGN_SIGNATURE: &str = "skip_thought_signature_validator";

/// The keywords of JSON Schema that a tool's parameters may have.
pub const KEYWORDS: [&str; 22] = [
    "$id",
    "$defs",
    "$ref",
    "$anchor",
    "type",
    "format",
    "title",
    "description",
    "default",
    "enum",
    "items",
    "prefixItems",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "anyOf",
    "oneOf",
    "properties",
    "additionalProperties",
    "required",
    "propertyOrdering",
];

/// Reasons of an answer whose call the provider could not read: the model may do better at a second try.
const FAILED_CALLS: [&str; 5] = [
    "MALFORMED_FUNCTION_CALL",
    "UNEXPECTED_TOOL_CALL",
    "TOO_MANY_TOOL_CALLS",
    "MISSING_THOUGHT_SIGNATURE",
    "MALFORMED_RESPONSE",
];

/// Most requests for one answer whose calls cannot be read, after its thoughts were shown.
pub const TRIES: u32 = 2;

/// Returns the rules of a model, which may have a path before its name.
pub fn of(model: &str) -> GeminiRules {
    let model = model.rsplit('/').next().unwrap_or(model);
    MODELS.iter().find(|(begin, _)| model.starts_with(begin)).map_or(OTHERS, |(_, rules)| *rules)
}

pub fn is_failed_call(reason: &str) -> bool {
    FAILED_CALLS.contains(&reason)
}

/// Returns the meaning of `finishReason`.
pub fn finish_reason(reason: &str) -> FinishReason {
    match reason {
        "STOP" => FinishReason::Stop,
        "MAX_TOKENS" => FinishReason::Length,
        "SAFETY"
        | "RECITATION"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "MODEL_ARMOR" => FinishReason::ContentFilter,
        _ => FinishReason::Other,
    }
}
