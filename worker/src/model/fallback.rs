//! The model of a run, and the models that the worker asks instead while one does not answer.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use holdfast_shared::{agent::ModelOptions, config::ModelChoice};

use super::{AnswerStream, Error, Model, Request};

/// A model that can be asked, with its options.
#[derive(Clone)]
pub(super) struct Candidate {
    pub model: Arc<dyn Model>,
    pub choice: ModelChoice,
    pub options: ModelOptions,
}

/// The model of a run, with its fallback.
#[derive(Clone)]
pub struct ChosenModel {
    pub(super) first: Candidate,
    fallback: Arc<[Candidate]>,
}

/// The beginning of an answer, and the model that gives it.
pub struct ModelAnswer {
    pub by: ModelChoice,
    pub deltas: AnswerStream,
}

impl ChosenModel {
    pub(super) fn new(first: Candidate, fallback: Vec<Candidate>) -> Self {
        Self { first, fallback: fallback.into() }
    }

    /// Returns the provider and the name of the first model.
    pub fn choice(&self) -> &ModelChoice {
        &self.first.choice
    }

    /// Returns the same models without the options of the agent and its profile, for another task.
    pub fn without_options(&self) -> Self {
        let plain = |candidate: &Candidate| Candidate { options: ModelOptions::default(), ..candidate.clone() };
        Self { first: plain(&self.first), fallback: self.fallback.iter().map(plain).collect() }
    }

    /// Requests one answer, and from the next model if one does not begin to answer. The future resolves with the first
    /// delta. Dropping it, or the stream, cancels the request.
    pub fn ask(&self, mut request: Request) -> BoxFuture<'static, Result<ModelAnswer, Error>> {
        let Self { first, fallback } = self.clone();
        async move {
            let mut others = fallback.iter();
            let mut candidate = &first;
            loop {
                request.options = candidate.options.clone();
                let error = match candidate.model.ask(&request).await {
                    Ok(deltas) => return Ok(ModelAnswer { by: candidate.choice.clone(), deltas }),
                    Err(error) => error,
                };
                let next = others.next().filter(|_| error.lets_another_model_answer());
                candidate = next.ok_or(error)?;
                metrics::counter!("holdfast_model_fallbacks_total", "provider" => candidate.choice.provider.to_string())
                    .increment(1);
                tracing::warn!(
                    model = candidate.choice.path(),
                    "the model before does not answer; asking the next one"
                );
            }
        }
        .boxed()
    }
}
