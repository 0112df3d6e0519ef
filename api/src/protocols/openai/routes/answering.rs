//! The answers of a request to the questions of a run: whether the run takes them, and what it has of the request from then on.
//!
//! Every request of the protocol has its own instructions, tools and options, and so has the rest of a run after an answer. A request
//! that brings its whole conversation does not depend on the run: if the run cannot continue as the request has it, the request is a
//! question with a history.

use std::sync::Arc;

use axum::http::StatusCode;
use holdfast_shared::{
    approval::ApprovalStatus,
    event_id::EventId,
    file::ToolFile,
    idempotency::IdempotencyKey,
    overrides::RunOverrides,
    run::{Run, RunStatus, SubmitMode},
    storable::storable,
    storage::{ClientResult, MessageInput, RunOptions, Target},
    tool::{ClientTool, ToolCall, ToolCallStatus},
    tool_choice::ToolChoice,
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    catalog::{ModelTarget, model_named},
    posting::{REPEATED, RequestFields, check_overrides, expect_model_of},
    repeated::RepeatedFields,
    turns::{GivenAnswers, Question},
};
use crate::{
    app::{App, Posting, fingerprint},
    auth::Caller,
    problem::Problem,
    protocols::openai::wire::{call_id, is_id_of_call},
    relay::Subscriber,
    thread::{Outline, PartAnswer, UiPart, answer_questions, content_of},
};

/// The effect of a request with answers.
pub enum Answering {
    /// Its run continues with them, or has done so before.
    Continued(Box<Answered>),
    /// The run does not; the request is a question.
    Apart(Box<Question>),
}

/// A run whose questions a request has answered.
pub struct Answered {
    pub run: Arc<Run>,
    pub subscriber: Subscriber,
    pub pauses_before: usize,
    /// The pause at which the run had asked.
    pub after: EventId,
    /// The next pause, if the log has it.
    pub until: Option<EventId>,
}

/// A run that has asked what a request answers.
struct PausedRun {
    run: Run,
    model: ModelTarget,
    outline: Outline,
    calls: Vec<ToolCall>,
    /// The answers with the run's own ids, and the ids of their questions.
    answers: Vec<PartAnswer>,
    questions: Vec<String>,
    pauses_before: usize,
    /// Whether it still waits for one of the answers.
    is_open: bool,
}

/// The parts of a run that a request with answers replaces.
struct Renewal {
    client_tools: Vec<ClientTool>,
    overrides: RunOverrides,
    metadata: Option<Value>,
    /// Whether the run has all of it already.
    is_same: bool,
}

/// Gives a run the answers of a request, and follows it.
pub async fn answer(
    app: &Arc<App>,
    caller: &Caller,
    given: GivenAnswers,
    fields: &RequestFields,
) -> Result<Answering, Problem> {
    let GivenAnswers { run_id, answers, mut files, instructions, mut question } = given;
    let is_whole = question.is_some() && !fields.has_history();
    let asked = match PausedRun::find(app, caller, run_id, answers, fields).await {
        Ok(asked) => asked,
        Err(problem) => {
            return question.filter(|_| means_apart(&problem)).map(Answering::Apart).ok_or(problem);
        }
    };
    let options = asked.options(app, fields, instructions, is_whole).await?;
    check_overrides(app, caller, &options)?;
    let renewal = asked.renewal(app, fields, &options, is_whole).await?;
    let continues = asked.is_open || asked.has_continued_so(app) && renewal.is_same;
    let is_taken = !is_whole || asked.is_of_model(fields) && continues;
    let beside = match question.take() {
        Some(question) if !is_taken => return Ok(Answering::Apart(question)),
        Some(mut whole) if is_whole => {
            files = whole.take_files();
            None
        }
        Some(question) => {
            let posting = asked.beside(app, caller, &question, options).await?;
            let key = posting.key.as_ref().map(|key| key.key.as_str()).unwrap_or_default();
            if !asked.is_open && app.storage().run_of_key(&caller.owner, key).await?.is_none() {
                return Ok(Answering::Apart(question));
            }
            Some(posting)
        }
        None => None,
    };
    // Order matters: the limit on streams refuses the request before the first answer.
    let permit = app.streams().open(caller)?;
    asked.expect_all_results()?;
    if asked.is_open {
        asked.give_files(app, caller, files).await?;
    }
    let PausedRun { mut run, outline, answers, pauses_before, is_open, .. } = asked;
    if is_open {
        // Order matters: the worker that continues the run takes the message, and reads the new parts.
        if let Some(posting) = beside {
            app.post(caller, posting).await?;
        }
        let Renewal { client_tools, overrides, metadata, .. } = renewal;
        app.storage().renew_client_parts(run.id, client_tools, overrides, metadata.clone()).await?;
        run.metadata = metadata;
        answer_questions(app, caller, &run, answers).await?;
    }
    let run = Arc::new(run);
    let subscriber = app.relay().open(&caller.owner, &run, EventId::ORIGIN, permit).await?;
    let subscriber = subscriber.ok_or_else(|| Problem::events_gone(run.id))?;
    let (after, until) = (outline.pauses[pauses_before - 1], outline.pauses.get(pauses_before).copied());
    Ok(Answering::Continued(Box::new(Answered { run, subscriber, pauses_before, after, until })))
}

/// Returns whether a request that does not depend on a run is a question for this problem: the run is unknown, its events have
/// expired, it asks nothing of the kind, or another model answers in it.
fn means_apart(problem: &Problem) -> bool {
    [StatusCode::NOT_FOUND, StatusCode::GONE, StatusCode::CONFLICT].contains(&problem.status)
        || problem.code == "conversation_of_another_model"
}

impl PausedRun {
    /// Fails if the caller has no such run, or if it has not asked for one of the answers.
    async fn find(
        app: &Arc<App>,
        caller: &Caller,
        run_id: Uuid,
        answers: Vec<PartAnswer>,
        fields: &RequestFields,
    ) -> Result<Self, Problem> {
        let run = app.storage().run_without_answer(&caller.owner, run_id).await?;
        let run = run.ok_or_else(|| Problem::run_not_found(run_id))?;
        let model = model_named(app, caller, fields.model.as_deref()).await?;
        expect_model_of(app, caller, run.conversation_id, &model).await?;
        let outline = Outline::read(app, run.id).await?;
        let calls = app.storage().tool_calls(run.id).await?;
        let answers = answers.into_iter().map(|answer| with_own_id(&run, &calls, answer));
        let answers = answers.collect::<Result<Vec<_>, _>>()?;
        let questions: Vec<String> = answers.iter().map(PartAnswer::question).collect();
        let pauses_before = outline.pauses_up_to(&questions).ok_or_else(|| Problem::run_not_waiting(run.id))?;
        let approvals = app.storage().approvals(run.id).await?;
        let is_pending = |id: &String| {
            let mut pending = approvals.iter().filter(|approval| approval.status == ApprovalStatus::Pending);
            pending.any(|approval| approval.id.to_string() == *id)
        };
        let is_owed = |id: &String| calls.iter().any(|call| call.call_id == *id && is_open_call(call));
        let asks = questions.iter().any(|id| is_owed(id) || is_pending(id));
        let is_open = run.status == RunStatus::Waiting && asks;
        Ok(Self { run, model, outline, calls, answers, questions, pauses_before, is_open })
    }

    /// Returns how a run of the request would be executed.
    async fn options(
        &self,
        app: &App,
        fields: &RequestFields,
        instructions: Vec<String>,
        is_whole: bool,
    ) -> Result<RunOptions, Problem> {
        let own = RepeatedFields::of_run(&self.run);
        // The input of an earlier request has instructions that this one does not repeat.
        let kept = if is_whole {
            None
        } else {
            let (_, overrides) = app.storage().client_parts(self.run.id).await?;
            own.instructions_of_input(overrides.instructions.as_deref())
        };
        let among = kept.into_iter().chain(instructions).collect();
        fields.run_options(app, &self.model, &own.renewed(&fields.repeated), among)
    }

    /// Returns what the request replaces. A request of answers alone changes the choice of tools only.
    async fn renewal(
        &self,
        app: &App,
        fields: &RequestFields,
        options: &RunOptions,
        is_whole: bool,
    ) -> Result<Renewal, Problem> {
        let (tools, own) = app.storage().client_parts(self.run.id).await?;
        let after_step = self.calls.iter().map(|call| call.step).max().unwrap_or(0);
        let tool_choice = fields.tool_choice.clone().map(|choice| ToolChoice { after_step, ..choice });
        if !is_whole && fields.is_bare() {
            let (overrides, metadata) = (RunOverrides { tool_choice, ..own }, self.run.metadata.clone());
            return Ok(Renewal { client_tools: tools, overrides, metadata, is_same: true });
        }
        let overrides = RunOverrides {
            profile: options
                .overrides
                .profile
                .clone()
                .or_else(|| own.profile.clone().filter(|_| fields.model.is_none())),
            speaker: own.speaker.clone(),
            links: own.links.clone(),
            left_out: own.left_out,
            tool_choice,
            ..options.overrides.clone()
        };
        let mut metadata = self.run.metadata.clone().unwrap_or_else(|| json!({}));
        metadata[REPEATED] = options.metadata.as_ref().map_or(Value::Null, |metadata| metadata[REPEATED].clone());
        let is_same = tools == options.client_tools && without_step(own) == without_step(overrides.clone());
        Ok(Renewal { client_tools: options.client_tools.clone(), overrides, metadata: Some(metadata), is_same })
    }

    /// Returns whether the run has continued with these answers, and has neither failed nor been stopped.
    fn has_continued_so(&self, app: &App) -> bool {
        let has_ended_early = matches!(self.run.status, RunStatus::Failed | RunStatus::Cancelled);
        !has_ended_early && self.answers.iter().all(|answer| self.has(app, answer))
    }

    /// Returns whether the model that the request names answers in the run.
    fn is_of_model(&self, fields: &RequestFields) -> bool {
        let same_name = || RepeatedFields::of_run(&self.run).model == fields.model;
        fields.model.is_none() || self.model.agent_id == self.run.agent_id || same_name()
    }

    /// Returns whether the run has this result of a call.
    fn has(&self, app: &App, answer: &PartAnswer) -> bool {
        let PartAnswer::Result { call_id, result } = answer else { return true };
        let ClientResult::Output(output) = app.result_to_store(result.clone()) else { return false };
        let call = self.calls.iter().find(|call| call.call_id == *call_id);
        call.is_some_and(|call| call.output.as_ref() == Some(&storable(output)))
    }

    /// Returns the message of the user beside the answers, which joins the run before the model is asked. It is the same message for
    /// a repeated request. Fails for files, which no message has that joins a run.
    async fn beside(
        &self,
        app: &Arc<App>,
        caller: &Caller,
        question: &Question,
        options: RunOptions,
    ) -> Result<Posting, Problem> {
        let content = content_of(app, caller, question.parts.clone()).await?;
        if !content.attachments.is_empty() || !content.links.is_empty() {
            return Err(Problem::invalid_body(
                "Beside the results and approvals that a response waits for, messages of the user have texts only.",
            ));
        }
        let (run, questions) = (self.run.id.to_string(), self.questions.join(" "));
        let key = IdempotencyKey::of_request(&["openai", &run, &questions, &fingerprint(&content)]);
        let target = Target::Existing(self.run.conversation_id);
        let posting = Posting::new(target, MessageInput::New(content));
        let options = RunOptions { keeps_wait: true, ..options };
        Ok(Posting { mode: SubmitMode::Steer, options, key: Some(key), ..posting })
    }

    /// Stores the files of results. Fails for more than a message may have.
    async fn give_files(
        &self,
        app: &Arc<App>,
        caller: &Caller,
        files: Vec<(String, Vec<UiPart>)>,
    ) -> Result<(), Problem> {
        let most = app.files().max_attachments;
        if files.iter().map(|(_, files)| files.len()).sum::<usize>() > most {
            return Err(Problem::too_many_attachments(most));
        }
        for (id, parts) in files {
            let call = self.calls.iter().find(|call| is_id_of_call(&id, self.run.id, &call.call_id));
            let Some(call) = call else { continue };
            let content = content_of(app, caller, parts).await?;
            let files: Vec<ToolFile> = content.attachments.into_iter().map(ToolFile::from).collect();
            app.storage().set_call_files(&caller.owner, self.run.id, &call.call_id, &files).await?;
        }
        Ok(())
    }

    /// Fails if the client would still owe the result of another call, because the run would wait for another request.
    fn expect_all_results(&self) -> Result<(), Problem> {
        let asked = self.outline.calls_at(self.pauses_before);
        let is_owed = |call: &&ToolCall| {
            is_open_call(call) && asked.contains(&call.call_id.as_str()) && !self.questions.contains(&call.call_id)
        };
        match self.calls.iter().find(is_owed) {
            None => Ok(()),
            Some(call) => {
                let id = call_id(self.run.id, &call.call_id);
                Err(Problem::invalid_body(format!(
                    "The request lacks the result of the call {id}; send all results at once."
                )))
            }
        }
    }
}

fn is_open_call(call: &ToolCall) -> bool {
    call.status == ToolCallStatus::Client
}

/// Returns the overrides without the step at which the choice of tools was made.
fn without_step(overrides: RunOverrides) -> RunOverrides {
    let tool_choice = overrides.tool_choice.map(|choice| ToolChoice { after_step: 0, ..choice });
    RunOverrides { tool_choice, ..overrides }
}

/// Returns the answer with the run's own id of its call.
fn with_own_id(run: &Run, calls: &[ToolCall], answer: PartAnswer) -> Result<PartAnswer, Problem> {
    match answer {
        PartAnswer::Result { call_id: id, result } => {
            let call = calls.iter().find(|call| is_id_of_call(&id, run.id, &call.call_id));
            let call_id = call.ok_or_else(|| Problem::run_not_waiting(run.id))?.call_id.clone();
            Ok(PartAnswer::Result { call_id, result })
        }
        approval => Ok(approval),
    }
}
