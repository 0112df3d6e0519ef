//! The answer: every delta of the model becomes one event.

use futures::StreamExt;
use holdfast_shared::{
    event::EventBody,
    run::{RunError, storable},
    storage::Claim,
    usage::Usage,
};

use super::{Stop, age};
use crate::{
    Shared,
    lease::Lease,
    model::{self, Delta, Request},
    recorder::Recorder,
};

/// Asks the model and records its answer, delta by delta, never merged.
pub async fn respond(
    shared: &Shared,
    claim: &Claim,
    lease: &mut Lease,
    recorder: &mut Recorder,
    request: &Request,
) -> Result<Usage, Stop> {
    let mut answer = {
        let chosen = shared.worker.models.get(None).map_err(not_connected)?;
        let asked = chosen.model.ask(request);
        tokio::select! {
            answer = recorder.alongside(asked) => answer?.map_err(failed)?,
            signal = lease.signalled() => return Err(signal.into()),
        }
    };
    let mut first = true;
    let mut room = shared.worker.config.max_answer_bytes;
    loop {
        let delta = tokio::select! {
            biased;
            signal = lease.signalled() => return Err(signal.into()),
            delta = recorder.alongside_with_room(answer.next()) => delta?,
        };
        let message_id = claim.output_message_id;
        let body = match delta {
            Some(Ok(Delta::Text(text) | Delta::Reasoning(text))) if text.len() > room => return Err(too_long(shared)),
            Some(Ok(Delta::Text(text))) => {
                room -= text.len();
                EventBody::MessageDelta { message_id, text: storable(text) }
            }
            Some(Ok(Delta::Reasoning(text))) => {
                room -= text.len();
                EventBody::ReasoningDelta { message_id, text: storable(text) }
            }
            // No tools were offered, so there is nothing to be done about a call.
            Some(Ok(Delta::Call(_))) => continue,
            Some(Ok(Delta::End(usage))) => return Ok(usage),
            Some(Err(error)) => return Err(failed(error)),
            None => {
                return Err(Stop::Failed(RunError::new(
                    "model_broken_stream",
                    "the model's answer broke off without an end",
                )));
            }
        };
        if std::mem::take(&mut first) {
            metrics::histogram!("holdfast_first_token_seconds").record(age(claim).as_secs_f64());
        }
        recorder.emit(&body);
    }
}

fn too_long(shared: &Shared) -> Stop {
    let limit = shared.worker.config.max_answer_bytes;
    let message = format!(
        "the model's answer has more than the {limit} bytes that HOLDFAST_MAX_ANSWER_BYTES allows; what came before is kept"
    );
    Stop::Failed(RunError::new("answer_too_long", message))
}

pub(super) fn not_connected(error: model::ConnectError) -> Stop {
    Stop::Failed(RunError::new("model_not_configured", error.to_string()))
}

fn failed(error: model::Error) -> Stop {
    Stop::Failed(RunError::new(error.code(), error.to_string()))
}
