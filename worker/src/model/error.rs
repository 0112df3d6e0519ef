//! Why a model did not answer, or not completely: the source of a run's error.
//!
//! `code` is stable and for programs, `reason` is for users, and the error's own text quotes the provider for the log.
//! No text contains a key.

use std::time::Duration;

use holdfast_shared::config::ModelChoice;
use reqwest::{StatusCode, header::HeaderMap};

use super::{google::TokenFailure, subject::Subject};

mod provider_error;
mod retry_after;
mod spellings;

use provider_error::{FailureKind, ProviderError};

/// A failure of the model.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The provider or the network was too slow.
    #[error("timed out on {model}: {phase} took longer than {} ms", limit.as_millis())]
    Timeout { model: ModelChoice, phase: Phase, limit: Duration },

    /// Too many requests.
    #[error("{model} is rate limited: {message}")]
    RateLimited { model: ModelChoice, message: String, retry_after: Option<Duration> },

    /// No provider answers at the address.
    #[error("{model} cannot be reached: {message}")]
    Unreachable { model: ModelChoice, message: String },

    /// The provider reports that it cannot answer now, or broke the connection off.
    #[error("{model} is unavailable: {message}")]
    Unavailable { model: ModelChoice, message: String, retry_after: Option<Duration> },

    /// The provider has no model of this name.
    #[error("{} does not know the model {:?}, set CHAT_MODEL_NAME, or the name in the agent's model, to one that it offers: {message}", model.provider, model.name)]
    UnknownModel { model: ModelChoice, message: String },

    /// The provider rejects the request, so a retry would fail too.
    #[error("{model} refused the request (status {status}): {message}")]
    Refused { model: ModelChoice, status: u16, message: String },

    /// The provider rejects the key, or the credentials, of this deployment.
    #[error("the credentials for {model} are refused: {message}")]
    KeyRefused { model: ModelChoice, message: String },

    /// The deployment's account at the provider has no credit.
    #[error("the account for {model} has no credit: {message}")]
    NoCredit { model: ModelChoice, message: String },

    /// The provider does not serve the region of this deployment.
    #[error("{model} is not offered in this region: {message}")]
    RegionRefused { model: ModelChoice, message: String },

    /// The request has more tokens than the model reads.
    #[error("the request is too long for {model}: {message}")]
    TooLong { model: ModelChoice, message: String },

    /// The provider rejects a file of the request.
    #[error("{model} refused a file of the request: {message}")]
    FileRefused { model: ModelChoice, status: u16, message: String },

    /// The stream ended before the answer was complete, or the response is no stream.
    #[error("the answer of {model} is broken: {cause}")]
    BrokenStream { model: ModelChoice, cause: String },

    /// The provider reports its own failure.
    #[error("{model} failed: {message}")]
    Failed { model: ModelChoice, message: String },

    /// The model does not answer, and another one of its profile does not take a file of the message.
    #[error("{cause}; another model of the profile takes no files of type {media_type}")]
    OthersTakeNoFile { cause: Box<Self>, media_type: String },

    /// A directive made the scripted model fail.
    #[error("the scripted model failed, as [fail] directed")]
    Scripted,
}

/// The part of a call that has a time limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Connecting,
    Token,
    FirstByte,
    Idle,
    Total,
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Connecting => "connecting",
            Self::Token => "the request for an access token",
            Self::FirstByte => "the beginning of the answer",
            Self::Idle => "the next piece of the answer",
            Self::Total => "the whole answer",
        })
    }
}

impl Error {
    /// Returns the stable name of the failure.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Timeout { phase: Phase::Connecting, .. } | Self::Unreachable { .. } => "model_unreachable",
            Self::Timeout { .. } => "model_timeout",
            Self::RateLimited { .. } => "model_rate_limited",
            Self::Unavailable { .. } => "model_unavailable",
            Self::UnknownModel { .. } => "model_not_found",
            Self::Refused { .. } => "model_refused",
            Self::KeyRefused { .. } => "model_key_refused",
            Self::NoCredit { .. } => "model_no_credit",
            Self::RegionRefused { .. } => "model_region_refused",
            Self::TooLong { .. } => "model_context_exceeded",
            Self::FileRefused { .. } => "file_refused",
            Self::BrokenStream { .. } => "model_broken_stream",
            Self::Failed { .. } => "model_failed",
            Self::OthersTakeNoFile { cause, .. } => cause.code(),
            Self::Scripted => "scripted_failure",
        }
    }

    /// Returns the failure in words for users, without the provider's message, addresses and settings.
    pub fn reason(&self) -> String {
        match self {
            Self::Timeout { model, phase: Phase::Connecting, .. } | Self::Unreachable { model, .. } => {
                format!("{model} cannot be reached; try again later")
            }
            Self::Timeout { model, phase, .. } => format!("{model} took too long: {phase}"),
            Self::RateLimited { model, .. } => format!("{model} takes no more requests for now; try again later"),
            Self::Unavailable { model, .. } => format!("{model} cannot answer now; try again later"),
            Self::UnknownModel { model, .. } => {
                format!("{} does not offer the model {:?}", model.provider.label(), model.name)
            }
            Self::Refused { model, .. } => format!("{model} refused the request"),
            Self::KeyRefused { model, .. } => format!("{} refused the server's key", model.provider.label()),
            Self::NoCredit { model, .. } => {
                format!("the server's account at {} has no credit", model.provider.label())
            }
            Self::RegionRefused { model, .. } => {
                format!("{} does not serve the server's region", model.provider.label())
            }
            Self::TooLong { model, .. } => format!(
                "the message is too long for {model}, also without what came before; shorten it, send fewer files, or choose a model that reads more"
            ),
            Self::FileRefused { model, .. } => format!("{model} refused a file of the conversation"),
            Self::BrokenStream { model, .. } => format!("the answer of {model} is broken"),
            Self::Failed { model, .. } => format!("{model} failed to answer"),
            Self::OthersTakeNoFile { cause, media_type } => {
                format!(
                    "{}; another model of its profile was not asked, because it takes no files of type {media_type}",
                    cause.reason()
                )
            }
            Self::Scripted => self.to_string(),
        }
    }

    /// Returns what the provider or the network said, for operators. It may quote users, and has no key.
    pub fn words(&self) -> Option<&str> {
        match self {
            Self::RateLimited { message, .. }
            | Self::Unreachable { message, .. }
            | Self::Unavailable { message, .. }
            | Self::UnknownModel { message, .. }
            | Self::Refused { message, .. }
            | Self::KeyRefused { message, .. }
            | Self::NoCredit { message, .. }
            | Self::RegionRefused { message, .. }
            | Self::TooLong { message, .. }
            | Self::FileRefused { message, .. }
            | Self::Failed { message, .. } => Some(message),
            Self::BrokenStream { cause, .. } => Some(cause),
            Self::Timeout { .. } | Self::OthersTakeNoFile { .. } | Self::Scripted => None,
        }
    }

    /// Returns whether a retry of the request may succeed.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            Self::Timeout { phase, .. } => *phase != Phase::Total,
            Self::RateLimited { .. }
            | Self::Unavailable { .. }
            | Self::Unreachable { .. }
            | Self::BrokenStream { .. } => true,
            Self::UnknownModel { .. }
            | Self::Refused { .. }
            | Self::KeyRefused { .. }
            | Self::NoCredit { .. }
            | Self::RegionRefused { .. }
            | Self::TooLong { .. }
            | Self::FileRefused { .. }
            | Self::Failed { .. }
            | Self::OthersTakeNoFile { .. }
            | Self::Scripted => false,
        }
    }

    /// Returns whether the fault is the provider's own and passes, so that no setting mends it.
    pub fn is_of_provider(&self) -> bool {
        matches!(
            self,
            Self::RateLimited { .. } | Self::Unavailable { .. } | Self::Failed { .. } | Self::BrokenStream { .. }
        ) || matches!(self, Self::Timeout { phase, .. } if *phase != Phase::Connecting)
    }

    /// Returns whether the provider rejects the input of the request, and may accept another one.
    pub fn is_of_input(&self) -> bool {
        matches!(
            self,
            Self::Refused { status: 400 | 413 | 415 | 422, .. } | Self::TooLong { .. } | Self::FileRefused { .. }
        )
    }

    /// Returns whether the provider rejects the number of tokens.
    pub fn is_too_long(&self) -> bool {
        matches!(self, Self::TooLong { .. })
    }

    /// Returns whether the provider, or a proxy, rejects the number of bytes.
    pub fn is_too_large(&self) -> bool {
        matches!(self, Self::Refused { status: 413, .. })
    }

    /// Returns whether the provider rejects a file.
    pub fn is_of_file(&self) -> bool {
        matches!(self, Self::FileRefused { .. })
    }

    /// Returns the same refusal, as one of the request's length.
    pub fn as_too_long(self) -> Self {
        match self {
            Self::Refused { model, message, .. } => Self::TooLong { model, message },
            other => other,
        }
    }

    /// Returns the error of a request without files. Some providers spell another refusal like one of a file.
    pub(super) fn without_files(self) -> Self {
        match self {
            Self::FileRefused { model, status, message } => Self::Refused { model, status, message },
            other => other,
        }
    }

    /// Returns whether another model may answer the request.
    pub(super) fn lets_another_model_answer(&self) -> bool {
        matches!(self, Self::Timeout { .. } | Self::NoCredit { .. }) || self.may_pass()
    }

    /// Returns the error of the last model that was asked. `untaken` is the type of a file for which another one was left out.
    pub(super) fn after_models_without(self, untaken: Option<String>) -> Self {
        match untaken {
            Some(media_type) => Self::OthersTakeNoFile { cause: self.into(), media_type },
            None => self,
        }
    }

    /// Returns the pause that the provider requests.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after, .. } | Self::Unavailable { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Returns the error for a response whose status is not 2xx.
    pub(super) fn from_status(subject: &Subject, status: StatusCode, headers: &HeaderMap, body: &str) -> Self {
        let provider_error = ProviderError::read(body);
        let retry_after = retry_after::read(headers).or(provider_error.retry_after());
        let kind = provider_error.kind_for_status(status.as_u16());
        let message =
            format!("{} (status {})", subject.quote(provider_error.message().unwrap_or(body)), status.as_u16());
        Self::of_kind(subject, kind, message, retry_after, status.as_u16())
    }

    /// Returns whether a refusal says that the input has room in the model's context, but the limit of the answer has not.
    pub(super) fn is_of_answer_limit(body: &str) -> bool {
        let body = body.to_lowercase();
        let window = number_after(&body, "maximum context length is ");
        let input = number_before(&body, " in the messages").or(number_after(&body, "your request has "));
        matches!((window, input), (Some(window), Some(input)) if input < window)
    }

    /// Returns the error that the provider sent in place of an answer or of a piece of one.
    pub(super) fn from_body(subject: &Subject, body: &str) -> Self {
        let provider_error = ProviderError::read(body);
        let message = subject.quote(provider_error.message().unwrap_or(body));
        Self::of_kind(
            subject,
            provider_error.kind(),
            message,
            provider_error.retry_after(),
            provider_error.status().unwrap_or(200),
        )
    }

    /// Returns the error for JSON in place of a stream. JSON that names no error is a broken stream, which may be
    /// retried.
    pub(super) fn from_json(subject: &Subject, body: &str) -> Self {
        if ProviderError::is_in(body) {
            Self::from_body(subject, body)
        } else {
            Self::broken(subject, format!("it is no event stream: {}", subject.quote(body)))
        }
    }

    /// Returns the error for a failure of the transport.
    pub(super) fn from_transport(subject: &Subject, error: &reqwest::Error, connect_limit: Duration) -> Self {
        let model = subject.choice.clone();
        if error.is_connect() && error.is_timeout() {
            return Self::Timeout { model, phase: Phase::Connecting, limit: connect_limit };
        }
        let cause = subject.quote(&innermost(error));
        if error.is_body() || error.is_decode() {
            return Self::BrokenStream { model, cause: format!("the connection was lost ({cause})") };
        }
        if error.is_connect() {
            return Self::Unreachable { model, message: format!("cannot connect ({cause})") };
        }
        Self::Unavailable { model, message: format!("no answer to the request ({cause})"), retry_after: None }
    }

    /// Returns the error of a call that got no access token.
    pub(super) fn from_token_failure(subject: &Subject, failure: TokenFailure) -> Self {
        let model = subject.choice.clone();
        let message = failure.to_string();
        match failure {
            TokenFailure::Refused { .. } => Self::KeyRefused { model, message },
            TokenFailure::Unavailable { .. } => Self::Unavailable { model, message, retry_after: None },
            TokenFailure::TimedOut { limit } => Self::Timeout { model, phase: Phase::Token, limit },
        }
    }

    pub(super) fn broken(subject: &Subject, cause: impl Into<String>) -> Self {
        Self::BrokenStream { model: subject.choice.clone(), cause: cause.into() }
    }

    fn of_kind(
        subject: &Subject,
        kind: FailureKind,
        message: String,
        retry_after: Option<Duration>,
        status: u16,
    ) -> Self {
        let model = subject.choice.clone();
        match kind {
            FailureKind::UnknownModel => Self::UnknownModel { model, message },
            FailureKind::KeyRefused => Self::KeyRefused { model, message },
            FailureKind::NoCredit => Self::NoCredit { model, message },
            FailureKind::RegionRefused => Self::RegionRefused { model, message },
            FailureKind::TooLong => Self::TooLong { model, message },
            FailureKind::FileRefused => Self::FileRefused { model, status, message },
            FailureKind::RateLimited => Self::RateLimited { model, message, retry_after },
            FailureKind::Unavailable => Self::Unavailable { model, message, retry_after },
            FailureKind::Broken => Self::BrokenStream { model, cause: message },
            FailureKind::Refused => Self::Refused { model, status, message },
            FailureKind::Failed => Self::Failed { model, message },
        }
    }
}

fn number_after(text: &str, words: &str) -> Option<u64> {
    let rest = text.split_once(words)?.1;
    rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())].parse().ok()
}

fn number_before(text: &str, words: &str) -> Option<u64> {
    let before = text.split_once(words)?.0.trim_end_matches(" tokens");
    before[before.rfind(|c: char| !c.is_ascii_digit()).map_or(0, |at| at + 1)..].parse().ok()
}

/// Returns the innermost cause. The outer ones repeat the URL, which may contain a password.
pub(super) fn innermost(error: &reqwest::Error) -> String {
    let Some(mut cause) = std::error::Error::source(error) else { return "the request failed".to_owned() };
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
