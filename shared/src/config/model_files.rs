//! The kinds of files that models take.

use super::{ModelChoice, Provider};
use crate::file::{PDF, PICTURES};

/// A kind of file that a provider's protocol carries, or the rule by the model's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ModelFileKind {
    /// By the provider and the name of the model.
    Auto,
    /// Pictures.
    Image,
    /// PDFs.
    Pdf,
    /// No files.
    None,
}

/// Names of models of OpenAI's that take no pictures.
const BLIND_OPENAI: [&str; 8] =
    ["gpt-3.5", "gpt-4-0", "gpt-4-1106", "gpt-4-32k", "o1-mini", "o1-preview", "o3-mini", "gpt-oss"];

/// Parts of the names of models that see, where a provider has models of many families.
const SEEING: [&str; 14] = [
    "gpt-4o",
    "gpt-5",
    "vision",
    "-vl",
    "vl:",
    "llava",
    "gemma3",
    "gemma-3",
    "llama4",
    "llama-4",
    "moondream",
    "minicpm-v",
    "pixtral",
    "mistral-small3",
];

impl ModelChoice {
    /// Returns whether the model takes files of this media type, by the setting or by its name.
    pub fn takes(&self, setting: &[ModelFileKind], media_type: &str) -> bool {
        let kind = match media_type {
            PDF => ModelFileKind::Pdf,
            picture if PICTURES.contains(&picture) => ModelFileKind::Image,
            _ => return false,
        };
        if !setting.contains(&ModelFileKind::Auto) {
            return setting.contains(&kind);
        }
        let name = self.name.to_ascii_lowercase();
        let has_any = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
        let is_of_openai =
            name.starts_with("gpt-") || name.starts_with("o1") || name.starts_with("o3") || name.starts_with("o4");
        match self.provider {
            Provider::Scripted => true,
            Provider::Gemini => !name.starts_with("gemma") || (kind == ModelFileKind::Image && has_any(&SEEING)),
            Provider::Anthropic => !has_any(&["claude-2", "claude-instant"]),
            Provider::Vertex => !has_any(&["claude-2", "claude-instant"]),
            Provider::OpenAi if is_of_openai => {
                name != "gpt-4" && !BLIND_OPENAI.iter().any(|blind| name.starts_with(blind))
            }
            Provider::OpenAi | Provider::Ollama => kind == ModelFileKind::Image && has_any(&SEEING),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_takes_what_its_name_or_the_setting_says() {
        let check = |provider, name: &str, expected: [bool; 2]| {
            let choice = ModelChoice { provider, name: name.into() };
            let takes = ["image/png", PDF].map(|kind| choice.takes(&[ModelFileKind::Auto], kind));
            assert_eq!(takes, expected, "{choice}");
            assert!(!choice.takes(&[ModelFileKind::Auto], "application/zip"));
            assert!(choice.takes(&[ModelFileKind::Pdf], PDF) && !choice.takes(&[ModelFileKind::None], PDF));
        };
        check(Provider::OpenAi, "gpt-4o-mini", [true, true]);
        check(Provider::OpenAi, "gpt-3.5-turbo", [false, false]);
        check(Provider::OpenAi, "o3-mini", [false, false]);
        check(Provider::OpenAi, "gpt-4", [false, false]);
        check(Provider::OpenAi, "qwen2.5-vl-7b", [true, false]);
        check(Provider::OpenAi, "deepseek-chat", [false, false]);
        check(Provider::Anthropic, "claude-sonnet-4-5", [true, true]);
        check(Provider::Gemini, "gemini-2.5-flash", [true, true]);
        check(Provider::Vertex, "claude-sonnet-4-5", [true, true]);
        check(Provider::Ollama, "llava:13b", [true, false]);
        check(Provider::Ollama, "llama3.2", [false, false]);
        check(Provider::Scripted, "scripted", [true, true]);
    }
}
