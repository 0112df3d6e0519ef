//! Why a server cannot be used now: in full for the log, and as a reason for users. The reason has no addresses, no
//! variables and none of the server's own words.

use std::{borrow::Cow, time::Duration};

use holdfast_shared::agent::SecretUnavailable;

use super::{child_report::ChildReport, hidden::HiddenTexts};

/// A server that cannot be used, its address, and how to fix it. Never contains a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("MCP server {server} ({address}): {problem}")]
pub struct Error {
    pub server: String,
    /// A command, or a URL without credentials and query.
    pub address: String,
    pub problem: ServerProblem,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServerProblem {
    #[error("{0}")]
    Secret(#[from] SecretUnavailable),
    #[error("{}; check that it is installed on the worker's host and that this user may execute it", unstarted(user.as_deref(), error))]
    Command { user: Option<String>, error: String },
    #[error("{}{}", ended(status), quoted(lines))]
    Exited { status: String, lines: String },
    #[error("the client could not be made: {0}; check the URL and the secret")]
    Client(String),
    #[error("it could not be reached: {0}; check that it runs and that the worker can reach it")]
    Unreachable(String),
    #[error("it refuses the credentials: {0}; check the agent's bearer token")]
    Unauthorized(String),
    #[error("it requires its users to sign in (OAuth), which a worker cannot do; set a token as auth.bearer")]
    OAuth,
    #[error(
        "it did not answer within {} ms while {doing}; check that it runs and speaks MCP{}",
        limit.as_millis(), lines.as_deref().map_or_else(String::new, quoted)
    )]
    Slow {
        doing: &'static str,
        limit: Duration,
        /// The last lines of a child's standard error.
        lines: Option<String>,
    },
    #[error("it speaks the old HTTP+SSE transport, which is not supported; use its streamable HTTP address")]
    OldTransport,
    #[error("it requires the protocol version {0}, which is not supported; supported are {SUPPORTED_VERSIONS}")]
    Version(String),
    #[error("it speaks a newer protocol ({0}) than this worker; supported are {SUPPORTED_VERSIONS}")]
    NewerProtocol(String),
    #[error("it failed while {doing}: {detail}; see its log")]
    Failed { doing: &'static str, detail: String },
    #[error(
        "all connections that it may have are in use; HOLDFAST_MCP_OWNER_CONNECTIONS, HOLDFAST_MCP_PROCESSES and HOLDFAST_MCP_CONNECTIONS limit them"
    )]
    Busy,
    #[error("this worker is stopping")]
    Stopping,
}

/// The supported versions as text; `connect` compares the server's version with them.
pub const SUPPORTED_VERSIONS: &str = "2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25";

impl Error {
    /// Returns whether another try can succeed without any change.
    pub fn may_pass(&self) -> bool {
        matches!(
            self.problem,
            ServerProblem::Unreachable(_)
                | ServerProblem::Slow { .. }
                | ServerProblem::Failed { .. }
                | ServerProblem::Exited { .. }
                | ServerProblem::Busy
        )
    }

    /// Returns the code of a tool call that fails with this error.
    pub fn code(&self) -> &'static str {
        match self.problem {
            ServerProblem::Unauthorized(_) | ServerProblem::OAuth => "unauthorized",
            _ => "server_unavailable",
        }
    }

    /// Returns the problem in words for users: without the words of the server, and without addresses.
    pub fn reason(&self) -> Cow<'static, str> {
        Cow::Borrowed(match &self.problem {
            ServerProblem::Command { user, error } => return unstarted(user.as_deref(), error).into(),
            ServerProblem::Exited { status, .. } => return ended(status).into(),
            ServerProblem::Secret(_) => "its secret is not configured",
            ServerProblem::Client(_) => "it could not be started",
            ServerProblem::Unreachable(_) => "it could not be reached",
            ServerProblem::Unauthorized(_) => "it refuses the agent's credentials",
            ServerProblem::OAuth => "it requires its users to sign in",
            ServerProblem::Slow { .. } => "it did not answer in time",
            ServerProblem::OldTransport | ServerProblem::Version(_) | ServerProblem::NewerProtocol(_) => {
                "it speaks a protocol that is not supported"
            }
            ServerProblem::Failed { .. } => "it failed",
            ServerProblem::Busy => "too many servers are in use",
            ServerProblem::Stopping => "this worker is stopping",
        })
    }
}

impl ServerProblem {
    /// Returns the problem with the words of a child that has not answered in time.
    pub fn with_lines_of(mut self, report: Option<&ChildReport>) -> Self {
        if let Self::Slow { lines, .. } = &mut self {
            *lines = report.map(ChildReport::last_lines);
        }
        self
    }

    /// Returns the problem without texts that no message shows.
    pub fn without(mut self, hidden: &HiddenTexts) -> Self {
        if let Some(words) = self.foreign_words() {
            *words = hidden.replace_in(words);
        }
        self
    }

    /// Returns the words of the server or the system.
    fn foreign_words(&mut self) -> Option<&mut String> {
        match self {
            Self::Command { error: words, .. }
            | Self::Exited { lines: words, .. }
            | Self::Client(words)
            | Self::Unreachable(words)
            | Self::Unauthorized(words)
            | Self::Version(words)
            | Self::NewerProtocol(words)
            | Self::Failed { detail: words, .. } => Some(words),
            Self::Slow { lines, .. } => lines.as_mut(),
            Self::Secret(_) | Self::OAuth | Self::OldTransport | Self::Busy | Self::Stopping => None,
        }
    }
}

/// Returns the system's own words for a command that did not start, the user and the setting that chooses it.
fn unstarted(user: Option<&str>, error: &str) -> String {
    let user = user.map_or_else(|| "the worker's own user".to_owned(), |user| format!("the user {user}"));
    format!("it could not be started as {user} (HOLDFAST_MCP_USER): {error}")
}

fn ended(status: &str) -> String {
    format!("it ended before it could be used ({status})")
}

fn quoted(lines: &str) -> String {
    match lines {
        "" => "; it wrote nothing to its standard error".to_owned(),
        lines => format!("; the last lines of its standard error:\n{lines}"),
    }
}
