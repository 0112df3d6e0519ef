//! Why a try of a call has no output: whether it may be retried, and the texts for the model, the user and the log.

use std::time::Duration;

use holdfast_shared::tool::ToolError;
use rmcp::{
    model::{ErrorCode, ErrorData},
    service::ServiceError,
};

use super::{
    error::Error,
    hidden::HiddenTexts,
    http::HttpError,
    stdio,
    transport_failure::{TransportFailure, TransportFailureKind},
};

/// Setting of the total time of a call that reports progress.
const TOTAL_SETTING: &str = "HOLDFAST_MCP_TOTAL_MS";

/// Most characters of a JSON-RPC error's message that are passed on, and of its data.
const MESSAGE_CHARS: usize = 2_000;

#[derive(Debug)]
pub enum CallFailure {
    /// There is no connection.
    Unavailable(Error),
    Transport(TransportFailure),
    /// No answer in time; the request was cancelled at the server.
    Timeout(Duration),
    /// Progress until the end of the total time; the request was cancelled too.
    TotalTimeout(Duration),
    /// A JSON-RPC error of the server.
    Refused(ErrorData),
    /// The tool reports that it has failed.
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

    /// Returns whether the tool certainly has not received the call.
    pub fn is_undelivered(&self) -> bool {
        matches!(
            self,
            Self::Unavailable(_) | Self::Transport(TransportFailure { kind: TransportFailureKind::Undelivered, .. })
        )
    }

    /// Returns whether the connection cannot be used any more.
    pub fn breaks_connection(&self) -> bool {
        matches!(
            self,
            Self::Transport(TransportFailure {
                kind: TransportFailureKind::Undelivered | TransportFailureKind::Lost,
                ..
            })
        )
    }

    /// Returns whether a retry can help and do no harm. An undelivered call may always be retried. A repeatable call
    /// may also be retried after a lost connection, a time-out, an internal error, or a status that promises recovery
    /// (429, 5xx). Any other answer is final, even an unreadable one or a tool's failure, because the call would bring
    /// it again.
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
            // Another try would take as long.
            Self::TotalTimeout(_) => false,
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
            Self::Timeout(_) | Self::TotalTimeout(_) => "timeout",
            Self::Refused(_) => "mcp_error",
            Self::Tool(_) => "tool_failed",
        }
    }

    /// Returns the failure for the log, with addresses and the server's message, and without secrets. The message of a
    /// failed tool is its output, which no log contains.
    pub fn detail(&self) -> Option<String> {
        match self {
            Self::Unavailable(error) => Some(error.to_string()),
            Self::Transport(failure) => Some(failure.detail.clone()),
            Self::Timeout(limit) => Some(format!("no sign of life within {} ms", limit.as_millis())),
            Self::TotalTimeout(limit) => Some(format!("no answer within {} ms, with progress", limit.as_millis())),
            Self::Refused(error) => Some(in_short(error)),
            Self::Tool(_) => None,
        }
    }

    /// Returns the outcome of the call. It quotes the server, so that the model can correct what the server refuses.
    pub fn into_tool_error(self, server: &str, tool: &str, hidden: &HiddenTexts) -> ToolError {
        let code = self.code();
        let who = format!("tool {tool} of MCP server {server}");
        let message = match self {
            Self::Unavailable(error) => format!("{who} could not be called: {}", error.reason()),
            Self::Tool(text) => hidden.replace_in(&text),
            Self::Timeout(limit) => format!(
                "{who} did not answer within {} ms (timeout_ms), reported no progress, and was cancelled; \
                 the call may or may not have taken effect",
                limit.as_millis()
            ),
            Self::TotalTimeout(limit) => format!(
                "{who} did not end within {} ms ({TOTAL_SETTING}) and was cancelled; \
                 the call may or may not have taken effect",
                limit.as_millis()
            ),
            Self::Refused(error) => format!("{who}: {}", hidden.replace_in(&in_full(&error))),
            Self::Transport(TransportFailure { kind, detail }) => match kind {
                TransportFailureKind::Undelivered => {
                    format!("{who} could not be called: the server could not be reached")
                }
                TransportFailureKind::Unauthorized => format!("{who}: the server refuses the agent's credentials"),
                TransportFailureKind::OAuth => format!("{who}: the server requires its users to sign in"),
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

/// Returns a server's own error with its data, bounded.
fn in_full(error: &ErrorData) -> String {
    match error.data.as_ref().filter(|data| !data.is_null()).map(ToString::to_string) {
        None => in_short(error),
        Some(data) => {
            let bounded: String = data.chars().take(MESSAGE_CHARS).collect();
            let mark = if bounded.len() < data.len() { "…" } else { "" };
            format!("{}; data: {bounded}{mark}", in_short(error))
        }
    }
}

/// Returns the beginning of a server's own error.
pub fn in_short(error: &ErrorData) -> String {
    let message: String = error.message.chars().take(MESSAGE_CHARS).collect();
    let mark = if message.len() < error.message.len() { "…" } else { "" };
    format!("error {}: {message}{mark}", error.code.0)
}

/// Converts rmcp's error of a request.
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

/// Returns why a transport could not send.
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
