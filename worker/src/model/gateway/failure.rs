//! Explains genai's errors, and finds the errors that genai drops: the error lines of Ollama, and the reason why Gemini
//! blocked a prompt.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use genai::chat::{FrameCtx, RawFrameRef};
use secrecy::SecretString;
use serde_json::Value;

use crate::model::{Error, google::TokenFailure, subject::Subject};

/// Explains the failures of one call.
#[derive(Clone)]
pub(super) struct Failures {
    subject: Arc<Subject>,
    connect_limit: Duration,
    /// The last frame that looks like an error.
    provider_error: Arc<Mutex<Option<String>>>,
}

impl Failures {
    pub fn new(subject: Arc<Subject>, connect_limit: Duration) -> Self {
        Self { subject, connect_limit, provider_error: Arc::default() }
    }

    /// Returns a copy for a new call, without an error frame.
    pub fn for_one_call(&self) -> Self {
        Self::new(self.subject.clone(), self.connect_limit)
    }

    /// Returns a copy for a new call with this key, which no error shows.
    pub fn for_one_call_with(&self, key: &SecretString) -> Self {
        let subject = Subject::new(self.subject.choice.clone(), Some(key.clone()));
        Self::new(Arc::new(subject), self.connect_limit)
    }

    /// Returns the error of a call that got no access token.
    pub fn without_token(&self, failure: TokenFailure) -> Error {
        Error::from_token_failure(&self.subject, failure)
    }

    /// Returns the callback for every frame as it came from the provider.
    pub fn listener(&self) -> impl Fn(&FrameCtx, RawFrameRef<'_>) + Send + Sync + 'static {
        let provider_error = self.provider_error.clone();
        move |_: &FrameCtx, frame: RawFrameRef<'_>| {
            if is_error_frame(frame.data) {
                *provider_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(frame.data.to_owned());
            }
        }
    }

    /// Returns the error of a stream that ended early: the provider's own, if it sent one.
    pub fn truncated_error(&self) -> Error {
        self.take_provider_error().unwrap_or_else(|| Error::broken(&self.subject, "it ended before it was complete"))
    }

    /// Returns the error of an answer that is complete and has failed.
    pub fn ended_with(&self, reason: &str) -> Error {
        Error::broken(&self.subject, format!("the model failed to call a tool ({})", self.subject.quote(reason)))
    }

    pub fn explain(&self, error: genai::Error) -> Error {
        match error {
            genai::Error::HttpError { status, body, headers, .. } => {
                Error::from_status(&self.subject, status, &headers, &body)
            }
            genai::Error::WebStream { error, cause, .. } => self.explain_stream(error, &cause),
            genai::Error::ChatResponse { body, .. } => {
                self.take_provider_error().unwrap_or_else(|| Error::from_body(&self.subject, &body.to_string()))
            }
            genai::Error::StreamParse { serde_error, .. } => self.malformed_error(&serde_error.to_string()),
            genai::Error::JsonValueExt(error) => self.malformed_error(&error.to_string()),
            other => Error::from_body(&self.subject, &other.to_string()),
        }
    }

    fn explain_stream(&self, error: genai::BoxError, cause: &str) -> Error {
        let error = match error.downcast::<genai::Error>() {
            Ok(error) => return self.explain(*error),
            Err(error) => error,
        };
        match error.downcast_ref::<reqwest::Error>() {
            Some(error) => Error::from_transport(&self.subject, error, self.connect_limit),
            None => self.malformed_error(cause),
        }
    }

    fn take_provider_error(&self) -> Option<Error> {
        let provider_error = self.provider_error.lock().unwrap_or_else(PoisonError::into_inner).take();
        provider_error.map(|body| Error::from_body(&self.subject, &body))
    }

    fn malformed_error(&self, cause: &str) -> Error {
        Error::broken(&self.subject, format!("a chunk of it is malformed: {}", self.subject.quote(cause)))
    }
}

/// Returns whether a frame contains an error in place of a piece of the answer. Only the outermost fields count,
/// because tool arguments may have fields of any name. A frame that is no JSON by itself, such as one line of several,
/// is judged by its text.
fn is_error_frame(frame: &str) -> bool {
    if !frame.contains(r#""error""#) && !frame.contains(r#""promptFeedback""#) {
        return false;
    }
    match serde_json::from_str::<Value>(frame) {
        Ok(value) => {
            ["error", "promptFeedback"].iter().any(|field| value.get(0).unwrap_or(&value).get(field).is_some())
        }
        Err(_) => true,
    }
}
