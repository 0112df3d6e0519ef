//! The model of a run, and the models that the worker asks instead while one does not answer.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use holdfast_shared::{
    agent::ModelOptions,
    config::{ModelChoice, ModelFileKind},
};

use super::{AnswerStream, Error, Model, ModelFile, Request, Turn, tool_names::ReplacedNames};

/// Most tokens of an answer that shows whether a model answers at all. Some providers take no lower limit.
const TRIAL_TOKENS: u32 = 16;

/// A model that can be asked, with its options.
#[derive(Clone)]
pub(super) struct Candidate {
    pub model: Arc<dyn Model>,
    pub choice: ModelChoice,
    pub options: ModelOptions,
    /// Tokens that the model can read and write in one request.
    pub context_window: u32,
}

/// The model of a run, with its fallback.
#[derive(Clone)]
pub struct ChosenModel {
    pub(super) first: Candidate,
    fallback: Arc<[Candidate]>,
    file_kinds: Arc<[ModelFileKind]>,
}

/// The beginning of an answer, and the model that gives it.
pub struct ModelAnswer {
    pub by: ModelChoice,
    pub deltas: AnswerStream,
    /// Names of the tools that the model does not know, because it takes no more.
    pub left_out_tools: Vec<String>,
}

impl ChosenModel {
    /// `file_kinds` is the setting of the files that models take.
    pub(super) fn new(first: Candidate, fallback: Vec<Candidate>, file_kinds: Arc<[ModelFileKind]>) -> Self {
        Self { first, fallback: fallback.into(), file_kinds }
    }

    /// Returns the provider and the name of the first model.
    pub fn choice(&self) -> &ModelChoice {
        &self.first.choice
    }

    /// Returns the tokens that the first model can read and write in one request, as far as the server knows.
    pub fn context_window(&self) -> u32 {
        self.first.context_window
    }

    /// Returns whether the first model takes files of this media type.
    pub fn takes(&self, media_type: &str) -> bool {
        self.first.choice.takes(&self.file_kinds, media_type)
    }

    /// Returns the same models without the options of the agent and its profile, for another task.
    pub fn without_options(&self) -> Self {
        let plain = |candidate: &Candidate| Candidate { options: ModelOptions::default(), ..candidate.clone() };
        let fallback = self.fallback.iter().map(plain).collect();
        Self { first: plain(&self.first), fallback, file_kinds: Arc::clone(&self.file_kinds) }
    }

    /// Requests one answer, and from the next model if one does not begin to answer. The future resolves with the first
    /// delta. Dropping it, or the stream, cancels the request.
    ///
    /// The request has the files that the first model takes. A model of the fallback that does not take a file of the message is
    /// left out; of other files, it gets the lines.
    pub fn ask(&self, request: Request) -> BoxFuture<'static, Result<ModelAnswer, Error>> {
        let Self { first, fallback, file_kinds } = self.clone();
        async move {
            let mut others = fallback.iter();
            let mut candidate = &first;
            let mut untaken = None;
            loop {
                let error = match candidate.ask(&request, &file_kinds).await {
                    Ok(answer) => return Ok(answer),
                    Err(error) if error.lets_another_model_answer() => error,
                    Err(error) => return Err(error),
                };
                let next = others.find(|other| {
                    let file = request.untaken_file(other.takes(&file_kinds));
                    untaken = file.map(|file| file.media_type.clone()).or(untaken.take());
                    file.is_none()
                });
                candidate = next.ok_or_else(|| error.after_models_without(untaken.take()))?;
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

impl Candidate {
    /// Asks for a few tokens, with the options of the model, to see whether its provider answers.
    pub async fn try_out(&self) -> Result<(), Error> {
        let options = ModelOptions { max_tokens: Some(TRIAL_TOKENS), ..self.options.clone() };
        let turns = vec![Turn::user("Say yes.")];
        let request = Request { turns, options, context_tokens: Some(self.context_window), ..Request::default() };
        self.model.ask(&request).await.map(drop)
    }

    /// Requests one answer from this model: with its options, what it takes, and what it wrote itself.
    async fn ask(&self, request: &Request, file_kinds: &[ModelFileKind]) -> Result<ModelAnswer, Error> {
        let mut asked = request.with_lines(self.takes(file_kinds));
        asked.options = self.options.clone();
        asked.context_tokens = Some(self.context_window.max(request.context_tokens.unwrap_or(0)));
        asked.remove_signatures_of_others(&self.choice.path());
        if !self.model.takes_names() {
            asked.name_speakers_in_words();
        }
        let left_out_tools = asked.limit_tools(self.model.max_tools());
        let names = ReplacedNames::replace_in(&mut asked);
        let deltas = names.restore_in(self.model.ask(&asked).await?);
        Ok(ModelAnswer { by: self.choice.clone(), deltas, left_out_tools })
    }

    fn takes(&self, file_kinds: &[ModelFileKind]) -> impl Fn(&ModelFile) -> bool {
        |file| self.choice.takes(file_kinds, &file.media_type)
    }
}
