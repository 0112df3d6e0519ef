//! Why the bytes of a body are no answer.

use super::lines::LINE_BYTES;
use crate::model::{Error, subject::Subject};

/// A flaw of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamFlaw {
    LongLine,
    NotAStream(String),
    Malformed(String),
    NamelessCall,
    /// An error of the provider, as JSON.
    ProviderError(String),
    /// The provider's reason why it does not show the prompt to the model.
    Blocked(String),
    /// The provider's reason why it could not read the model's call.
    FailedCall(String),
    Truncated,
}

impl StreamFlaw {
    pub fn to_error(&self, subject: &Subject) -> Error {
        let cause = match self {
            Self::ProviderError(body) => return Error::from_body(subject, body),
            Self::Blocked(reason) => {
                let message = format!("it blocked the prompt ({})", subject.quote(reason));
                return Error::Failed { model: subject.choice.clone(), message };
            }
            Self::LongLine => format!("a line of it is longer than {LINE_BYTES} bytes"),
            Self::NotAStream(line) => format!("it is no event stream: {}", subject.quote(line)),
            Self::Malformed(data) => format!("a chunk of it is malformed: {}", subject.quote(data)),
            Self::NamelessCall => "it calls a tool without naming one".to_owned(),
            Self::FailedCall(reason) => format!("the model failed to call a tool ({})", subject.quote(reason)),
            Self::Truncated => "it ended before it was complete".to_owned(),
        };
        Error::broken(subject, cause)
    }

    /// Returns the flaw of the last piece of a body: a piece that is not complete was truncated.
    pub fn at_end(self) -> Self {
        match self {
            Self::Malformed(_) => Self::Truncated,
            flaw => flaw,
        }
    }
}
