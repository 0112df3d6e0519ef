//! Makes a message of a question: its conversation, its history, and what the request overrides.

use std::sync::Arc;

use axum::http::HeaderMap;
use holdfast_shared::{
    agent::ModelOptions,
    message::Role,
    overrides::{GivenHistory, JsonFormat, RunOverrides, Sampling},
    run::Run,
    storable::has_nul,
    storage::{AddedMessage, MessageInput, RunOptions, Target},
    tool::ClientTool,
    tool_choice::ToolChoice,
};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{
    catalog::{DEFAULT, ModelTarget, agent_name, model_named},
    repeated::RepeatedFields,
    turns::Question,
};
use crate::{
    app::{App, Posting, conversation_label, fingerprint},
    auth::Caller,
    extract::idempotency_key,
    page_sizes::history_size,
    problem::Problem,
    run_request::checked_options,
    thread::{messages_of_given, most_bytes, takes_history},
};

/// Most texts in the metadata of a request, and most characters of each.
const MAX_METADATA: (usize, usize) = (16, 512);

/// The fields of a request beside its question.
pub struct RequestFields {
    pub model: Option<String>,
    pub instructions: Option<String>,
    pub client_tools: Vec<ClientTool>,
    pub tool_choice: Option<ToolChoice>,
    pub options: ModelOptions,
    pub sampling: Sampling,
    pub format: Option<JsonFormat>,
    /// The fields that the response repeats.
    pub repeated: RepeatedFields,
    /// The conversation that the request names.
    pub conversation: Option<Uuid>,
    /// The run whose response the request continues.
    pub after: Option<Uuid>,
    /// Whether no list shows a conversation that the request creates.
    pub hides: bool,
}

/// The member of a run's metadata that has the fields which its response repeats.
pub const REPEATED: &str = "openai";

impl RequestFields {
    /// Returns whether the request names the conversation that has its history.
    pub const fn has_history(&self) -> bool {
        self.conversation.is_some() || self.after.is_some()
    }

    /// Returns whether the request changes nothing of a run that it answers, but the choice of tools.
    pub fn is_bare(&self) -> bool {
        self.client_tools.is_empty()
            && self.instructions.is_none()
            && self.options.is_default()
            && self.sampling.is_default()
            && self.format.is_none()
    }

    /// Returns how the run is executed, with all instructions of the request. Fails for what no run takes.
    pub fn run_options(
        &self,
        app: &App,
        model: &ModelTarget,
        repeated: &RepeatedFields,
        among: Vec<String>,
    ) -> Result<RunOptions, Problem> {
        self.options.check("the request").map_err(|error| Problem::invalid_body(error.to_string()))?;
        let metadata = json!({ REPEATED: repeated });
        let mut options = checked_options(app, None, self.client_tools.clone(), Some(metadata), None)?;
        let instructions: Vec<String> = self.instructions.iter().cloned().chain(among).collect();
        options.overrides = RunOverrides {
            instructions: (!instructions.is_empty()).then(|| instructions.join("\n\n")),
            profile: model.profile.clone(),
            options: self.options.clone(),
            sampling: self.sampling,
            format: self.format.clone(),
            tool_choice: self.tool_choice.clone(),
            ..RunOverrides::default()
        };
        Ok(options)
    }
}

/// Returns the message that a question posts.
pub async fn posting(
    app: &Arc<App>,
    caller: &Caller,
    headers: &HeaderMap,
    question: Question,
    fields: RequestFields,
) -> Result<Posting, Problem> {
    let model = model_named(app, caller, fields.model.as_deref()).await?;
    let named = match fields.conversation {
        Some(id) => app.storage().conversation(&caller.owner, id).await?,
        None => None,
    };
    let is_continued = fields.after.is_some() || fields.conversation.is_some() && !takes_history(named.as_ref());
    let question = if is_continued { question.in_conversation()? } else { question };
    let mut options = fields.run_options(app, &model, &fields.repeated, question.instructions.clone())?;
    let known = question.after;
    let (content, history) = question.content(app, caller).await?;
    let (given, history, left_out) = kept_history(history, fields.hides);
    options.overrides = RunOverrides { history, left_out, ..options.overrides };
    check_overrides(app, caller, &options)?;
    options.hides_conversation = fields.hides;
    let (target, replace_from) = match (fields.conversation, fields.after.or(known)) {
        (Some(id), _) => (Target::Existing(id), None),
        (None, Some(run_id)) => continued(app, caller, run_id).await?,
        (None, None) => (Target::New { agent_id: model.agent_id }, None),
    };
    if let Target::Existing(id) = &target {
        expect_model_of(app, caller, *id, &model).await?;
    }
    let target_name = conversation_label(&target);
    let key = idempotency_key(headers, &["openai", &target_name, &fingerprint(&content)], &options)?;
    let input = match replace_from {
        Some(replace_from) => MessageInput::Edit { content, replace_from },
        None => MessageInput::New(content),
    };
    Ok(Posting { given, options, key, ..Posting::new(target, input) })
}

/// Returns the messages that the conversation keeps of a history, and what the run alone reads of it. A hidden conversation keeps
/// none, and a run reads the results of tools too.
fn kept_history(history: Option<GivenHistory>, hides: bool) -> (Vec<AddedMessage>, Option<GivenHistory>, usize) {
    let Some(history) = history else { return (Vec::new(), None, 0) };
    if hides {
        return (Vec::new(), Some(history), 0);
    }
    let given = messages_of_given(&history.before);
    let has_more = history.begun.is_some()
        || !history.results.is_empty()
        || history.before.iter().any(|message| !message.results.is_empty());
    if has_more { (given, Some(history), 0) } else { (given, None, history.left_out) }
}

/// Fails if another agent than the request's answers in the conversation, whose first run has chosen it.
pub async fn expect_model_of(app: &App, caller: &Caller, id: Uuid, model: &ModelTarget) -> Result<(), Problem> {
    if model.agent_id.is_none() && model.profile.is_none() {
        return Ok(());
    }
    // An unknown conversation is refused when the message is posted.
    let Some(conversation) = app.storage().conversation(&caller.owner, id).await? else { return Ok(()) };
    let is_of_model = match model.agent_id {
        Some(agent_id) => app.gives_agent(caller, &conversation, agent_id).await?,
        None => conversation.agent_id.is_none(),
    };
    if is_of_model {
        return Ok(());
    }
    let own = agent_name(app, conversation.agent_id).await?;
    Err(Problem::conversation_of_another_model(own.as_deref().unwrap_or(DEFAULT)))
}

/// Fails for texts that no database takes, and for instructions or a schema that are too large.
pub fn check_overrides(app: &App, caller: &Caller, options: &RunOptions) -> Result<(), Problem> {
    let instructions = options.overrides.instructions.as_ref().map_or(0, String::len);
    let most = most_bytes(app.config(), caller);
    if instructions > most {
        return Err(Problem::invalid_body(format!("The instructions of a request have at most {most} bytes.")));
    }
    let overrides = json!(options.overrides);
    if has_nul(&overrides) {
        return Err(Problem::invalid_content());
    }
    let format = options.overrides.format.as_ref().map_or(0, |format| json!(format).to_string().len());
    let max = app.config().max_metadata_bytes;
    if format > max {
        return Err(Problem::invalid_body(format!("The schema of the answer has at most {max} bytes.")));
    }
    Ok(())
}

/// Returns the conversation that a message after a run's answer belongs to. If the conversation has continued since, the message
/// replaces what follows the answer.
async fn continued(app: &App, caller: &Caller, run_id: Uuid) -> Result<(Target, Option<Uuid>), Problem> {
    let run = app.storage().run_without_answer(&caller.owner, run_id).await?;
    let run = run.ok_or_else(|| Problem::run_not_found(run_id))?;
    let target = Target::Existing(run.conversation_id);
    let newest = app.storage().last_run(&caller.owner, run.conversation_id).await?;
    if newest.is_none_or(|newest| newest.id == run.id) {
        return Ok((target, None));
    }
    let replace_from = question_after(app, caller, &run).await?;
    Ok((target, replace_from))
}

/// Returns the user's message after a run's answer. Fails if the answer is no longer part of its conversation.
async fn question_after(app: &App, caller: &Caller, run: &Run) -> Result<Option<Uuid>, Problem> {
    let _turn = app.read_limit().begin(caller).await?;
    let newest_first = app.storage().history(&caller.owner, run.conversation_id, history_size(app)).await?;
    let mut next = None;
    for message in newest_first.into_iter().map(|history| history.message) {
        if message.id == run.output_message_id {
            return Ok(next);
        }
        if message.role == Role::User {
            next = Some(message.id);
        }
    }
    Err(Problem::invalid_body(
        "The response is not among the newest messages of its conversation: a later request has replaced it, or it is too old.",
    ))
}

/// Returns the texts that a client gives a response. Fails for other values, and for too many.
pub fn checked_metadata(metadata: Option<Map<String, Value>>) -> Result<Map<String, Value>, Problem> {
    let metadata = metadata.unwrap_or_default();
    let (texts, chars) = MAX_METADATA;
    let fits = |value: &Value| value.as_str().is_some_and(|text| text.chars().count() <= chars && !text.contains('\0'));
    if metadata.len() > texts || !metadata.values().all(fits) || metadata.keys().any(|key| key.len() > chars) {
        return Err(Problem::invalid_body(format!(
            "metadata has at most {texts} texts of at most {chars} characters."
        )));
    }
    Ok(metadata)
}
