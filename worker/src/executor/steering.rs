//! Messages that join the run before a model call.
//!
//! Order matters: the holder takes a message and ends the message's own run in one write, and clients see both after that.

use std::{error::Error, time::Duration};

use futures::future::join_all;
use holdfast_shared::{
    event::{EventBody, MessageSteered},
    storable::storable,
    storage::{NewTraceMessage, Progress, SteeringMessage},
    trace::TraceRole,
};
use tokio::time::timeout;

use super::{Stop, attempt::Attempt};
use crate::{lease::Signal, sweeper::show};

/// Longest look for messages.
const PATIENCE: Duration = Duration::from_secs(1);

/// Takes the messages that wait for this border of a step. Before its first step, a run looks only if a message was waiting
/// at its claim.
pub async fn take_messages(attempt: &mut Attempt<'_>) -> Result<(), Stop> {
    let step = attempt.memory.step;
    if step == 0 && !attempt.claim.is_steered {
        return Ok(());
    }
    let (storage, claim) = (attempt.shared.worker.storage.clone(), attempt.claim);
    // While the database is away, the run continues without the messages, which wait for another border.
    let look = async move { timeout(PATIENCE, storage.steering_messages(claim)).await };
    let messages = match attempt.alongside(look).await? {
        Ok(Ok(messages)) => within_limit(attempt, messages),
        Ok(Err(error)) => {
            tracing::debug!(error = &error as &dyn Error, "failed to look for messages that steer the run");
            return Ok(());
        }
        Err(_) => return Ok(()),
    };
    if messages.is_empty() {
        return Ok(());
    }
    let mut trace = Vec::new();
    for message in &messages {
        // A step of 0 would be the run's own input.
        trace.push(attempt.memory.push(TraceRole::User, storable(message.content.clone()), step.max(1)).clone());
        let body = MessageSteered { base: None, message_id: message.message_id, joined_run_id: None };
        attempt.recorder.emit_on_release(&EventBody::MessageSteered(body));
    }
    let resume_at = Some(attempt.recorder.last());
    let progress = Progress { messages: trace, steering: messages.clone(), resume_at, ..Progress::default() };
    attempt.recorder.note(progress);
    attempt.durable_until(Signal::Yield).await?;
    attempt.recorder.append_deferred();
    let shared = attempt.shared;
    attempt
        .alongside(join_all(messages.iter().map(|message| show(shared, message.own_run_id, &message.events))))
        .await?;
    Ok(())
}

/// Returns whether a message of the trace has joined the run.
pub fn has_joined(message: &NewTraceMessage) -> bool {
    message.role == TraceRole::User && message.step > 0 && !message.is_task()
}

/// Returns the first messages that fit into the run beside those that have joined it before.
fn within_limit(attempt: &Attempt<'_>, mut messages: Vec<SteeringMessage>) -> Vec<SteeringMessage> {
    let joined = attempt.memory.trace.iter().filter(|message| has_joined(message));
    let joined = joined.map(|message| message.content.len());
    let (mut bytes, most) = (joined.sum::<usize>(), attempt.shared.worker.config.max_steering_bytes);
    let fits = |message: &&SteeringMessage| {
        bytes += message.content.len();
        bytes <= most
    };
    let fitting = messages.iter().take_while(fits).count();
    messages.truncate(fitting);
    messages
}
