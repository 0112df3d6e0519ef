//! How providers spell the reasons of their refusals: a table, because each of them does it its own way.
//!
//! A name is the `type`, `code` or `status` of an error. A phrase is in lower case, and stands anywhere in the error's body,
//! because gateways wrap the words of the provider behind them.

use super::provider_error::FailureKind;

struct Spelling {
    kind: FailureKind,
    names: &'static [&'static str],
    phrases: &'static [&'static str],
}

/// Order matters: the first that fits counts.
const SPELLINGS: [Spelling; 7] = [
    Spelling {
        kind: FailureKind::Broken,
        names: &["tool_use_failed"], // Groq: the model has written a call that cannot be parsed
        phrases: &[],
    },
    Spelling {
        kind: FailureKind::RegionRefused,
        names: &["unsupported_country_region_territory"],
        phrases: &[
            "region, or territory not supported", // OpenAI
            "location is not supported",          // Gemini
            "not available in your country",
            "not available in your region",
            "not supported in your region",
            "unsupported country",
        ],
    },
    Spelling {
        kind: FailureKind::TooLong,
        names: &[
            "context_length_exceeded",       // OpenAI and most that are compatible
            "context_window_exceeded",       // LiteLLM
            "exceed_context_size_error",     // llama.cpp
            "model_context_window_exceeded", // Anthropic
            "string_above_max_length",       // OpenAI, for one message
        ],
        phrases: &[
            "maximum context length",                 // OpenAI, vLLM, DeepSeek, OpenRouter
            "exceeds the context window",             // OpenAI
            "request too large for",                  // OpenAI and Groq: more tokens than one minute may have
            "reduce the length of the messages",      // Groq
            "prompt is too long",                     // Anthropic
            "exceed context limit",                   // Anthropic
            "exceeds the maximum number of tokens",   // Gemini
            "input token count exceeds",              // Gemini
            "too large for model with",               // Mistral
            "exceeded model token limit",             // Kimi
            "range of input length should be",        // Qwen
            "maximum prompt length",                  // xAI
            "prompt exceeds max length",              // Z.ai
            "number of tokens in the prompt",         // Cohere
            "input is too long",                      // Bedrock
            "longer than the model's context length", // SGLang
            "exceeds the available context size",     // llama.cpp
            "context size has been exceeded",         // LM Studio
            "context length exceeded",
            "exceeds the context length",
        ],
    },
    Spelling {
        kind: FailureKind::NoCredit,
        names: &[
            "insufficient_quota",         // OpenAI
            "billing_hard_limit_reached", // OpenAI
            "billing_not_active",         // OpenAI
            "billing_error",              // Anthropic
            "insufficient_balance",
            "insufficient_credits",
            "arrearage", // Qwen
        ],
        phrases: &[
            "credit balance is too low", // Anthropic
            "insufficient balance",      // DeepSeek, Kimi
            "insufficient credits",      // OpenRouter
            "requires more credits",     // OpenRouter
            "never purchased credits",   // OpenRouter
            "run out of credits",        // xAI
            "used all available credits",
            "requires billing to be enabled", // Vertex AI
        ],
    },
    Spelling {
        kind: FailureKind::FileRefused,
        names: &[
            "image_parse_error",
            "invalid_image",
            "invalid_image_format",
            "invalid_base64_image",
            "unsupported_image_media_type",
            "image_too_large",
            "image_too_small",
            "image_file_too_large",
            "empty_image_file",
        ],
        phrases: &[
            "could not process image",                 // Anthropic
            "image exceeds",                           // Anthropic: bytes
            "image dimensions exceed",                 // Anthropic: pixels
            "image does not match the provided media", // Anthropic
            "could not process pdf",                   // Anthropic
            "pdf specified was not valid",             // Anthropic
            "pdf pages may be provided",               // Anthropic
            "pdf is password protected",               // Anthropic
            "unsupported image",                       // OpenAI
            "does not represent a valid image",        // OpenAI
            "invalid image",                           // OpenAI
            "unable to process input image",           // Gemini
            "document has no pages",                   // Gemini
            "unsupported mime type",                   // Gemini
            "support image input",                     // OpenRouter: no endpoint does
            "does not support image",                  // Ollama and others
            "image input is not supported",            // llama.cpp
            "image_url is only supported",             // Mistral, xAI
            "not a multimodal model",                  // vLLM
            "image(s) may be provided",                // vLLM
            "cannot identify image file",              // vLLM
            "failed to load image",                    // llama.cpp
            "failed to decode image",
            "unsupported file",
        ],
    },
    Spelling {
        kind: FailureKind::UnknownModel,
        names: &["model_not_found", "not_found_error", "NOT_FOUND"],
        phrases: &[
            "model not found",
            "model not exist",      // DeepSeek
            "invalid model",        // Mistral
            "is not a valid model", // OpenRouter
            "unknown model",
            "try pulling it first", // Ollama
        ],
    },
    Spelling {
        kind: FailureKind::KeyRefused,
        names: &[
            "invalid_api_key",              // OpenAI
            "authentication_error",         // Anthropic, DeepSeek
            "permission_error",             // Anthropic
            "invalid_authentication_error", // Kimi
            "UNAUTHENTICATED",              // Google
            "PERMISSION_DENIED",            // Google
            "API_KEY_INVALID",
        ],
        phrases: &[
            "api key not valid", // Gemini
            "api_key_invalid",   // Gemini
            "incorrect api key", // OpenAI
            "invalid api key",
            "invalid x-api-key",   // Anthropic
            "no auth credentials", // OpenRouter
            "api key expired",     // Gemini
        ],
    },
];

/// Returns the kind of the refusal with these names and this body, if the table has it.
pub(super) fn kind_of(names: &[String], body: &str) -> Option<FailureKind> {
    let body = body.to_lowercase();
    let fits = |spelling: &&Spelling| {
        names.iter().any(|name| spelling.names.contains(&name.as_str()))
            || spelling.phrases.iter().any(|phrase| body.contains(phrase))
    };
    SPELLINGS.iter().find(fits).map(|spelling| spelling.kind)
}
