//! Model calls whose answers the user does not see.

use futures::StreamExt;
use holdfast_shared::usage::Usage;

use super::{Stop, attempt::Attempt};
use crate::{
    model::{self, AnswerDelta, ChosenModel, Request},
    signs_of_life::SignsOfLife,
    spans::{self, Spans},
};

/// Asks a model within a span of its own. The newest turn of the user gets the date of the run. Returns the complete text and the usage.
pub async fn ask_aside(
    attempt: &mut Attempt<'_>,
    model: &ChosenModel,
    mut request: Request,
) -> Result<Result<(String, Usage), model::Error>, Stop> {
    request.date_newest(attempt.memory.date.as_ref());
    let (spans, most_bytes) = (attempt.spans, attempt.shared.worker.config.max_answer_bytes);
    let signs = attempt.signs_of_life.clone();
    attempt.alongside(ask_for_text(model, request, spans, most_bytes, &signs)).await
}

/// Asks a model within a span of its own. Returns the text, up to about so many bytes, and the usage. Each delta is a sign of life.
pub async fn ask_for_text(
    model: &ChosenModel,
    request: Request,
    spans: Spans,
    most_bytes: usize,
    signs: &SignsOfLife,
) -> Result<(String, Usage), model::Error> {
    let mut span = spans.chat(model);
    let result = read_text(model, request, most_bytes, signs).await;
    match &result {
        Ok((_, usage)) => spans::set_usage(&mut span, *usage),
        Err(error) => span.fail(error.code()),
    }
    result
}

async fn read_text(
    model: &ChosenModel,
    request: Request,
    most_bytes: usize,
    signs: &SignsOfLife,
) -> Result<(String, Usage), model::Error> {
    let mut answer = model.ask(request).await?.deltas;
    let mut text = String::new();
    loop {
        let delta = answer.next().await;
        signs.note();
        match delta {
            Some(Ok(AnswerDelta::Text(piece))) => text.push_str(&piece),
            Some(Ok(AnswerDelta::End(usage, _))) => return Ok((text, usage)),
            Some(Ok(AnswerDelta::Reasoning(_) | AnswerDelta::Call(_) | AnswerDelta::Picture)) => {}
            Some(Err(error)) => return Err(error),
            None => return Ok((String::new(), Usage::default())),
        }
        if text.len() > most_bytes {
            return Ok((text, Usage::default()));
        }
    }
}
