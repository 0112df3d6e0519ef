//! Why a try of a call has no output: what may follow, what the model and the user are told, and what the log is told.

use std::time::Duration;

use holdfast_shared::tool::ToolError;
use rmcp::{
    model::{ErrorCode, ErrorData},
    service::ServiceError,
};

use super::{
    error::Error,
    http::HttpError,
    stdio,
    transport_failure::{TransportFailure, TransportFailureKind},
};

/// Longest message of a JSON-RPC error that is passed on.
const MESSAGE_CHARS: usize = 2_000;

#[derive(Debug)]
pub enum CallFailure {
    /// There is no connection.
    Unavailable(Error),
    Transport(TransportFailure),
    /// No answer in time; the server was told to stop.
    Timeout(Duration),
    /// A JSON-RPC error of the server's own.
    Refused(ErrorData),
    /// The tool itself says that it has failed.
    Tool(String),
}

impl CallFailure {
    pub fn undelivered(detail: &str) -> Self {
        Self::Transport(TransportFailure::new(TransportFailureKind::Undelivered, detail))
    }

    pub fn lost() -> Self {
        Self::Transport(TransportFailure::new(TransportFailureKind::Lost, "the connection broke"))
    }

    pub fn malformed(detail: &str) -> Self {
        Self::Transport(TransportFailure::new(TransportFailureKind::Malformed, detail))
    }

    /// Whether the tool certainly has not seen the call.
    pub fn is_undelivered(&self) -> bool {
        matches!(
            self,
            Self::Unavailable(_) | Self::Transport(TransportFailure { kind: TransportFailureKind::Undelivered, .. })
        )
    }

    /// Whether the connection is of no more use.
    pub fn breaks_connection(&self) -> bool {
        matches!(
            self,
            Self::Transport(TransportFailure {
                kind: TransportFailureKind::Undelivered | TransportFailureKind::Lost,
                ..
            })
        )
    }

    /// Whether another try can help and do no harm. What was not delivered always may be tried again. Of a tool that may be
    /// called again, so may what was lost, what timed out, and what ended in an internal error or in a status that promises
    /// a better time (429, 5xx). An answer, even one that says the tool failed or that cannot be read, is final: the same
    /// call would bring it again.
    pub fn may_be_tried_again(&self, repeatable: bool) -> bool {
        match self {
            Self::Unavailable(error) => error.may_pass(),
            Self::Transport(TransportFailure { kind, .. }) => match kind {
                TransportFailureKind::Undelivered => true,
                TransportFailureKind::Lost => repeatable,
                TransportFailureKind::Status(status) => repeatable && (*status == 429 || *status >= 500),
                TransportFailureKind::Unauthorized
                | TransportFailureKind::OAuth
                | TransportFailureKind::Malformed
                | TransportFailureKind::TooLarge => false,
            },
            Self::Timeout(_) => repeatable,
            Self::Refused(error) => repeatable && error.code == ErrorCode::INTERNAL_ERROR,
            Self::Tool(_) => false,
        }
    }

    pub fn code(&self) -> &'static str {
        match self {
            Self::Unavailable(error) => error.code(),
            Self::Transport(TransportFailure { kind, .. }) => match kind {
                TransportFailureKind::Undelivered => "server_unavailable",
                TransportFailureKind::Unauthorized | TransportFailureKind::OAuth => "unauthorized",
                TransportFailureKind::Status(_) => "mcp_error",
                TransportFailureKind::Lost => "connection_lost",
                TransportFailureKind::Malformed => "malformed_answer",
                TransportFailureKind::TooLarge => "answer_too_large",
            },
            Self::Timeout(_) => "timeout",
            Self::Refused(_) => "mcp_error",
            Self::Tool(_) => "tool_failed",
        }
    }

    /// What happened, for the log: addresses and the server's own words among it, and no secret. The words of a tool that
    /// has failed are its output, which is in no log.
    pub fn detail(&self) -> Option<String> {
        match self {
            Self::Unavailable(error) => Some(error.to_string()),
            Self::Transport(failure) => Some(failure.detail.clone()),
            Self::Timeout(limit) => Some(format!("no answer within {} ms", limit.as_millis())),
            Self::Refused(error) => Some(in_short(error)),
            Self::Tool(_) => None,
        }
    }

    /// The outcome of the call. A server's own words are in it only where they are about the call's arguments, so that the
    /// model can mend them.
    pub fn into_tool_error(self, server: &str, tool: &str) -> ToolError {
        let code = self.code();
        let who = format!("tool {tool} of MCP server {server}");
        let message = match self {
            Self::Unavailable(error) => format!("{who} could not be called: {}", error.reason()),
            Self::Tool(text) => text,
            Self::Timeout(limit) => format!(
                "{who} has not answered within {} ms and was told to stop; the call may or may not have taken effect",
                limit.as_millis()
            ),
            Self::Refused(error) if error.code == ErrorCode::INVALID_PARAMS => format!("{who}: {}", in_short(&error)),
            Self::Refused(error) => format!("{who}: the server answered with error {}", error.code.0),
            Self::Transport(TransportFailure { kind, detail }) => match kind {
                TransportFailureKind::Undelivered => {
                    format!("{who} could not be called: the server could not be reached")
                }
                TransportFailureKind::Unauthorized => format!("{who}: the server refuses the agent's credentials"),
                TransportFailureKind::OAuth => format!("{who}: the server wants its users to sign in"),
                TransportFailureKind::Status(status) => {
                    format!("{who}: the server answered with HTTP {status}; the call may or may not have taken effect")
                }
                TransportFailureKind::Lost => {
                    format!("{who}: the connection broke before the answer; the call may or may not have taken effect")
                }
                TransportFailureKind::Malformed => format!("{who} was called, but its answer cannot be used"),
                TransportFailureKind::TooLarge => format!("{who} was called, but {detail}"),
            },
        };
        ToolError::new(code, message)
    }
}

/// A server's own error, of which the beginning says enough.
pub fn in_short(error: &ErrorData) -> String {
    let message: String = error.message.chars().take(MESSAGE_CHARS).collect();
    format!("error {}: {message}", error.code.0)
}

/// What rmcp says about a request.
impl From<ServiceError> for CallFailure {
    fn from(error: ServiceError) -> Self {
        match error {
            ServiceError::McpError(error) => {
                TransportFailure::of(&error).map_or_else(|| Self::Refused(error), Self::Transport)
            }
            ServiceError::TransportSend(error) => Self::Transport(unsent(error.error.as_ref())),
            ServiceError::UnexpectedResponse => Self::malformed("it is no result of this kind of request"),
            error => Self::Transport(TransportFailure::new(TransportFailureKind::Lost, error.to_string())),
        }
    }
}

/// Why a transport could not send.
fn unsent(error: &(dyn std::error::Error + 'static)) -> TransportFailure {
    if let Some(error) = error.downcast_ref::<std::io::Error>() {
        return stdio::unsent(error);
    }
    match error.downcast_ref::<HttpError>() {
        Some(HttpError::ReinitializationFailed(error)) => TransportFailure::of(error).unwrap_or_else(|| {
            TransportFailure::new(TransportFailureKind::Undelivered, "the server has not opened a new session")
        }),
        Some(HttpError::SessionExpired) => {
            TransportFailure::new(TransportFailureKind::Undelivered, "the server does not know its session")
        }
        _ => TransportFailure::new(TransportFailureKind::Lost, "the connection broke"),
    }
}
