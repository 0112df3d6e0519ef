//! The messages of a thread: those that are stored, and those of a run that has not ended.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use holdfast_shared::{
    conversation::Conversation,
    event_id::EventId,
    message::{Content, Message, Role},
    run::{Run, RunStatus},
    storage::HistoryMessage,
};
use uuid::Uuid;

use crate::{
    app::App,
    auth::Caller,
    page_sizes::history_size,
    problem::Problem,
    protocols::langgraph::wire::{
        AnswerMessages, LangFold, LangHistory, LangInterrupt, LangMessage, RunCheckpoints, of_stored,
    },
    thread::{FILES, current_run, parts_of_answer},
};

/// A stored message, or the answer of a run, as the messages of the protocol.
pub struct ThreadEntry {
    /// The id of the message, which is also that of a checkpoint.
    pub id: Uuid,
    pub role: Role,
    /// Whether a client has added the message without a run.
    pub is_added: bool,
    pub created_at: DateTime<Utc>,
    pub messages: Vec<LangMessage>,
}

impl ThreadEntry {
    /// Returns the answer of a run.
    const fn of_answer(id: Uuid, created_at: DateTime<Utc>, messages: Vec<LangMessage>) -> Self {
        Self { id, role: Role::Assistant, is_added: false, created_at, messages }
    }

    fn bytes(&self) -> usize {
        self.messages.iter().map(|message| message.to_value().to_string().len()).sum()
    }
}

/// The state of a thread.
pub struct ThreadState {
    /// The newest messages, oldest first.
    pub entries: Vec<ThreadEntry>,
    /// The questions that wait for the client.
    pub interrupts: Vec<LangInterrupt>,
    /// The run that the thread waits for, else its newest.
    pub run: Option<Run>,
}

/// Returns the state of a thread, up to the size of a history.
pub async fn state_of(app: &App, caller: &Caller, thread: &Conversation) -> Result<ThreadState, Problem> {
    let run = current_run(app, caller, thread).await?;
    let live = run.as_ref().filter(|run| !run.status.is_terminal());
    let mut entries = stored(app, &caller.owner, thread.id, live).await?;
    let mut interrupts = Vec::new();
    if let Some(run) = live {
        let fold = folded(app, run).await?;
        let messages = fold.messages().into_messages();
        if !messages.is_empty() {
            entries.push(ThreadEntry::of_answer(run.output_message_id, run.created_at, messages));
        }
        if run.status == RunStatus::Waiting {
            interrupts = fold.interrupts();
        }
    }
    Ok(ThreadState { entries, interrupts, run })
}

/// Returns the messages of a thread before a run's answer.
pub async fn before_answer(app: &App, owner: &str, run: &Run) -> Result<Arc<LangHistory>, Problem> {
    let entries = stored(app, owner, run.conversation_id, Some(run)).await?;
    Ok(Arc::new(LangHistory::of(entries.iter().flat_map(|entry| &entry.messages))))
}

/// Returns the messages of a thread before a run's answer, and the checkpoints of the run.
pub async fn states_before_answer(
    app: &App,
    owner: &str,
    run: &Run,
) -> Result<(Arc<LangHistory>, RunCheckpoints), Problem> {
    let entries = stored(app, owner, run.conversation_id, Some(run)).await?;
    let earlier = entries.iter().rev().find(|entry| entry.id != run.input_message_id);
    let checkpoints = RunCheckpoints {
        before: earlier.map_or(run.conversation_id, |entry| entry.id),
        input: run.input_message_id,
        step: entries.len() as i64 - 1,
    };
    Ok((Arc::new(LangHistory::of(entries.iter().flat_map(|entry| &entry.messages))), checkpoints))
}

/// Folds a run's log so far.
async fn folded(app: &App, run: &Run) -> Result<LangFold, Problem> {
    let (mut fold, mut log) = (LangFold::of_answer(run.output_message_id), app.relay().pages(run.id, EventId::ORIGIN));
    while let Some(events) = log.next().await? {
        events.iter().for_each(|event| fold.absorb(event));
    }
    Ok(fold)
}

/// Returns the newest stored messages, oldest first, up to the size of a history. With a run, those before its answer.
async fn stored(
    app: &App,
    owner: &str,
    conversation_id: Uuid,
    before: Option<&Run>,
) -> Result<Vec<ThreadEntry>, Problem> {
    let size = history_size(app);
    let (newest, unanswered) = tokio::try_join!(
        app.storage().history(owner, conversation_id, size),
        app.storage().answers_without_message(owner, conversation_id, size)
    )?;
    let is_later = |message_id: Uuid, run_id: Option<Uuid>| {
        // A message without a run has an id of its own time.
        before.is_some_and(|run| message_id == run.output_message_id || run_id.unwrap_or(message_id) > run.id)
    };
    let (mut entries, mut bytes): (Vec<ThreadEntry>, usize) = (Vec::with_capacity(newest.len()), 0);
    let mut push = |entry: ThreadEntry, bytes: &mut usize| {
        *bytes += entry.bytes();
        entries.push(entry);
    };
    for HistoryMessage { message, answer } in newest {
        // A message of an older run may be longer than the query could know, so the newest come first until the page is full.
        if bytes >= size.bytes {
            break;
        }
        // Messages that wait for their turn come after the answer.
        if is_later(message.id, message.run_id) {
            continue;
        }
        // A failed run has no message if it wrote no text, but perhaps calls.
        for answer in unanswered.iter().filter(|answer| answer.input_message_id == message.id) {
            if let Some(parts) = parts_of_answer(app, answer, "").await?
                && !is_later(answer.message_id, Some(answer.run_id))
            {
                let messages = AnswerMessages::of_stored(answer, &parts, "");
                push(ThreadEntry::of_answer(answer.message_id, answer.finished_at, messages), &mut bytes);
            }
        }
        let parts = match (&answer, &message.content) {
            (Some(answer), Content::Text(text)) => {
                let parts = parts_of_answer(app, answer, text).await?;
                parts.map(|parts| AnswerMessages::of_stored(answer, &parts, text))
            }
            _ => None,
        };
        let messages = parts.unwrap_or_else(|| vec![of_stored(&message, FILES)]);
        let is_added = message.run_id.is_none() && message.role != Role::System;
        let Message { id, role, created_at, .. } = message;
        push(ThreadEntry { id, role, is_added, created_at, messages }, &mut bytes);
    }
    entries.retain(|entry| !entry.messages.is_empty());
    entries.reverse();
    Ok(entries)
}
