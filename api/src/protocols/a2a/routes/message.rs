//! A user's message: its texts, its files, and its answers to the questions of a task.

use serde::Deserialize;
use serde_json::Value;

use super::{
    answer::TaskAnswer,
    request::{check_name, wants_history},
};
use crate::{problem::Problem, thread::UiPart};

/// Most parts of a message.
const MAX_PARTS: usize = 256;

/// The parameters of the methods that send a message, in both forms of the protocol. Each field has two names, as in the JSON of
/// protocol buffers.
#[derive(Deserialize)]
pub struct SendParams {
    pub message: A2aMessage,
    #[serde(default)]
    configuration: Option<SendConfiguration>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SendConfiguration {
    #[serde(alias = "history_length")]
    history_length: Option<i64>,
    /// 1.0: whether the client does not wait for the end of the task.
    #[serde(default, alias = "return_immediately")]
    return_immediately: bool,
    /// 0.3: whether it does.
    blocking: Option<bool>,
    #[serde(alias = "pushNotificationConfig", alias = "task_push_notification_config")]
    task_push_notification_config: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct A2aMessage {
    /// The client's name for the message. A repeated request has the same.
    #[serde(default, alias = "message_id")]
    pub message_id: String,
    #[serde(default, alias = "context_id")]
    context_id: Option<String>,
    #[serde(default, alias = "task_id")]
    task_id: Option<String>,
    #[serde(default)]
    role: String,
    #[serde(default)]
    parts: Vec<A2aInputPart>,
}

/// A part in the form of 1.0, whose fields tell its kind, or in that of 0.3.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct A2aInputPart {
    text: Option<String>,
    /// The contents of a file, in base64.
    raw: Option<String>,
    url: Option<String>,
    data: Option<Value>,
    file: Option<A2aInputFile>,
    #[serde(default, alias = "media_type")]
    media_type: Option<String>,
    filename: Option<String>,
}

/// A file in the form of 0.3.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct A2aInputFile {
    bytes: Option<String>,
    uri: Option<String>,
    mime_type: Option<String>,
    name: Option<String>,
}

impl SendParams {
    /// Fails if a name is invalid, if the message is not the user's, or if the client asks for push notifications.
    pub fn check(&self) -> Result<(), Problem> {
        check_name("messageId", &self.message.message_id)?;
        self.message.context_id().map_or(Ok(()), |id| check_name("contextId", id))?;
        if !matches!(self.message.role.as_str(), "ROLE_USER" | "user") {
            return Err(Problem::invalid_body("The role of a message must be that of the user."));
        }
        if self.message.parts.is_empty() || self.message.parts.len() > MAX_PARTS {
            return Err(Problem::invalid_body(format!("A message has 1 to {MAX_PARTS} parts.")));
        }
        match &self.configuration {
            Some(SendConfiguration { task_push_notification_config: Some(_), .. }) => {
                Err(Problem::push_notifications_unsupported())
            }
            _ => Ok(()),
        }
    }

    /// Returns whether the client does not wait for the end of the task.
    pub fn returns_immediately(&self) -> bool {
        let configured = self.configuration.as_ref();
        configured.is_some_and(|configured| configured.return_immediately || configured.blocking == Some(false))
    }

    pub fn wants_history(&self) -> Result<bool, Problem> {
        wants_history(self.configuration.as_ref().and_then(|configured| configured.history_length))
    }
}

impl A2aMessage {
    /// Returns the client's name for the conversation, or the conversation's id.
    pub fn context_id(&self) -> Option<&str> {
        self.context_id.as_deref().filter(|id| !id.is_empty())
    }

    /// Returns the task that the message continues.
    pub fn task_id(&self) -> Option<&str> {
        self.task_id.as_deref().filter(|id| !id.is_empty())
    }

    /// Returns the answers of the message. Fails if one is invalid, or if the message has other parts beside them.
    pub fn answers(&self) -> Result<Vec<TaskAnswer>, Problem> {
        let data = self.parts.iter().filter_map(|part| part.data.as_ref());
        let answers = data.filter_map(|data| TaskAnswer::read(data).transpose()).collect::<Result<Vec<_>, _>>()?;
        if !answers.is_empty() && answers.len() != self.parts.len() {
            return Err(Problem::invalid_body("A message with an answer has no other parts."));
        }
        Ok(answers)
    }

    /// Returns the texts and files of the message. Fails for a part that this server does not take.
    pub fn into_parts(self) -> Result<Vec<UiPart>, Problem> {
        self.parts.into_iter().map(A2aInputPart::into_part).collect()
    }
}

impl A2aInputPart {
    fn into_part(self) -> Result<UiPart, Problem> {
        let Self { text, raw, url, data, file, media_type, filename } = self;
        let file = file.unwrap_or(A2aInputFile { bytes: raw, uri: url, mime_type: media_type, name: filename });
        Ok(match (text, data, file) {
            (Some(text), ..) => UiPart::Text { text },
            // A model reads data as JSON.
            (_, Some(data), _) => UiPart::Text { text: data.to_string() },
            (.., A2aInputFile { bytes: Some(bytes), mime_type, name, .. }) => {
                let media_type = mime_type.unwrap_or_else(|| "application/octet-stream".to_owned());
                UiPart::File { filename: name, url: format!("data:{media_type};base64,{bytes}") }
            }
            (.., A2aInputFile { uri: Some(uri), name, .. }) => UiPart::File { filename: name, url: uri },
            _ => return Err(Problem::unsupported_part("part that is no text, data or file")),
        })
    }
}
