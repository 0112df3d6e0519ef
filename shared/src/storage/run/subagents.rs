//! Children of a run: their start with the intent of a call, their answer with their end, and their cancel after their
//! parent's end. `docs/decisions/0014` has the protocol, and `tests/model` its model.
//!
//! Order matters: a child's end locks the child's conversation, the child, and then its parent's row. No transaction that has
//! locked a parent locks a child.

use chrono::Utc;
use serde::Serialize;
use serde_json::{Value, json};
use sqlx::{FromRow, types::Json};
use uuid::Uuid;

use super::{
    AnsweredRun, EndedRun,
    accept::next_round,
    attempt::lock_run,
    cancel::request_end,
    chunk::{chunk_of, writes_of},
    end::end_locked,
};
use crate::storage::{
    Error, Storage,
    rows::traceparent,
    sql::{Commit, FencedWrites, RollBack, Sql, Statement, Tx, args, statements},
};
use crate::{
    approval::ApprovalStatus,
    ending::Ending,
    event::{Event, EventBody, RunQueued, SubagentCompleted, ToolCallCompleted},
    event_id::EventId,
    excerpt,
    run::{RunError, RunStatus},
    subagent::{SubagentRole, outcome_of},
    tool::ToolError,
    usage::Usage,
};

/// A child that its parent's holder starts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NewChild {
    /// The child. Its ids are chosen before the write, so that a repeated write is the same.
    #[serde(serialize_with = "simple")]
    pub child_run_id: Uuid,
    /// The call of the parent that the child answers.
    pub call_id: String,
    /// The child's part in the work of its parent.
    pub role: &'static str,
    /// The agent that executes the child.
    #[serde(serialize_with = "simple")]
    pub agent_id: Uuid,
    /// The child's input.
    pub task: String,
    #[serde(serialize_with = "simple")]
    conversation_id: Uuid,
    #[serde(serialize_with = "simple")]
    message_id: Uuid,
    #[serde(serialize_with = "simple")]
    output_message_id: Uuid,
    queued_id: i64,
    queued: String,
}

impl NewChild {
    /// Returns a child with new ids.
    pub fn new(call_id: String, role: SubagentRole, agent_id: Uuid, task: String) -> Self {
        let (child_run_id, conversation_id) = (Uuid::now_v7(), Uuid::now_v7());
        let (message_id, output_message_id) = (Uuid::now_v7(), Uuid::now_v7());
        let body = EventBody::RunQueued(RunQueued {
            base: EventId::ORIGIN,
            conversation_id,
            input_message_id: message_id,
            message_id: output_message_id,
            agent_id: Some(agent_id),
        });
        let event = Event::new(EventId::first_of(0), Utc::now(), &body);
        let line = str::from_utf8(event.line()).expect("an event is a line of text");
        Self {
            child_run_id,
            call_id,
            role: role.as_str(),
            agent_id,
            task,
            conversation_id,
            message_id,
            output_message_id,
            queued_id: event.id.packed(),
            queued: format!("{line}\n"),
        }
    }
}

fn simple<S: serde::Serializer>(id: &Uuid, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&id.simple())
}

/// What the run `$1` waits for: `human`, `children`, or nothing.
macro_rules! open_question {
    () => {
        "
            case
                when exists (
                        select 1
                        from agent_run_approvals a
                        where a.run_id = $1 and a.status = 'pending'
                    )
                    or exists (
                        select 1
                        from agent_run_tool_calls t
                        where t.run_id = $1 and t.status = 'client'
                    )
                then 'human'
                when exists (
                        select 1
                        from agent_run_tool_calls t
                        where t.run_id = $1
                          and t.status = 'called'
                          and t.child_run_id is not null
                          and t.completed_at is null
                    )
                then 'children'
            end"
    };
}
pub(in crate::storage) use open_question;

/// Adds the parent of each element of `$1`, behind the fence of that parent.
macro_rules! from_parents {
    () => {
        "
        from {each:$1}
        join agent_runs p on p.id = {uuid:value->>'run_id'}
        where {fenced:cast(value->>'run_id' as uuid)}
    "
    };
}

statements! {
    /// Creates the conversations of children.
    INSERT_CONVERSATIONS = concat!("
        insert into chat_conversations (
            id, owner_id, agent_definition_id, parent_run_id, last_position, created_at,
            last_message_at, activity_at, bytes
        )
        select {uuid:value->>'conversation_id'}, p.owner_id, {uuid:value->>'agent_id'}, p.id, 1,
            {now}, {now}, {now}, 4352 + octet_length(value->>'task')", from_parents!()),
    /// Queues the children. Their traces continue their parents'.
    INSERT_RUNS = concat!("
        insert into agent_runs (
            id, owner_id, conversation_id, agent_definition_id, position, status, input_message_id,
            output_message_id, archived_to, checkpoint, created_at, stream, traceparent,
            agent_version, queue_round, parent_run_id, parent_call_id, subagent_role, top_run_id,
            depth, needs
        )
        select {uuid:value->>'child_run_id'}, p.owner_id, {uuid:value->>'conversation_id'},
            {uuid:value->>'agent_id'}, 1, 'queued', {uuid:value->>'message_id'},
            {uuid:value->>'output_message_id'}, cast(value->>'queued_id' as bigint),
            cast(value->>'queued_id' as bigint), {now}, p.stream, p.traceparent,
            (
                select version
                from agent_definitions
                where id = {uuid:value->>'agent_id'}
            ),
            ", next_round!("p.owner_id"), ",
            p.id, value->>'call_id', value->>'role', coalesce(p.top_run_id, p.id), p.depth + 1,
            1", from_parents!()),
    /// Stores the children's inputs.
    INSERT_MESSAGES = concat!("
        insert into chat_messages (
            id, conversation_id, owner_id, run_id, position, turn, role, content, status,
            created_at
        )
        select {uuid:value->>'message_id'}, {uuid:value->>'conversation_id'}, p.owner_id,
            {uuid:value->>'child_run_id'}, 1, 1, 'user', value->>'task', 'complete', {now}",
        from_parents!()),
    /// Archives the children's first events.
    INSERT_FIRST_EVENTS = "
        insert into run_events (run_id, last_id, body)
        select {uuid:value->>'child_run_id'}, cast(value->>'queued_id' as bigint),
            {bytes:value->>'queued'}
        from {each:$1}
        where {fenced:cast(value->>'run_id' as uuid)}
    ",
    /// Locks a parent.
    LOCK_PARENT = "
        select conversation_id, status, attempt, archived_to, children_usage, traceparent
        from agent_runs
        where id = $1
        {for update}
    ",
    /// Returns a call that its child has not answered.
    OPEN_CALL = "
        select name, {ms since:created_at}
        from agent_run_tool_calls
        where run_id = $1
          and call_id = $2
          and child_run_id = $3
          and status = 'called'
          and completed_at is null
    ",
    /// Stores the outcome of a call.
    SET_OUTCOME = "
        update agent_run_tool_calls
        set status = $3,
            output = $4,
            error = $5,
            duration_ms = $6,
            completed_at = {now}
        where run_id = $1 and call_id = $2
    ",
    /// Stores the usage of the runs below a run.
    SET_CHILDREN_USAGE = "
        update agent_runs
        set children_usage = $2
        where id = $1
    ",
    /// Takes the parent's next attempt, and queues the parent if it waits for nothing else.
    ANSWER = concat!("
        update agent_runs
        set attempt = $2,
            archived_to = $3,
            checkpoint = $3,
            children_usage = $4,
            attempt_reason = 'resumed',
            status = case when open.question is null then 'queued' else 'waiting' end,
            awaits = open.question
        from (select ", open_question!(), " as question) open
        where id = $1
        returning id, status = 'queued' as queued
    "),
    /// Returns the outcomes that no event has reported.
    UNLOGGED_OUTCOMES = "
        select t.call_id, t.name, t.child_run_id, t.output, t.error, t.duration_ms,
            c.subagent_role as role, c.status, c.usage, c.children_usage
        from agent_run_tool_calls t
        left join agent_runs c on c.id = t.child_run_id
        where t.run_id = $1
          and t.status = 'called'
          and t.child_run_id is not null
          and t.completed_at is not null
        order by t.completed_at, t.step, t.position
    ",
    /// Marks a call whose outcome an event reports.
    SET_LOGGED = "
        update agent_run_tool_calls
        set status = 'completed'
        where run_id = $1 and call_id = $2
    ",
    /// Returns a call of the run that its child has not answered.
    ANY_OPEN_CALL = "
        select call_id
        from agent_run_tool_calls
        where run_id = $1
          and status = 'called'
          and child_run_id is not null
          and completed_at is null
        limit 1
    ",
    /// Returns the live children of a run.
    LIVE_CHILDREN = "
        select id
        from agent_runs
        where parent_run_id = $1 and finished_at is null
    ",
    /// Returns ended runs with live children.
    PARENTS_OF_ORPHANS = "
        select distinct c.parent_run_id
        from agent_runs c
        join agent_runs p on p.id = c.parent_run_id
        where c.parent_run_id is not null
          and c.finished_at is null
          and p.finished_at is not null
        limit $1
    ",
    /// Returns ended children without an outcome in their parents.
    UNANSWERED = "
        select t.child_run_id
        from agent_run_tool_calls t
        join agent_runs c on c.id = t.child_run_id
        where t.child_run_id is not null
          and t.status = 'called'
          and t.completed_at is null
          and c.finished_at is not null
        limit $1
    ",
    /// Returns the end of a child.
    ENDED_CHILD = "
        select r.parent_run_id, r.parent_call_id, r.subagent_role as role, r.status, r.error_code,
            r.error_message, r.usage, r.children_usage, m.content
        from agent_runs r
        left join chat_messages m on m.id = r.output_message_id
        where r.id = $1
          and r.parent_run_id is not null
          and r.finished_at is not null
    ",
}

/// The writes that start children, in this order.
const SPAWNS: [Sql; 4] = [INSERT_CONVERSATIONS, INSERT_RUNS, INSERT_MESSAGES, INSERT_FIRST_EVENTS];

/// Returns the writes that start children, for elements with the `run_id` of their parent.
pub fn spawns(children: Vec<Value>) -> Vec<Statement> {
    if children.is_empty() {
        return Vec::new();
    }
    SPAWNS.map(|sql| Statement::new(sql, args![Value::from(children.clone())])).into()
}

/// The call that a child answers.
#[derive(Debug, Clone)]
pub struct ParentCall {
    /// The parent.
    pub run_id: Uuid,
    /// Its call.
    pub call_id: String,
    /// The child's part.
    pub role: SubagentRole,
}

/// A child's end.
pub struct ChildEnd<'a> {
    /// The child.
    pub run_id: Uuid,
    /// How it ended.
    pub ending: &'a Ending,
    /// Its text.
    pub answer: &'a str,
    /// Its usage, with that of its own children.
    pub usage: Usage,
}

/// Longest output of a child, in bytes. The parent's model reads fewer characters.
const MAX_OUTPUT: usize = 256 * 1024;

#[derive(FromRow)]
struct LockedParent {
    conversation_id: Uuid,
    #[sqlx(try_from = "String")]
    status: RunStatus,
    attempt: i64,
    #[sqlx(try_from = "i64")]
    archived_to: EventId,
    children_usage: Option<Json<Usage>>,
    traceparent: Option<String>,
}

/// Commits a child's end as the outcome of its parent's call. Returns the parent if it was waiting; the caller publishes its
/// events.
pub async fn answer_parent(tx: &mut Tx, call: &ParentCall, child: ChildEnd<'_>) -> Result<Option<AnsweredRun>, Error> {
    let parent = tx.fetch_optional::<LockedParent>(LOCK_PARENT, args![call.run_id]).await?;
    let Some(parent) = parent.filter(|parent| !parent.status.is_terminal()) else { return Ok(None) };
    let open =
        tx.fetch_optional::<(String, i64)>(OPEN_CALL, args![call.run_id, call.call_id.as_str(), child.run_id]).await?;
    let Some((name, duration_ms)) = open else { return Ok(None) };
    let mut total = parent.children_usage.map(|usage| usage.0).unwrap_or_default();
    total += child.usage;
    let outcome = outcome_of(child.ending, &excerpt::bytes(child.answer.to_owned(), MAX_OUTPUT));
    let is_waiting = parent.status == RunStatus::Waiting;
    let args = args![
        call.run_id,
        call.call_id.as_str(),
        if is_waiting { "completed" } else { "called" },
        outcome.as_ref().ok().cloned(),
        outcome.as_ref().err().map(|error| json!(error)),
        duration_ms.max(0)
    ];
    tx.execute(SET_OUTCOME, args).await?;
    if !is_waiting {
        tx.execute(SET_CHILDREN_USAGE, args![call.run_id, json!(total)]).await?;
        return Ok(None);
    }
    let logged = LoggedOutcome {
        call_id: call.call_id.clone(),
        name,
        child_run_id: child.run_id,
        role: call.role,
        status: child.ending.status(),
        outcome,
        usage: child.usage,
        duration_ms: duration_ms.max(0) as u64,
    };
    let attempt = parent.attempt as u32 + 1;
    let events = logged.events(EventId::first_of(attempt), Some(parent.archived_to));
    let chunk = chunk_of(None, &events);
    // Order matters: a second update of the row in this transaction would lock the parent's conversation.
    let fenced = FencedWrites::new(
        Statement::new(ANSWER, args![call.run_id, attempt, chunk.last, json!(total)]),
        writes_of(call.run_id, &chunk),
    );
    let (_, queued) = tx.write_fenced::<(Uuid, bool)>(fenced).await?.into_iter().next().ok_or_else(|| tx.no_row())?;
    Ok(Some(AnsweredRun {
        run_id: call.run_id,
        events,
        queued,
        conversation_id: parent.conversation_id,
        traceparent: traceparent(parent.traceparent),
    }))
}

/// The outcome of a child, for its parent's log.
struct LoggedOutcome {
    call_id: String,
    name: String,
    child_run_id: Uuid,
    role: SubagentRole,
    status: RunStatus,
    outcome: Result<String, ToolError>,
    usage: Usage,
    duration_ms: u64,
}

impl LoggedOutcome {
    /// Returns the two events, from this id on.
    fn events(&self, first: EventId, base: Option<EventId>) -> Vec<Event> {
        let (output, error) = (self.outcome.as_ref().ok(), self.outcome.as_ref().err().cloned());
        let now = Utc::now();
        let completed = EventBody::SubagentCompleted(SubagentCompleted {
            base,
            call_id: self.call_id.as_str().into(),
            child_run_id: self.child_run_id,
            role: self.role,
            status: self.status,
            output: output.map(|output| output.as_str().into()),
            error: error.clone(),
            usage: self.usage,
        });
        let call = EventBody::ToolCallCompleted(ToolCallCompleted {
            base: None,
            call_id: self.call_id.as_str().into(),
            name: self.name.as_str().into(),
            input: None,
            output: output.map(|output| output.as_str().into()),
            error,
            duration_ms: self.duration_ms,
        });
        vec![Event::new(first, now, &completed), Event::new(first.next(), now, &call)]
    }
}

#[derive(FromRow)]
struct UnloggedRow {
    call_id: String,
    name: String,
    child_run_id: Uuid,
    output: Option<String>,
    error: Option<Json<ToolError>>,
    duration_ms: Option<i64>,
    role: Option<String>,
    status: Option<String>,
    usage: Option<Json<Usage>>,
    children_usage: Option<Json<Usage>>,
}

/// Logs the outcomes of children that ended while the run had a worker, in a transaction that has locked the run. Returns
/// their events, from this id on.
pub async fn log_outcomes(tx: &mut Tx, run_id: Uuid, first: EventId) -> Result<Vec<Event>, Error> {
    let rows = tx.fetch_all::<UnloggedRow>(UNLOGGED_OUTCOMES, args![run_id]).await?;
    let (mut events, mut next) = (Vec::new(), first);
    for row in rows {
        tx.execute(SET_LOGGED, args![run_id, row.call_id.as_str()]).await?;
        let usages = [row.usage, row.children_usage].into_iter().flatten().map(|usage| usage.0);
        let outcome = match row.error {
            Some(error) => Err(error.0),
            None => Ok(row.output.unwrap_or_default()),
        };
        let failed_or_completed = if outcome.is_ok() { RunStatus::Completed } else { RunStatus::Failed };
        let logged = LoggedOutcome {
            call_id: row.call_id,
            name: row.name,
            child_run_id: row.child_run_id,
            role: row.role.and_then(|role| role.parse().ok()).unwrap_or_default(),
            status: row.status.and_then(|status| status.parse().ok()).unwrap_or(failed_or_completed),
            outcome,
            usage: usages.sum(),
            duration_ms: row.duration_ms.unwrap_or(0).max(0) as u64,
        };
        events.extend(logged.events(next, None));
        next = next.next().next();
    }
    Ok(events)
}

/// Returns whether a child of the run has no outcome yet, in a transaction that has locked the run.
pub async fn awaits_children(tx: &mut Tx, run_id: Uuid) -> Result<bool, Error> {
    Ok(tx.fetch_optional::<(String,)>(ANY_OPEN_CALL, args![run_id]).await?.is_some())
}

/// Most parents and calls of one sweep.
const BATCH: i64 = 100;

impl Storage {
    /// Cancels the live runs below an ended run, each in a transaction. Returns the ended ones, and the ids of those whose
    /// workers the caller signals.
    pub async fn cancel_children(&self, parent: Uuid) -> Result<(Vec<EndedRun>, Vec<Uuid>), Error> {
        let (mut ended, mut requested, mut parents) = (Vec::new(), Vec::new(), vec![parent]);
        while let Some(parent) = parents.pop() {
            let children =
                self.database.fetch_all::<(Uuid,)>("find the children of a run", LIVE_CHILDREN, args![parent]).await?;
            for (child,) in children {
                match self.cancel_child(child).await? {
                    Some(Some(end)) => {
                        parents.push(child);
                        ended.push(end);
                    }
                    Some(None) => requested.push(child),
                    None => {}
                }
            }
        }
        Ok((ended, requested))
    }

    /// `None` if the child has ended; `Some(None)` if its worker must end it.
    async fn cancel_child(&self, child: Uuid) -> Result<Option<Option<EndedRun>>, Error> {
        let cancel = async |tx: &mut Tx| {
            let Some(run) = lock_run(tx, child).await?.filter(|run| !run.status.is_terminal()) else {
                return Ok(Commit(None));
            };
            if run.status == RunStatus::Running && !run.expired && !run.cancel_overdue {
                request_end(tx, child).await?;
                return Ok(Commit(Some(None)));
            }
            let ended = end_locked(tx, run, &Ending::Cancelled, ApprovalStatus::Cancelled).await?;
            Ok(Commit(Some(Some(ended))))
        };
        self.database.transact("cancel a child of an ended run", cancel).await
    }

    /// Returns ended runs with live children, for the sweeper.
    pub async fn parents_of_orphans(&self) -> Result<Vec<Uuid>, Error> {
        let rows = self
            .database
            .fetch_all::<(Uuid,)>("find live children of ended runs", PARENTS_OF_ORPHANS, args![BATCH])
            .await?;
        Ok(rows.into_iter().map(|row| row.0).collect())
    }

    /// Answers the parents of ended children that an earlier version of this program has ended, which does not answer.
    /// Returns the parents that were waiting.
    pub async fn answer_forgotten(&self) -> Result<Vec<AnsweredRun>, Error> {
        let rows =
            self.database.fetch_all::<(Uuid,)>("find children without an answer", UNANSWERED, args![BATCH]).await?;
        let mut answered = Vec::new();
        for (child,) in rows {
            answered.extend(self.answer_for(child).await?);
        }
        Ok(answered)
    }

    async fn answer_for(&self, child: Uuid) -> Result<Option<AnsweredRun>, Error> {
        let answer = async |tx: &mut Tx| {
            lock_run(tx, child).await?;
            let Some(row) = tx.fetch_optional::<EndedChildRow>(ENDED_CHILD, args![child]).await? else {
                return Ok(RollBack(None));
            };
            let ending = row.ending();
            let call = ParentCall { run_id: row.parent_run_id, call_id: row.parent_call_id, role: row.role };
            let usages = [row.usage, row.children_usage].into_iter().flatten().map(|usage| usage.0);
            let answer = row.content.unwrap_or_default();
            let end = ChildEnd { run_id: child, ending: &ending, answer: &answer, usage: usages.sum() };
            Ok(Commit(answer_parent(tx, &call, end).await?))
        };
        self.database.transact("answer the parent of an ended run", answer).await
    }
}

#[derive(FromRow)]
struct EndedChildRow {
    parent_run_id: Uuid,
    parent_call_id: String,
    #[sqlx(try_from = "String")]
    role: SubagentRole,
    #[sqlx(try_from = "String")]
    status: RunStatus,
    error_code: Option<String>,
    error_message: Option<String>,
    usage: Option<Json<Usage>>,
    children_usage: Option<Json<Usage>>,
    content: Option<String>,
}

impl EndedChildRow {
    fn ending(&self) -> Ending {
        match self.status {
            RunStatus::Completed => Ending::Completed,
            RunStatus::Failed => Ending::Failed(RunError::new(
                self.error_code.clone().unwrap_or_default(),
                self.error_message.clone().unwrap_or_default(),
            )),
            _ => Ending::Cancelled,
        }
    }
}
