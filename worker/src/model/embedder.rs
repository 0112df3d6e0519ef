//! Vectors of texts. `wire` has the protocol of each provider.

use std::{sync::Arc, time::Duration};

use holdfast_shared::config::{EmbeddingConfig, ModelChoice, ModelConfig, Provider};
use secrecy::ExposeSecret;
use tokio::{
    sync::Semaphore,
    time::{sleep, timeout},
};

use super::{
    ConnectError, Error, Phase, gemini,
    google::GoogleTokens,
    retry_policy::RetryPolicy,
    route::{OpenAnswer, Route},
    subject::Subject,
    upstream,
};

mod wire;

use wire::EmbeddingPurpose;

/// Turns texts into vectors.
pub struct Embedder {
    client: reqwest::Client,
    /// The settings of models, with the address for vectors where it is another one.
    config: ModelConfig,
    /// The address of the provider's API, with a slash at the end.
    url: String,
    /// For Vertex AI.
    tokens: Option<GoogleTokens>,
    choice: ModelChoice,
    policy: RetryPolicy,
    subject: Arc<Subject>,
    turns: Semaphore,
    batch: usize,
}

impl Embedder {
    /// Returns the embedder of the settings; `None` without a provider.
    pub fn new(config: &EmbeddingConfig, models: &ModelConfig) -> Result<Option<Self>, ConnectError> {
        let Some(choice) = config.choice(models)? else { return Ok(None) };
        let subject = Arc::new(Subject::new(choice.clone(), models.key(choice.provider).cloned()));
        let mut own = models.clone();
        if choice.provider == Provider::Vertex && config.embedding_base_url.is_some() {
            own.vertex.vertex_base_url.clone_from(&config.embedding_base_url);
        }
        Ok(Some(Self {
            client: upstream::client(models)?,
            url: config.base_url(choice.provider, models),
            tokens: if choice.provider == Provider::Vertex { GoogleTokens::load(&own)? } else { None },
            config: own,
            policy: RetryPolicy::of(models),
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
            let name = &self.choice.name;
            let error = match self.try_embed(name, texts, EmbeddingPurpose::Passage, self.policy.first_byte).await {
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
        let name = self.name_at_provider(model).unwrap_or(&self.choice.name);
        let vectors = timeout(limit, self.try_embed(name, &question, EmbeddingPurpose::Question, limit)).await;
        let vectors = vectors.map_err(|_| self.too_slow(limit))??;
        Ok(vectors.into_iter().next().unwrap_or_default())
    }

    async fn try_embed(
        &self,
        model: &str,
        texts: &[String],
        purpose: EmbeddingPurpose,
        limit: Duration,
    ) -> Result<Vec<Vec<f32>>, Error> {
        let _turn = self.turns.acquire().await.expect("the semaphore is never closed");
        let asked = self.ask(model, texts, purpose);
        let vectors = timeout(limit, asked).await.map_err(|_| self.too_slow(limit))??;
        let vectors: Vec<Vec<f32>> = vectors.into_iter().map(normalised).collect();
        let dimensions = vectors.first().map_or(0, Vec::len);
        if vectors.len() != texts.len() || dimensions == 0 || vectors.iter().any(|vector| vector.len() != dimensions) {
            return Err(Error::from_body(&self.subject, "the vectors do not fit the texts"));
        }
        Ok(vectors)
    }

    fn too_slow(&self, limit: Duration) -> Error {
        Error::Timeout { model: self.choice.clone(), phase: Phase::FirstByte, limit }
    }

    async fn ask(&self, model: &str, texts: &[String], purpose: EmbeddingPurpose) -> Result<Vec<Vec<f32>>, Error> {
        let provider = self.choice.provider;
        let route = self.route(wire::path(provider, model));
        let OpenAnswer { response, subject } = route.open(&wire::body(provider, model, texts, purpose)).await?;
        let answer = response.bytes().await.map_err(|error| route.transport_error(&subject, &error))?;
        let vectors = serde_json::from_slice(&answer).and_then(|answer| wire::vectors(provider, answer));
        vectors.map_err(|_| Error::from_json(&subject, &String::from_utf8_lossy(&answer)))
    }

    fn route(&self, path: String) -> Route {
        let (client, subject) = (self.client.clone(), Arc::clone(&self.subject));
        let key = subject.key.as_ref().map(|key| key.expose_secret());
        let header = match self.choice.provider {
            Provider::Vertex => return Route::to_vertex(client, &self.config, subject, self.tokens.as_ref(), path),
            Provider::Gemini => key.map(|key| ("x-goog-api-key", key.to_owned())),
            _ => key.map(|key| ("authorization", format!("Bearer {key}"))),
        };
        let url = format!("{}{path}", self.url);
        Route::fixed(client, &self.config, Arc::clone(&self.subject), url, header.into_iter().collect())
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
