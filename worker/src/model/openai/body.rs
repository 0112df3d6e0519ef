//! The body of a request for a streamed chat completion.

use holdfast_shared::{agent::ReasoningEffort, overrides::JsonFormat};
use serde::Serialize;
use serde_json::Value;

use crate::model::{AnswerForm, Request, ToolRequest, ToolSpec, Turn, UserPart};

#[derive(Serialize)]
pub(super) struct CompletionRequest<'a> {
    model: &'a str,
    messages: Vec<RequestMessage<'a>>,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<RequestTool<'a>>,
    #[serde(flatten)]
    limit: Option<TokenLimit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop: &'a [String],
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
    fn of(form: &'a AnswerForm) -> Option<Self> {
        let AnswerForm::Json(format) = form else { return None };
        let JsonFormat { name, schema, strict } = format.as_ref();
        Some(match schema {
            Some(schema) => Self::JsonSchema { json_schema: NamedSchema { name, schema, strict: *strict } },
            None => Self::JsonObject,
        })
    }
}

/// OpenAI has renamed the limit, and its newer models refuse the old name; other servers may know only the old one.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum TokenLimit {
    MaxCompletionTokens(u32),
    MaxTokens(u32),
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
enum RequestMessage<'a> {
    System {
        content: &'a str,
    },
    User {
        content: RequestContent<'a>,
    },
    Assistant {
        content: Option<&'a str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<RequestCall<'a>>,
    },
    Tool {
        tool_call_id: &'a str,
        content: &'a str,
    },
}

/// A text alone is a string, because older servers of this protocol know no parts.
#[derive(Serialize)]
#[serde(untagged)]
enum RequestContent<'a> {
    Text(&'a str),
    Parts(Vec<RequestPart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum RequestPart<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: ImageUrl },
    File { file: FileData<'a> },
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

#[derive(Serialize)]
struct FileData<'a> {
    filename: &'a str,
    file_data: String,
}

#[derive(Serialize)]
struct RequestCall<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: FunctionType,
    function: FunctionCall<'a>,
    /// Google's endpoint of this protocol puts thought signatures here.
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<&'a Value>,
}

#[derive(Serialize)]
struct FunctionCall<'a> {
    name: &'a str,
    arguments: String,
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
    parameters: &'a Value,
}

/// The only kind of tool.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum FunctionType {
    Function,
}

impl<'a> CompletionRequest<'a> {
    pub fn new(model: &'a str, request: &'a Request, limit: Option<TokenLimit>) -> Self {
        let system = request.system.as_deref().map(|content| RequestMessage::System { content });
        let options = &request.options;
        Self {
            model,
            messages: system.into_iter().chain(request.turns.iter().map(RequestMessage::of)).collect(),
            stream: true,
            stream_options: StreamOptions { include_usage: true },
            tools: request.tools.iter().map(RequestTool::of).collect(),
            limit,
            temperature: options.temperature,
            top_p: options.top_p,
            stop: &options.stop,
            reasoning_effort: options.reasoning_effort,
            response_format: ResponseFormat::of(&request.form),
        }
    }
}

impl<'a> RequestMessage<'a> {
    fn of(turn: &'a Turn) -> Self {
        match turn {
            Turn::User(parts) | Turn::Files(parts) => Self::User { content: RequestContent::of(parts) },
            Turn::Assistant { text, calls } => Self::Assistant {
                content: (!text.is_empty()).then_some(text),
                tool_calls: calls.iter().map(RequestCall::of).collect(),
            },
            // The protocol has no field for `is_error`: the text describes the error.
            Turn::Tool { call_id, text, .. } => Self::Tool { tool_call_id: call_id, content: text },
        }
    }
}

impl<'a> RequestContent<'a> {
    fn of(parts: &'a [UserPart]) -> Self {
        match parts {
            [UserPart::Text(text)] => Self::Text(text),
            parts => Self::Parts(parts.iter().map(RequestPart::of).collect()),
        }
    }
}

impl<'a> RequestPart<'a> {
    fn of(part: &'a UserPart) -> Self {
        match part {
            UserPart::Text(text) => Self::Text { text },
            UserPart::File(file) if file.is_picture() => {
                Self::ImageUrl { image_url: ImageUrl { url: file.data_url() } }
            }
            UserPart::File(file) => Self::File { file: FileData { filename: &file.name, file_data: file.data_url() } },
        }
    }
}

impl<'a> RequestCall<'a> {
    fn of(call: &'a ToolRequest) -> Self {
        Self {
            id: &call.id,
            kind: FunctionType::Function,
            function: FunctionCall { name: &call.name, arguments: call.arguments().to_string() },
            // A signature of another provider, from an earlier turn, has another shape.
            extra_content: call.signature.as_ref().filter(|signature| signature.is_object()),
        }
    }
}

impl<'a> RequestTool<'a> {
    fn of(tool: &'a ToolSpec) -> Self {
        let function =
            FunctionDeclaration { name: &tool.name, description: &tool.description, parameters: &tool.input_schema };
        Self { kind: FunctionType::Function, function }
    }
}
