//! Anthropic's rules, as its documents and its refusals state them. A rule that changes is one line here.

use std::time::Duration;

use holdfast_shared::finish_reason::FinishReason;

/// The version of the protocol, as a header.
pub const VERSION: &str = "2023-06-01";
/// The version of the protocol at Vertex AI, as a field of the body.
pub const VERSION_AT_VERTEX: &str = "vertex-2023-10-16";

/// Most bytes of a picture, in base64.
pub const PICTURE_BYTES: usize = 5 * 1024 * 1024;
/// Most pixels of a side of a picture.
pub const PICTURE_SIDE: u32 = 8_000;
/// More pictures than these make a request one of many pictures.
pub const FEW_PICTURES: usize = 20;
/// Most pixels of a side of a picture in a request of many pictures.
pub const PICTURE_SIDE_OF_MANY: u32 = 2_000;

/// The highest temperature.
pub const HOTTEST: f64 = 1.0;
/// The least budget of thinking.
pub const LEAST_BUDGET: u32 = 1_024;
/// Most requests that continue one answer.
pub const CONTINUATIONS: u32 = 8;
/// The pause before a request that continues an answer after an overload.
pub const OVERLOAD_PAUSE: Duration = Duration::from_secs(1);

/// How a model is asked to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thinking {
    Never,
    /// With a budget of tokens. The answer to outcomes must then have begun with thinking.
    Budget,
    /// By itself, with an effort.
    Adaptive,
}

/// The rules of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaudeRules {
    /// Longest answer, which each request must bound.
    pub max_tokens: u32,
    pub thinking: Thinking,
    /// Whether it takes a temperature without thinking.
    pub takes_temperature: bool,
    /// Whether it continues a text with which the request ends.
    pub continues_text: bool,
}

/// The rules of the models whose names begin so; the first line that fits counts.
const MODELS: [(&str, ClaudeRules); 14] = [
    ("claude-2", rules(4_096, Thinking::Never)),
    ("claude-instant", rules(4_096, Thinking::Never)),
    ("claude-3-5", rules(8_192, Thinking::Never)),
    ("claude-3-7", rules(64_000, Thinking::Budget)),
    ("claude-3", rules(4_096, Thinking::Never)),
    ("claude-opus-4-5", rules(64_000, Thinking::Budget)),
    ("claude-opus-4-6", newer(64_000)),
    ("claude-opus-4-7", untempered(64_000)),
    ("claude-opus-4-8", untempered(128_000)),
    ("claude-opus-4", rules(32_000, Thinking::Budget)),
    ("claude-sonnet-4-6", newer(64_000)),
    ("claude-sonnet-4", rules(64_000, Thinking::Budget)),
    ("claude-haiku-4", rules(64_000, Thinking::Budget)),
    ("claude-", untempered(64_000)),
];

/// The rules of the models of other makers, which speak this protocol too.
const OTHERS: ClaudeRules = ClaudeRules { continues_text: false, ..rules(8_192, Thinking::Budget) };

const fn rules(max_tokens: u32, thinking: Thinking) -> ClaudeRules {
    ClaudeRules { max_tokens, thinking, takes_temperature: true, continues_text: true }
}

const fn newer(max_tokens: u32) -> ClaudeRules {
    ClaudeRules { continues_text: false, ..rules(max_tokens, Thinking::Adaptive) }
}

const fn untempered(max_tokens: u32) -> ClaudeRules {
    ClaudeRules { takes_temperature: false, ..newer(max_tokens) }
}

/// Returns the rules of a model. Gateways put words of their own before its name, and write `4.7` for `4-7`.
pub fn of(model: &str) -> ClaudeRules {
    let model = model.rfind("claude-").map_or(model, |at| &model[at..]).replace('.', "-");
    MODELS.iter().find(|(begin, _)| model.starts_with(begin)).map_or(OTHERS, |(_, rules)| *rules)
}

/// Returns the meaning of `stop_reason`.
pub fn finish_reason(stop_reason: Option<&str>) -> FinishReason {
    match stop_reason.unwrap_or_default() {
        "end_turn" | "stop_sequence" => FinishReason::Stop,
        "tool_use" => FinishReason::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "refusal" => FinishReason::ContentFilter,
        _ => FinishReason::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_model_says_how_long_it_answers_and_how_it_thinks() {
        let check = |model: &str, max_tokens: u32, thinking: Thinking| {
            assert_eq!((of(model).max_tokens, of(model).thinking), (max_tokens, thinking), "{model}");
        };
        check("claude-3-haiku-20240307", 4_096, Thinking::Never);
        check("claude-3-5-sonnet-latest", 8_192, Thinking::Never);
        check("claude-sonnet-4-5@20250929", 64_000, Thinking::Budget);
        check("claude-opus-4-1", 32_000, Thinking::Budget);
        check("claude-opus-4-6", 64_000, Thinking::Adaptive);
        check("claude-sonnet-5", 64_000, Thinking::Adaptive);
        check("anthropic/claude-opus-4.7", 64_000, Thinking::Adaptive);
        check("us.anthropic.claude-opus-4-1-v1:0", 32_000, Thinking::Budget);
        check("glm-5", 8_192, Thinking::Budget);
    }
}
