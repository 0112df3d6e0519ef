//! CLAIM: how a worker gets a run.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::{FromRow, types::Json};
use uuid::Uuid;

use super::{
    abilities::executable,
    attempt_start::{insert_starts, reason},
    claim::{Claim, ClaimTerms, FirstInput, Ingestion},
    clock::DatabaseClock,
};
use crate::storage::{
    Error, Storage,
    rows::traceparent,
    sql::{self, Commit, FencedWrites, Sql, Statement, Tx, args, statements},
};
use crate::{
    event::{AttemptStarted, Event, EventBody},
    event_id::EventId,
    message::{Content, Message, MessageStatus, Role},
    time_zone::RunDate,
};

#[derive(FromRow)]
struct ClaimRow {
    id: Uuid,
    owner_id: String,
    caller_group: Option<String>,
    conversation_id: Uuid,
    attempt: i64,
    output_message_id: Uuid,
    position: i64,
    created_at: DateTime<Utc>,
    due_at: DateTime<Utc>,
    #[sqlx(try_from = "i64")]
    checkpoint: EventId,
    crashes: i64,
    attempt_reason: Option<String>,
    parent_run_id: Option<Uuid>,
    depth: i64,
    is_steered: bool,
    agent_definition_id: Option<Uuid>,
    agent_version: Option<i64>,
    stream: bool,
    max_duration_ms: Option<i64>,
    traceparent: Option<String>,
    time_zone: Option<String>,
    dated_at: DateTime<Utc>,
    worked_ms: i64,
    claimed_at: DateTime<Utc>,
    metadata: Option<Json<Value>>,
    input_message_id: Uuid,
    input_client_id: Option<String>,
    input_content: Option<String>,
    ingests: bool,
    knowledge: Option<Json<Vec<Uuid>>>,
    document_id: Option<Uuid>,
}

/// The rows of a claim, the time of their attempts' start, and the moment of their arrival.
struct TakenRows {
    rows: Vec<ClaimRow>,
    started_at: DateTime<Utc>,
    received_at: Instant,
}

impl ClaimRow {
    /// Returns the input if the run is its conversation's first, and this attempt too, so that nothing is left from before.
    fn first_input(&mut self) -> Option<FirstInput> {
        let content = self.input_content.take().filter(|_| self.attempt == 1)?;
        Some(FirstInput {
            message: Message {
                id: self.input_message_id,
                client_id: self.input_client_id.take(),
                conversation_id: self.conversation_id,
                run_id: Some(self.id),
                given: false,
                role: Role::User,
                content: Content::Text(content),
                attachments: Vec::new(),
                status: MessageStatus::Complete,
                finish_reason: None,
                retrieval_context: None,
                superseded_at: None,
                version: None,
                created_at: self.created_at,
            },
            metadata: self.metadata.take().map(|metadata| metadata.0),
        })
    }

    /// Returns the claim of an attempt that started at this time.
    fn claim(
        mut self,
        max_crashes: u32,
        started_at: DateTime<Utc>,
        asked_at: SystemTime,
        clock: DatabaseClock,
    ) -> Claim {
        let first_input = self.first_input().map(Arc::new);
        let attempt = self.attempt as u32;
        let reason = reason(self.attempt_reason.as_deref());
        let (base, crashes) = (self.checkpoint, self.crashes as u32);
        let start = AttemptStarted { attempt, base, reason, crashes, max_crashes };
        Claim {
            run_id: self.id,
            owner_id: self.owner_id,
            caller_group: self.caller_group,
            conversation_id: self.conversation_id,
            attempt,
            output_message_id: self.output_message_id,
            position: self.position,
            created_at: self.created_at,
            due_at: self.due_at,
            is_child: self.parent_run_id.is_some(),
            is_steered: self.is_steered,
            depth: self.depth.max(0) as u32,
            agent: self.agent_definition_id.zip(self.agent_version.map(|version| version as u32)),
            stream: self.stream,
            max_silence: self.max_duration_ms.map(|limit| Duration::from_millis(limit.max(0) as u64)),
            checkpoint: self.checkpoint,
            reason,
            worked: Duration::from_millis(self.worked_ms.max(0) as u64),
            date: RunDate::of_row(self.dated_at, self.time_zone.as_deref()),
            traceparent: traceparent(self.traceparent),
            asked_at,
            clock,
            started: Event::new(EventId::first_of(attempt), started_at, &EventBody::AttemptStarted(start)),
            first_input,
            ingestion: self.ingests.then_some(Ingestion { document_id: self.document_id }),
            knowledge: self.knowledge.map(|knowledge| knowledge.0).unwrap_or_default(),
            place: None,
        }
    }
}

/// Claims the candidates that `$cte` selects. `archived_to` becomes `<attempt>-1`.
///
/// - `$1` holder, `$2` lease in ms, `$3` limit
/// - `$4` the crashes at which a run fails, `$5` the crashes from which it is a suspect
macro_rules! take {
    ($cte:expr) => {
        concat!(
            "
        with candidates as materialized (",
            $cte,
            "
            limit $3
            {skip locked}
        )
        update agent_runs
        set status = 'running',
            attempt = attempt + 1,
            archived_to = (attempt + 1) * 4294967296 + 1,
            holder = $1,
            lease_until = {after:$2},
            executing = true,
            started_at = coalesce(started_at, {now}),
            dated_at = case
                when waiting_since is null then coalesce(dated_at, {now})
                else {now}
            end,
            attempt_reason = case
                when status = 'running' then 'lease_expired'
                else attempt_reason
            end,
            waited_ms = waited_ms + coalesce({ms since:waiting_since}, 0),
            waiting_since = null
        from candidates
        where agent_runs.id {is:candidates.candidate_id}
        returning agent_runs.id, owner_id, caller_group, conversation_id, attempt,
            output_message_id, position, created_at, coalesce(not_before, created_at) as due_at,
            checkpoint, crashes, attempt_reason, parent_run_id, depth, agent_definition_id,
            agent_version, stream, max_duration_ms, traceparent, time_zone, dated_at,
            {ms since:started_at} - waited_ms as worked_ms,
            {now} as claimed_at, input_message_id,
            case
                when position = 1
                then (select m.client_id from chat_messages m where m.id = input_message_id)
            end as input_client_id,
            exists (
                select 1
                from agent_runs steering
                where steering.conversation_id = agent_runs.conversation_id
                  and steering.steers
                  and steering.status in ('queued', 'running', 'waiting')
                  and coalesce(steering.status, '') = 'queued'
                  and steering.position > agent_runs.position
            ) as is_steered,
            case when position = 1 then metadata end as metadata,
            case
                when position = 1 and client_tools is null
                then (
                    select m.content
                    from chat_messages m
                    where m.id = input_message_id
                      and octet_length(m.content) <= 16384
                      and m.attachments is null
                )
            end as input_content,
            knowledge, ingests,
            case
                when ingests
                then (
                    select d.id
                    from documents d
                    where d.conversation_id = agent_runs.conversation_id and d.deleted_at is null
                )
            end as document_id"
        )
    };
}

pub(in crate::storage) use take;

statements! {
    /// Claims runs of dead workers, without suspects.
    TAKE_EXPIRED = take!(concat!("
        select r.id as candidate_id
        from agent_runs r
        where r.status = 'running'
          and r.lease_until < {now}
          and r.holder is null
          and r.cancel_requested_at is null
          and r.crashes < $5
          and r.crashes < $4
          and ", executable!("r"), "
        order by r.lease_until
    ")),
}

impl Storage {
    /// Claims up to `limit` runs of dead workers, without suspects.
    pub async fn claim_expired(&self, terms: &ClaimTerms, limit: usize) -> Result<Vec<Claim>, Error> {
        self.settle_deaths(terms).await?;
        self.take("claim runs whose lease has expired", TAKE_EXPIRED, terms, limit).await
    }

    /// Claims the candidates of a statement without further parameters.
    pub async fn take(
        &self,
        doing: &'static str,
        sql: Sql,
        terms: &ClaimTerms,
        limit: usize,
    ) -> Result<Vec<Claim>, Error> {
        let args = args![terms.holder.as_str(), terms.lease, limit, terms.max_crashes, terms.suspicious()];
        self.take_with(doing, sql, args, terms.max_crashes).await
    }

    /// Claims the candidates with more parameters, from `$6` on.
    pub async fn take_with(
        &self,
        doing: &'static str,
        sql: Sql,
        args: Vec<sql::Value>,
        max_crashes: usize,
    ) -> Result<Vec<Claim>, Error> {
        let (asked_at, max_crashes) = (SystemTime::now(), max_crashes as u32);
        let taken = if self.database.is_postgres() {
            let started_at = Utc::now();
            let starts = vec![insert_starts(started_at, max_crashes, None)];
            let take = FencedWrites::new(Statement::new(sql, args), starts);
            let rows = self.database.write_fenced(doing, take).await?;
            TakenRows { rows, started_at, received_at: Instant::now() }
        } else {
            let take = async |tx: &mut Tx| {
                let rows = tx.fetch_all::<ClaimRow>(sql, args).await?;
                let taken = TakenRows { rows, started_at: Utc::now(), received_at: Instant::now() };
                if !taken.rows.is_empty() {
                    let ids = taken.rows.iter().map(|row| row.id).collect();
                    let (sql, args) = insert_starts(taken.started_at, max_crashes, Some(ids)).into_parts();
                    tx.execute(sql, args).await?;
                }
                Ok(Commit(taken))
            };
            self.database.transact(doing, take).await?
        };
        let TakenRows { rows, started_at, received_at } = taken;
        let claim = |row: ClaimRow| {
            let clock = DatabaseClock::received(row.claimed_at, received_at);
            row.claim(max_crashes, started_at, asked_at, clock)
        };
        Ok(rows.into_iter().map(claim).collect())
    }
}
