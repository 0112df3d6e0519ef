//! Embeddings: the provider that turns texts into vectors, for searches by meaning.

use std::time::Duration;

use clap::ValueEnum as _;

use super::{Error, ModelChoice, ModelConfig, Provider, bytes, count, milliseconds};

/// Settings of the vectors of passages.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Embeddings")]
pub struct EmbeddingConfig {
    /// Provider of the vectors: openai (and compatible), gemini, vertex or ollama. Without it, searches go by words alone.
    #[arg(long, env = "HOLDFAST_EMBEDDING_PROVIDER", value_parser = provider)]
    pub embedding_provider: Option<Provider>,

    /// The provider's name of the model, such as text-embedding-3-small.
    #[arg(long, env = "HOLDFAST_EMBEDDING_MODEL")]
    pub embedding_model: Option<String>,

    /// Address of the provider's API for embeddings alone; by default the address of its models.
    #[arg(long, env = "HOLDFAST_EMBEDDING_BASE_URL")]
    pub embedding_base_url: Option<String>,

    /// Passages in one request for vectors.
    #[arg(long, env = "HOLDFAST_EMBEDDING_BATCH", default_value = "64", value_parser = count)]
    pub embedding_batch: usize,

    /// Requests for vectors that one worker makes at once; further ones wait.
    #[arg(long, env = "HOLDFAST_EMBEDDING_REQUESTS", default_value = "4", value_parser = count)]
    pub embedding_requests: usize,

    /// Pause before a worker asks again for the vectors that a document lacks, in ms; twice as long after each try, up to 6 hours.
    #[arg(long = "embedding-pause-ms", env = "HOLDFAST_EMBEDDING_PAUSE_MS", default_value = "60000", value_parser = milliseconds)]
    pub embedding_pause: Duration,

    /// Bytes of memory for the vectors that one worker searches; pgvector searches collections beyond it, or else words alone do.
    #[arg(long, env = "HOLDFAST_VECTOR_BYTES", default_value = "536870912", value_parser = bytes)]
    pub vector_bytes: usize,
}

fn provider(name: &str) -> Result<Provider, String> {
    match Provider::from_str(name, true) {
        Ok(provider @ (Provider::OpenAi | Provider::Gemini | Provider::Vertex | Provider::Ollama)) => Ok(provider),
        _ => Err(format!("one of openai, gemini, vertex and ollama, not {name:?}")),
    }
}

impl EmbeddingConfig {
    /// Returns the model of the vectors; `None` without a provider. Fails if its name or its key is missing.
    pub fn choice(&self, models: &ModelConfig) -> Result<Option<ModelChoice>, Error> {
        let Some(provider) = self.embedding_provider else { return Ok(None) };
        let name = self.embedding_model.as_deref().map(str::trim).filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| Error::new("HOLDFAST_EMBEDDING_MODEL", format!("is needed for {provider}")))?;
        if self.embedding_base_url.is_none() {
            // At Vertex AI, only the models that answer have names of a known form.
            let checked = if provider == Provider::Vertex { "gemini" } else { name };
            models.choice_for(Some(&provider.to_string()), Some(checked))?;
        }
        Ok(Some(ModelChoice { provider, name: name.to_owned() }))
    }

    /// Returns the address of the provider's API, with a slash at the end.
    pub fn base_url(&self, provider: Provider, models: &ModelConfig) -> String {
        match self.embedding_base_url.as_deref().map(str::trim).filter(|url| !url.is_empty()) {
            Some(url) => format!("{}/", url.trim_end_matches('/')),
            None => models.base_url(provider),
        }
    }
}
