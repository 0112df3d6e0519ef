//! Lessons of refusals: parameters that an address does not take for a model, or demands.
//!
//! Azure has OpenAI's models under any name, and gateways have any model, so neither address nor name says what they take. A refusal
//! that names a parameter of the request is tried again without it, or under its other name, and remembered by this process.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use serde_json::Value;

/// A field of a request that a server may refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Parameter {
    MaxTokens,
    MaxCompletionTokens,
    Temperature,
    TopP,
    Stop,
    Seed,
    PresencePenalty,
    FrequencyPenalty,
    ReasoningEffort,
    StreamOptions,
    /// A `response_format` with a schema.
    JsonSchema,
    /// A `response_format` without a schema.
    ResponseFormat,
    ToolChoice,
    ParallelToolCalls,
    Name,
    ReasoningContent,
    ReasoningDetails,
    ExtraContent,
}

const ALL: [Parameter; 18] = [
    Parameter::MaxTokens,
    Parameter::MaxCompletionTokens,
    Parameter::Temperature,
    Parameter::TopP,
    Parameter::Stop,
    Parameter::Seed,
    Parameter::PresencePenalty,
    Parameter::FrequencyPenalty,
    Parameter::ReasoningEffort,
    Parameter::StreamOptions,
    Parameter::JsonSchema,
    Parameter::ResponseFormat,
    Parameter::ToolChoice,
    Parameter::ParallelToolCalls,
    Parameter::Name,
    Parameter::ReasoningContent,
    Parameter::ReasoningDetails,
    Parameter::ExtraContent,
];

/// Words of a refusal that is about a parameter itself, and not about its value in this request.
const UNSUPPORTED: [&str; 16] = [
    "unsupported",
    "incompatible",
    "unavailable",
    "not supported",
    "not support",
    "unknown parameter",
    "unrecognized",
    "unexpected keyword",
    "unknown field",
    "unknown name",
    "extra_forbidden",
    "extra inputs",
    "not permitted",
    "not allowed",
    "deprecated",
    "instead",
];

impl Parameter {
    pub fn name(self) -> &'static str {
        match self {
            Self::MaxTokens => "max_tokens",
            Self::MaxCompletionTokens => "max_completion_tokens",
            Self::Temperature => "temperature",
            Self::TopP => "top_p",
            Self::Stop => "stop",
            Self::Seed => "seed",
            Self::PresencePenalty => "presence_penalty",
            Self::FrequencyPenalty => "frequency_penalty",
            Self::ReasoningEffort => "reasoning_effort",
            Self::StreamOptions => "stream_options",
            Self::JsonSchema => "json_schema",
            Self::ResponseFormat => "response_format",
            Self::ToolChoice => "tool_choice",
            Self::ParallelToolCalls => "parallel_tool_calls",
            Self::Name => "name",
            Self::ReasoningContent => "reasoning_content",
            Self::ReasoningDetails => "reasoning_details",
            Self::ExtraContent => "extra_content",
        }
    }

    fn is_among(self, names: &BTreeSet<&str>) -> bool {
        names.contains(self.name()) || self == Self::JsonSchema && names.contains(Self::ResponseFormat.name())
    }

    /// Returns the parameter of the same meaning.
    fn other_name(self) -> Option<Self> {
        match self {
            Self::MaxTokens => Some(Self::MaxCompletionTokens),
            Self::MaxCompletionTokens => Some(Self::MaxTokens),
            _ => None,
        }
    }
}

/// Words of a refusal that demands a field.
const DEMANDED: [&str; 3] = ["missing", "must be", "required"];

/// The rules that a process has learned from the refusals of an address for a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LearnedRules {
    /// The parameters that must not be sent.
    pub refused: BTreeSet<Parameter>,
    /// Whether each message with calls needs reasoning, even if the model has thought nothing.
    pub demands_reasoning: bool,
}

/// The lessons of an address for a model.
#[derive(Default)]
pub(super) struct Lessons(Mutex<LearnedRules>);

impl Lessons {
    pub fn rules(&self) -> LearnedRules {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the body of a refusal of a request with the parameters `sent`. Returns those that it says are not taken, or that it
    /// demands, and remembers them.
    pub fn learn(&self, sent: &BTreeSet<Parameter>, body: &str) -> Vec<Parameter> {
        let names = names_in(body);
        let mut learned: Vec<Parameter> = sent.iter().copied().filter(|parameter| parameter.is_among(&names)).collect();
        let mut rules = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rules.refused.extend(&learned);
        if learned.is_empty() && !rules.demands_reasoning && demands_reasoning(body) {
            rules.demands_reasoning = true;
            rules.refused.remove(&Parameter::ReasoningContent);
            learned.push(Parameter::ReasoningContent);
        }
        learned
    }
}

/// Returns the name under which a parameter can be sent, after what was `refused`.
pub(super) fn taken(parameter: Parameter, refused: &BTreeSet<Parameter>) -> Option<Parameter> {
    let names = [Some(parameter), parameter.other_name()];
    names.into_iter().flatten().find(|name| !refused.contains(name))
}

fn demands_reasoning(body: &str) -> bool {
    let lower = body.to_ascii_lowercase();
    lower.contains(Parameter::ReasoningContent.name()) && DEMANDED.iter().any(|words| lower.contains(words))
}

/// Returns a name without what spellings of it differ in, such as `reasoningEffort`.
fn plain(name: &str) -> String {
    name.replace('_', "").to_ascii_lowercase()
}

/// Returns the names of the parameters that a refusal says are not taken. A field that names one counts more than words.
fn names_in(body: &str) -> BTreeSet<&'static str> {
    let lower = body.to_ascii_lowercase();
    if !UNSUPPORTED.iter().any(|words| lower.contains(words)) {
        return BTreeSet::new();
    }
    let value: Value = serde_json::from_str(body).unwrap_or_default();
    let outer = value.get(0).unwrap_or(&value);
    let error = outer.get("error").unwrap_or(outer);
    let mut named = Vec::new();
    named.extend(error["param"].as_str().map(str::to_owned));
    let detail = error["detail"].as_array().or(error["message"]["detail"].as_array());
    let places = detail.into_iter().flatten().filter_map(|problem| problem["loc"].as_array()?.last()?.as_str());
    named.extend(places.map(str::to_owned));
    let fields: BTreeSet<_> =
        ALL.iter().map(|one| one.name()).filter(|name| named.iter().any(|n| plain(n) == plain(name))).collect();
    if !fields.is_empty() {
        return fields;
    }
    let message = error["message"].as_str().or(error.as_str()).unwrap_or(if value.is_null() { body } else { "" });
    let words: BTreeSet<String> =
        message.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).map(plain).collect();
    ALL.iter().map(|one| one.name()).filter(|name| words.contains(&plain(name))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_that_names_a_parameter_is_remembered_and_others_are_not() {
        use Parameter::*;
        let check = |body: &str, expected: &[Parameter]| {
            let lessons = Lessons::default();
            let sent = BTreeSet::from([MaxTokens, Temperature, Stop, StreamOptions, ReasoningContent]);
            assert_eq!(lessons.learn(&sent, body), expected, "{body}");
            assert_eq!(lessons.rules().refused, expected.iter().copied().collect(), "{body}");
        };
        check(
            r#"{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","param":"max_tokens","code":"unsupported_parameter"}}"#,
            &[MaxTokens],
        );
        check(
            r#"{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","code":400}}"#,
            &[MaxTokens],
        );
        check(
            r#"{"error":{"message":"Unsupported value: 'temperature' does not support 0.2 with this model.","param":"temperature"}}"#,
            &[Temperature],
        );
        check(
            r#"{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted","input":"stop"},{"type":"extra_forbidden","loc":["body","messages",2,"assistant","reasoning_content"],"msg":"Extra inputs are not permitted"}]}}"#,
            &[StreamOptions, ReasoningContent],
        );
        check(r#"{"error":"the property 'stop' is unsupported"}"#, &[Stop]);
        check("temperature is not supported", &[Temperature]);
        check(r#"{"error":"Model x does not support parameter maxTokens."}"#, &[MaxTokens]);
        check(r#"{"error":{"message":"This temperature is unavailable now","param":null}}"#, &[Temperature]);
        // About values, about something else, or about a parameter that was not sent.
        check(r#"{"error":{"message":"temperature must be at most 1","param":"temperature"}}"#, &[]);
        check(r#"{"error":{"message":"Unsupported parameter: 'reasoning_effort'","param":"reasoning_effort"}}"#, &[]);
        check(r#"{"error":{"message":"This model does not support images","param":"messages"}}"#, &[]);
        check("", &[]);
    }

    #[test]
    fn a_refused_schema_leaves_json_without_a_schema() {
        use Parameter::*;
        for body in [
            r#"{"error":{"message":"This response_format type is unavailable now","type":"invalid_request_error","param":null}}"#,
            r#"{"error":{"message":"Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.","param":"response_format"}}"#,
            r#"{"error":"json_schema is not supported"}"#,
        ] {
            let lessons = Lessons::default();
            assert_eq!(lessons.learn(&BTreeSet::from([JsonSchema]), body), [JsonSchema], "{body}");
        }
        let lessons = Lessons::default();
        let body = r#"{"error":{"message":"Unsupported parameter: 'response_format'","param":"response_format"}}"#;
        assert_eq!(lessons.learn(&BTreeSet::from([JsonSchema]), body), [JsonSchema]);
        assert_eq!(lessons.learn(&BTreeSet::from([ResponseFormat]), body), [ResponseFormat]);
    }

    #[test]
    fn a_refusal_may_demand_reasoning_and_teaches_that_once() {
        let (lessons, sent) = (Lessons::default(), BTreeSet::new());
        let body = r#"{"error":{"message":"thinking is enabled but reasoning_content is missing in assistant tool call message at index 2"}}"#;
        assert_eq!(lessons.learn(&sent, body), [Parameter::ReasoningContent]);
        assert!(lessons.rules().demands_reasoning);
        assert_eq!(lessons.learn(&sent, body), [], "a second refusal is reported");
    }

    #[test]
    fn a_refused_limit_is_sent_under_its_other_name() {
        use Parameter::*;
        assert_eq!(taken(MaxTokens, &BTreeSet::new()), Some(MaxTokens));
        assert_eq!(taken(MaxTokens, &BTreeSet::from([MaxTokens])), Some(MaxCompletionTokens));
        assert_eq!(taken(MaxCompletionTokens, &BTreeSet::from([MaxCompletionTokens])), Some(MaxTokens));
        assert_eq!(taken(MaxTokens, &BTreeSet::from([MaxTokens, MaxCompletionTokens])), None);
        assert_eq!(taken(Stop, &BTreeSet::from([Stop])), None);
    }
}
