//! Differences between the providers behind genai that genai does not handle.

use genai::{
    adapter::AdapterKind,
    chat::{ChatOptions, StopReason, StreamEnd},
};
use holdfast_shared::{
    agent::ReasoningEffort,
    config::{ModelChoice, Provider},
    finish_reason::FinishReason,
};

use holdfast_shared::agent::ModelOptions;

/// A provider's protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Anthropic,
    Gemini,
    Ollama,
}

/// Reasons with which Gemini ends an answer when it could not build the model's call.
const FAILED_CALLS: [&str; 2] = ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"];

impl Dialect {
    pub fn of(choice: &ModelChoice) -> (AdapterKind, Self) {
        match choice.provider {
            Provider::Anthropic => (AdapterKind::Anthropic, Self::Anthropic),
            Provider::Vertex if choice.name.starts_with("claude") => (AdapterKind::Vertex, Self::Anthropic),
            Provider::Vertex => (AdapterKind::Vertex, Self::Gemini),
            Provider::Ollama => (AdapterKind::Ollama, Self::Ollama),
            Provider::Gemini | Provider::OpenAi | Provider::Scripted => (AdapterKind::Gemini, Self::Gemini),
        }
    }

    /// Returns the path of a model's stream at Vertex AI, after the location.
    pub fn path_at_vertex(self, model: &str) -> String {
        match self {
            Self::Anthropic => format!("publishers/anthropic/models/{model}:streamRawPredict"),
            Self::Gemini | Self::Ollama => format!("publishers/google/models/{model}:streamGenerateContent?alt=sse"),
        }
    }

    /// Returns the options of one call, on top of those of the deployment.
    pub fn options(self, deployment: &ChatOptions, options: &ModelOptions) -> ChatOptions {
        let effort = options.reasoning_effort.map(|effort| match effort {
            ReasoningEffort::Low => genai::chat::ReasoningEffort::Low,
            ReasoningEffort::Medium => genai::chat::ReasoningEffort::Medium,
            ReasoningEffort::High => genai::chat::ReasoningEffort::High,
        });
        ChatOptions {
            temperature: options.temperature,
            top_p: options.top_p,
            max_tokens: options.max_tokens.or(deployment.max_tokens),
            stop_sequences: options.stop.clone(),
            capture_reasoning_content: match self {
                // Thinking must be sent back with the calls that it led to.
                Self::Anthropic => Some(true),
                // Otherwise Gemini reasons silently, and a silent provider looks like one that hangs.
                Self::Gemini => effort.is_some().then_some(true),
                Self::Ollama => None,
            },
            reasoning_effort: effort,
            ..deployment.clone()
        }
    }

    /// Returns whether an answer is complete or was truncated; genai reports an end for both.
    pub fn is_complete(self, end: &StreamEnd) -> bool {
        match self {
            // Only `message_stop` makes an end.
            Self::Anthropic => true,
            // The last chunk has a finish reason.
            Self::Gemini => end.captured_stop_reason.is_some(),
            // The last line has the counts of tokens.
            Self::Ollama => end.captured_usage.is_some(),
        }
    }

    /// Returns the reason why a complete answer has failed, if it has.
    pub fn failed_call(self, end: &StreamEnd) -> Option<&str> {
        match &end.captured_stop_reason {
            Some(StopReason::Other(reason)) if FAILED_CALLS.contains(&reason.as_str()) => Some(reason),
            _ => None,
        }
    }
}

/// Returns why the model ended its answer.
pub(super) fn finish_reason(end: &StreamEnd) -> FinishReason {
    match &end.captured_stop_reason {
        Some(StopReason::Completed(_) | StopReason::StopSequence(_)) => FinishReason::Stop,
        Some(StopReason::ToolCall(_)) => FinishReason::ToolCalls,
        Some(StopReason::MaxTokens(_)) => FinishReason::Length,
        Some(StopReason::ContentFilter(_)) => FinishReason::ContentFilter,
        Some(StopReason::Other(_)) | None => FinishReason::Other,
    }
}
