//! LEAVE: how the holder of a claim releases its run, for another worker or for an answer.

use std::time::Duration;

use chrono::Utc;
use uuid::Uuid;

use super::{
    ArchiveChunk, Claim,
    ancestor::AnsweredRun,
    chunk::{chunk_of, writes_of},
    flush::{lock, log_refused_checkpoint},
    forwarded::{ask_at_top, new_questions},
    outcomes::{awaits_children, log_outcomes},
    planning::awaits_edits,
    tree::{RefusedChild, fit},
};
use crate::{
    event::Event,
    event_id::EventId,
    storage::{
        Error, Storage,
        sql::{Commit, FencedWrites, RollBack, Spare, Statement, Tx, args, statements},
    },
};

/// The state of a run after its holder releases it without an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// The run returns to the queue, and another worker resumes it.
    Queued,
    /// The run returns to the queue, where no claim looks before this time has passed.
    Later(Duration),
    /// The run waits for a human or a client, and no worker holds it.
    Waiting,
    /// The run waits for its children, and no worker holds it. It returns to the queue if all of them have ended.
    WaitingForChildren,
}

/// The outcome of a release.
#[derive(Debug, Clone)]
pub enum ReleaseOutcome {
    /// The holder has released the run.
    Released {
        /// The outcomes of children that ended meanwhile, and the questions of runs below. The caller publishes these events,
        /// because they are committed.
        events: Vec<Event>,
        /// The top run with this run's questions, if it waits. The caller publishes it.
        asked: Option<AnsweredRun>,
        /// True if a worker can claim the run now.
        queued: bool,
    },
    /// A cancel was requested, so the holder must finish the run as cancelled.
    CancelRequested,
    /// Another attempt holds the run, or it has ended.
    Fenced,
}

statements! {
    /// Releases a locked run for another worker, or for an answer.
    RELEASE = "
        update agent_runs
        set status = $3,
            attempt_reason = coalesce($9, attempt_reason),
            waiting_since = case when $3 = 'waiting' then {now} end,
            awaits = $10,
            holder = null,
            lease_until = null,
            executing = false,
            archived_to = $2,
            checkpoint = coalesce($4, checkpoint),
            usage = coalesce($5, usage),
            finish_reason = coalesce($7, finish_reason),
            model = coalesce($8, model),
            crashes = case when $6 then 0 else crashes end,
            probation = case when $6 then null else probation end,
            not_before = coalesce({after:$11}, not_before),
            priority = case when $11 is not null then -2 else priority end
        where id = $1
        returning id, top_run_id
    ",
}

impl Storage {
    /// Releases the run without charging a crash. Streamed events stay readable, and the next attempt resumes from the
    /// checkpoint.
    pub async fn release(
        &self,
        claim: &Claim,
        tail: Option<&ArchiveChunk>,
        last: EventId,
        release: Release,
    ) -> Result<ReleaseOutcome, Error> {
        let doing = match release {
            Release::Queued => "hand a run over",
            Release::Later(_) => "put a run off",
            Release::Waiting => "let a run wait for an answer",
            Release::WaitingForChildren => "let a run wait for its children",
        };
        let released = match self.try_release(doing, claim, tail, last, release, Spare::Together).await {
            Err(error) if error.refuses_row() && tail.is_some() => {
                self.try_release(doing, claim, tail, last, release, Spare::Apart).await
            }
            outcome => outcome,
        };
        match released? {
            Some(outcome) => Ok(outcome),
            // An earlier call has released the run, and its answer was lost.
            None => {
                let events = self.events_after(claim.run_id, last).await?;
                Ok(ReleaseOutcome::Released { events, asked: None, queued: true })
            }
        }
    }

    /// `None` if an earlier call has released the run.
    async fn try_release(
        &self,
        doing: &'static str,
        claim: &Claim,
        tail: Option<&ArchiveChunk>,
        last: EventId,
        release: Release,
        spare: Spare,
    ) -> Result<Option<ReleaseOutcome>, Error> {
        let try_release = async |tx: &mut Tx| {
            match lock(tx, claim.run_id).await? {
                Some(row) if row.is_mine(claim) && row.cancel_requested => {
                    return Ok(RollBack(Some(ReleaseOutcome::CancelRequested)));
                }
                Some(row) if row.is_mine(claim) => {}
                Some(row) if !row.status.is_terminal() && row.has_written(claim, last) => return Ok(RollBack(None)),
                _ => return Ok(RollBack(Some(ReleaseOutcome::Fenced))),
            }
            let (fitting, refused) = match tail {
                Some(tail) => fit(tx, claim.run_id, tail).await.map(|(tail, refused)| (Some(tail), refused))?,
                None => (None, Vec::new()),
            };
            let tail = fitting.as_deref();
            // Only a run that waits logs the outcomes of its children; another attempt does so otherwise.
            let logs_outcomes = matches!(release, Release::Waiting | Release::WaitingForChildren);
            let mut events = Vec::new();
            let (mut is_asked, mut has_plan_work) = (false, false);
            if logs_outcomes {
                let logged = log_outcomes(tx, claim.run_id, last.next()).await?;
                (events, has_plan_work) = (logged.events, logged.for_plan);
                for outcome in refused.iter().map(RefusedChild::outcome) {
                    let next = events.last().map_or(last, |event| event.id).next();
                    events.extend(Event::sequence(next, Utc::now(), &outcome.bodies(None)));
                    has_plan_work |= outcome.is_for_plan();
                }
                let questions = new_questions(tx, claim.run_id).await?;
                is_asked = !questions.is_empty();
                let next = events.last().map_or(last, |event| event.id).next();
                events.extend(Event::sequence(next, Utc::now(), &questions));
            }
            let taken = tail.map_or(0, |tail| tail.progress.taken_edits.len());
            let is_edited = release == Release::WaitingForChildren && awaits_edits(tx, claim.run_id, taken).await?;
            let starts_children = tail.is_some_and(|tail| !tail.progress.children.is_empty());
            let awaits = match release {
                Release::Queued | Release::Later(_) => None,
                Release::Waiting => Some("human"),
                Release::WaitingForChildren if is_asked => Some("human"),
                // A plan continues as soon as one of its steps has ended.
                Release::WaitingForChildren if has_plan_work || is_edited => None,
                Release::WaitingForChildren if starts_children => Some("children"),
                Release::WaitingForChildren => awaits_children(tx, claim.run_id).await?.then_some("children"),
            };
            let chunk = if events.is_empty() { tail.cloned() } else { Some(chunk_of(tail, &events)) };
            let progress = chunk.as_ref().map(|chunk| chunk.progress.clone()).unwrap_or_default();
            let outcome = events.last().map(|event| event.id);
            let args = args![
                claim.run_id,
                outcome.unwrap_or(last),
                if awaits.is_some() { "waiting" } else { "queued" },
                outcome.or(progress.resume_at).map(EventId::packed),
                progress.usage_json(),
                progress.step_completed,
                progress.finish_text(),
                progress.model.clone(),
                match release {
                    Release::Queued => Some("drain".to_owned()),
                    Release::Later(_) => Some("resumed".to_owned()),
                    Release::WaitingForChildren if awaits.is_none() => Some("resumed".to_owned()),
                    _ => None,
                },
                awaits.map(str::to_owned),
                match release {
                    Release::Later(pause) => Some(pause.as_millis() as i64),
                    _ => None,
                }
            ];
            let writes = chunk.as_ref().map(|chunk| writes_of(claim.run_id, chunk)).unwrap_or_default();
            let fenced = FencedWrites::new(Statement::new(RELEASE, args), writes);
            let written = tx.write_spares::<(Uuid, Option<Uuid>)>(fenced, spare).await?;
            if let Some(refusal) = &written.refused {
                log_refused_checkpoint(claim.run_id, refusal);
            }
            for child in &refused {
                child.store(tx, claim.run_id, logs_outcomes).await?;
            }
            let asked = match written.rows.first() {
                Some((_, Some(top))) if release == Release::Waiting => ask_at_top(tx, *top).await?,
                _ => None,
            };
            Ok(Commit(Some(ReleaseOutcome::Released {
                events,
                asked,
                queued: awaits.is_none() && !matches!(release, Release::Later(_)),
            })))
        };
        self.database.transact(doing, try_release).await
    }
}
