//! The request to a model: a conversation, the tools that the model may call, and options.

use std::sync::Arc;

use holdfast_shared::{
    agent::ModelOptions,
    config::ModelChoice,
    file::PICTURES,
    overrides::{JsonFormat, Sampling},
    time_zone::RunDate,
    tokens,
    tool_choice::ToolMode,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Request {
    /// Instructions, sent in the field that the provider has for them.
    pub system: Option<String>,
    /// The conversation, oldest first.
    pub turns: Vec<Turn>,
    /// Tools that the model may call; without any, it must answer in words.
    pub tools: Vec<ToolSpec>,
    /// Each model that is asked has options of its own; see `ChosenModel`.
    pub options: ModelOptions,
    /// Tokens that the model must be able to read and write, if they are known; at least its context window. A server that would
    /// read less by itself is sent it.
    pub context_tokens: Option<u32>,
    /// How the model chooses its words.
    pub sampling: Sampling,
    /// Whether the model must call one of the tools.
    pub tool_mode: ToolMode,
    /// Whether the model may make several calls in one answer; as the provider does without it.
    pub parallel_calls: Option<bool>,
    /// The form of the answer. The instructions name it too, because not every provider has a field for it.
    pub form: AnswerForm,
}

/// The form of an answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum AnswerForm {
    /// Text for a reader.
    #[default]
    Text,
    /// A reviewer's verdict, as JSON.
    Verdict,
    /// JSON for the client of the run.
    Json(Arc<JsonFormat>),
}

/// One part of the conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum Turn {
    /// The user's texts and files, in order.
    User(Vec<UserPart>),
    /// The assistant's text and its tool calls. `text` may be empty if there are calls.
    Assistant { text: String, calls: Vec<ToolRequest> },
    /// The files of the outcomes before, which a provider gets as a turn of the user.
    Files(Vec<UserPart>),
    /// The outcome of one call of the previous assistant's turn.
    Tool { call_id: String, name: String, text: String, is_error: bool },
}

/// A text of the user, or a file beside it.
#[derive(Debug, Clone, PartialEq)]
pub enum UserPart {
    Text(String),
    File(Arc<ModelFile>),
    /// The name of the user who speaks.
    Speaker(String),
}

/// A file as a provider takes it.
#[derive(Debug, PartialEq)]
pub struct ModelFile {
    pub name: String,
    pub media_type: String,
    /// The contents in base64.
    pub data: Arc<str>,
    /// The line for a model that does not take the file. `None` if an answer without the file would be about something else.
    pub instead: Option<String>,
}

impl ModelFile {
    pub fn is_picture(&self) -> bool {
        PICTURES.contains(&self.media_type.as_str())
    }

    /// Returns the contents as a URL.
    pub fn data_url(&self) -> String {
        format!("data:{};base64,{}", self.media_type, self.data)
    }
}

impl Request {
    /// Returns whether the request has contents of files that are no texts.
    pub fn has_files(&self) -> bool {
        self.turns.iter().any(|turn| turn.files().next().is_some())
    }

    /// Estimates the tokens of the request without those of its files.
    pub fn tokens(&self) -> u32 {
        let system = self.system.as_deref().map_or(0, tokens::estimate);
        let turns = self.turns.iter().map(Turn::tokens);
        let tools = self.tools.iter().map(|tool| {
            let texts = [tool.name.as_str(), tool.description.as_str(), &tool.input_schema.to_string()];
            texts.into_iter().map(tokens::estimate).sum()
        });
        turns.chain(tools).fold(system, u32::saturating_add)
    }

    /// Puts a date before the newest turn of the user.
    pub fn date_newest(&mut self, date: Option<&RunDate>) {
        if let Some(turn) = self.turns.iter_mut().rfind(|turn| matches!(turn, Turn::User(_))) {
            *turn = turn.clone().dated(date);
        }
    }

    /// Returns the first file that a model must take and does not.
    pub(super) fn untaken_file(&self, takes: impl Fn(&ModelFile) -> bool) -> Option<&ModelFile> {
        self.turns.iter().flat_map(Turn::files).find(|file| file.instead.is_none() && !takes(file))
    }

    /// Removes the signatures of other models than this one, as `<provider>/<name>`.
    pub(super) fn remove_signatures_of_others(&mut self, model: &str) {
        let calls = self.turns.iter_mut().flat_map(|turn| match turn {
            Turn::Assistant { calls, .. } => calls.as_mut_slice(),
            Turn::User(_) | Turn::Files(_) | Turn::Tool { .. } => &mut [],
        });
        for call in calls.filter(|call| call.signed_by.as_deref().is_some_and(|by| by != model)) {
            call.signature = None;
        }
    }

    /// Returns the demand of a call in words, for a provider without a field for it.
    pub(super) fn demand_in_words(&self) -> Option<String> {
        match &self.tool_mode {
            ToolMode::Auto | ToolMode::None => None,
            ToolMode::Required => Some("Answer with a call of one of the tools, not in words.".to_owned()),
            ToolMode::Named(name) => Some(format!("Answer with a call of the tool {name}, not in words.")),
        }
    }

    /// Keeps the first tools, at most so many, and the one that the model must call. Returns the names of the others.
    pub(super) fn limit_tools(&mut self, most: usize) -> Vec<String> {
        if let ToolMode::Named(name) = &self.tool_mode
            && let Some(at) = self.tools.iter().position(|tool| tool.name == *name).filter(|at| *at >= most)
        {
            self.tools.swap(at, most.saturating_sub(1));
        }
        self.tools.drain(most.min(self.tools.len())..).map(|tool| tool.name).collect()
    }

    /// Writes the names of speakers into their texts, for a model without a field for them.
    pub(super) fn name_speakers_in_words(&mut self) {
        for turn in &mut self.turns {
            let Turn::User(parts) = turn else { continue };
            // A summary may stand before the name.
            let Some(at) = parts.iter().position(|part| matches!(part, UserPart::Speaker(_))) else { continue };
            if let UserPart::Speaker(name) = parts.remove(at) {
                match parts.get_mut(at) {
                    Some(UserPart::Text(text)) => *text = format!("{name}: {text}"),
                    _ => parts.insert(at, UserPart::Text(format!("{name}:"))),
                }
            }
        }
    }

    /// Returns the request with a line for each file that a model does not take and can miss.
    pub(super) fn with_lines(&self, takes: impl Fn(&ModelFile) -> bool) -> Self {
        let mut request = self.clone();
        for part in request.turns.iter_mut().flat_map(Turn::parts_mut) {
            if let UserPart::File(file) = part
                && !takes(file)
                && let Some(line) = &file.instead
            {
                *part = UserPart::Text(line.clone());
            }
        }
        request
    }
}

impl Turn {
    fn tokens(&self) -> u32 {
        let text = match self {
            Self::User(parts) | Self::Files(parts) => {
                let texts = parts.iter().filter_map(|part| match part {
                    UserPart::Text(text) | UserPart::Speaker(text) => Some(tokens::estimate(text)),
                    UserPart::File(_) => None,
                });
                texts.fold(0, u32::saturating_add)
            }
            Self::Assistant { text, calls } => {
                let calls = calls.iter().map(|call| tokens::estimate(&call.input.to_string()));
                calls.fold(tokens::estimate(text), u32::saturating_add)
            }
            Self::Tool { text, .. } => tokens::estimate(text),
        };
        text.saturating_add(tokens::PER_MESSAGE)
    }

    fn files(&self) -> impl Iterator<Item = &ModelFile> {
        let parts = match self {
            Self::User(parts) | Self::Files(parts) => parts.as_slice(),
            Self::Assistant { .. } | Self::Tool { .. } => &[],
        };
        parts.iter().filter_map(|part| match part {
            UserPart::File(file) => Some(file.as_ref()),
            UserPart::Text(_) | UserPart::Speaker(_) => None,
        })
    }

    fn parts_mut(&mut self) -> &mut [UserPart] {
        match self {
            Self::User(parts) | Self::Files(parts) => parts,
            Self::Assistant { .. } | Self::Tool { .. } => &mut [],
        }
    }

    /// Returns a turn of the user with a date before its text; any other turn as it is.
    pub fn dated(self, date: Option<&RunDate>) -> Self {
        match (self, date) {
            (Self::User(mut parts), Some(date)) => {
                match parts.first_mut() {
                    Some(UserPart::Text(text)) => *text = date.before(text),
                    _ => parts.insert(0, UserPart::Text(date.line())),
                }
                Self::User(parts)
            }
            (turn, _) => turn,
        }
    }

    /// Returns a turn of the user with the name of its speaker; any other turn as it is.
    pub fn spoken_by(self, name: Option<&str>) -> Self {
        match (self, name) {
            (Self::User(mut parts), Some(name)) => {
                parts.insert(0, UserPart::Speaker(name.to_owned()));
                Self::User(parts)
            }
            (turn, _) => turn,
        }
    }

    /// Returns a turn of the user with a text alone.
    pub fn user(text: impl Into<String>) -> Self {
        Self::User(vec![UserPart::Text(text.into())])
    }
}

/// A tool, as it is declared to the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// JSON Schema of an object.
    pub input_schema: Value,
}

/// A call that the model requested.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolRequest {
    /// Holdfast's own id, not the provider's: at most 40 characters of `[a-zA-Z0-9_-]`, which every provider accepts.
    pub id: String,
    pub name: String,
    pub input: Value,
    /// Opaque data that the provider needs back with the call, such as a thought signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Value>,
    /// The model that wrote the signature, as `<provider>/<name>`. Only that model gets the signature back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed_by: Option<String>,
}

impl ToolRequest {
    /// Returns the signature for the model that has written it.
    pub(super) fn signature_for(&self, model: &ModelChoice) -> Option<&Value> {
        self.signature.as_ref().filter(|_| self.signed_by.as_deref() == Some(model.path().as_str()))
    }

    /// Returns the arguments as they are sent back. Providers refuse a conversation whose arguments are no object. The
    /// call's outcome has already told the model that they were invalid.
    pub(super) fn arguments(&self) -> Value {
        match &self.input {
            Value::Object(_) => self.input.clone(),
            _ => Value::Object(Map::new()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date() -> RunDate {
        RunDate::of_row("2026-11-29T12:00:00Z".parse().unwrap(), Some("Europe/Copenhagen"))
    }

    #[test]
    fn the_newest_turn_of_the_user_has_the_date_before_its_text() {
        let assistant = Turn::Assistant { text: "b".into(), calls: Vec::new() };
        let turns = vec![Turn::user("a"), Turn::user("c"), assistant.clone()];
        let mut request = Request { turns, ..Request::default() };
        request.date_newest(None);
        assert_eq!(request.turns[1], Turn::user("c"));
        request.date_newest(Some(&date()));
        assert_eq!(request.turns, [Turn::user("a"), Turn::user(date().before("c")), assistant]);
    }

    #[test]
    fn a_turn_of_files_alone_begins_with_the_date() {
        let file = ModelFile { name: "a".into(), media_type: "image/png".into(), data: "".into(), instead: None };
        let file = UserPart::File(Arc::new(file));
        let turn = Turn::User(vec![file.clone()]).dated(Some(&date()));
        assert_eq!(turn, Turn::User(vec![UserPart::Text(date().line()), file.clone()]));
        let of_tool = Turn::Files(vec![file]);
        assert_eq!(of_tool.clone().dated(Some(&date())), of_tool, "no user has written it");
    }
}
