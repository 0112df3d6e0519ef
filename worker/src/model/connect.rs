//! The models of a process: the deployment's own, and those that agents name.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use holdfast_shared::{
    agent::{ModelOptions, ModelSettings, ProfileModel, Profiles},
    config::{self, ModelChoice, ModelConfig, ModelFileKind, Provider},
};

use super::{
    Model, ScriptedModel,
    anthropic::Anthropic,
    fallback::{Candidate, ChosenModel},
    gemini::Gemini,
    google::GoogleTokens,
    ollama::Ollama,
    openai::OpenAi,
    retry_policy::{RetryModel, RetryPolicy},
    subject::Subject,
    upstream::{self, Upstream},
};

/// Why a model could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error(transparent)]
    Config(#[from] config::Error),
    #[error("cannot set up the HTTP client for the model")]
    Client(#[from] reqwest::Error),
    #[error("there is no model profile {0:?}")]
    UnknownProfile(String),
}

/// The models of this process. Each is set up once, and all share one HTTP client. Setting up makes no request.
pub struct Models {
    config: ModelConfig,
    /// The setting of the files that models take.
    file_kinds: Arc<[ModelFileKind]>,
    cache: Mutex<ModelCache>,
}

#[derive(Default)]
struct ModelCache {
    /// `None` until a model needs it; the scripted model does not.
    client: Option<reqwest::Client>,
    /// `None` until a model at Vertex AI needs it.
    google: Option<GoogleTokens>,
    models: HashMap<(ModelChoice, Patience), Arc<dyn Model>>,
}

/// How long a model may make the run wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Patience {
    /// As long as the configuration says.
    Usual,
    /// Only shortly, because the worker can ask another model.
    Short,
}

/// Longest pause that the provider of a model with a fallback may request.
const SHORT_PAUSE: Duration = Duration::from_secs(2);

impl Models {
    /// Sets up the deployment's own model. Fails if its configuration is incomplete.
    pub fn new(config: &ModelConfig, file_kinds: &[ModelFileKind]) -> Result<Self, ConnectError> {
        let models = Self { config: config.clone(), file_kinds: file_kinds.into(), cache: Mutex::default() };
        models.get(None, &Profiles::default())?;
        Ok(models)
    }

    /// Returns the model for an agent's settings. The deployment's own setting replaces each absent one. Fails if a
    /// setting is unknown or a key is missing.
    pub fn get(&self, settings: Option<&ModelSettings>, profiles: &Profiles) -> Result<ChosenModel, ConnectError> {
        let own = settings.map(ModelSettings::options).unwrap_or_default();
        let Some(profile) = settings.and_then(|settings| settings.profile.as_deref()) else {
            let provider = settings.and_then(|settings| settings.provider.as_deref());
            let name = settings.and_then(|settings| settings.name.as_deref());
            let only = self.connect(provider, name, own, Patience::Usual)?;
            return Ok(ChosenModel::new(only, Vec::new(), Arc::clone(&self.file_kinds)));
        };
        let models = profiles.models(profile).ok_or_else(|| ConnectError::UnknownProfile(profile.to_owned()))?;
        let mut candidates = Vec::new();
        for (index, ProfileModel { provider, model, options }) in models.iter().enumerate() {
            let patience = if index + 1 == models.len() { Patience::Usual } else { Patience::Short };
            match self.connect(Some(provider), Some(model), own.or(options), patience) {
                Ok(candidate) => candidates.push(candidate),
                Err(error) if index == 0 => return Err(error),
                Err(error) => tracing::warn!(
                    profile,
                    error = &error as &dyn std::error::Error,
                    "left out a model of a fallback, because it is not set up on this worker"
                ),
            }
        }
        let first = candidates.remove(0);
        Ok(ChosenModel::new(first, candidates, Arc::clone(&self.file_kinds)))
    }

    fn connect(
        &self,
        provider: Option<&str>,
        name: Option<&str>,
        options: ModelOptions,
        patience: Patience,
    ) -> Result<Candidate, ConnectError> {
        let choice = self.config.choice_for(provider, name)?;
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (choice.clone(), patience);
        let model = match cache.models.get(&key) {
            Some(model) => Arc::clone(model),
            None => {
                let model = cache.connect(&self.config, &choice, patience)?;
                cache.models.insert(key, Arc::clone(&model));
                model
            }
        };
        Ok(Candidate { model, choice, options })
    }
}

impl ModelCache {
    fn connect(
        &mut self,
        config: &ModelConfig,
        choice: &ModelChoice,
        patience: Patience,
    ) -> Result<Arc<dyn Model>, ConnectError> {
        let provider = choice.provider;
        if provider == Provider::Scripted {
            return Ok(Arc::new(ScriptedModel));
        }
        let client = match &self.client {
            Some(client) => client.clone(),
            None => self.client.insert(upstream::client(config)?).clone(),
        };
        let mut policy = RetryPolicy::of(config);
        if patience == Patience::Short {
            policy.retry_after_max = policy.retry_after_max.min(SHORT_PAUSE);
        }
        let subject = Arc::new(Subject::new(choice.clone(), config.key(provider).cloned()));
        let tokens = if provider == Provider::Vertex { self.google_tokens(config)? } else { None };
        let (of, tokens) = (Arc::clone(&subject), tokens.as_ref());
        Ok(match provider {
            Provider::OpenAi => with_retries(OpenAi::new(client, config, of), policy, subject),
            Provider::Ollama => with_retries(Ollama::new(client, config, of), policy, subject),
            Provider::Vertex if !choice.name.starts_with("claude") => {
                with_retries(Gemini::new(client, config, of, tokens), policy, subject)
            }
            Provider::Anthropic | Provider::Vertex => {
                with_retries(Anthropic::new(client, config, of, tokens), policy, subject)
            }
            Provider::Gemini | Provider::Scripted => {
                with_retries(Gemini::new(client, config, of, tokens), policy, subject)
            }
        })
    }

    /// Returns the tokens that all models at Vertex AI share; `None` if no credentials are there.
    fn google_tokens(&mut self, config: &ModelConfig) -> Result<Option<GoogleTokens>, ConnectError> {
        if self.google.is_none() {
            self.google = GoogleTokens::load(config)?;
        }
        Ok(self.google.clone())
    }
}

fn with_retries(upstream: impl Upstream, policy: RetryPolicy, subject: Arc<Subject>) -> Arc<dyn Model> {
    Arc::new(RetryModel::new(upstream, policy, subject))
}
