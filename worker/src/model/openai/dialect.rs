//! The rules of the addresses that speak this protocol, as a table.
//!
//! A setting, the host or the model's name says which row an address follows. Rules that harm no server hold for all rows and have
//! their homes elsewhere: `call_ids`, `conversation`, `tool_schema`. The `lessons` of refusals override a row.

use holdfast_shared::agent::{ModelDialect, ReasoningPlace};

use super::lessons::Parameter;

/// Most tools of a request, for every row. OpenAI, Azure, DeepSeek and Groq refuse more.
pub(super) const MAX_TOOLS: usize = 128;

/// A row of the table.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OpenAiDialect {
    /// The parameter for the longest answer. OpenAI has renamed it; its newer models refuse the old name, and other servers may know
    /// only that.
    pub token_limit: Parameter,
    /// Parameters that are never sent.
    pub without: &'static [Parameter],
}

const OPENAI: OpenAiDialect = OpenAiDialect { token_limit: Parameter::MaxCompletionTokens, without: &[] };

/// `top_p` is refused too, unless it is 1.
const OPENAI_REASONING: OpenAiDialect = OpenAiDialect {
    token_limit: Parameter::MaxCompletionTokens,
    without: &[
        Parameter::Temperature,
        Parameter::TopP,
        Parameter::Stop,
        Parameter::PresencePenalty,
        Parameter::FrequencyPenalty,
    ],
};

/// Mistral refuses unknown fields, and sends the usage unasked.
const MISTRAL: OpenAiDialect =
    OpenAiDialect { token_limit: Parameter::MaxTokens, without: &[Parameter::StreamOptions] };

const COMPATIBLE: OpenAiDialect = OpenAiDialect { token_limit: Parameter::MaxTokens, without: &[] };

/// Hosts, or their ends, and the rows that they follow.
static HOSTS: [(&str, &OpenAiDialect); 5] = [
    ("api.openai.com", &OPENAI),
    (".openai.azure.com", &OPENAI),
    (".services.ai.azure.com", &OPENAI),
    (".cognitiveservices.azure.com", &OPENAI),
    ("api.mistral.ai", &MISTRAL),
];

/// Parts of the names of models whose templates write `<think>` themselves.
const BEGIN_WITHIN: [&str; 4] = ["deepseek-r1", "qwq", "-thinking", "r1-distill"];

impl OpenAiDialect {
    /// Returns the row of a model at an address.
    pub fn of(setting: Option<ModelDialect>, url: &str, model: &str) -> &'static Self {
        if let Some(setting) = setting {
            return match setting {
                ModelDialect::Openai => &OPENAI,
                ModelDialect::OpenaiReasoning => &OPENAI_REASONING,
                ModelDialect::Mistral => &MISTRAL,
                ModelDialect::Compatible => &COMPATIBLE,
            };
        }
        if is_reasoning_model_of_openai(model) {
            return &OPENAI_REASONING;
        }
        let host = reqwest::Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default();
        HOSTS.iter().find(|row| host.ends_with(row.0)).map_or(&COMPATIBLE, |row| row.1)
    }
}

/// Gateways write the owner before the name, as in `openai/gpt-5-mini`.
fn is_reasoning_model_of_openai(model: &str) -> bool {
    let model = model.to_ascii_lowercase();
    let name = model.rsplit('/').next().unwrap_or_default();
    let is_o = name.strip_prefix('o').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    is_o || (name.starts_with("gpt-5") && !name.contains("chat"))
}

/// Returns whether a text of the model without tags begins within its reasoning.
pub(super) fn begins_within_reasoning(setting: Option<ReasoningPlace>, model: &str) -> bool {
    match setting {
        Some(place) => place == ReasoningPlace::Think,
        None => {
            let model = model.to_ascii_lowercase();
            BEGIN_WITHIN.iter().any(|part| model.contains(part))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_the_name_and_the_host_say_which_rules_hold() {
        let check = |setting, url: &str, model: &str, expected: &OpenAiDialect| {
            assert_eq!(OpenAiDialect::of(setting, url, model), expected, "{url} {model}");
        };
        let local = "http://127.0.0.1:8000/v1/";
        check(None, "https://api.openai.com/v1/", "gpt-4o", &OPENAI);
        check(None, "https://our-own.openai.azure.com/openai/v1/", "our-deployment", &OPENAI);
        check(None, "https://api.mistral.ai/v1/", "mistral-small", &MISTRAL);
        check(None, "https://api.mistral.ai.example.com/v1/", "mistral-small", &COMPATIBLE);
        for name in ["o1", "o4-mini", "gpt-5", "GPT-5-mini", "openai/gpt-5.1"] {
            check(None, local, name, &OPENAI_REASONING);
        }
        for name in ["olmo-2", "gpt-oss-20b", "gpt-5-chat-latest", "gpt-4o", "openchat", "mistral-small"] {
            check(None, local, name, &COMPATIBLE);
        }
        check(Some(ModelDialect::Mistral), local, "gpt-5", &MISTRAL);
        check(Some(ModelDialect::OpenaiReasoning), local, "our-deployment", &OPENAI_REASONING);
    }

    #[test]
    fn a_setting_or_the_name_says_where_an_answer_begins() {
        let check = |setting, model: &str, expected| {
            assert_eq!(begins_within_reasoning(setting, model), expected, "{model}");
        };
        check(None, "deepseek-ai/DeepSeek-R1-0528", true);
        check(None, "qwen3-30b-a3b-thinking-2507", true);
        check(None, "qwen3-30b-a3b-instruct", false);
        check(Some(ReasoningPlace::Think), "some-model", true);
        check(Some(ReasoningPlace::Field), "deepseek-r1", false);
    }
}
