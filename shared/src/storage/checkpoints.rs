//! Checkpoints: list, read, and fork a conversation from one.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use sqlx::{FromRow, types::Json};
use uuid::Uuid;

use super::{
    Error, Storage,
    fork_summary::inherit_summary,
    pages::{PageRow, page_of, page_query},
    quota,
    rows::{ConversationRow, conversation_columns},
    sql::{Commit, RollBack, Tx, args, statements},
};
use crate::{
    conversation::Conversation,
    event_id::EventId,
    page::{Page, PageSize},
    quotas::Account,
    tool::ToolCallStatus,
    trace::{Checkpoint, CheckpointState, Node, TraceMessage, TraceRole},
};

#[derive(FromRow)]
struct CheckpointRow {
    id: Uuid,
    conversation_id: Uuid,
    run_id: Uuid,
    #[sqlx(try_from = "String")]
    node: Node,
    step: i64,
    #[sqlx(try_from = "i64")]
    event_id: EventId,
    messages: i64,
    metadata: Json<Value>,
    created_at: DateTime<Utc>,
}

/// Selects checkpoints of the owner's ($1) conversation ($2).
macro_rules! select_checkpoints {
    () => {
        "
        select k.id, k.conversation_id, k.run_id, k.node, k.step, k.event_id, k.messages,
            k.metadata, k.created_at, octet_length(cast(k.metadata as text)) + 400 as page_bytes
        from agent_run_checkpoints k
        join chat_conversations c on c.id = k.conversation_id and c.deleted_at is null
        where c.owner_id = $1 and c.id = $2 "
    };
}

statements! {
    /// Lists checkpoints, newest first.
    CHECKPOINTS = page_query!(
        concat!(select_checkpoints!(), "
              and ($3 is null or k.id < $3)
            order by k.id desc
            limit $4
        "),
        "id desc",
        "$5",
    ),
    /// Returns a checkpoint.
    CHECKPOINT = concat!(select_checkpoints!(), " and k.id = $3"),
    /// Returns the newest checkpoint whose run nothing has superseded. The run of a fork's own one is in the other conversation.
    NEWEST_CHECKPOINT = concat!(select_checkpoints!(), "
          and not exists (
              select 1
              from agent_runs r
              where r.id = k.run_id
                and r.conversation_id = k.conversation_id
                and r.superseded_at is not null
          )
        order by k.id desc
        limit 1
    "),
    /// Locks an owner's conversation.
    LOCK_CONVERSATION = "
        select id
        from chat_conversations
        where id = $1
          and owner_id = $2
          and deleted_at is null
        {for update}
    ",
    /// Creates the forked conversation, which has the title and the agent of the other one.
    INSERT_FORK = "
        insert into chat_conversations (
            id, owner_id, title, agent_definition_id, knowledge, forked_from, created_at,
            activity_at
        )
        select $1, owner_id, title, agent_definition_id, knowledge, $3, {now}, {now}
        from chat_conversations
        where id = $2
    ",
    /// Returns the messages that a fork copies: the run's input with those that have joined the run before the checkpoint,
    /// and the messages of the run's branch from which the run resumed. The checkpoint of a fork itself has no run there, so
    /// all messages that it had before its first run are copied. A message has the branch of its run, and only a card has its own.
    MESSAGES_OF_FORK = "
        with recursive path (branch, turn, position) as (
            select branch, cast(null as bigint), cast(null as bigint)
            from agent_runs
            where id = $2 and conversation_id = $1
            union all
            select b.parent,
                case
                    when p.turn is null or (b.turn, b.position) < (p.turn, p.position) then b.turn
                    else p.turn
                end,
                case
                    when p.turn is null or (b.turn, b.position) < (p.turn, p.position)
                    then b.position
                    else p.position
                end
            from path p
            join conversation_branches b on b.id = p.branch
        ),
        joined (id) as (
            select m.id
            from chat_messages m
            join agent_runs r on r.id = m.run_id
            where m.conversation_id = $1
              and m.run_id = $2
              and m.role = 'user'
              and m.id <> r.input_message_id
            order by m.position
            limit $4
        )
        select m.id, cast(octet_length(m.content) as bigint), m.turn
        from chat_messages m
        left join agent_runs r on r.id = $2 and r.conversation_id = $1
        where m.conversation_id = $1
          and case
              when r.id is null
              then m.created_at <= $3
                  and (m.superseded_at is null or m.superseded_at > $3)
                  and m.turn < coalesce(
                      (select min(position) from agent_runs where conversation_id = $1), m.turn + 1
                  )
              else m.id = r.input_message_id
              or m.id in (select id from joined)
              or m.turn < r.position
                  and (m.superseded_at is null or m.superseded_at > r.created_at)
                  and exists (
                      select 1
                      from path p
                      where p.branch is not distinct from coalesce(
                          m.branch,
                          (
                              select w.branch
                              from agent_runs w
                              where w.id = m.run_id and w.conversation_id = $1
                          )
                      )
                        and (p.turn is null or (m.turn, m.position) < (p.turn, p.position))
                  )
          end
        order by m.turn, m.id <> r.input_message_id, m.position
    ",
    /// Copies messages into the fork.
    COPY_MESSAGES = "
        insert into chat_messages (
            id, conversation_id, owner_id, run_id, position, turn, briefing_id, role, content_type,
            content, attachments, status, finish_reason, retrieval_context, created_at
        )
        select {uuid:value->>'id'}, $1, m.owner_id, m.run_id, cast(value->>'position' as bigint),
            cast(value->>'position' as bigint), m.briefing_id, m.role, m.content_type, m.content,
            m.attachments, m.status, m.finish_reason, m.retrieval_context, m.created_at
        from {each:$2}
        join chat_messages m on m.id = {uuid:value->>'of'}
    ",
    /// Notes that the fork names the files of the forked conversation and of its runs.
    COPY_FILE_USES = "
        insert into file_uses (file_id, conversation_id)
        select used.file_id, $1
        from (
            select file_id
            from file_uses
            where conversation_id = $2
            union
            select u.file_id
            from run_files u
            join agent_runs r on r.id = u.run_id
            join files f on f.id = u.file_id
            where r.conversation_id = $2
        ) used
    ",
    /// Adds the run's text at the checkpoint as the fork's last message.
    INSERT_ANSWER = "
        insert into chat_messages (
            id, conversation_id, owner_id, run_id, position, turn, role, content, status,
            retrieval_context, created_at
        )
        values ($1, $2, $3, $4, $5, $5, 'assistant', $6, 'complete', $7, {now})
    ",
    /// Adds the checkpoint with which the fork begins.
    INSERT_CHECKPOINT = "
        insert into agent_run_checkpoints (
            id, conversation_id, run_id, event_id, node, step, messages, metadata, created_at
        )
        values ($1, $2, $3, $4, 'fork', $5, $6, $7, {now})
    ",
    /// Sets the last position and the bytes of the fork.
    SET_POSITION = "
        update chat_conversations
        set last_position = $2,
            last_message_at = case when cast($2 as bigint) > 0 then {now} end,
            bytes = bytes + $3 + (
                select coalesce(sum(octet_length(content)), 0)
                from chat_messages
                where conversation_id = $1
            )
        where id = $1
    ",
    /// Returns the forked conversation.
    FORK = concat!("
        select ", conversation_columns!(), "
        from chat_conversations c
        where c.id = $1
    "),
}

impl Storage {
    /// Returns a page of the conversation's checkpoints, newest first. `None` for an unknown cursor.
    pub async fn checkpoints(
        &self,
        owner: &str,
        conversation_id: Uuid,
        size: impl Into<PageSize>,
        cursor: Option<&str>,
    ) -> Result<Option<Page<Checkpoint>>, Error> {
        let size = size.into();
        let Ok(before) = cursor.map(str::parse::<Uuid>).transpose() else { return Ok(None) };
        let args = args![owner, conversation_id, before, size.items + 1, size.bytes];
        let rows = self.database.fetch_all::<PageRow<CheckpointRow>>("list checkpoints", CHECKPOINTS, args).await?;
        Ok(Some(page_of(rows, size, |last| last.id.simple().to_string())))
    }

    /// Returns the newest checkpoint of the owner's conversation whose run nothing has superseded.
    pub async fn newest_checkpoint(&self, owner: &str, conversation_id: Uuid) -> Result<Option<Checkpoint>, Error> {
        let args = args![owner, conversation_id];
        let row = self.database.fetch_optional::<CheckpointRow>("read a checkpoint", NEWEST_CHECKPOINT, args).await?;
        Ok(row.map(Checkpoint::from))
    }

    /// Returns the checkpoint of the owner's conversation.
    pub async fn checkpoint(&self, owner: &str, conversation_id: Uuid, id: Uuid) -> Result<Option<Checkpoint>, Error> {
        let row = self
            .database
            .fetch_optional::<CheckpointRow>("read a checkpoint", CHECKPOINT, args![owner, conversation_id, id])
            .await?;
        Ok(row.map(Checkpoint::from))
    }

    /// Returns the checkpoint with a page of the run's trace at that point. `None` for an unknown cursor.
    pub async fn checkpoint_state(
        &self,
        checkpoint: Checkpoint,
        size: PageSize,
        cursor: Option<&str>,
    ) -> Result<Option<CheckpointState>, Error> {
        let (run_id, messages) = (checkpoint.run_id, checkpoint.messages);
        let Some(Page { items: trace, next }) = self.trace_up_to(run_id, messages, size, cursor).await? else {
            return Ok(None);
        };
        let (Some(first), Some(last)) = (trace.first(), trace.last()) else {
            return Ok(Some(CheckpointState { checkpoint, trace, tool_calls: Vec::new(), next }));
        };
        let mut tool_calls = self.tool_calls_of_steps(run_id, first.step, last.step).await?;
        let answered_calls = self.calls_answered_up_to(run_id, messages).await?;
        tool_calls.retain(|call| {
            trace.iter().flat_map(|message| &message.tool_calls).any(|request| request.call_id == call.call_id)
        });
        for call in &mut tool_calls {
            // Later outcomes are not part of the checkpoint.
            if !answered_calls.contains(&call.call_id) {
                call.status = ToolCallStatus::Requested;
                (call.output, call.error, call.duration_ms, call.completed_at) = (None, None, None, None);
                call.files.clear();
            }
        }
        Ok(Some(CheckpointState { checkpoint, trace, tool_calls, next }))
    }

    /// Creates a conversation that continues from a checkpoint of another one. It has that one's agent, copies of its
    /// messages and the run's text at that point. `None` if there is no such checkpoint. Fails if the owner's quota has
    /// no room.
    pub async fn fork_conversation(
        &self,
        account: impl Into<Account<'_>>,
        conversation_id: Uuid,
        checkpoint_id: Uuid,
    ) -> Result<Option<Conversation>, Error> {
        let account = account.into();
        let checkpoint = self.checkpoint(account.owner, conversation_id, checkpoint_id).await?;
        let Some(checkpoint) = checkpoint else { return Ok(None) };
        let Some(state) = self.checkpoint_state(checkpoint, PageSize::ALL, None).await? else {
            return Ok(None);
        };
        let fork = async |tx: &mut Tx| {
            // Order matters: an erasure waits for this lock, so the rows that the fork refers to stay.
            if tx.fetch_optional::<(Uuid,)>(LOCK_CONVERSATION, args![conversation_id, account.owner]).await?.is_none() {
                return Ok(RollBack(None));
            }
            let forked = write_fork(tx, account, &state).await?;
            quota::keep_within(tx, account.owner, account.quotas()).await?;
            Ok(Commit(Some(forked)))
        };
        self.database.transact("fork a conversation", fork).await
    }
}

async fn write_fork(tx: &mut Tx, account: Account<'_>, state: &CheckpointState) -> Result<Conversation, Error> {
    let owner = account.owner;
    let (id, source, run_id) = (Uuid::now_v7(), state.checkpoint.conversation_id, state.checkpoint.run_id);
    tx.execute(INSERT_FORK, args![id, source, state.checkpoint.id]).await?;
    // A plan's tasks are no messages of the user.
    let has_joined =
        |message: &&TraceMessage| message.role == TraceRole::User && message.step > 0 && message.call_id.is_none();
    let joined = state.trace.iter().filter(has_joined).count();
    let args = args![source, run_id, Some(state.checkpoint.created_at), joined];
    let messages = tx.fetch_all::<(Uuid, i64, i64)>(MESSAGES_OF_FORK, args).await?;
    // A fork beyond the quota copies nothing.
    let copied: i64 = messages.iter().map(|(_, bytes, _)| bytes).sum();
    let mut usage = quota::usage(tx, owner, account.quotas()).await?;
    usage.bytes += copied as usize + messages.len() * quota::MESSAGE_ROW;
    if let Some(exceeded) = quota::exceeded(account.quotas(), usage) {
        return Err(tx.refused_by(exceeded));
    }
    let turns: Vec<i64> = messages.iter().map(|(_, _, turn)| *turn).collect();
    let copies: Vec<Value> = (1_i64..)
        .zip(messages)
        .map(|(position, (message, _, _))| json!({"of": message.simple(), "id": Uuid::now_v7().simple(), "position": position}))
        .collect();
    let mut position = copies.len() as i64;
    tx.execute(COPY_MESSAGES, args![id, Value::from(copies)]).await?;
    tx.execute(COPY_FILE_USES, args![id, source]).await?;
    inherit_summary(tx, id, &state.checkpoint, &turns).await?;
    let text: String =
        state.trace.iter().filter(|message| message.call_id.is_none()).filter_map(assistant_text).collect();
    if !text.is_empty() && state.checkpoint.node != Node::Fork {
        position += 1;
        tx.execute(
            INSERT_ANSWER,
            args![Uuid::now_v7(), id, owner, run_id, position, text, json!({"agent_run_id": run_id})],
        )
        .await?;
    }
    tx.execute(
        INSERT_CHECKPOINT,
        args![
            Uuid::now_v7(),
            id,
            run_id,
            state.checkpoint.event_id,
            state.checkpoint.step,
            state.checkpoint.messages,
            state.checkpoint.metadata.clone()
        ],
    )
    .await?;
    let rows = quota::ROWS + position as usize * quota::MESSAGE_ROW;
    tx.execute(SET_POSITION, args![id, position, rows + state.checkpoint.metadata.to_string().len()]).await?;
    Ok(tx.fetch_one::<ConversationRow>(FORK, args![id]).await?.into())
}

fn assistant_text(message: &TraceMessage) -> Option<&str> {
    (message.role == TraceRole::Assistant).then_some(message.content.as_str())
}

impl From<CheckpointRow> for Checkpoint {
    fn from(row: CheckpointRow) -> Self {
        Self {
            id: row.id,
            conversation_id: row.conversation_id,
            run_id: row.run_id,
            node: row.node,
            step: row.step as u32,
            event_id: row.event_id,
            messages: row.messages as u32,
            metadata: row.metadata.0,
            created_at: row.created_at,
        }
    }
}
