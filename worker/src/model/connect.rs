//! The models of a process: the deployment's own, and those that agents name.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use holdfast_shared::{
    agent::ModelSettings,
    config::{self, ModelChoice, ModelConfig, Provider},
};

use super::{
    Model, ScriptedModel,
    gateway::Gateway,
    openai::OpenAi,
    retry_policy::{RetryModel, RetryPolicy},
    subject::Subject,
    upstream,
};

/// Why a model could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error(transparent)]
    Config(#[from] config::Error),
    #[error("cannot set up the HTTP client for the model")]
    Client(#[from] reqwest::Error),
}

/// The models of this process. Each is set up once, and all share one HTTP client. Setting up makes no request.
pub struct Models {
    config: ModelConfig,
    cache: Mutex<ModelCache>,
}

/// A model, with its provider and name.
#[derive(Clone)]
pub struct ChosenModel {
    pub model: Arc<dyn Model>,
    pub choice: ModelChoice,
}

#[derive(Default)]
struct ModelCache {
    /// `None` until a model needs it; the scripted model does not.
    client: Option<reqwest::Client>,
    models: HashMap<ModelChoice, ChosenModel>,
}

impl Models {
    /// Sets up the deployment's own model. Fails if its configuration is incomplete.
    pub fn new(config: &ModelConfig) -> Result<Self, ConnectError> {
        let models = Self { config: config.clone(), cache: Mutex::default() };
        models.get(None)?;
        Ok(models)
    }

    /// Returns the model for an agent's settings. The deployment's own setting replaces each absent one. Fails if a
    /// setting is unknown or a key is missing.
    pub fn get(&self, settings: Option<&ModelSettings>) -> Result<ChosenModel, ConnectError> {
        let provider = settings.and_then(|settings| settings.provider.as_deref());
        let name = settings.and_then(|settings| settings.name.as_deref());
        let choice = self.config.choice_for(provider, name)?;
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(chosen) = cache.models.get(&choice) {
            return Ok(chosen.clone());
        }
        let chosen = ChosenModel { model: cache.connect(&self.config, &choice)?, choice: choice.clone() };
        cache.models.insert(choice, chosen.clone());
        Ok(chosen)
    }
}

impl ModelCache {
    fn connect(&mut self, config: &ModelConfig, choice: &ModelChoice) -> Result<Arc<dyn Model>, ConnectError> {
        let provider = choice.provider;
        if provider == Provider::Scripted {
            return Ok(Arc::new(ScriptedModel));
        }
        let client = match &self.client {
            Some(client) => client.clone(),
            None => self.client.insert(upstream::client(config)?).clone(),
        };
        let policy = RetryPolicy::of(config);
        let subject = Arc::new(Subject::new(choice.clone(), config.key(provider).cloned()));
        Ok(match provider {
            Provider::OpenAi => {
                Arc::new(RetryModel::new(OpenAi::new(client, config, subject.clone()), policy, subject))
            }
            _ => Arc::new(RetryModel::new(Gateway::new(client, config, subject.clone()), policy, subject)),
        })
    }
}
