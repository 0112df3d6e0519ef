//! The model's settings: `CHAT_MODEL_PROVIDER`, the model's name, keys, addresses and time-outs.
//!
//! Only `choice` and `choice_for` decide about the model. The worker knows the providers' protocols.

use std::{fmt, time::Duration};

use clap::ValueEnum;
use secrecy::{ExposeSecret, SecretString};

use super::{ContextWindows, Error, VertexAccess, VertexConfig, count, milliseconds, retries};

/// Settings of the model that executes the runs.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Model")]
pub struct ModelConfig {
    /// Provider of the model. Without it: gemini if GEMINI_API_KEY is set, the scripted model if no key is.
    #[arg(long, env = "CHAT_MODEL_PROVIDER", value_enum)]
    pub chat_model_provider: Option<Provider>,

    /// The provider's name of the model; gemini-1.5-flash by default for gemini.
    #[arg(long, env = "CHAT_MODEL_NAME")]
    pub chat_model_name: Option<String>,

    /// Key for Gemini.
    #[arg(long, env = "GEMINI_API_KEY", hide_env_values = true)]
    pub gemini_api_key: Option<SecretString>,

    /// Address of Gemini's API or of a compatible one.
    #[arg(long, env = "GEMINI_BASE_URL")]
    pub gemini_base_url: Option<String>,

    /// Key for Anthropic.
    #[arg(long, env = "ANTHROPIC_API_KEY", hide_env_values = true)]
    pub anthropic_api_key: Option<SecretString>,

    /// Address of Anthropic's API or of a compatible one.
    #[arg(long, env = "ANTHROPIC_BASE_URL")]
    pub anthropic_base_url: Option<String>,

    /// Key for OpenAI; not needed for an OPENAI_BASE_URL of your own.
    #[arg(long, env = "OPENAI_API_KEY", hide_env_values = true)]
    pub openai_api_key: Option<SecretString>,

    /// Address of OpenAI's API or of a compatible one, with the version, such as http://localhost:8000/v1.
    #[arg(long, env = "OPENAI_BASE_URL")]
    pub openai_base_url: Option<String>,

    /// Address of Ollama.
    #[arg(long, env = "OLLAMA_BASE_URL")]
    pub ollama_base_url: Option<String>,

    /// Address and credentials of Vertex AI.
    #[command(flatten)]
    pub vertex: VertexConfig,

    /// Longest answer to ask for, in tokens; by default the maximum of the provider or of the known model.
    #[arg(long, env = "HOLDFAST_MODEL_MAX_TOKENS", value_parser = tokens)]
    pub model_max_tokens: Option<u32>,

    /// Context windows of models that the server does not know, or knows wrong, such as my-model=8192,gpt-4*=128000.
    #[arg(long, env = "HOLDFAST_CONTEXT_WINDOWS", default_value = "", value_parser = ContextWindows::parse)]
    pub context_windows: ContextWindows,

    /// Time-out of connecting to the provider, in ms.
    #[arg(long = "model-connect-ms", env = "HOLDFAST_MODEL_CONNECT_MS", default_value = "10000", value_parser = milliseconds)]
    pub model_connect: Duration,

    /// Time-out of the first bytes of an answer, in ms.
    #[arg(long = "model-first-byte-ms", env = "HOLDFAST_MODEL_FIRST_BYTE_MS", default_value = "60000", value_parser = milliseconds)]
    pub model_first_byte: Duration,

    /// Silence within an answer after which the worker gives it up, in ms.
    #[arg(long = "model-idle-ms", env = "HOLDFAST_MODEL_IDLE_MS", default_value = "30000", value_parser = milliseconds)]
    pub model_idle: Duration,

    /// Time-out of one answer, retries included, in ms.
    #[arg(long = "model-total-ms", env = "HOLDFAST_MODEL_TOTAL_MS", default_value = "600000", value_parser = milliseconds)]
    pub model_total: Duration,

    /// Retries when the provider fails before the first piece of its answer.
    #[arg(long, env = "HOLDFAST_MODEL_RETRIES", default_value = "2", value_parser = retries)]
    pub model_retries: u32,

    /// Pause before the first retry, in ms; each later pause is twice as long.
    #[arg(long = "model-retry-ms", env = "HOLDFAST_MODEL_RETRY_MS", default_value = "250", value_parser = milliseconds)]
    pub model_retry: Duration,

    /// Longest pause that a provider may ask for with Retry-After, in ms; a longer one fails the run at once.
    #[arg(long = "model-retry-after-max-ms", env = "HOLDFAST_MODEL_RETRY_AFTER_MAX_MS", default_value = "60000", value_parser = milliseconds)]
    pub model_retry_after_max: Duration,

    /// Idle connections kept open to the provider.
    #[arg(long, env = "HOLDFAST_MODEL_POOL", default_value = "64", value_parser = count)]
    pub model_pool: usize,
}

fn tokens(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(tokens) if tokens > 0 => Ok(tokens),
        _ => Err(format!("a number of tokens above 0, not {text:?}")),
    }
}

/// The values of `CHAT_MODEL_PROVIDER`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, clap::ValueEnum)]
pub enum Provider {
    /// Google's Gemini API.
    Gemini,
    /// Google's Vertex AI, for the models of Google and Anthropic.
    Vertex,
    /// Anthropic's Messages API.
    Anthropic,
    /// OpenAI's chat completions, and each compatible API.
    #[value(name = "openai")]
    OpenAi,
    /// A local Ollama.
    Ollama,
    /// Built in and without any network, for a first try and for tests.
    Scripted,
}

impl Provider {
    /// Returns the provider's name for readers.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Gemini => "Gemini",
            Self::Vertex => "Vertex AI",
            Self::Anthropic => "Anthropic",
            Self::OpenAi => "OpenAI",
            Self::Ollama => "Ollama",
            Self::Scripted => "the scripted model",
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gemini => "gemini",
            Self::Vertex => "vertex",
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::Ollama => "ollama",
            Self::Scripted => "scripted",
        })
    }
}

/// The model that results from the settings.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ModelChoice {
    /// The API that the worker calls.
    pub provider: Provider,
    /// The provider's name of the model, such as `gemini-1.5-flash`.
    pub name: String,
}

impl fmt::Display for ModelChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} model {:?}", self.provider, self.name)
    }
}

impl ModelChoice {
    /// Returns the model of a provider's name; `None` for an unknown provider.
    pub fn named(provider: &str, name: &str) -> Option<Self> {
        let provider = named_provider(provider).ok()?;
        Some(Self { provider, name: name.to_owned() })
    }

    /// Returns the model as `<provider>/<name>`.
    pub fn path(&self) -> String {
        format!("{}/{}", self.provider, self.name)
    }
}

impl ModelConfig {
    /// Returns the deployment's model. Fails for settings with which each run would fail.
    pub fn choice(&self) -> Result<ModelChoice, Error> {
        self.choice_for(None, None)
    }

    /// Returns the model for an agent that names a provider, a model, or both. The deployment's setting replaces an
    /// absent one. But another provider does not know the deployment's model, so its usual model applies, if it has
    /// one.
    pub fn choice_for(&self, provider: Option<&str>, name: Option<&str>) -> Result<ModelChoice, Error> {
        let (provider, is_own) = match non_empty(provider).map(named_provider).transpose()? {
            None => (self.provider()?, true),
            Some(provider) => (provider, self.provider().is_ok_and(|own| own == provider)),
        };
        self.expect_address(provider)?;
        self.expect_key(provider)?;
        let name = match (non_empty(name), is_own) {
            (None, true) => model_name(provider, non_empty(self.chat_model_name.as_deref()), "CHAT_MODEL_NAME"),
            (name, _) => model_name(provider, name, "model.name of the agent"),
        };
        Ok(ModelChoice { provider, name: name? })
    }

    /// Returns the address of the provider's API, with a slash at the end. It is empty for the scripted model.
    pub fn base_url(&self, provider: Provider) -> String {
        match self.own_address(provider) {
            Some((_, url)) => with_path(url, usual_path(provider)),
            None => self.usual_address(provider),
        }
    }

    /// Returns the address of a project's models at Vertex AI, with a slash at the end.
    pub fn vertex_url(&self, project: &str) -> String {
        self.base_url(Provider::Vertex) + &self.vertex.path(project)
    }

    /// Returns whether the operator has set another address for the provider.
    pub fn has_own_address(&self, provider: Provider) -> bool {
        self.own_address(provider).is_some()
    }

    /// Returns the provider's key, if one is set.
    pub fn key(&self, provider: Provider) -> Option<&SecretString> {
        let key = match provider {
            Provider::Gemini => &self.gemini_api_key,
            Provider::Vertex => &self.vertex.vertex_api_key,
            Provider::Anthropic => &self.anthropic_api_key,
            Provider::OpenAi => &self.openai_api_key,
            Provider::Ollama | Provider::Scripted => &None,
        };
        // Compose files pass unset variables as empty ones.
        key.as_ref().filter(|key| !key.expose_secret().trim().is_empty())
    }

    fn provider(&self) -> Result<Provider, Error> {
        if let Some(provider) = self.chat_model_provider {
            return Ok(provider);
        }
        if self.key(Provider::Gemini).is_some() {
            return Ok(Provider::Gemini);
        }
        let needed_beside = |variable, provider| {
            Err(Error::new("CHAT_MODEL_PROVIDER", format!("is needed beside {variable}, such as {provider}")))
        };
        for provider in [Provider::Anthropic, Provider::OpenAi, Provider::Vertex] {
            if self.key(provider).is_some() {
                return needed_beside(key_variable(provider), provider);
            }
        }
        if matches!(self.vertex.access(), VertexAccess::Json(_)) {
            return needed_beside("VERTEX_CREDENTIALS", Provider::Vertex);
        }
        if non_empty(self.chat_model_name.as_deref()).is_some() {
            let problem = "names a model without a provider: set CHAT_MODEL_PROVIDER or GEMINI_API_KEY as well";
            return Err(Error::new("CHAT_MODEL_NAME", problem));
        }
        Ok(Provider::Scripted)
    }

    fn expect_address(&self, provider: Provider) -> Result<(), Error> {
        match self.own_address(provider) {
            Some((variable, url)) if !url.starts_with("http://") && !url.starts_with("https://") => {
                Err(Error::new(variable, "expected a URL that begins with http:// or https://"))
            }
            _ if provider == Provider::Vertex => self.expect_project(),
            _ => Ok(()),
        }
    }

    /// The credentials may name the project, but only those that the operator wants to be used for Vertex AI.
    fn expect_project(&self) -> Result<(), Error> {
        let is_wanted = self.chat_model_provider == Some(Provider::Vertex) || self.vertex.names_credentials();
        let may_come = is_wanted && !matches!(self.vertex.access(), VertexAccess::Token);
        if self.vertex.project().is_some() || may_come {
            return Ok(());
        }
        Err(Error::new("VERTEX_PROJECT_ID", "is needed for vertex"))
    }

    fn expect_key(&self, provider: Provider) -> Result<(), Error> {
        // The worker gets tokens for Vertex AI by other credentials.
        let keyless = matches!(provider, Provider::Ollama | Provider::Scripted | Provider::Vertex);
        // Local servers and gateways often need no key, or have it themselves.
        if keyless || self.key(provider).is_some() || self.own_address(provider).is_some() {
            return Ok(());
        }
        Err(Error::new(key_variable(provider), format!("is needed for {provider}")))
    }

    fn own_address(&self, provider: Provider) -> Option<(&'static str, &str)> {
        let (variable, url) = match provider {
            Provider::Gemini => ("GEMINI_BASE_URL", &self.gemini_base_url),
            Provider::Anthropic => ("ANTHROPIC_BASE_URL", &self.anthropic_base_url),
            Provider::OpenAi => ("OPENAI_BASE_URL", &self.openai_base_url),
            Provider::Ollama => ("OLLAMA_BASE_URL", &self.ollama_base_url),
            Provider::Vertex => return self.vertex.own_address().map(|url| ("VERTEX_BASE_URL", url)),
            Provider::Scripted => return None,
        };
        Some((variable, non_empty(url.as_deref())?))
    }

    fn usual_address(&self, provider: Provider) -> String {
        match provider {
            Provider::Gemini => "https://generativelanguage.googleapis.com/v1beta/".to_owned(),
            Provider::Anthropic => "https://api.anthropic.com/v1/".to_owned(),
            Provider::OpenAi => "https://api.openai.com/v1/".to_owned(),
            Provider::Ollama => "http://localhost:11434/".to_owned(),
            Provider::Vertex => self.vertex.usual_address(),
            Provider::Scripted => String::new(),
        }
    }
}

fn named_provider(name: &str) -> Result<Provider, Error> {
    Provider::from_str(name, false).map_err(|_| {
        let known = Provider::value_variants().iter().map(Provider::to_string).collect::<Vec<_>>().join(", ");
        Error::new("model.provider of the agent", format!("expected one of {known}, not {name:?}"))
    })
}

/// Checks the name. The error names `setting`.
fn model_name(provider: Provider, name: Option<&str>, setting: &'static str) -> Result<String, Error> {
    let example = match provider {
        Provider::Scripted => return Ok("scripted".to_owned()),
        Provider::Gemini => "gemini-1.5-flash",
        Provider::Vertex => "gemini-3.8-flash or claude-sonnet-4-5",
        Provider::Anthropic => "claude-sonnet-4-5",
        Provider::OpenAi => "gpt-4o-mini",
        Provider::Ollama => "llama3.2",
    };
    match (name, provider) {
        (Some(name), Provider::Vertex) if !name.starts_with("gemini") && !name.starts_with("claude") => {
            Err(Error::new(
                setting,
                format!("vertex is used for gemini and claude models, such as {example}, not {name:?}"),
            ))
        }
        (Some(name), _) => Ok(name.to_owned()),
        (None, Provider::Gemini) => Ok(example.to_owned()),
        (None, _) => Err(Error::new(setting, format!("is needed for {provider}, such as {example}"))),
    }
}

/// Returns the path that the provider's own tools add to a bare host. Operators write addresses with it and without it.
fn usual_path(provider: Provider) -> &'static str {
    match provider {
        Provider::Gemini => "v1beta/",
        Provider::Anthropic | Provider::Vertex => "v1/",
        _ => "",
    }
}

fn with_path(url: &str, path: &str) -> String {
    let url = url.trim_end_matches('/');
    let host_at = url.find("://").map_or(0, |scheme_end| scheme_end + 3);
    if url[host_at..].contains('/') { format!("{url}/") } else { format!("{url}/{path}") }
}

fn key_variable(provider: Provider) -> &'static str {
    match provider {
        Provider::Gemini => "GEMINI_API_KEY",
        Provider::Vertex => "VERTEX_API_KEY",
        Provider::Anthropic => "ANTHROPIC_API_KEY",
        Provider::OpenAi => "OPENAI_API_KEY",
        Provider::Ollama | Provider::Scripted => "CHAT_MODEL_PROVIDER",
    }
}

pub(super) fn non_empty(value: Option<&str>) -> Option<&str> {
    value.map(str::trim).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests;
