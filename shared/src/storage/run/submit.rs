//! SUBMIT: a message and its run, committed together.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::types::Json;
use uuid::Uuid;

use super::{
    CommittedMessage, EndedRun, MessageInput, NewRun, SubmitOutcome, Target,
    accept::{Acceptance, RunInput},
    added::{AddedMessage, insert_from, take_positions},
    begin::merged,
    locked_conversation::{LockedConversation, creation, find_conversation},
    opening::open_alone,
    supersede,
    unfinished::{cancel_all, unfinished_runs},
};
use crate::storage::{
    Error, Storage,
    quota::{self, Nearness, Share},
    rows::{MessageRow, message_columns, read_conversation, read_run},
    sql::{Commit, RollBack, Tx, args, statements},
};
use crate::{
    approval::ApprovalStatus,
    conversation::{Conversation, title_of},
    event::Event,
    file::UserContent,
    idempotency::IdempotencyKey,
    message::{Message, Role},
    quotas::{QuotaExceeded, Quotas},
    run::{Run, SubmitMode},
};

statements! {
    /// Returns the run of a key.
    KNOWN_KEY = "
        select id
        from agent_runs
        where owner_id = $1 and idempotency_key = $2
    ",
    /// Returns the metadata that the next run of a conversation inherits.
    INHERITED_METADATA = "
        select metadata
        from agent_run_checkpoints
        where conversation_id = $1
        order by id desc
        limit 1
    ",
    /// Returns the run of a key, with its message and the key's fingerprint.
    RUN_OF_KEY = "
        select id, conversation_id, input_message_id, idempotency_fingerprint
        from agent_runs
        where owner_id = $1 and idempotency_key = $2
    ",
    /// Hides a conversation from lists, and has it removed with the events of its run.
    HIDE = "
        update chat_conversations
        set hidden = true, expires = true
        where id = $1
    ",
    /// Returns a message.
    MESSAGE = concat!("
        select ", message_columns!(), "
        from chat_messages m
        where m.id = $1
    "),
}

impl Storage {
    /// Returns the result of an earlier request with this key: `Repeated` or `KeyReused`. `None` for a new key. It
    /// stores nothing, so a repeated request needs no admission.
    pub async fn repeated(&self, owner: &str, key: &IdempotencyKey) -> Result<Option<SubmitOutcome>, Error> {
        const DOING: &str = "look up an idempotency key";
        // A caller may send any key before admission, and SQLite has one writer. So an unknown key costs only one read.
        let known = self.database.fetch_optional::<(Uuid,)>(DOING, KNOWN_KEY, args![owner, key.key.as_str()]).await?;
        if known.is_none() {
            return Ok(None);
        }
        let look_up = async |tx: &mut Tx| Ok(RollBack(find_by_key(tx, owner, key).await?));
        self.database.transact(DOING, look_up).await
    }

    /// Returns the owner's run of an idempotency key.
    pub async fn run_of_key(&self, owner: &str, key: &str) -> Result<Option<Uuid>, Error> {
        let known = self.database.fetch_optional::<(Uuid,)>("find the run of a key", KNOWN_KEY, args![owner, key]);
        Ok(known.await?.map(|row| row.0))
    }

    /// Commits message and run, or returns the refusal. A repeated request returns the first run, despite all quotas.
    pub async fn submit(&self, owner: &str, quotas: &Quotas, new: &NewRun) -> Result<SubmitOutcome, Error> {
        let quotas = &self.quotas_to_check(owner, *quotas, new.bytes_with_given()).await?;
        match self.try_submit(owner, quotas, new).await {
            // Another request with this key was faster by a moment, and its run is visible now.
            Err(error) if error.is_unique_violation() => match self.try_submit(owner, quotas, new).await {
                // Another message of the conversation has this client id.
                Err(error) if error.is_unique_violation() => Ok(SubmitOutcome::MessageExists),
                submitted => submitted,
            },
            submitted => submitted,
        }
    }

    async fn try_submit(&self, owner: &str, quotas: &Quotas, new: &NewRun) -> Result<SubmitOutcome, Error> {
        // A key may be known already. Without one, only the agent and the quotas can refuse a new conversation.
        if let (Target::New { agent_id }, MessageInput::New(content), None, false, true) =
            (&new.target, &new.input, &new.key, new.options.hides_conversation, new.given.is_empty())
        {
            // If this returns nothing, the transaction finds out which of them refused.
            if let Some(accepted) = self.open_conversation(owner, quotas, new, (*agent_id, content)).await? {
                return Ok(accepted);
            }
        }
        let store = async |tx: &mut Tx| {
            let outcome = store(tx, owner, quotas, new).await?;
            Ok(if matches!(outcome, SubmitOutcome::Accepted(_)) { Commit(outcome) } else { RollBack(outcome) })
        };
        // Boxed, because a message that opens a conversation needs no memory for the transaction.
        Box::pin(self.database.transact("store a message", store)).await
    }

    /// Stores the first message of a new conversation with one statement. `None` without its agent, or near a quota.
    async fn open_conversation(
        &self,
        owner: &str,
        quotas: &Quotas,
        new: &NewRun,
        (agent_id, content): (Option<Uuid>, &UserContent),
    ) -> Result<Option<SubmitOutcome>, Error> {
        let id = Uuid::now_v7();
        let acceptance = Acceptance::new(owner, new, (id, agent_id), 1, RunInput::New(content));
        let share = Share::far_below(quotas, new.bytes());
        let creation = creation(id, owner, None, agent_id, share);
        let conversation = match &self.groups {
            None => open_alone(&self.database, &acceptance, creation).await?,
            Some(groups) => groups.open(&acceptance, share, creation).await?,
        };
        let Some(conversation) = conversation else { return Ok(None) };
        let written = acceptance.into_parts(conversation.created_at);
        Ok(Some(accepted(conversation, written, &new.input, Vec::new(), Vec::new())))
    }
}

/// Stores an accepted message with its run in the transaction.
pub async fn store(tx: &mut Tx, owner: &str, quotas: &Quotas, new: &NewRun) -> Result<SubmitOutcome, Error> {
    if let Some(key) = &new.key
        && let Some(earlier) = find_by_key(tx, owner, key).await?
    {
        return Ok(earlier);
    }
    let locked = match find_conversation(tx, owner, new).await? {
        Ok(locked) => locked,
        Err(refused) => return Ok(refused),
    };
    // Order matters: a faster request with this key is visible only after the lock of the conversation.
    if let Some(key) = &new.key
        && let Some(earlier) = find_by_key(tx, owner, key).await?
    {
        return Ok(earlier);
    }
    if exceeds_metadata(tx, new, &locked).await? {
        return Ok(SubmitOutcome::MetadataTooLarge);
    }
    let (version_of, ended, cancel_requested) = match make_room(tx, new, &locked).await? {
        Ok(room) => room,
        Err(refused) => return Ok(refused),
    };
    // Runs with a cancel request make room for the message.
    let room = Quotas { runs: quotas.runs.map(|max| max + cancel_requested.len()), ..*quotas };
    let is_first = locked.is_first();
    let position = if is_first { after_given(tx, owner, new, &locked).await? } else { locked.position };
    let bytes = if is_first { new.bytes_with_given() } else { new.bytes() };
    let is_near = match quota::nearness(tx, owner, room, bytes).await? {
        Nearness::Beyond(exceeded) => return Ok(refused(exceeded, quotas)),
        nearness => matches!(nearness, Nearness::Near),
    };
    let input = match new.input.content() {
        Some(content) => RunInput::New(content),
        None => match supersede::last_dialogue_message(tx, locked.conversation.id).await? {
            Some(message) if message.role == Role::User => RunInput::Earlier(Box::new(message)),
            _ => return Ok(SubmitOutcome::NothingToAnswer),
        },
    };
    // An edit or another answer begins a branch, whose id is the run's.
    let branch = if new.input.replace_from().is_some() { Some(new.run_id) } else { locked.branch };
    let LockedConversation { mut conversation, .. } = locked;
    if let (true, Some(given)) = (is_first, first_text(&new.given)) {
        conversation.title = conversation.title.or_else(|| title_of(given));
    }
    let still_live = |live: &Uuid| !ended.iter().any(|ended| ended.run_id == *live);
    conversation.live_run_id = conversation.live_run_id.filter(still_live);
    if is_first && new.options.hides_conversation {
        tx.execute(HIDE, args![conversation.id]).await?;
    }
    let acceptance = Acceptance::new(owner, new, (conversation.id, conversation.agent_id), position, input)
        .in_branch(branch, version_of);
    let written = tx.write_fenced::<(DateTime<Utc>,)>(acceptance.in_place()).await?;
    let (created_at,) = written.into_iter().next().ok_or_else(|| tx.no_row())?;
    if is_near && let Some(exceeded) = quota::expect_room(tx, owner, room).await? {
        return Ok(refused(exceeded, quotas));
    }
    Ok(accepted(conversation, acceptance.into_parts(created_at), &new.input, ended, cancel_requested))
}

/// Stores the messages that the client brings before the first one of a conversation. Returns the position of that first one.
async fn after_given(tx: &mut Tx, owner: &str, new: &NewRun, locked: &LockedConversation) -> Result<i64, Error> {
    let (id, first, given) = (locked.conversation.id, locked.position, &new.given);
    if given.is_empty() {
        return Ok(first);
    }
    take_positions(tx, owner, id, given).await?;
    insert_from(tx, owner, id, first, given).await?;
    Ok(first + given.len() as i64)
}

/// Returns the text of the first message of a user.
fn first_text(given: &[AddedMessage]) -> Option<&str> {
    given.iter().find(|message| message.role == Role::User).map(|message| message.content.text.as_str())
}

fn refused(exceeded: QuotaExceeded, quotas: &Quotas) -> SubmitOutcome {
    match exceeded {
        // A message brings no file and no memory of its own.
        QuotaExceeded::Bytes(max)
        | QuotaExceeded::Files(max)
        | QuotaExceeded::FileBytes(max)
        | QuotaExceeded::Memories(max)
        | QuotaExceeded::Collections(max)
        | QuotaExceeded::Documents(max)
        | QuotaExceeded::Entities(max)
        | QuotaExceeded::WorkspaceBytes(max) => SubmitOutcome::QuotaExceeded(max),
        QuotaExceeded::TextBytes(max) => SubmitOutcome::QuotaExceeded(max as usize),
        QuotaExceeded::Runs(room) => SubmitOutcome::TooManyRuns(quotas.runs.unwrap_or(room)),
    }
}

fn accepted(
    mut conversation: Conversation,
    (message, run, queued): (Message, Run, Event),
    input: &MessageInput,
    ended: Vec<EndedRun>,
    cancel_requested: Vec<Uuid>,
) -> SubmitOutcome {
    conversation.title = conversation.title.or_else(|| title_of(&input.content()?.text));
    conversation.live_run_id = conversation.live_run_id.or(Some(run.id));
    SubmitOutcome::Accepted(Box::new(CommittedMessage { conversation, message, run, queued, ended, cancel_requested }))
}

/// Supersedes the messages that the new one replaces, and cancels the runs that it interrupts. Returns the first
/// version of the replaced message, the ended runs, and those whose workers the caller signals.
async fn make_room(
    tx: &mut Tx,
    new: &NewRun,
    locked: &LockedConversation,
) -> Result<Result<(Option<Uuid>, Vec<EndedRun>, Vec<Uuid>), SubmitOutcome>, Error> {
    let conversation_id = locked.conversation.id;
    let replaced = match new.input.replace_from() {
        None => None,
        Some(id) => match supersede::replacement_for(tx, conversation_id, id, &new.input).await? {
            None => return Ok(Err(SubmitOutcome::MessageNotFound)),
            replaced => replaced,
        },
    };
    let point = replaced.map(|replaced| replaced.point);
    let unfinished = if locked.is_first() { Vec::new() } else { unfinished_runs(tx, conversation_id).await? };
    let (mut to_cancel, unfinished): (Vec<_>, Vec<_>) =
        unfinished.into_iter().partition(|run| point.is_some_and(|point| point.covers(run.position)));
    let mut rolled_back = Vec::new();
    match new.mode {
        SubmitMode::Reject if !unfinished.is_empty() => return Ok(Err(SubmitOutcome::Busy)),
        SubmitMode::Interrupt | SubmitMode::Rollback => {
            // A run that answers again comes after the point, so no rollback removes its question.
            rolled_back.extend(unfinished.iter().map(|run| run.id));
            to_cancel.extend(unfinished);
        }
        _ if unfinished.len() >= new.max_unfinished => return Ok(Err(SubmitOutcome::TooMany)),
        _ if new.options.keeps_wait => {}
        // A new message ends the wait, because it does not answer the run's question.
        _ => to_cancel.extend(unfinished.into_iter().filter(|run| run.awaits_human)),
    }
    // Order matters: the messages of the cancelled runs are then superseded from their start.
    if let Some(point) = point {
        supersede::everything_from(tx, conversation_id, point, new.run_id).await?;
        // The run is the first of its branch, so both have one id.
        supersede::begin_branch(tx, conversation_id, point, new.run_id).await?;
    }
    if new.mode == SubmitMode::Rollback {
        supersede::turns_of(tx, rolled_back, Uuid::now_v7()).await?;
    }
    let (ended, cancel_requested) = cancel_all(tx, to_cancel, ApprovalStatus::Superseded).await?;
    Ok(Ok((replaced.and_then(|replaced| replaced.version_of), ended, cancel_requested)))
}

/// Returns whether the conversation's metadata, merged with the message's, is too large.
async fn exceeds_metadata(tx: &mut Tx, new: &NewRun, locked: &LockedConversation) -> Result<bool, Error> {
    let (false, Some(own)) = (locked.is_first(), &new.options.metadata) else { return Ok(false) };
    let inherited = tx
        .fetch_optional::<(Json<Value>,)>(INHERITED_METADATA, args![locked.conversation.id])
        .await?
        .map(|row| row.0.0);
    Ok(merged(inherited, Some(own.clone())).to_string().len() > new.max_metadata)
}

/// Returns the run of this key, if the key was used before.
async fn find_by_key(tx: &mut Tx, owner: &str, key: &IdempotencyKey) -> Result<Option<SubmitOutcome>, Error> {
    let earlier = tx.fetch_optional::<(Uuid, Uuid, Uuid, String)>(RUN_OF_KEY, args![owner, key.key.as_str()]).await?;
    let Some((run_id, conversation_id, message_id, fingerprint)) = earlier else { return Ok(None) };
    if fingerprint != key.fingerprint {
        return Ok(Some(SubmitOutcome::KeyReused));
    }
    let message = tx.fetch_one::<MessageRow>(MESSAGE, args![message_id]).await?;
    let repeated = (read_conversation(tx, conversation_id).await?, message.into(), read_run(tx, run_id).await?);
    Ok(Some(SubmitOutcome::Repeated(Box::new(repeated))))
}
