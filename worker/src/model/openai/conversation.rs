//! The messages of a request, in an order that every server of this protocol takes.
//!
//! Chat templates of local servers, and Mistral, refuse what OpenAI takes: two messages of one role in a row, a user after a tool,
//! an empty content, an assistant at the beginning or at the end. The order here harms no server.

use std::{borrow::Cow, sync::LazyLock};

use serde::Serialize;
use serde_json::Value;

use super::{
    call_ids::CallIds,
    lessons::{LearnedRules, Parameter},
    signature::{self, EXTRA_CONTENT, REASONING_CONTENT, REASONING_DETAILS},
};
use crate::model::{Request, ToolRequest, Turn, UserPart};

/// Separates two messages that become one.
const PARAGRAPH: &str = "\n\n";

/// The user's message before an assistant that would be the first to speak.
const EARLIER: &str = "[The conversation began before this message.]";

/// The assistant's message between the results of tools and a message of the user.
const RESULTS_READ: &str = "I have read the results.";

/// The user's message after an assistant that would be the last to speak.
const CONTINUE: &str = "Continue.";

/// The reasoning of a call before which the model has thought nothing, for servers that demand some.
static NO_REASONING: LazyLock<Value> = LazyLock::new(|| " ".into());

/// The result of a tool without any text.
const NO_OUTPUT: &str = "(no output)";

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub(super) enum RequestMessage<'a> {
    System {
        content: Cow<'a, str>,
    },
    User {
        content: RequestContent<'a>,
        /// The speaker. Messages of several, which one message has, name them in their texts.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<&'a str>,
    },
    Assistant(AssistantMessage<'a>),
    Tool {
        tool_call_id: String,
        content: &'a str,
    },
}

#[derive(Serialize, Default)]
pub(super) struct AssistantMessage<'a> {
    content: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<RequestCall<'a>>,
    /// Only with calls: what the model thought before it made them.
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_details: Option<&'a Value>,
}

/// A text alone is a string, because older servers of this protocol know no parts.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum RequestContent<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<RequestPart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum RequestPart<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: ImageUrl },
    File { file: FileData<'a> },
}

#[derive(Serialize)]
pub(super) struct ImageUrl {
    url: String,
}

#[derive(Serialize)]
pub(super) struct FileData<'a> {
    filename: &'a str,
    file_data: String,
}

#[derive(Serialize)]
struct RequestCall<'a> {
    id: String,
    #[serde(rename = "type")]
    kind: FunctionType,
    function: FunctionCall<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<&'a Value>,
}

#[derive(Serialize)]
struct FunctionCall<'a> {
    name: &'a str,
    arguments: String,
}

/// The only kind of tool.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FunctionType {
    Function,
}

/// The messages so far.
struct MessageList<'a, 'r> {
    messages: Vec<RequestMessage<'a>>,
    ids: CallIds<'a>,
    rules: &'r LearnedRules,
}

/// Returns the messages without the fields that the address has refused, and with those that it demands.
pub(super) fn messages<'a>(request: &'a Request, rules: &LearnedRules) -> Vec<RequestMessage<'a>> {
    let system = request.system.as_deref().filter(|text| !text.trim().is_empty());
    let says_demand = rules.refused.contains(&Parameter::ToolChoice) && !request.tools.is_empty();
    let system = match (system, request.demand_in_words().filter(|_| says_demand)) {
        (Some(system), Some(demand)) => Some(Cow::Owned([system, &demand].join(PARAGRAPH))),
        (system, demand) => system.map(Cow::Borrowed).or(demand.map(Cow::Owned)),
    };
    let messages = system.map(|content| RequestMessage::System { content }).into_iter().collect();
    let mut conversation = MessageList { messages, ids: CallIds::default(), rules };
    for turn in &request.turns {
        conversation.add(turn);
    }
    if !matches!(conversation.messages.last(), Some(RequestMessage::User { .. } | RequestMessage::Tool { .. })) {
        conversation.messages.push(RequestMessage::user(CONTINUE));
    }
    conversation.messages
}

impl<'a> MessageList<'a, '_> {
    fn add(&mut self, turn: &'a Turn) {
        match turn {
            Turn::User(parts) | Turn::Files(parts) => self.add_user(parts),
            Turn::Assistant { text, calls } => self.add_assistant(text, calls),
            // The protocol has no field for `is_error`: the text describes the error.
            Turn::Tool { call_id, text, .. } => {
                let content = if text.trim().is_empty() { NO_OUTPUT } else { text };
                self.messages.push(RequestMessage::Tool { tool_call_id: self.ids.of(call_id), content });
            }
        }
    }

    fn add_user(&mut self, parts: &'a [UserPart]) {
        let speaker = parts.iter().find_map(|part| match part {
            UserPart::Speaker(name) => Some(name.as_str()),
            UserPart::Text(_) | UserPart::File(_) => None,
        });
        let mut parts: Vec<RequestPart<'a>> = parts.iter().filter_map(RequestPart::of).collect();
        if parts.is_empty() {
            return;
        }
        let takes_names = !self.rules.refused.contains(&Parameter::Name);
        let name = speaker.filter(|_| takes_names);
        if name.is_none() {
            say(&mut parts, speaker);
        }
        match self.messages.last_mut() {
            Some(RequestMessage::User { content, name: last }) => {
                if *last != name {
                    content.say(last.take());
                    say(&mut parts, name);
                }
                content.append(parts);
            }
            last => {
                if matches!(last, Some(RequestMessage::Tool { .. })) {
                    self.messages.push(RequestMessage::assistant(RESULTS_READ));
                }
                let content = match parts.as_mut_slice() {
                    [RequestPart::Text { text }] => RequestContent::Text(std::mem::take(text)),
                    _ => RequestContent::Parts(parts),
                };
                self.messages.push(RequestMessage::User { content, name });
            }
        }
    }

    fn add_assistant(&mut self, text: &'a str, calls: &'a [ToolRequest]) {
        let text = (!text.trim().is_empty()).then_some(text);
        if text.is_none() && calls.is_empty() {
            return;
        }
        let signature = calls.first().and_then(|call| call.signature.as_ref());
        let message = AssistantMessage {
            content: text.map(Cow::Borrowed),
            tool_calls: calls.iter().map(|call| self.call(call)).collect(),
            reasoning_content: self
                .own_words(signature, Parameter::ReasoningContent, REASONING_CONTENT)
                .or_else(|| (self.rules.demands_reasoning && !calls.is_empty()).then_some(&*NO_REASONING)),
            reasoning_details: self.own_words(signature, Parameter::ReasoningDetails, REASONING_DETAILS),
        };
        match self.messages.last_mut() {
            Some(RequestMessage::Assistant(last)) if last.tool_calls.is_empty() => last.append(message),
            Some(RequestMessage::User { .. } | RequestMessage::Tool { .. } | RequestMessage::Assistant(_)) => {
                self.messages.push(RequestMessage::Assistant(message));
            }
            Some(RequestMessage::System { .. }) | None => {
                self.messages.extend([RequestMessage::user(EARLIER), RequestMessage::Assistant(message)]);
            }
        }
    }

    fn call(&mut self, call: &'a ToolRequest) -> RequestCall<'a> {
        RequestCall {
            id: self.ids.of(&call.id),
            kind: FunctionType::Function,
            function: FunctionCall { name: &call.name, arguments: call.arguments().to_string() },
            extra_content: self.own_words(call.signature.as_ref(), Parameter::ExtraContent, EXTRA_CONTENT),
        }
    }

    /// Returns a field of the signature, unless the address refuses it.
    fn own_words(&self, signature: Option<&'a Value>, parameter: Parameter, name: &str) -> Option<&'a Value> {
        signature::field(signature, name).filter(|_| !self.rules.refused.contains(&parameter))
    }
}

impl<'a> RequestMessage<'a> {
    fn user(text: &'a str) -> Self {
        Self::User { content: RequestContent::Text(text.into()), name: None }
    }

    fn assistant(text: &'a str) -> Self {
        Self::Assistant(AssistantMessage { content: Some(text.into()), ..AssistantMessage::default() })
    }

    /// Returns whether the message has this field.
    pub fn has(&self, parameter: Parameter) -> bool {
        let Self::Assistant(message) = self else {
            return parameter == Parameter::Name && matches!(self, Self::User { name: Some(_), .. });
        };
        match parameter {
            Parameter::ReasoningContent => message.reasoning_content.is_some(),
            Parameter::ReasoningDetails => message.reasoning_details.is_some(),
            Parameter::ExtraContent => message.tool_calls.iter().any(|call| call.extra_content.is_some()),
            _ => false,
        }
    }
}

impl AssistantMessage<'_> {
    /// Adds the next message of the assistant.
    fn append(&mut self, next: Self) {
        let content = match (self.content.take(), next.content) {
            (Some(first), Some(second)) => Some(Cow::Owned([&*first, &*second].join(PARAGRAPH))),
            (first, second) => first.or(second),
        };
        *self = Self { content, ..next };
    }
}

/// Puts a name before the first text.
fn say(parts: &mut Vec<RequestPart<'_>>, name: Option<&str>) {
    let Some(name) = name else { return };
    match parts.first_mut() {
        Some(RequestPart::Text { text }) => *text = format!("{name}: {text}").into(),
        _ => parts.insert(0, RequestPart::Text { text: format!("{name}:").into() }),
    }
}

impl<'a> RequestContent<'a> {
    /// Puts a name before the first text.
    fn say(&mut self, name: Option<&str>) {
        match (self, name) {
            (Self::Text(text), Some(name)) => *text = format!("{name}: {text}").into(),
            (Self::Parts(parts), name) => say(parts, name),
            (Self::Text(_), None) => {}
        }
    }

    /// Adds the next message of the user.
    fn append(&mut self, parts: Vec<RequestPart<'a>>) {
        let mut all = match std::mem::replace(self, Self::Parts(Vec::new())) {
            Self::Text(text) => vec![RequestPart::Text { text }],
            Self::Parts(parts) => parts,
        };
        for part in parts {
            if let (Some(RequestPart::Text { text: last }), RequestPart::Text { text }) = (all.last_mut(), &part) {
                *last = Cow::Owned([&**last, &**text].join(PARAGRAPH));
            } else {
                all.push(part);
            }
        }
        *self = match all.as_mut_slice() {
            [RequestPart::Text { text }] => Self::Text(std::mem::take(text)),
            _ => Self::Parts(all),
        };
    }
}

impl<'a> RequestPart<'a> {
    /// Returns the part, or `None` for a text that says nothing.
    fn of(part: &'a UserPart) -> Option<Self> {
        Some(match part {
            UserPart::Speaker(_) => return None,
            UserPart::Text(text) if text.trim().is_empty() => return None,
            UserPart::Text(text) => Self::Text { text: text.into() },
            UserPart::File(file) if file.is_picture() => {
                Self::ImageUrl { image_url: ImageUrl { url: file.data_url() } }
            }
            UserPart::File(file) => Self::File { file: FileData { filename: &file.name, file_data: file.data_url() } },
        })
    }
}

#[cfg(test)]
mod tests;
