//! The body of a request that starts a run, or continues one that waits. It ignores unknown fields.

use std::time::Duration;

use holdfast_shared::{
    given_json,
    message::Role,
    run::SubmitMode,
    storable::has_nul,
    storage::{ClientResult, EarlierResult},
    tool::{ClientTool, any_object},
};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{content::parts_of, later::results_of_nodes};
use crate::{
    auth::is_name,
    problem::Problem,
    protocols::langgraph::wire::LangModes,
    thread::{GivenTurn, PartAnswer, UiPart},
};

/// Most results of calls in one request.
const MAX_RESULTS: usize = 256;

/// The body of a request for a run.
#[derive(Deserialize, utoipa::ToSchema)]
#[schema(as = LangGraphRun)]
pub struct RunRequest {
    /// The id or the name of an agent; `agent` is the deployment's own.
    pub assistant_id: String,
    /// `messages`, of which the server posts the human's newest; a thread without messages takes the others too. `tools` that the client executes.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub input: Option<Value>,
    /// The answers to the interrupts of the thread.
    #[serde(default)]
    command: Option<RunCommand>,
    /// Stored with the run.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub metadata: Option<Value>,
    /// One mode or several; `values` by default.
    #[serde(default)]
    #[schema(value_type = Value)]
    stream_mode: Option<Value>,
    /// `continue` by default; `cancel` ends the run when this stream's client disconnects.
    #[serde(default)]
    on_disconnect: Option<String>,
    /// `keep`, which is the default; `delete` hides the thread of a run without a thread, and removes it with the run's events.
    #[serde(default)]
    on_completion: Option<String>,
    /// The effect on an unfinished run: `enqueue` by default, `reject`, `interrupt` or `rollback`.
    #[serde(default)]
    multitask_strategy: Option<SubmitMode>,
    /// `reject` by default; `create` makes an unknown thread.
    #[serde(default)]
    if_not_exists: Option<String>,
    /// Time before the run begins, in seconds.
    #[serde(default)]
    after_seconds: Option<f64>,
    #[serde(default)]
    webhook: Option<String>,
    #[serde(default)]
    #[schema(value_type = Value)]
    interrupt_before: Option<Value>,
    #[serde(default)]
    #[schema(value_type = Value)]
    interrupt_after: Option<Value>,
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    checkpoint: Option<Value>,
    #[serde(default)]
    checkpoint_id: Option<String>,
}

#[derive(Deserialize, utoipa::ToSchema)]
#[schema(as = LangGraphCommand)]
struct RunCommand {
    #[serde(default)]
    #[schema(value_type = Value)]
    resume: Option<Value>,
    /// Answers by the ids of interrupts of the thread's current run.
    #[serde(default)]
    #[schema(ignore)]
    responses: Option<Map<String, Value>>,
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    update: Option<Value>,
    #[serde(default)]
    #[schema(value_type = Value)]
    goto: Option<Value>,
}

/// The action that a request asks for.
pub enum RunAction {
    /// Post a user's message, which the model reads with these results after it, newest first.
    Ask { message_id: Option<String>, parts: Vec<UiPart>, later: Vec<EarlierResult> },
    /// Answer the message before a checkpoint again, or the newest one if it has no answer.
    Again,
    /// Return the results of calls that the client executes.
    Results(Vec<PartAnswer>),
    /// Answer the open interrupts.
    Resume(Value),
    /// Answer these interrupts, by their ids.
    Respond(Map<String, Value>),
    /// End the run that waits, without an answer to its interrupts.
    End,
}

/// The node at the end of each graph. A client goes there to end a run that waits.
pub const END: &str = "__end__";

#[derive(Deserialize)]
struct InputTool {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(alias = "input_schema")]
    parameters: Option<Value>,
}

impl RunRequest {
    /// Fails for a field whose effect this server does not have.
    fn check(&self) -> Result<(), Problem> {
        let refused = |field, advice| Err(Problem::field_not_supported(field, advice));
        self.modes()?;
        if self.webhook.is_some() {
            return refused("webhook", "join the run, or poll it.");
        }
        if [&self.interrupt_before, &self.interrupt_after].into_iter().any(|nodes| nodes.as_ref().is_some_and(is_some))
        {
            return refused(
                "interrupt_before and interrupt_after",
                "the agent's definition says which calls need an approval.",
            );
        }
        let command = self.command.as_ref();
        if command.is_some_and(|command| command.update.as_ref().is_some_and(is_some)) {
            return refused("command.update", "only resume continues a run.");
        }
        if command.and_then(|command| command.goto.as_ref()).is_some_and(|goto| is_some(goto) && !is_end(goto)) {
            return refused(
                "command.goto to this node",
                "only \"__end__\" has an effect, which ends a run that waits.",
            );
        }
        Ok(())
    }

    /// Returns the action that the request asks for. Fails if the body is invalid.
    pub fn action(&self) -> Result<RunAction, Problem> {
        self.check()?;
        if let Some(answers) = self.command.as_ref().and_then(|command| command.responses.clone()) {
            if answers.values().any(has_nul) {
                return Err(Problem::invalid_content());
            }
            return Ok(RunAction::Respond(answers));
        }
        if let Some(resume) = self.command.as_ref().and_then(|command| command.resume.clone()) {
            if has_nul(&resume) {
                return Err(Problem::invalid_content());
            }
            return Ok(RunAction::Resume(resume));
        }
        if self.command.as_ref().and_then(|command| command.goto.as_ref()).is_some_and(is_end) {
            return Ok(RunAction::End);
        }
        let messages = self.input.as_ref().map(messages_of).unwrap_or_default();
        let Some(newest) = messages.last() else {
            // A run without an input continues the thread as it is.
            return match (&self.input, self.checkpoint_id()) {
                (None, _) | (_, Some(_)) => Ok(RunAction::Again),
                _ => Err(Problem::nothing_to_run("input.messages has no message, and command has no resume.")),
            };
        };
        if role_of(newest) == Some("tool") {
            return results_of(&messages).map(RunAction::Results);
        }
        let nothing = || match role_of(newest) {
            Some("ai" | "assistant") => Problem::nothing_to_run("input.messages has no message of a human."),
            _ => Problem::invalid_body(
                "input.messages must have a message of a human, or end with a tool's that has the result of a call.",
            ),
        };
        self.question()?.ok_or_else(nothing)
    }

    /// Returns the human's newest message as the one to post, if there is any. It comes with the messages that other nodes have written since.
    pub fn question(&self) -> Result<Option<RunAction>, Problem> {
        let (mut earlier, later) = self.around_question();
        let Some(asked) = earlier.pop() else { return Ok(None) };
        let message_id = asked["id"].as_str().filter(|id| is_name(id)).map(str::to_owned);
        let (parts, later) = (parts_of(content_of_message(asked))?, results_of_nodes(&later)?);
        Ok(Some(RunAction::Ask { message_id, parts, later }))
    }

    /// Returns the messages up to the human's newest one, and those after it.
    fn around_question(&self) -> (Vec<&Value>, Vec<&Value>) {
        let mut earlier = self.input.as_ref().map(messages_of).unwrap_or_default();
        let asked = earlier.iter().rposition(|message| matches!(role_of(message), Some("human" | "user")));
        let later = earlier.split_off(asked.map_or(0, |asked| asked + 1));
        (earlier, later)
    }

    /// Returns the texts and files of human and model before the human's newest message. Other messages are none of a history.
    pub fn history(&self) -> Vec<GivenTurn> {
        let (messages, _) = self.around_question();
        let turn = |message: &&Value| {
            let role = match role_of(message)? {
                "human" | "user" => Role::User,
                "ai" | "assistant" => Role::Assistant,
                _ => return None,
            };
            let id = message["id"].as_str().filter(|id| is_name(id)).map(str::to_owned);
            let blocks = match content_of_message(message) {
                Value::Array(blocks) => blocks,
                text => vec![text],
            };
            let parts = blocks.into_iter().filter_map(|block| parts_of(Value::Array(vec![block])).ok());
            Some(GivenTurn { id, role, parts: parts.flatten().collect() })
        };
        messages.split_last().map(|(_, earlier)| earlier.iter().filter_map(turn).collect()).unwrap_or_default()
    }

    /// Returns the tools that the client executes. Fails if one is none.
    pub fn client_tools(&self) -> Result<Vec<ClientTool>, Problem> {
        let Some(Value::Array(tools)) = self.input.as_ref().map(|input| &input["tools"]) else { return Ok(Vec::new()) };
        let tool = |tool: &Value| {
            // Also as OpenAI's protocol wraps it.
            let tool = tool.get("function").unwrap_or(tool);
            let InputTool { name, description, parameters } = given_json::read(tool)
                .map_err(|problem| Problem::invalid_body(format!("A tool of input.tools is invalid: {problem}.")))?;
            Ok(ClientTool { name, description, input_schema: parameters.unwrap_or_else(any_object) })
        };
        tools.iter().map(tool).collect()
    }

    /// Returns the modes of the stream. Fails for an unknown one.
    pub fn modes(&self) -> Result<LangModes, Problem> {
        let names = match &self.stream_mode {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::String(name)) => vec![name.as_str()],
            Some(Value::Array(names)) => names.iter().map(|name| name.as_str().unwrap_or_default()).collect(),
            Some(_) => return Err(Problem::invalid_body("stream_mode is a mode, or a list of modes.")),
        };
        if names.is_empty() { modes_of(["values"]) } else { modes_of(names) }
    }

    /// Returns the checkpoint that the run begins at, if the request names one.
    pub fn checkpoint_id(&self) -> Option<&str> {
        let checkpoint = self.checkpoint.as_ref().and_then(|checkpoint| checkpoint["checkpoint_id"].as_str());
        checkpoint.or(self.checkpoint_id.as_deref())
    }

    /// Returns the time until the run may begin; `None` for at once. Fails if it is below 0 or above the limit.
    pub fn delay(&self, max: Duration) -> Result<Option<Duration>, Problem> {
        let Some(seconds) = self.after_seconds.filter(|seconds| *seconds != 0.0) else { return Ok(None) };
        let delay = Duration::try_from_secs_f64(seconds).ok().filter(|delay| *delay <= max);
        let wrong = || Problem::invalid_body(format!("after_seconds is from 0 to {}.", max.as_secs_f64()));
        delay.map(Some).ok_or_else(wrong)
    }

    /// Returns whether the thread of a run without a thread is removed with the run's events.
    pub fn deletes_thread(&self) -> bool {
        self.on_completion.as_deref() == Some("delete")
    }

    pub fn mode(&self) -> SubmitMode {
        self.multitask_strategy.unwrap_or_default()
    }

    pub fn creates_thread(&self) -> bool {
        self.if_not_exists.as_deref() == Some("create")
    }

    pub fn cancels_on_disconnect(&self) -> bool {
        self.on_disconnect.as_deref() == Some("cancel")
    }
}

/// Returns modes by their names. Fails for an unknown one.
pub fn modes_of<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<LangModes, Problem> {
    names.into_iter().try_fold(LangModes::default(), |modes, name| {
        let unknown = || {
            let name: String = name.chars().take(64).collect();
            Problem::field_not_supported(&format!("the stream_mode {name:?}"), "docs/langgraph.md lists the modes.")
        };
        modes.with(name).ok_or_else(unknown)
    })
}

/// Returns whether a client goes to the end of the graph: by its name, or by a list that has only it.
fn is_end(goto: &Value) -> bool {
    goto == END || matches!(goto.as_array().map(Vec::as_slice), Some([only]) if only == END)
}

fn is_some(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    }
}

/// Returns the messages of a request's values: a list, or one.
pub fn messages_of(values: &Value) -> Vec<&Value> {
    match &values["messages"] {
        Value::Array(messages) => messages.iter().collect(),
        Value::Null => Vec::new(),
        message => vec![message],
    }
}

/// Returns the author of a message: of a text, a pair of role and content, or an object with `role` or `type`.
pub fn role_of(message: &Value) -> Option<&str> {
    match message {
        Value::String(_) => Some("human"),
        Value::Array(pair) => pair.first()?.as_str(),
        message => message["role"].as_str().or_else(|| message["type"].as_str()),
    }
}

/// Returns the content of a message.
pub fn content_of_message(message: &Value) -> Value {
    match message {
        Value::String(_) => message.clone(),
        Value::Array(pair) => pair.get(1).cloned().unwrap_or_default(),
        message => message["content"].clone(),
    }
}

/// Returns the results at the end of the messages, each call's newest.
fn results_of(messages: &[&Value]) -> Result<Vec<PartAnswer>, Problem> {
    let mut results: Map<String, Value> = Map::new();
    let of_tools = messages.iter().rev().take_while(|message| role_of(message) == Some("tool"));
    for message in of_tools {
        let call_id = message["tool_call_id"].as_str();
        let call_id = call_id.ok_or_else(|| Problem::invalid_body("A message of a tool has no tool_call_id."))?;
        results.entry(call_id).or_insert((*message).clone());
        if results.len() > MAX_RESULTS {
            return Err(Problem::invalid_body(format!("A request has at most {MAX_RESULTS} results of calls.")));
        }
    }
    let answer = |(call_id, message): (String, Value)| {
        let result = result_of(&message["content"], message["status"] == "error")?;
        Ok(PartAnswer::Result { call_id, result })
    };
    results.into_iter().map(answer).collect()
}

/// Returns the result of a call. Fails if no database could store it.
pub fn result_of(content: &Value, is_error: bool) -> Result<ClientResult, Problem> {
    if has_nul(content) {
        return Err(Problem::invalid_content());
    }
    let text = content.as_str().map_or_else(|| content.to_string(), str::to_owned);
    Ok(if is_error { ClientResult::Error(text) } else { ClientResult::Output(text) })
}
