//! The body of `POST /api/chat`: finds the requested action from its newest message and its trigger.

use holdfast_shared::{
    context::AgentContext,
    given_json,
    run::SubmitMode,
    storable::has_nul,
    storage::ClientResult,
    tool::{ClientTool, any_object},
};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use uuid::Uuid;

use crate::{
    auth::{MAX_NAME_CHARS, is_name},
    problem::Problem,
    thread::{PartAnswer, UiPart},
};

/// The route ignores unknown fields.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UiChatBody {
    /// The client's name for the chat, or the id of a conversation. An unknown name creates a chat.
    pub id: Option<String>,
    /// `UIMessage[]`; the server reads the last, and the id of the one before it.
    #[schema(value_type = Vec<Object>)]
    messages: Option<Vec<Box<RawValue>>>,
    /// The newest `UIMessage` alone.
    #[schema(value_type = Object)]
    message: Option<Box<RawValue>>,
    /// `submit-message` or `regenerate-message`.
    trigger: Option<String>,
    /// Whether the chat has a conversation, as far as the client knows; without one, the route then answers 404.
    #[serde(default)]
    pub must_exist: bool,
    /// The message to replace, or to answer again.
    pub message_id: Option<String>,
    /// The agent of a new conversation; an existing one keeps its agent.
    agent_id: Option<String>,
    /// An alias of `agentId`.
    agent_definition_id: Option<String>,
    /// Tools that the front end executes.
    client_tools: Option<Vec<FrontEndTool>>,
    /// More tools of the front end, by their names: `{description?, parameters}`, as assistant-ui's transport sends them.
    #[schema(value_type = Option<Object>)]
    tools: Option<Value>,
    /// Where in its application the user is; kept with the conversation. This route ignores unknown fields everywhere, because
    /// hooks add theirs.
    pub context: Option<AgentContext>,
    /// The effect on an unfinished run of the conversation, as for `POST /v1/conversations/{id}/messages`.
    #[serde(default)]
    pub mode: SubmitMode,
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

/// The action that a request asks for.
pub enum ChatAction {
    Ask(UserMessage),
    /// Answer the question again, or the chat's newest one if the body has none.
    Regenerate {
        question: Option<UserMessage>,
    },
    /// Answer the questions of the assistant's message.
    Answer {
        message_id: String,
        answers: Vec<PartAnswer>,
    },
}

/// A user's message.
pub struct UserMessage {
    /// The client's name for the message.
    pub id: Option<String>,
    pub parts: Vec<UiPart>,
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
            .chain(self.tools_by_name())
            .collect()
    }

    /// Returns the tools of `tools`. Skips values of other shapes, because hooks add fields of their own.
    fn tools_by_name(&self) -> impl Iterator<Item = ClientTool> {
        let tools = self.tools.iter().filter_map(Value::as_object).flatten();
        tools.filter_map(|(name, tool)| {
            let input_schema = tool.get("parameters").filter(|schema| schema.is_object())?.clone();
            let description = tool["description"].as_str().unwrap_or_default().to_owned();
            Some(ClientTool { name: name.clone(), description, input_schema })
        })
    }

    /// Returns the action that the newest message and the trigger ask for. Fails if the body is invalid.
    pub fn action(&self) -> Result<ChatAction, Problem> {
        match self.trigger.as_deref() {
            Some("regenerate-message") => return Ok(ChatAction::Regenerate { question: self.newest_question()? }),
            None | Some("submit-message") => {}
            Some(_) => {
                return Err(Problem::invalid_body("trigger must be submit-message or regenerate-message."));
            }
        }
        let newest = self.message.as_deref().or_else(|| self.messages.as_ref()?.last().map(|message| &**message));
        let newest = newest.ok_or_else(|| Problem::invalid_body("The body has no message."))?;
        let message: ClientMessage = given_json::read_text(newest.get())
            .map_err(|problem| Problem::invalid_body(format!("The newest message is not a UIMessage: {problem}.")))?;
        match (message.role.as_str(), message.id) {
            ("user", id) => Ok(ChatAction::Ask(UserMessage { id: checked_id(id)?, parts: parts_of(&message.parts)? })),
            ("assistant", Some(message_id)) => {
                Ok(ChatAction::Answer { message_id, answers: answers_of(&message.parts)? })
            }
            (role, _) => Err(Problem::nothing_to_run(&format!(
                "The newest message must have the role user, or the role assistant and an id; its role is {role:?}."
            ))),
        }
    }

    /// Returns the id of the message before the newest, if the body has both in its list.
    pub fn id_before_newest(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct Named {
            id: String,
        }
        let list = self.messages.as_ref().filter(|_| self.message.is_none())?;
        let before = list.get(list.len().checked_sub(2)?)?;
        serde_json::from_str::<Named>(before.get()).ok().map(|message| message.id).filter(|id| is_name(id))
    }

    /// Returns the newest user's message of the body, if any.
    fn newest_question(&self) -> Result<Option<UserMessage>, Problem> {
        let all = self.messages.iter().flatten().chain(&self.message).rev();
        let mut known = all.filter_map(|message| serde_json::from_str::<ClientMessage>(message.get()).ok());
        let message = known.find(|message| message.role == "user");
        message
            .map(|message| Ok(UserMessage { id: checked_id(message.id)?, parts: parts_of(&message.parts)? }))
            .transpose()
    }
}

fn checked_id(id: Option<String>) -> Result<Option<String>, Problem> {
    // Some clients name every message except the newest.
    let id = id.filter(|id| !id.is_empty());
    if id.as_deref().is_none_or(is_name) {
        Ok(id)
    } else {
        Err(Problem::invalid_body(format!("The id of a message has 1 to {MAX_NAME_CHARS} characters.")))
    }
}

/// Returns the texts and files among the parts. Fails for a file without an address.
fn parts_of(parts: &[Value]) -> Result<Vec<UiPart>, Problem> {
    let known = parts.iter().filter(|part| part["type"] == "text" || part["type"] == "file");
    let read = |part: &Value| {
        given_json::read(part)
            .map_err(|problem| Problem::invalid_body(format!("A part of the message is invalid: {problem}.")))
    };
    known.map(read).collect()
}

/// Returns the answers of the parts; skips parts without a known kind of answer. Fails if a text has a NUL.
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
                PartAnswer::Approval { id, approved, reason, edited_input: None }
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
