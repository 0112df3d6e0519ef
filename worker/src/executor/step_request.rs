//! The request of a step: its files and results are loaded, and a provider that has refused longer requests gets a shorter one.

use super::{Stop, attachments, attempt::Attempt, budget, context, knowledge, recovery, results, tool_choice};
use crate::model::Request;

/// Returns the request, within the length that the model's provider is known to take. `limit` is the reason why the model gets no
/// tools, if there is one.
pub async fn fitting(attempt: &mut Attempt<'_>, limit: Option<&str>) -> Result<Box<Request>, Stop> {
    let request = build(attempt, limit).await?;
    let model = attempt.model_of_step().choice().path();
    let Some(room) = attempt.shared.refusals.room(&attempt.claim.owner_id, &model) else { return Ok(request) };
    let excess = request.tokens().saturating_sub(room);
    if excess == 0 || !recovery::shorten(attempt, excess) {
        return Ok(request);
    }
    build(attempt, limit).await
}

/// Returns the request as the run's memory has it.
pub async fn build(attempt: &mut Attempt<'_>, limit: Option<&str>) -> Result<Box<Request>, Stop> {
    attachments::load(attempt).await?;
    results::load(attempt).await?;
    let tools = if limit.is_some() { Vec::new() } else { attempt.tool_specs() };
    let of_servers = attempt.toolbox.instructions(&attempt.definition).into_iter();
    let briefing = of_servers.chain(attempt.briefing()).chain(knowledge::briefing(attempt)).collect();
    let passages = knowledge::shown_with_input(attempt);
    let (definition, memory) = (&attempt.definition, &attempt.memory);
    let mut request = context::request(definition, memory, passages, briefing, tools, limit);
    if limit.is_none() {
        tool_choice::apply(attempt, &mut request)?;
    }
    request.form = attempt.answer_form();
    request.sampling = attempt.memory.sampling;
    request.context_tokens = Some(attempt.budget.saturating_mul(budget::WINDOW_SHARE));
    Ok(Box::new(request))
}
