//! The context windows of models: a table of what providers document, and the setting that overrides it.
//!
//! The table is a guess for names that providers have not published yet, so a provider's refusal still counts.

use super::{ModelChoice, Provider};

/// Tokens of a model that is not in the table.
const UNKNOWN: u32 = 32_000;

/// Smallest accepted window. A smaller one has no room for a conversation.
const SMALLEST: u32 = 1_000;

/// Beginnings of models' names, in small letters, and tokens. The longest beginning counts.
const TABLE: &[(&str, u32)] = &[
    // OpenAI
    ("gpt-3.5-turbo", 16_385),
    ("gpt-4", 8_192),
    ("gpt-4-turbo", 128_000),
    ("gpt-4.1", 1_047_576),
    ("gpt-4o", 128_000),
    ("chatgpt-4o", 128_000),
    ("gpt-5", 400_000),
    ("gpt-5-chat", 128_000),
    ("gpt-oss", 131_072),
    ("o1", 200_000),
    ("o1-mini", 128_000),
    ("o1-preview", 128_000),
    ("o3", 200_000),
    ("o4-mini", 200_000),
    // Anthropic
    ("claude", 200_000),
    // Google
    ("gemini", 1_048_576),
    ("gemma-3", 131_072),
    // Mistral
    ("codestral", 256_000),
    ("devstral", 131_072),
    ("magistral", 131_072),
    ("ministral", 131_072),
    ("mistral-large", 131_072),
    ("mistral-medium", 131_072),
    ("mistral-small", 131_072),
    ("pixtral", 131_072),
    // Others
    ("command-a", 256_000),
    ("command-r", 128_000),
    ("deepseek", 128_000),
    ("glm-4.5", 131_072),
    ("glm-4.6", 200_000),
    ("grok-3", 131_072),
    ("grok-4", 256_000),
    ("kimi-k2", 131_072),
    ("llama-3", 8_192),
    ("llama-3.1", 131_072),
    ("llama-3.2", 131_072),
    ("llama-3.3", 131_072),
    ("meta-llama-3.1", 131_072),
    ("minimax-m", 204_800),
    ("moonshot-v1-8k", 8_192),
    ("moonshot-v1-32k", 32_768),
    ("moonshot-v1-128k", 131_072),
    ("qwen-max", 32_768),
    ("qwen-plus", 131_072),
    ("qwen-turbo", 131_072),
    ("qwen2.5", 32_768),
    ("qwen3", 32_768),
];

/// The context windows of models: the setting, and the table for other names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContextWindows(Vec<NamedWindow>);

/// The window of a name, or of all names that begin so.
#[derive(Debug, Clone, PartialEq, Eq)]
struct NamedWindow {
    name: String,
    is_beginning: bool,
    tokens: u32,
}

impl ContextWindows {
    /// Reads the setting: `name=tokens`, separated by commas. A name that ends with `*` stands for all that begin so.
    pub fn parse(text: &str) -> Result<Self, String> {
        text.split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(named_window)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Returns the tokens of a model's context. Of a model that Ollama serves, the server's memory decides and not the table.
    pub fn of(&self, model: &ModelChoice) -> u32 {
        let full = model.name.to_lowercase();
        // Names of hubs begin with the maker's.
        let own = full.rsplit('/').next().unwrap_or_default();
        let set = self.0.iter().find(|window| window.is_of(&full) || window.is_of(own));
        let known = || {
            let rows = TABLE.iter().filter(|(beginning, _)| own.starts_with(beginning));
            rows.max_by_key(|(beginning, _)| beginning.len()).map(|(_, tokens)| *tokens)
        };
        match set {
            Some(window) => window.tokens,
            None if model.provider == Provider::Ollama => UNKNOWN,
            None => known().unwrap_or(UNKNOWN),
        }
    }
}

impl NamedWindow {
    fn is_of(&self, model: &str) -> bool {
        if self.is_beginning { model.starts_with(&self.name) } else { model == self.name }
    }
}

fn named_window(part: &str) -> Result<NamedWindow, String> {
    let expected =
        || format!("models with their tokens, from {SMALLEST}, such as my-model=8192,gpt-4*=128000, not {part:?}");
    let (name, tokens) = part.rsplit_once('=').ok_or_else(expected)?;
    let tokens = tokens.trim().parse().ok().filter(|tokens| *tokens >= SMALLEST).ok_or_else(expected)?;
    let (name, is_beginning) = match name.trim().strip_suffix('*') {
        Some(beginning) => (beginning, true),
        None => (name.trim(), false),
    };
    if name.is_empty() && !is_beginning {
        return Err(expected());
    }
    Ok(NamedWindow { name: name.to_lowercase(), is_beginning, tokens })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_has_the_window_of_the_longest_beginning_of_its_name() {
        let check = |provider: &str, name: &str, tokens: u32| {
            let model = ModelChoice::named(provider, name).unwrap();
            assert_eq!(ContextWindows::default().of(&model), tokens, "{name}");
        };
        check("openai", "gpt-4", 8_192);
        check("openai", "gpt-4o-mini", 128_000);
        check("openai", "gpt-4.1-nano", 1_047_576);
        check("openai", "anthropic/claude-sonnet-4.5", 200_000);
        check("openai", "meta-llama/Llama-3.1-8B-Instruct", 131_072);
        check("gemini", "gemini-2.5-flash", 1_048_576);
        check("openai", "house-model", UNKNOWN);
        check("scripted", "scripted", UNKNOWN);
        check("ollama", "gemma-3", UNKNOWN);
    }

    #[test]
    fn the_setting_comes_before_the_table() {
        let windows = ContextWindows::parse("House=8192, gpt-4*=64000,gemma3:4b=1000").unwrap();
        let check = |provider: &str, name: &str, tokens: u32| {
            assert_eq!(windows.of(&ModelChoice::named(provider, name).unwrap()), tokens, "{name}");
        };
        check("openai", "house", 8_192);
        check("openai", "maker/House", 8_192);
        check("openai", "houses", UNKNOWN);
        check("openai", "gpt-4o", 64_000);
        check("ollama", "gemma3:4b", 1_000);
        check("anthropic", "claude-opus-4-1", 200_000);
    }

    #[test]
    fn a_window_is_a_name_and_at_least_a_thousand_tokens() {
        assert_eq!(ContextWindows::parse(""), Ok(ContextWindows::default()));
        assert!(ContextWindows::parse("*=1000").is_ok());
        for wrong in ["gpt-4", "=8192", "a=999", "a=many", "a=-5", "a=99999999999"] {
            let problem = ContextWindows::parse(wrong).unwrap_err();
            assert!(problem.contains(wrong), "{problem}");
        }
    }
}
