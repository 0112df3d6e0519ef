//! Model calls whose answers the user does not see.

use futures::StreamExt;
use holdfast_shared::usage::Usage;

use super::{Stop, attempt::Attempt};
use crate::{
    model::{self, AnswerDelta, ChosenModel, Request},
    spans,
};

/// Asks a model within a span of its own. The newest turn of the user gets the date of the run. Returns the complete text and the usage.
pub async fn ask_aside(
    attempt: &mut Attempt<'_>,
    model: &ChosenModel,
    mut request: Request,
) -> Result<Result<(String, Usage), model::Error>, Stop> {
    request.date_newest(attempt.memory.date.as_ref());
    let mut span = attempt.spans.chat(model);
    let result = read_text(attempt, model, request).await;
    match &result {
        Ok(Ok((_, usage))) => spans::set_usage(&mut span, *usage),
        Ok(Err(error)) => span.fail(error.code()),
        Err(_) => {}
    }
    result
}

async fn read_text(
    attempt: &mut Attempt<'_>,
    model: &ChosenModel,
    request: Request,
) -> Result<Result<(String, Usage), model::Error>, Stop> {
    let mut answer = match attempt.alongside(model.ask(request)).await? {
        Ok(answer) => answer.deltas,
        Err(error) => return Ok(Err(error)),
    };
    let mut text = String::new();
    loop {
        match attempt.alongside(answer.next()).await? {
            Some(Ok(AnswerDelta::Text(piece))) => text.push_str(&piece),
            Some(Ok(AnswerDelta::End(usage, _))) => return Ok(Ok((text, usage))),
            Some(Ok(AnswerDelta::Reasoning(_) | AnswerDelta::Call(_))) => {}
            Some(Err(error)) => return Ok(Err(error)),
            None => return Ok(Ok((String::new(), Usage::default()))),
        }
        if text.len() > attempt.shared.worker.config.max_answer_bytes {
            return Ok(Ok((text, Usage::default())));
        }
    }
}
