//! The models of a process: the deployment's own, and those that agents name.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::future::join_all;
use holdfast_shared::{
    agent::{ModelOptions, ModelSettings, ProfileModel, Profiles},
    config::{self, ModelChoice, ModelConfig, ModelFileKind, Provider},
};

use super::{
    Error, Model, ScriptedModel,
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

/// Why a model did not pass its trial.
#[derive(Debug, thiserror::Error)]
pub enum TrialFailure {
    #[error(transparent)]
    Setup(#[from] ConnectError),
    #[error(transparent)]
    Answer(#[from] Error),
}

impl TrialFailure {
    /// Returns the code of a run that fails for this reason.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Setup(_) => NOT_CONFIGURED,
            Self::Answer(error) => error.code(),
        }
    }
}

/// The code of a run whose model cannot be set up.
pub const NOT_CONFIGURED: &str = "model_not_configured";

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
    /// For one try of this duration.
    OneTry(Duration),
}

/// A model that settings name, not yet set up.
struct NamedModel {
    provider: Option<String>,
    name: Option<String>,
    options: ModelOptions,
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
        let mut named = named_models(settings, profiles)?;
        let others = named.split_off(1);
        let patience = |is_last: bool| if is_last { Patience::Usual } else { Patience::Short };
        let first = self.connect(named.remove(0), patience(others.is_empty()))?;
        let most = others.len();
        let mut fallback = Vec::new();
        for (index, other) in others.into_iter().enumerate() {
            match self.connect(other, patience(index + 1 == most)) {
                Ok(candidate) => fallback.push(candidate),
                Err(error) => tracing::warn!(
                    profile = settings.and_then(|settings| settings.profile.as_deref()),
                    error = &error as &dyn std::error::Error,
                    "left out a model of a fallback, because it is not set up on this worker"
                ),
            }
        }
        Ok(ChosenModel::new(first, fallback, Arc::clone(&self.file_kinds)))
    }

    /// Asks each model of the settings once for a few tokens. Returns why those fail that do not begin to answer within `limit`.
    pub async fn try_out(
        &self,
        settings: Option<&ModelSettings>,
        profiles: &Profiles,
        limit: Duration,
    ) -> Vec<TrialFailure> {
        let named = match named_models(settings, profiles) {
            Ok(named) => named,
            Err(error) => return vec![error.into()],
        };
        let tries = named.into_iter().map(async |named| {
            let candidate = self.connect(named, Patience::OneTry(limit))?;
            candidate.try_out().await.map_err(TrialFailure::from)
        });
        join_all(tries).await.into_iter().filter_map(Result::err).collect()
    }

    fn connect(&self, named: NamedModel, patience: Patience) -> Result<Candidate, ConnectError> {
        let NamedModel { provider, name, options } = named;
        let choice = self.config.choice_for(provider.as_deref(), name.as_deref())?;
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (choice.clone(), patience);
        let model = match cache.models.get(&key) {
            Some(model) => Arc::clone(model),
            None => {
                let model = cache.connect(&self.config, &choice, patience)?;
                // A check may name any model, which then takes no memory.
                if !matches!(patience, Patience::OneTry(_)) {
                    cache.models.insert(key, Arc::clone(&model));
                }
                model
            }
        };
        let context_window = self.config.context_windows.of(&choice);
        Ok(Candidate { model, choice, options, context_window })
    }
}

/// Returns the models of settings, the first one before its fallback.
fn named_models(settings: Option<&ModelSettings>, profiles: &Profiles) -> Result<Vec<NamedModel>, ConnectError> {
    let own = settings.map(ModelSettings::options).unwrap_or_default();
    let Some(profile) = settings.and_then(|settings| settings.profile.as_deref()) else {
        let provider = settings.and_then(|settings| settings.provider.clone());
        let name = settings.and_then(|settings| settings.name.clone());
        return Ok(vec![NamedModel { provider, name, options: own }]);
    };
    let models = profiles.models(profile).ok_or_else(|| ConnectError::UnknownProfile(profile.to_owned()))?;
    let named = models.into_iter().map(|ProfileModel { provider, model, options }| NamedModel {
        options: own.or(&options),
        provider: Some(provider),
        name: Some(model),
    });
    Ok(named.collect())
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
        match patience {
            Patience::Usual => {}
            Patience::Short => policy.retry_after_max = policy.retry_after_max.min(SHORT_PAUSE),
            Patience::OneTry(limit) => policy = RetryPolicy { retries: 0, total: policy.total.min(limit), ..policy },
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
