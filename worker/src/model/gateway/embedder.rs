//! Vectors of texts, by genai.

use std::{sync::Arc, time::Duration};

use genai::{
    ModelIden, ServiceTarget,
    embed::EmbedOptions,
    resolver::{AuthData, Endpoint},
    webc,
};
use holdfast_shared::config::{EmbeddingConfig, ModelChoice, ModelConfig, Provider};
use secrecy::ExposeSecret;
use tokio::{
    sync::Semaphore,
    time::{sleep, timeout},
};

use super::{dialect::Dialect, failure::Failures};
use crate::model::{ConnectError, Error, Phase, retry_policy::RetryPolicy, subject::Subject, upstream};

/// The purpose of a text. Some models make other vectors for questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EmbeddingPurpose {
    /// A passage that is to be found.
    Passage,
    /// A question for which passages are looked for.
    Question,
}

/// Turns texts into vectors.
pub struct Embedder {
    client: genai::Client,
    target: ServiceTarget,
    choice: ModelChoice,
    policy: RetryPolicy,
    failures: Failures,
    connect_limit: Duration,
    subject: Arc<Subject>,
    turns: Semaphore,
    batch: usize,
}

impl Embedder {
    /// Returns the embedder of the settings; `None` without a provider.
    pub fn new(config: &EmbeddingConfig, models: &ModelConfig) -> Result<Option<Self>, ConnectError> {
        let Some(choice) = config.choice(models)? else { return Ok(None) };
        let client = genai::Client::builder().with_reqwest(upstream::client(models)?).build();
        let client = client.expect("the HTTP client is already built");
        let subject = Arc::new(Subject::new(choice.clone(), models.key(choice.provider).cloned()));
        let adapter = match choice.provider {
            Provider::OpenAi => genai::adapter::AdapterKind::OpenAI,
            _ => Dialect::of(&choice).0,
        };
        let key = subject.key.as_ref().map_or("", |key| key.expose_secret());
        let target = ServiceTarget {
            endpoint: Endpoint::from_owned(config.base_url(choice.provider, models)),
            auth: AuthData::from_single(key),
            model: ModelIden::new(adapter, choice.name.as_str()),
        };
        Ok(Some(Self {
            client,
            target,
            policy: RetryPolicy::of(models),
            failures: Failures::new(Arc::clone(&subject), models.model_connect),
            connect_limit: models.model_connect,
            subject,
            choice,
            turns: Semaphore::new(config.embedding_requests),
            batch: config.embedding_batch,
        }))
    }

    /// Returns the name of the model, as `<provider>/<name>`.
    pub fn name(&self) -> String {
        self.choice.path()
    }

    /// Returns whether the provider can be asked for vectors of this model, which may be an earlier one of the settings.
    pub fn offers(&self, model: &str) -> bool {
        self.name_at_provider(model).is_some()
    }

    fn name_at_provider<'a>(&self, model: &'a str) -> Option<&'a str> {
        model.strip_prefix(&self.choice.provider.to_string())?.strip_prefix('/')
    }

    /// Returns the number of texts that one request takes.
    pub const fn batch(&self) -> usize {
        self.batch
    }

    /// Returns a vector of length 1 for each text, in order. Tries again within the limits of models.
    pub async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, Error> {
        let mut tries = 1;
        loop {
            let target = self.target.clone();
            let error = match self.try_embed(target, texts, EmbeddingPurpose::Passage, self.policy.first_byte).await {
                Ok(vectors) => return Ok(vectors),
                Err(error) => error,
            };
            let Some(pause) = self.policy.pause_after(&error, tries) else { return Err(error) };
            tracing::warn!(
                model.error = error.code(),
                model.tries = tries,
                pause_ms = pause.as_millis() as u64,
                "failed to get vectors; trying again"
            );
            sleep(pause).await;
            tries += 1;
        }
    }

    /// Returns whether the provider takes other texts than one that it has refused.
    pub async fn takes_a_text(&self) -> bool {
        self.embed(&["text".to_owned()]).await.is_ok()
    }

    /// Returns the vector of a question by a model that the provider offers, by one try within this time, which counts the wait
    /// for a turn too.
    pub async fn embed_question(&self, model: &str, question: &str, limit: Duration) -> Result<Vec<f32>, Error> {
        let question = [question.to_owned()];
        let mut target = self.target.clone();
        if let Some(name) = self.name_at_provider(model) {
            target.model = ModelIden::new(target.model.adapter_kind, name);
        }
        let vectors = timeout(limit, self.try_embed(target, &question, EmbeddingPurpose::Question, limit)).await;
        let vectors = vectors.map_err(|_| self.too_slow(limit))??;
        Ok(vectors.into_iter().next().unwrap_or_default())
    }

    async fn try_embed(
        &self,
        target: ServiceTarget,
        texts: &[String],
        purpose: EmbeddingPurpose,
        limit: Duration,
    ) -> Result<Vec<Vec<f32>>, Error> {
        let _turn = self.turns.acquire().await.expect("the semaphore is never closed");
        let mut options = EmbedOptions::new();
        if self.choice.provider == Provider::Gemini {
            options.embedding_type = Some(
                match purpose {
                    EmbeddingPurpose::Passage => "RETRIEVAL_DOCUMENT",
                    EmbeddingPurpose::Question => "RETRIEVAL_QUERY",
                }
                .to_owned(),
            );
        }
        let asked = self.client.embed_batch(target, texts.to_vec(), Some(&options));
        let answer = timeout(limit, asked).await.map_err(|_| self.too_slow(limit))?;
        let mut embeddings = answer.map_err(|error| self.explain(error))?.embeddings;
        embeddings.sort_by_key(|embedding| embedding.index);
        let vectors: Vec<Vec<f32>> = embeddings.into_iter().map(|embedding| normalised(embedding.vector)).collect();
        let dimensions = vectors.first().map_or(0, Vec::len);
        if vectors.len() != texts.len() || dimensions == 0 || vectors.iter().any(|vector| vector.len() != dimensions) {
            return Err(Error::from_body(&self.subject, "the vectors do not fit the texts"));
        }
        Ok(vectors)
    }

    fn too_slow(&self, limit: Duration) -> Error {
        Error::Timeout { model: self.choice.clone(), phase: Phase::FirstByte, limit }
    }

    fn explain(&self, error: genai::Error) -> Error {
        match error {
            genai::Error::WebModelCall { webc_error, .. } | genai::Error::WebAdapterCall { webc_error, .. } => {
                match webc_error {
                    webc::Error::ResponseFailedStatus { status, body, headers } => {
                        Error::from_status(&self.subject, status, &headers, &body)
                    }
                    webc::Error::Reqwest(error) => Error::from_transport(&self.subject, &error, self.connect_limit),
                    other => Error::from_body(&self.subject, &other.to_string()),
                }
            }
            other => self.failures.explain(other),
        }
    }
}

/// Returns the vector with length 1, so that the scalar product of two is their similarity.
fn normalised(mut vector: Vec<f32>) -> Vec<f32> {
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    if length > 0.0 && length.is_finite() {
        vector.iter_mut().for_each(|x| *x /= length);
    }
    vector
}
