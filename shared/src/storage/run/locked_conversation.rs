//! The conversation of a message: SUBMIT finds or creates it, and locks its row.

use sqlx::FromRow;
use uuid::Uuid;

use super::{NewRun, SubmitOutcome, Target};
use crate::conversation::Conversation;
use crate::storage::{
    Error,
    position::HANDLE_TRIES,
    quota::{Share, kept_bytes},
    rows::{ConversationRow, first_user_text},
    sql::{Statement, Tx, args, statements},
};

/// The conversation with its locked row, and the message's position in it.
pub struct LockedConversation {
    pub conversation: Conversation,
    pub position: i64,
    /// The conversation's current branch.
    pub branch: Option<Uuid>,
}

#[derive(FromRow)]
pub struct LockedConversationRow {
    position: i64,
    #[sqlx(default)]
    branch: Option<Uuid>,
    #[sqlx(flatten)]
    conversation: ConversationRow,
}

impl LockedConversation {
    /// Returns whether the message is the conversation's first.
    pub const fn is_first(&self) -> bool {
        self.position == 1
    }
}

impl From<LockedConversationRow> for LockedConversation {
    fn from(row: LockedConversationRow) -> Self {
        Self { conversation: row.conversation.into(), position: row.position, branch: row.branch }
    }
}

/// Locks a conversation and takes its next position. The text ends with the condition that finds it.
macro_rules! lock_conversation {
    ($found:literal) => {
        concat!(
            "
        update chat_conversations
        set last_position = last_position + 1,
            last_message_at = {now},
            activity_at = {now},
            bytes = bytes + $3
        where owner_id = $1
          and deleted_at is null
          and ",
            $found,
            "
        returning last_position as position, branch, id, title, agent_definition_id as agent_id,
            forked_from, created_at, last_message_at, activity_at,
            (
                select live.id
                from agent_runs live
                where live.conversation_id = chat_conversations.id
                  and live.status in ('queued', 'running', 'waiting')
                order by live.position
                limit 1
            ) as live_run_id,
            ",
            first_user_text!("chat_conversations")
        )
    };
}

statements! {
    /// Locks an owner's conversation, and takes its next position.
    LOCK_BY_ID = lock_conversation!("id = $2"),
    /// Locks an owner's conversation with a handle, and takes its next position.
    LOCK_BY_HANDLE = lock_conversation!("handle = $2"),
    /// Creates a conversation with a position for its first message. Its agent must exist, and the owner's share must have
    /// room.
    CREATE = concat!("
        insert into chat_conversations (
            id, owner_id, handle, agent_definition_id, last_position, created_at, last_message_at,
            activity_at, bytes
        )
        select $1, $2, $3, $4, 1, {now}, {now}, {now}, 256 + $5
        where (
            $4 is null
            or exists (select 1 from agent_definitions where id = $4 and deleted_at is null)
        )
          and (
              $6 is null
              or (
                  select count(*)
                  from (
                      select 1
                      from agent_runs
                      where owner_id = $2 and finished_at is null
                      limit $6
                  ) unfinished
              ) < $6
          )
          and ($7 is null or 256 + $5 + ", kept_bytes!("$2"), " <= $7)
        on conflict (owner_id, handle)
        where handle is not null and deleted_at is null
        do nothing
        returning last_position as position, id, title, agent_definition_id as agent_id,
            forked_from, created_at, last_message_at, activity_at, null as live_run_id
    "),
}

/// Finds or creates the target conversation, and locks its row.
pub async fn find_conversation(
    tx: &mut Tx,
    owner: &str,
    new: &NewRun,
) -> Result<Result<LockedConversation, SubmitOutcome>, Error> {
    let brings = new.bytes();
    Ok(match &new.target {
        Target::Existing(id) => {
            lock_conversation(tx, owner, *id, brings).await?.ok_or(SubmitOutcome::ConversationNotFound)
        }
        Target::New { agent_id } => {
            create_conversation(tx, owner, None, *agent_id, brings).await?.ok_or(SubmitOutcome::AgentNotFound)
        }
        Target::Named { handle, agent_id } => {
            let handle = handle.to_string();
            // Another request may create the conversation meanwhile, or delete it again.
            for _ in 0..HANDLE_TRIES {
                if let Some(locked) = lock_by_handle(tx, owner, &handle, brings).await? {
                    return Ok(Ok(locked));
                }
                if let Some(locked) = create_conversation(tx, owner, Some(&handle), *agent_id, brings).await? {
                    return Ok(Ok(locked));
                }
            }
            agent_id.map(|_| Err(SubmitOutcome::AgentNotFound)).ok_or_else(|| tx.no_row())?
        }
    })
}

async fn lock_conversation(
    tx: &mut Tx,
    owner: &str,
    id: Uuid,
    brings: usize,
) -> Result<Option<LockedConversation>, Error> {
    Ok(tx
        .fetch_optional::<LockedConversationRow>(LOCK_BY_ID, args![owner, id, brings])
        .await?
        .map(LockedConversation::from))
}

async fn lock_by_handle(
    tx: &mut Tx,
    owner: &str,
    handle: &str,
    brings: usize,
) -> Result<Option<LockedConversation>, Error> {
    Ok(tx
        .fetch_optional::<LockedConversationRow>(LOCK_BY_HANDLE, args![owner, handle, brings])
        .await?
        .map(LockedConversation::from))
}

/// Creates a conversation; `None` if there is no such agent, or if the handle is taken.
async fn create_conversation(
    tx: &mut Tx,
    owner: &str,
    handle: Option<&str>,
    agent_id: Option<Uuid>,
    brings: usize,
) -> Result<Option<LockedConversation>, Error> {
    let creation = creation(Uuid::now_v7(), owner, handle, agent_id, Share::unchecked(brings));
    let (sql, args) = creation.into_parts();
    Ok(tx.fetch_optional::<LockedConversationRow>(sql, args).await?.map(LockedConversation::from))
}

/// Returns the statement that creates the conversation `id`, unless the owner's share has no room for it.
pub fn creation(id: Uuid, owner: &str, handle: Option<&str>, agent_id: Option<Uuid>, share: Share) -> Statement {
    let Share { brings, max_runs, max_bytes } = share;
    let (max_runs, max_bytes) = (max_runs.map(|max| max as i64), max_bytes.map(|max| max as i64));
    Statement::new(CREATE, args![id, owner, handle.map(str::to_owned), agent_id, brings, max_runs, max_bytes])
}
