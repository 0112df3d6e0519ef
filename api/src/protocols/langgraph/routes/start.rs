//! Starts a run, or continues one that waits.

use std::sync::Arc;

use axum::http::HeaderMap;
use holdfast_shared::{
    conversation::{Conversation, Handle},
    event_id::EventId,
    idempotency::IdempotencyKey,
    message::Role,
    run::{Run, RunStatus},
    storage::{MessageInput, Target},
};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{
    assistants::find_assistant,
    history::{self, ThreadEntry, ThreadState},
    later::around,
    request::{RunAction, RunRequest},
    resume::{answers_by_id, answers_of},
    segment::RunSegment,
    thread_named,
};
use crate::{
    app::{App, PostedMessage, Posting, fingerprint},
    auth::{Caller, is_name},
    extract::{self, idempotency_key},
    problem::Problem,
    relay::Subscriber,
    run_request::checked_options,
    thread::{
        GivenHistoryOfThread, HistoryBound, Outline, PartAnswer, UiPart, answer_questions, content_of, current_run,
        find_thread, takes_history, truncated_id,
    },
};

/// A request for a run, with its thread's id. Requests without a thread get one of their own.
pub struct RunStart<'a> {
    pub app: &'a Arc<App>,
    pub caller: &'a Caller,
    pub headers: &'a HeaderMap,
    pub thread_id: Option<&'a str>,
    pub body: &'a RunRequest,
}

/// A started run.
pub struct StartedRun {
    pub thread: Conversation,
    /// The client's name for the thread.
    pub thread_id: String,
    pub segment: RunSegment,
    /// The run's events from the start, if the request follows the run.
    pub subscriber: Option<Subscriber>,
}

impl RunStart<'_> {
    /// Starts the run, or continues it, and follows it.
    pub async fn follow(&self) -> Result<StartedRun, Problem> {
        match self.action().await? {
            RunAction::Resume(value) => self.resume(value, true).await,
            RunAction::Respond(answers) => self.respond(answers, true).await,
            RunAction::Results(answers) => self.answer(answers, true).await,
            RunAction::End => self.end(true).await,
            action => {
                let posting = self.posting(action).await?;
                let (posted, subscriber) = self.app.post_and_follow(self.caller, posting, EventId::ORIGIN).await?;
                let run_id = posted.run.id;
                let started = self.started(posted).await?;
                let subscriber = Some(subscriber.ok_or_else(|| Problem::events_gone(run_id))?);
                Ok(StartedRun { subscriber, ..started })
            }
        }
    }

    /// Starts the run, or continues it.
    pub async fn post(&self) -> Result<StartedRun, Problem> {
        self.post_once(None).await
    }

    /// Starts the run, or returns that of an equal request with this key. A key of the client counts before it.
    pub async fn post_once(&self, key: Option<IdempotencyKey>) -> Result<StartedRun, Problem> {
        match self.action().await? {
            RunAction::Resume(value) => self.resume(value, false).await,
            RunAction::Respond(answers) => self.respond(answers, false).await,
            RunAction::Results(answers) => self.answer(answers, false).await,
            RunAction::End => self.end(false).await,
            action => {
                let mut posting = self.posting(action).await?;
                posting.key = posting.key.or(key);
                self.started(self.app.post(self.caller, posting).await?).await
            }
        }
    }

    /// Returns the action of the request. Fails for a field that has no effect on it.
    async fn action(&self) -> Result<RunAction, Problem> {
        let refused = |field, advice| Err(Problem::field_not_supported(field, advice));
        let action = self.body.action()?;
        let question = match &action {
            RunAction::Results(answers) => self.new_question(answers).await?,
            _ => None,
        };
        let action = question.unwrap_or(action);
        let begins = matches!(action, RunAction::Ask { .. } | RunAction::Again);
        if self.body.deletes_thread() && self.thread_id.is_some() {
            return refused("on_completion \"delete\" in a thread", "delete the thread when the run has ended.");
        }
        if !begins && self.body.delay(self.app.config().max_delay)?.is_some() {
            return refused("after_seconds with an answer", "an answered run continues at once.");
        }
        Ok(action)
    }

    /// Returns the human's newest message if the thread does not know it, and its run has not asked for these results: the calls are
    /// those of another node.
    async fn new_question(&self, answers: &[PartAnswer]) -> Result<Option<RunAction>, Problem> {
        let (app, caller) = (self.app, self.caller);
        let Some(question) = self.body.question()? else { return Ok(None) };
        let thread = match self.thread_id {
            Some(thread_id) => find_thread(app, caller, thread_id).await?,
            None => None,
        };
        let Some(thread) = thread.filter(|thread| !takes_history(Some(thread))) else { return Ok(Some(question)) };
        let RunAction::Ask { message_id: Some(id), .. } = &question else { return Ok(None) };
        if app.storage().message_called(&caller.owner, thread.id, id).await?.is_some() {
            return Ok(None);
        }
        if let Some(run) = current_run(app, caller, &thread).await? {
            let questions: Vec<String> = answers.iter().map(PartAnswer::question).collect();
            if Outline::read(app, run.id).await?.pauses_up_to(&questions).is_some() {
                return Ok(None);
            }
        }
        Ok(Some(question))
    }

    async fn started(&self, posted: PostedMessage) -> Result<StartedRun, Problem> {
        let PostedMessage { conversation, run, .. } = posted;
        // A repeated request finds the pauses that the run has passed.
        let pauses = if run.attempt < 2 { Vec::new() } else { Outline::read(self.app, run.id).await?.pauses };
        let thread_id = self.thread_id.map_or_else(|| conversation.id.to_string(), str::to_owned);
        let segment = RunSegment::of(Arc::new(run), 0, &pauses);
        Ok(StartedRun { thread: conversation, thread_id, segment, subscriber: None })
    }

    /// Returns the message that the request posts.
    async fn posting(&self, action: RunAction) -> Result<Posting, Problem> {
        let (app, caller, body) = (self.app, self.caller, self.body);
        let mut options = checked_options(app, None, body.client_tools()?, body.metadata.clone(), None)?;
        options.delay = body.delay(app.config().max_delay)?;
        options.hides_conversation = body.deletes_thread();
        let agent_id = find_assistant(app, caller, &body.assistant_id).await?;
        let (thread, target) = self.target(agent_id).await?;
        let (client_message_id, content, later) = match action {
            RunAction::Ask { message_id, parts, later } => (message_id, Some(self.content(parts).await?), later),
            _ => (None, None, Vec::new()),
        };
        let label = content.as_ref().map(fingerprint).unwrap_or_default();
        let checkpoint = body.checkpoint_id().unwrap_or_default();
        let thread_label = self.thread_id.unwrap_or_default();
        let fingerprint = ["langgraph", thread_label, &body.assistant_id, &label, checkpoint, body.mode().as_str()];
        let fingerprint = [&fingerprint[..], if body.deletes_thread() { &["delete"] } else { &[] }].concat();
        let key = idempotency_key(self.headers, &fingerprint, &options)?;
        let input = match content {
            Some(content) => match self.replaced(thread.as_ref(), client_message_id.as_deref()).await? {
                Some(replace_from) => MessageInput::Edit { content, replace_from },
                None => MessageInput::New(content),
            },
            None => MessageInput::Again { replace_from: self.answered(thread.as_ref()).await? },
        };
        let is_kept = matches!(input, MessageInput::New(_)) && takes_history(thread.as_ref());
        let mut given = if is_kept || !later.is_empty() {
            GivenHistoryOfThread::of(app, caller, body.history(), client_message_id.as_deref()).await?
        } else {
            GivenHistoryOfThread::default()
        };
        options.overrides.left_out = given.left_out;
        if !later.is_empty() {
            // Only with a history of its own does a run read anything between its message and its answer.
            options.overrides.history = Some(around(&given, later, HistoryBound::of(app.config(), caller)));
        }
        if !is_kept {
            given.messages.clear();
        }
        let posting = Posting { given: given.messages, ..Posting::new(target, input) };
        Ok(Posting { client_message_id, mode: body.mode(), options, key, ..posting })
    }

    async fn content(&self, parts: Vec<UiPart>) -> Result<holdfast_shared::file::UserContent, Problem> {
        content_of(self.app, self.caller, parts).await
    }

    /// Returns the thread, if it exists, and the target of its messages. Gives a thread without runs its agent.
    async fn target(&self, agent_id: Option<Uuid>) -> Result<(Option<Conversation>, Target), Problem> {
        let Some(thread_id) = self.thread_id else { return Ok((None, Target::New { agent_id })) };
        let Some(thread) = find_thread(self.app, self.caller, thread_id).await? else {
            if !self.body.creates_thread() || !is_name(thread_id) {
                return Err(Problem::conversation_not_found(truncated_id(thread_id)));
            }
            return Ok((None, Target::Named { handle: Handle::Chat(thread_id.to_owned()), agent_id }));
        };
        if let Some(agent_id) = agent_id
            && !self.app.gives_agent(self.caller, &thread, agent_id).await?
        {
            return Err(Problem::thread_of_another_agent(&truncated_id(thread_id)));
        }
        let target = Target::Existing(thread.id);
        Ok((Some(thread), target))
    }

    /// Returns the message that the new one replaces: the first one of a user after the checkpoint, or the one with the same id.
    async fn replaced(&self, thread: Option<&Conversation>, id: Option<&str>) -> Result<Option<Uuid>, Problem> {
        let Some(thread) = thread else {
            return match self.body.checkpoint_id() {
                Some(id) => Err(Problem::checkpoint_not_found(truncated_id(id))),
                None => Ok(None),
            };
        };
        if self.body.checkpoint_id().is_some() {
            let (entries, place) = self.at_checkpoint(thread).await?;
            let after = entries[place..].iter().find(|entry| entry.role == Role::User);
            return Ok(after.map(|entry| entry.id));
        }
        let Some(id) = id else { return Ok(None) };
        let earlier = self.app.storage().message_called(&self.caller.owner, thread.id, id).await?;
        Ok(earlier.filter(|message| message.role == Role::User).map(|message| message.id))
    }

    /// Returns the message before the checkpoint, which a run answers again. Without a checkpoint, it is the newest message of the
    /// thread, if that waits for an answer.
    async fn answered(&self, thread: Option<&Conversation>) -> Result<Uuid, Problem> {
        let is_named = self.body.checkpoint_id().is_some();
        let nothing = || {
            if is_named {
                return Problem::checkpoint_not_found(self.checkpoint_label());
            }
            Problem::nothing_to_run("The request has no input, and the thread has no message without an answer.")
        };
        let thread = thread.ok_or_else(nothing)?;
        if is_named {
            let (entries, place) = self.at_checkpoint(thread).await?;
            let before = entries[..place].iter().rfind(|entry| entry.role == Role::User);
            return before.map(|entry| entry.id).ok_or_else(nothing);
        }
        let _turn = self.app.read_limit().begin(self.caller).await?;
        let _assembled = self.app.unread_answers().assemble(self.caller, self.app.config().max_page_bytes)?;
        let ThreadState { entries, run, .. } = history::state_of(self.app, self.caller, thread).await?;
        if run.as_ref().is_some_and(|run| !run.status.is_terminal()) {
            return Err(Problem::thread_busy(thread.id));
        }
        let newest = entries.last().filter(|entry| entry.role == Role::User);
        // A failed run may have written a part of its answer. A message that was added since is the answer.
        let is_failed =
            |run: &Run| run.status == RunStatus::Failed && !entries.last().is_some_and(|entry| entry.is_added);
        let failed = run.filter(is_failed).map(|run| run.input_message_id);
        newest.map(|entry| entry.id).or(failed).ok_or_else(nothing)
    }

    /// Returns the messages of a thread, and the number of those before the checkpoint.
    async fn at_checkpoint(&self, thread: &Conversation) -> Result<(Vec<ThreadEntry>, usize), Problem> {
        let unknown = || Problem::checkpoint_not_found(self.checkpoint_label());
        let id = extract::id(self.body.checkpoint_id().unwrap_or_default()).map_err(|_| unknown())?;
        let _turn = self.app.read_limit().begin(self.caller).await?;
        let _assembled = self.app.unread_answers().assemble(self.caller, self.app.config().max_page_bytes)?;
        let entries = history::state_of(self.app, self.caller, thread).await?.entries;
        let place = match entries.iter().position(|entry| entry.id == id) {
            Some(before) => before + 1,
            None if id == thread.id => 0,
            None => return Err(unknown()),
        };
        Ok((entries, place))
    }

    fn checkpoint_label(&self) -> String {
        truncated_id(self.body.checkpoint_id().unwrap_or_default())
    }

    /// Ends the run of the thread if it waits. A run that has ended stays as it is.
    async fn end(&self, follows: bool) -> Result<StartedRun, Problem> {
        let (app, caller) = (self.app, self.caller);
        let (thread, run) = self.waiting().await?;
        if !matches!(run.status, RunStatus::Waiting) && !run.status.is_terminal() {
            return Err(Problem::run_not_waiting(run.id));
        }
        let permit = if follows { Some(app.streams().open(caller)?) } else { None };
        let run = if run.status.is_terminal() { run } else { app.cancel(&caller.owner, run.id).await? };
        let (pauses, run) = (Outline::read(app, run.id).await?.pauses, Arc::new(run));
        let subscriber = match permit {
            Some(permit) => app.relay().open(&caller.owner, &run, EventId::ORIGIN, permit).await?,
            None => None,
        };
        let segment = RunSegment::of(run, pauses.len(), &pauses);
        Ok(StartedRun { thread, thread_id: self.thread_id.unwrap_or_default().to_owned(), segment, subscriber })
    }

    /// Answers the open interrupts of the thread.
    async fn resume(&self, value: Value, follows: bool) -> Result<StartedRun, Problem> {
        let (_, run) = self.waiting().await?;
        let answers = answers_of(self.app, &run, &value).await?;
        self.answer(answers, follows).await
    }

    async fn respond(&self, answers: Map<String, Value>, follows: bool) -> Result<StartedRun, Problem> {
        let (_, run) = self.waiting().await?;
        self.answer(answers_by_id(self.app, &run, &answers).await?, follows).await
    }

    /// Returns the thread of the request, and its current run.
    async fn waiting(&self) -> Result<(Conversation, Run), Problem> {
        let thread_id =
            self.thread_id.ok_or_else(|| Problem::nothing_to_run("A new thread has no run that can be continued."))?;
        let thread = thread_named(self.app, self.caller, thread_id).await?;
        let run = current_run(self.app, self.caller, &thread).await?;
        let run = run.ok_or_else(|| Problem::conversation_not_found(truncated_id(thread_id)))?;
        Ok((thread, run))
    }

    /// Answers questions, and continues after the pause at which the run has asked them.
    async fn answer(&self, answers: Vec<PartAnswer>, follows: bool) -> Result<StartedRun, Problem> {
        let (app, caller) = (self.app, self.caller);
        let (thread, run) = self.waiting().await?;
        let outline = Outline::read(app, run.id).await?;
        let questions: Vec<String> = answers.iter().map(PartAnswer::question).collect();
        let number = outline.pauses_up_to(&questions).ok_or_else(|| Problem::run_not_waiting(run.id))?;
        // Order matters: the limit on streams refuses the request before the first answer.
        let permit = if follows { Some(app.streams().open(caller)?) } else { None };
        answer_questions(app, caller, &run, answers).await?;
        let current = app.storage().run_without_answer(&caller.owner, run.id).await?;
        let run = Arc::new(current.unwrap_or(run));
        let subscriber = match permit {
            Some(permit) => app.relay().open(&caller.owner, &run, EventId::ORIGIN, permit).await?,
            None => None,
        };
        if follows && subscriber.is_none() {
            return Err(Problem::events_gone(run.id));
        }
        let thread_id = self.thread_id.unwrap_or_default().to_owned();
        let segment = RunSegment::of(run, number, &outline.pauses);
        Ok(StartedRun { thread, thread_id, segment, subscriber })
    }
}
