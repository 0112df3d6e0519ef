//! Posting a message: its checks, its admissions in order, and the refusals of its transaction.

use std::sync::Arc;

use holdfast_shared::{
    conversation::Handle,
    event::Event,
    file::UserContent,
    storage::{NewRun, SubmitOutcome, Target},
};
use uuid::Uuid;

use super::{App, PostedMessage};
use crate::{auth::Caller, problem::Problem, spans};

impl App {
    /// Commits a message with its run. Returns the run's first event too, unless an earlier request has committed it.
    pub(super) async fn submit(
        self: &Arc<Self>,
        caller: &Caller,
        new: NewRun,
    ) -> Result<(PostedMessage, Option<Event>), Problem> {
        if let Some(content) = new.input.content() {
            self.check_content(content)?;
        }
        // Order matters: all admissions precede the first write.
        if let Some(repeated) = self.repeated(caller, &new).await? {
            return Ok((repeated, None));
        }
        self.anonymous_limits.admit(caller).await?;
        self.anonymous_limits.admit_bytes(caller, new.bytes_with_given()).await?;
        self.anonymous_activity.note_write(caller).await?;
        self.expect_access_to(caller, &new.target).await?;
        // The worker decides for the models of a profile.
        if let Some(content) = new.input.content()
            && new.options.overrides.profile.is_none()
        {
            self.expect_taken(caller, &new.target, content).await?;
        }
        self.compile_client_tools(caller, &new.options.client_tools).await?;
        let (app, user, request) = (Arc::clone(self), caller.owner.clone(), Refused::of(&new));
        let submitted = self.to_completion(async move {
            let span = spans::submit(new.traceparent, new.run_id);
            let submitted = app.storage.submit(&user, &app.quotas, &new).await?;
            drop(span);
            Ok(match submitted {
                // The message is committed here, so a later failure costs only time.
                SubmitOutcome::Accepted(accepted) => {
                    app.wake();
                    app.relay.arrivals().announce(accepted.conversation.id);
                    app.follow_up(accepted.ended, accepted.cancel_requested);
                    let (conversation, message, run) = (accepted.conversation, accepted.message, accepted.run);
                    Ok((PostedMessage { conversation, message, run }, Some(accepted.queued)))
                }
                SubmitOutcome::Repeated(repeated) => {
                    let (conversation, message, run) = *repeated;
                    Ok((PostedMessage { conversation, message, run }, None))
                }
                refused => Err(refused),
            })
        });
        let submitted = submitted.await?.inspect(|(posted, _)| spans::concerns(&posted.run));
        submitted.map_err(|outcome| request.problem(&outcome, self.config.max_metadata_bytes))
    }

    /// Returns what an anonymous caller's earlier request with this key has committed. A repeated request stores nothing, so no
    /// limit refuses it.
    async fn repeated(&self, caller: &Caller, new: &NewRun) -> Result<Option<PostedMessage>, Problem> {
        let Some(key) = new.key.as_ref().filter(|_| caller.is_unnamed) else { return Ok(None) };
        match self.storage.repeated(&caller.owner, key).await? {
            Some(SubmitOutcome::Repeated(repeated)) => {
                let (conversation, message, run) = *repeated;
                spans::concerns(&run);
                Ok(Some(PostedMessage { conversation, message, run }))
            }
            Some(_) => Err(Problem::key_reused()),
            None => Ok(None),
        }
    }

    /// Fails if a message is empty, too long, or no text that a database can store.
    pub(super) fn check_content(&self, content: &UserContent) -> Result<(), Problem> {
        let UserContent { text: content, attachments, .. } = content;
        if content.trim().is_empty() && attachments.is_empty() {
            return Err(Problem::empty_content());
        }
        if content.contains('\0') {
            return Err(Problem::invalid_content());
        }
        if content.len() > self.config.max_content_bytes {
            return Err(Problem::content_too_long(content.len(), self.config.max_content_bytes));
        }
        Ok(())
    }
}

/// The names in the problem of a refused message.
pub(super) struct Refused {
    conversation: String,
    replaced: Uuid,
    agent: Uuid,
    max_unfinished: usize,
}

impl Refused {
    pub(super) fn of(new: &NewRun) -> Self {
        Self {
            conversation: conversation_label(&new.target),
            replaced: new.input.replace_from().unwrap_or_default(),
            agent: agent_of(&new.target),
            max_unfinished: new.max_unfinished,
        }
    }

    pub(super) fn problem(self, outcome: &SubmitOutcome, max_metadata_bytes: usize) -> Problem {
        let Self { conversation, replaced, agent, max_unfinished } = self;
        match outcome {
            SubmitOutcome::KeyReused => Problem::key_reused(),
            SubmitOutcome::Busy => Problem::conversation_busy(conversation),
            SubmitOutcome::TooMany => Problem::too_many_queued(conversation, max_unfinished),
            SubmitOutcome::TooManyRuns(max) => Problem::too_many_runs(*max),
            SubmitOutcome::QuotaExceeded(max) => Problem::quota_exceeded(*max),
            SubmitOutcome::MetadataTooLarge => Problem::invalid_metadata(max_metadata_bytes),
            SubmitOutcome::MessageNotFound => Problem::message_not_found(replaced, &conversation),
            SubmitOutcome::MessageExists => Problem::message_exists(&conversation),
            SubmitOutcome::NothingToAnswer => Problem::nothing_to_answer(replaced),
            SubmitOutcome::AgentNotFound => Problem::agent_not_found(agent),
            SubmitOutcome::Accepted(_) | SubmitOutcome::Repeated(_) | SubmitOutcome::ConversationNotFound => {
                Problem::conversation_not_found(conversation)
            }
        }
    }
}

/// Returns the client's name for the conversation of a request, for error texts and fingerprints.
pub fn conversation_label(target: &Target) -> String {
    match target {
        Target::Existing(id) => id.to_string(),
        Target::Named { handle: Handle::Session(name), .. } => format!("of session {name}"),
        Target::Named { handle: Handle::Chat(name), .. } => name.clone(),
        Target::Named { handle: Handle::Agent(id), .. } => format!("with agent {id}"),
        Target::New { .. } => String::new(),
    }
}

pub(super) fn agent_of(target: &Target) -> Uuid {
    match target {
        Target::Existing(_) => Uuid::nil(),
        Target::Named { agent_id, .. } | Target::New { agent_id } => agent_id.unwrap_or_default(),
    }
}
