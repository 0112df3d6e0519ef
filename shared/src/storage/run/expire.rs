//! The expiry of questions: the sweeper answers for the human or the client.

use uuid::Uuid;

use super::{
    ancestor::AnsweredRun,
    answer::{AnswerOutcome, complete_locked, decide_locked, lock, settled},
};
use crate::storage::{
    Error, Storage,
    sql::{Tx, args, statements},
};

/// An open question of a run.
enum OpenQuestion {
    Approval(Uuid),
    Call(String),
}

/// Most questions of one sweep.
const BATCH: i64 = 100;

statements! {
    /// Returns questions that have expired.
    EXPIRED_APPROVALS = "
        select a.id, a.run_id
        from agent_run_approvals a
        join agent_runs r on r.id = a.run_id
        where a.status = 'pending'
          and a.expires_at < {now}
          and r.status = 'waiting'
        limit $1
    ",
    /// Returns calls of clients that have expired.
    EXPIRED_CALLS = "
        select t.call_id, t.run_id
        from agent_run_tool_calls t
        join agent_runs r on r.id = t.run_id
        where t.status = 'client'
          and t.expires_at < {now}
          and r.status = 'waiting'
        limit $1
    ",
}

impl Storage {
    /// Denies the questions and fails the client's calls whose expiry has passed. Returns their runs.
    pub async fn expire_questions(&self) -> Result<Vec<AnsweredRun>, Error> {
        const DOING: &str = "look for questions that have expired";
        let approvals = self.database.fetch_all::<(Uuid, Uuid)>(DOING, EXPIRED_APPROVALS, args![BATCH]);
        let calls = self.database.fetch_all::<(String, Uuid)>(DOING, EXPIRED_CALLS, args![BATCH]);
        let (approvals, calls) = futures::try_join!(approvals, calls)?;
        let mut outcome = Vec::new();
        for (approval_id, run_id) in approvals {
            outcome.push((run_id, self.expire(run_id, OpenQuestion::Approval(approval_id)).await));
        }
        for (call_id, run_id) in calls {
            outcome.push((run_id, self.expire(run_id, OpenQuestion::Call(call_id)).await));
        }
        // A failure for one run must not stop the expiry of the others.
        let accepted = outcome.into_iter().flat_map(|(run_id, outcome)| match outcome {
            Ok(AnswerOutcome::Accepted { run, top }) => [Some(run), top],
            Ok(_) => [None, None],
            Err(error) => {
                tracing::error!(run.id = %run_id, error = &error as &dyn std::error::Error, "failed to expire a question");
                [None, None]
            }
        });
        Ok(accepted.flatten().collect())
    }

    async fn expire(&self, run_id: Uuid, open: OpenQuestion) -> Result<AnswerOutcome, Error> {
        let expire = async |tx: &mut Tx| {
            Ok(settled(match (lock(tx, run_id, None).await?, open) {
                (None, _) => AnswerOutcome::NotFound,
                (Some(run), OpenQuestion::Approval(id)) => decide_locked(tx, run_id, run, id, None).await?,
                (Some(run), OpenQuestion::Call(call_id)) => complete_locked(tx, run_id, run, &call_id, None).await?,
            }))
        };
        self.database.transact("expire a question", expire).await
    }
}
