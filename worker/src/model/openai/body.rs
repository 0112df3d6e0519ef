//! The body of a request for a streamed chat completion.

use std::collections::BTreeSet;

use holdfast_shared::{agent::ReasoningEffort, overrides::JsonFormat, tool_choice::ToolMode};
use serde::Serialize;
use serde_json::Value;

use super::{
    conversation::{self, FunctionType, RequestMessage},
    dialect::OpenAiDialect,
    lessons::{LearnedRules, Parameter, taken},
};
use crate::model::{AnswerForm, Request, ToolSpec, tool_schema};

#[derive(Serialize)]
pub(super) struct CompletionRequest<'a> {
    model: &'a str,
    messages: Vec<RequestMessage<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<RequestTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<RequestChoice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    presence_penalty: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    frequency_penalty: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<ReasoningEffort>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ResponseFormat<'a>>,
}

/// The form of an answer in JSON.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ResponseFormat<'a> {
    JsonObject,
    JsonSchema { json_schema: NamedSchema<'a> },
}

#[derive(Serialize)]
struct NamedSchema<'a> {
    name: &'a str,
    schema: &'a Value,
    strict: bool,
}

impl<'a> ResponseFormat<'a> {
    /// Returns the form as far as the server `takes` it: with its schema, or as any JSON, or not at all.
    fn of(form: &'a AnswerForm, takes: impl Fn(Parameter) -> bool) -> Option<Self> {
        let AnswerForm::Json(format) = form else { return None };
        let JsonFormat { name, schema, strict } = format.as_ref();
        match schema {
            Some(schema) if takes(Parameter::JsonSchema) => {
                Some(Self::JsonSchema { json_schema: NamedSchema { name, schema, strict: *strict } })
            }
            _ => takes(Parameter::ResponseFormat).then_some(Self::JsonObject),
        }
    }

    fn parameter(&self) -> Parameter {
        match self {
            Self::JsonObject => Parameter::ResponseFormat,
            Self::JsonSchema { .. } => Parameter::JsonSchema,
        }
    }
}

/// Whether the model must call a tool.
#[derive(Serialize)]
#[serde(untagged)]
enum RequestChoice<'a> {
    Mode(&'static str),
    Named {
        #[serde(rename = "type")]
        kind: FunctionType,
        function: FunctionName<'a>,
    },
}

#[derive(Serialize)]
struct FunctionName<'a> {
    name: &'a str,
}

impl<'a> RequestChoice<'a> {
    fn of(mode: &'a ToolMode) -> Option<Self> {
        match mode {
            ToolMode::Auto => None,
            ToolMode::None => Some(Self::Mode("none")),
            ToolMode::Required => Some(Self::Mode("required")),
            ToolMode::Named(name) => {
                Some(Self::Named { kind: FunctionType::Function, function: FunctionName { name } })
            }
        }
    }
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct RequestTool<'a> {
    #[serde(rename = "type")]
    kind: FunctionType,
    function: FunctionDeclaration<'a>,
}

#[derive(Serialize)]
struct FunctionDeclaration<'a> {
    name: &'a str,
    description: &'a str,
    parameters: Value,
}

impl<'a> CompletionRequest<'a> {
    /// Writes the request by the rules of the dialect, and by those that the refusals of the address have shown. `max_tokens` applies if the
    /// request sets no limit.
    pub fn new(
        model: &'a str,
        request: &'a Request,
        max_tokens: Option<u32>,
        dialect: &OpenAiDialect,
        rules: &LearnedRules,
    ) -> Self {
        let refused = &rules.refused;
        let options = &request.options;
        let takes = |parameter| !dialect.without.contains(&parameter) && !refused.contains(&parameter);
        let limit = options.max_tokens.or(max_tokens);
        let calls = |parameter| !request.tools.is_empty() && takes(parameter);
        let limit_as = |name| limit.filter(|_| taken(dialect.token_limit, refused) == Some(name));
        Self {
            model,
            messages: conversation::messages(request, rules),
            stream: true,
            stream_options: takes(Parameter::StreamOptions).then_some(StreamOptions { include_usage: true }),
            tools: request.tools.iter().map(RequestTool::of).collect(),
            tool_choice: RequestChoice::of(&request.tool_mode).filter(|_| calls(Parameter::ToolChoice)),
            parallel_tool_calls: request.parallel_calls.filter(|_| calls(Parameter::ParallelToolCalls)),
            max_tokens: limit_as(Parameter::MaxTokens),
            max_completion_tokens: limit_as(Parameter::MaxCompletionTokens),
            temperature: options.temperature.filter(|_| takes(Parameter::Temperature)),
            top_p: options.top_p.filter(|_| takes(Parameter::TopP)),
            stop: Some(options.stop.as_slice()).filter(|stop| !stop.is_empty() && takes(Parameter::Stop)),
            seed: request.sampling.seed.filter(|_| takes(Parameter::Seed)),
            presence_penalty: request.sampling.presence_penalty.filter(|_| takes(Parameter::PresencePenalty)),
            frequency_penalty: request.sampling.frequency_penalty.filter(|_| takes(Parameter::FrequencyPenalty)),
            reasoning_effort: options.reasoning_effort.filter(|_| takes(Parameter::ReasoningEffort)),
            response_format: ResponseFormat::of(&request.form, takes),
        }
    }

    /// Returns the parameters of the request that a server may refuse.
    pub fn parameters(&self) -> BTreeSet<Parameter> {
        let has_own_words = |parameter| (parameter, self.messages.iter().any(|message| message.has(parameter)));
        let all = [
            (Parameter::MaxTokens, self.max_tokens.is_some()),
            (Parameter::MaxCompletionTokens, self.max_completion_tokens.is_some()),
            (Parameter::Temperature, self.temperature.is_some()),
            (Parameter::TopP, self.top_p.is_some()),
            (Parameter::Stop, self.stop.is_some()),
            (Parameter::Seed, self.seed.is_some()),
            (Parameter::PresencePenalty, self.presence_penalty.is_some()),
            (Parameter::FrequencyPenalty, self.frequency_penalty.is_some()),
            (Parameter::ReasoningEffort, self.reasoning_effort.is_some()),
            (Parameter::StreamOptions, self.stream_options.is_some()),
            (Parameter::ToolChoice, self.tool_choice.is_some()),
            (Parameter::ParallelToolCalls, self.parallel_tool_calls.is_some()),
            has_own_words(Parameter::Name),
            has_own_words(Parameter::ReasoningContent),
            has_own_words(Parameter::ReasoningDetails),
            has_own_words(Parameter::ExtraContent),
        ];
        let sent = all.into_iter().filter_map(|(parameter, is_sent)| is_sent.then_some(parameter));
        sent.chain(self.response_format.as_ref().map(ResponseFormat::parameter)).collect()
    }
}

impl<'a> RequestTool<'a> {
    fn of(tool: &'a ToolSpec) -> Self {
        let function = FunctionDeclaration {
            name: &tool.name,
            description: &tool.description,
            parameters: tool_schema::for_provider(&tool.input_schema),
        };
        Self { kind: FunctionType::Function, function }
    }
}
