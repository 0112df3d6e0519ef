//! Answers to a waiting run: a human's decision, or the result of a tool call that the client executes.

use std::{sync::Arc, time::SystemTime};

use holdfast_shared::{
    approval::Decision,
    excerpt,
    run::Run,
    storage::{AnswerOutcome, AskedRun, ClientResult, DecisionBy},
    telemetry::Traceparent,
};
use uuid::Uuid;

use super::App;
use crate::{auth::Caller, problem::Problem, spans};

/// When an answer arrived, and in which traced request.
struct AnswerOrigin {
    at: SystemTime,
    request: Option<Traceparent>,
}

impl AnswerOrigin {
    fn now() -> Self {
        Self { at: SystemTime::now(), request: spans::of_request() }
    }
}

impl App {
    /// Decides an approval; the first decision counts. Fails if the caller may not decide, or if the approval is not
    /// open.
    pub async fn decide(
        self: &Arc<Self>,
        caller: &Caller,
        run_id: Uuid,
        approval_id: Uuid,
        decision: Decision,
    ) -> Result<Run, Problem> {
        self.check_decision(&decision)?;
        let asked_at = run_id;
        let run_id = self.storage.asking_run(run_id, approval_id).await?.unwrap_or(run_id);
        let (AskedRun { owner, .. }, decides) = self.asked_run(caller, run_id).await?;
        if !decides {
            return Err(Problem::approver_needed(run_id));
        }
        let (app, user, by, origin) = (Arc::clone(self), owner.clone(), caller.owner.clone(), AnswerOrigin::now());
        let check = self.check_edited(&owner, run_id, approval_id, &decision).await?;
        let outcome = self.to_completion(async move {
            let decision = DecisionBy { by: &by, decision: &decision, checked: check };
            let outcome = app.storage.decide(&user, run_id, approval_id, decision).await?;
            Ok(app.publish_answer(outcome, origin))
        });
        let not_found = || Problem::approval_not_found(approval_id, run_id);
        // An approver may not see the run above.
        let answered = if caller.owner == owner { asked_at } else { run_id };
        let run = self.run_after_answer(&owner, answered, outcome.await?, not_found).await?;
        Ok(if caller.owner == owner { run } else { approver_view(run) })
    }

    /// Fails if the reason or the edited arguments are longer than a message may be; this holds on every wire.
    fn check_decision(&self, decision: &Decision) -> Result<(), Problem> {
        let max = self.config.max_content_bytes;
        let (reason, edited) = match decision {
            Decision::Approve { edited_input, reason } => (reason, edited_input.as_ref()),
            Decision::Deny { reason } => (reason, None),
        };
        let bytes = [reason.as_ref().map_or(0, String::len), edited.map_or(0, |input| input.to_string().len())];
        match bytes.into_iter().find(|bytes| *bytes > max) {
            Some(bytes) => Err(Problem::content_too_long(bytes, max)),
            None => Ok(()),
        }
    }

    /// Stores the result of a call that the client has executed; the first result counts. Fails if the call is not
    /// open.
    pub async fn complete_client_call(
        self: &Arc<Self>,
        owner: &str,
        run_id: Uuid,
        call_id: String,
        result: ClientResult,
    ) -> Result<Run, Problem> {
        let result = self.result_to_store(result);
        let (app, user, call, origin) = (Arc::clone(self), owner.to_owned(), call_id.clone(), AnswerOrigin::now());
        let outcome = self.to_completion(async move {
            let outcome = app.storage.complete_client_call(&user, run_id, &call, &result).await?;
            Ok(app.publish_answer(outcome, origin))
        });
        let not_found = || Problem::call_not_found(&call_id, run_id);
        self.run_after_answer(owner, run_id, outcome.await?, not_found).await
    }

    /// Returns as much of a result as a run keeps.
    pub fn result_to_store(&self, result: ClientResult) -> ClientResult {
        let most = self.tools.tool_result_bytes;
        match result {
            ClientResult::Output(output) => ClientResult::Output(excerpt::bytes(output, most)),
            ClientResult::Error(message) => ClientResult::Error(excerpt::bytes(message, most)),
        }
    }

    /// Publishes an accepted answer, and wakes a worker if the run is queued again.
    fn publish_answer(self: &Arc<Self>, outcome: AnswerOutcome, origin: AnswerOrigin) -> AnswerOutcome {
        if let AnswerOutcome::Accepted { run, top } = &outcome {
            spans::answer(run, origin.at, origin.request);
            for answered in [run].into_iter().chain(top) {
                let (app, answered) = (Arc::clone(self), answered.clone());
                self.pending.spawn(async move { app.publish_answered(&answered).await });
            }
        }
        outcome
    }

    /// Returns the run after an answer. Fails if storage refused the answer.
    async fn run_after_answer(
        &self,
        owner: &str,
        run_id: Uuid,
        outcome: AnswerOutcome,
        not_found: impl FnOnce() -> Problem,
    ) -> Result<Run, Problem> {
        match outcome {
            AnswerOutcome::Accepted { .. } => {
                let run = self.storage.run(owner, run_id).await?.ok_or_else(|| Problem::run_not_found(run_id))?;
                spans::concerns(&run);
                Ok(run)
            }
            AnswerOutcome::Decided(first) => Err(Problem::already_decided(*first)),
            AnswerOutcome::Completed => Err(Problem::already_completed(run_id)),
            AnswerOutcome::Expired => Err(Problem::answer_expired(run_id)),
            AnswerOutcome::NotWaiting => Err(Problem::run_not_waiting(run_id)),
            AnswerOutcome::InvalidInput(problem) => Err(Problem::invalid_input(&problem)),
            AnswerOutcome::NotFound => match self.storage.run_without_answer(owner, run_id).await? {
                Some(_) => Err(not_found()),
                None => Err(Problem::run_not_found(run_id)),
            },
        }
    }
}

/// Returns the run as an approver sees it who does not own it: without the owner's metadata, the output and the usage.
fn approver_view(run: Run) -> Run {
    Run { metadata: None, output_message: None, usage: None, total_usage: None, ..run }
}
