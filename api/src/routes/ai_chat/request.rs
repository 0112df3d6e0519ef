//! What a client of the AI SDK asks for: the newest message of the body, and why it was sent.

use holdfast_shared::{
    storable::has_nul,
    storage::ClientResult,
    tool::{ClientTool, any_object},
};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use crate::{
    auth::{MAX_NAME_CHARS, is_name},
    problem::Problem,
};

/// Fields that are not known are ignored here.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UiChatBody {
    /// The client's name for the chat, which is made if there is none, or the id of a conversation.
    pub id: Option<String>,
    /// `UIMessage[]`, of which the last counts.
    #[schema(value_type = Vec<Object>)]
    messages: Option<Vec<Value>>,
    /// The newest `UIMessage` alone.
    #[schema(value_type = Object)]
    message: Option<Value>,
    /// `submit-message` or `regenerate-message`.
    trigger: Option<String>,
    /// The message that is sent again in other words, or answered again.
    pub message_id: Option<String>,
    /// For a new conversation; an existing one keeps its own.
    agent_id: Option<String>,
    /// The same.
    agent_definition_id: Option<String>,
    /// Tools that the front end executes.
    client_tools: Option<Vec<FrontEndTool>>,
}

#[derive(Clone, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FrontEndTool {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default = "any_object")]
    #[schema(value_type = Object)]
    input_schema: Value,
}

/// What is to be done.
pub enum ChatAction {
    Ask(UserMessage),
    /// The question, or else the chat's newest one, is to be answered again.
    Regenerate {
        question: Option<UserMessage>,
    },
    /// What the assistant's message has asked is answered.
    Answer {
        message_id: String,
        answers: Vec<PartAnswer>,
    },
}

/// A user's message.
pub struct UserMessage {
    /// The client's.
    pub id: Option<String>,
    pub text: String,
}

/// What a part of an assistant's message answers.
pub enum PartAnswer {
    Approval { id: Uuid, approved: bool, reason: Option<String> },
    Result { call_id: String, result: ClientResult },
}

impl PartAnswer {
    /// What it answers, as the log has it.
    pub fn question(&self) -> String {
        match self {
            Self::Approval { id, .. } => id.to_string(),
            Self::Result { call_id, .. } => call_id.clone(),
        }
    }
}

#[derive(Deserialize)]
struct ClientMessage {
    id: Option<String>,
    role: String,
    #[serde(default)]
    parts: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallPart {
    tool_call_id: String,
    state: String,
    approval: Option<ApprovalPart>,
    #[serde(default)]
    output: Value,
    error_text: Option<String>,
}

#[derive(Deserialize)]
struct ApprovalPart {
    id: String,
    approved: Option<bool>,
    reason: Option<String>,
}

impl UiChatBody {
    pub fn agent(&self) -> Option<&str> {
        self.agent_id.as_deref().or(self.agent_definition_id.as_deref())
    }

    pub fn client_tools(&self) -> Vec<ClientTool> {
        let tools = self.client_tools.iter().flatten().cloned();
        tools
            .map(|FrontEndTool { name, description, input_schema }| ClientTool { name, description, input_schema })
            .collect()
    }

    /// What the newest message asks for.
    pub fn action(&self) -> Result<ChatAction, Problem> {
        match self.trigger.as_deref() {
            Some("regenerate-message") => return Ok(ChatAction::Regenerate { question: self.newest_question()? }),
            None | Some("submit-message") => {}
            Some(_) => {
                return Err(Problem::invalid_body("trigger is submit-message or regenerate-message."));
            }
        }
        let newest = self.message.as_ref().or_else(|| self.messages.as_ref()?.last());
        let newest = newest.ok_or_else(|| Problem::invalid_body("The body has no message."))?;
        let message = ClientMessage::deserialize(newest)
            .map_err(|error| Problem::invalid_body(format!("The newest message is no UIMessage: {error}.")))?;
        match (message.role.as_str(), message.id) {
            ("user", id) => Ok(ChatAction::Ask(UserMessage { id: checked_id(id)?, text: text_of(&message.parts)? })),
            ("assistant", Some(message_id)) => {
                Ok(ChatAction::Answer { message_id, answers: answers_of(&message.parts)? })
            }
            (role, _) => Err(Problem::invalid_body(format!(
                "The newest message is a user's, or the assistant's with its id, not one of role {role:?}."
            ))),
        }
    }

    /// The newest message that a user has message.
    fn newest_question(&self) -> Result<Option<UserMessage>, Problem> {
        let mut all = self.messages.iter().flatten().chain(&self.message).rev();
        let message =
            all.find(|message| message["role"] == "user").and_then(|message| ClientMessage::deserialize(message).ok());
        message
            .map(|message| Ok(UserMessage { id: checked_id(message.id)?, text: text_of(&message.parts)? }))
            .transpose()
    }
}

fn checked_id(id: Option<String>) -> Result<Option<String>, Problem> {
    // Some clients have a name for every message but the newest.
    let id = id.filter(|id| !id.is_empty());
    match id.as_deref().is_none_or(is_name) {
        true => Ok(id),
        false => Err(Problem::invalid_body(format!("The id of a message has 1 to {MAX_NAME_CHARS} characters."))),
    }
}

fn text_of(parts: &[Value]) -> Result<String, Problem> {
    if parts.iter().any(|part| part["type"] == "file") {
        return Err(Problem::unsupported_part("file"));
    }
    let texts = parts.iter().filter(|part| part["type"] == "text").filter_map(|part| part["text"].as_str());
    Ok(texts.collect::<Vec<_>>().join("\n\n"))
}

/// What the parts answer. Those that answer nothing, or not in a way that is known, are passed over.
fn answers_of(parts: &[Value]) -> Result<Vec<PartAnswer>, Problem> {
    let calls = parts.iter().filter_map(|part| CallPart::deserialize(part).ok());
    let mut answers = Vec::new();
    for CallPart { tool_call_id: call_id, state, approval, output, error_text } in calls {
        let answer = match (state.as_str(), approval) {
            ("approval-responded", Some(ApprovalPart { id, approved: Some(approved), reason })) => {
                let Ok(id) = Uuid::try_parse(&id) else { continue };
                if reason.as_ref().is_some_and(|reason| reason.contains('\0')) {
                    return Err(Problem::invalid_content());
                }
                PartAnswer::Approval { id, approved, reason }
            }
            ("output-available", _) if has_nul(&output) => return Err(Problem::invalid_content()),
            ("output-available", _) => {
                let output = output.as_str().map_or_else(|| output.to_string(), str::to_owned);
                PartAnswer::Result { call_id, result: ClientResult::Output(output) }
            }
            ("output-error", _) => {
                let message = error_text.unwrap_or_default();
                if message.contains('\0') {
                    return Err(Problem::invalid_content());
                }
                PartAnswer::Result { call_id, result: ClientResult::Error(message) }
            }
            _ => continue,
        };
        answers.push(answer);
    }
    Ok(answers)
}
