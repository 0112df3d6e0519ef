//! Problems of the routes for clients of LangGraph.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::problem::Problem;

/// Returns a problem as the clients of LangGraph read it.
pub fn form(problem: &Problem) -> Value {
    json!({ "detail": detail_in_words(problem), "code": problem.code })
}

/// The words of problems, each with the name that the clients of LangGraph have sent.
const WORDS: [(&str, &str); 6] = [
    ("Conversation ", "Thread "),
    ("no conversation ", "no thread "),
    ("no agent ", "no assistant "),
    ("the mode ", "the multitask_strategy "),
    ("edited_input is", "The edited arguments are"),
    ("send content with replace_from", "send a message, or another checkpoint"),
];

/// Returns the sentence of a problem in the words of LangGraph.
pub fn detail_in_words(problem: &Problem) -> String {
    // Only the first of each, because the ids of the client stand after them.
    let words = WORDS.iter();
    words.fold(problem.detail.clone(), |detail, (ours, theirs)| detail.replacen(ours, theirs, 1))
}

impl Problem {
    /// For a field whose effect this server does not have.
    pub fn field_not_supported(field: &str, advice: &str) -> Self {
        let detail = format!("This server does not support {field}: {advice}");
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "not_supported", detail)
    }

    /// For a route whose function this server does not have. The SDKs repeat a request that got a 501, and stop at a 404.
    pub fn not_implemented(detail: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_implemented", detail)
    }

    /// For a method of a route that only reads.
    pub fn only_readable(detail: &str) -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail)
    }

    /// For a command of the thread-centric protocol that this server does not have.
    pub fn unknown_command(method: &str) -> Self {
        let method: String = method.chars().take(64).collect();
        let detail = format!("This server has no command {method:?}; docs/langgraph.md lists the commands.");
        Self::new(StatusCode::NOT_FOUND, "unknown_command", detail)
    }

    /// Returns whether the client may repeat the request without a change.
    pub fn is_temporary(&self) -> bool {
        self.status == StatusCode::TOO_MANY_REQUESTS || self.status.is_server_error()
    }

    pub fn thread_exists(id: &str) -> Self {
        let detail = format!("Thread {id} exists; send if_exists: \"do_nothing\" to get it.");
        Self::new(StatusCode::CONFLICT, "thread_exists", detail)
    }

    /// For a message that only a conversation without an unfinished run can take.
    pub fn thread_busy(id: impl std::fmt::Display) -> Self {
        let detail = format!("Conversation {id} has an unfinished run; wait for its end, or cancel it.");
        Self::new(StatusCode::CONFLICT, "conversation_busy", detail)
    }

    pub fn thread_of_another_agent(id: &str) -> Self {
        let detail = format!("Thread {id} has another assistant, which answered in it before; create another thread.");
        Self::new(StatusCode::CONFLICT, "thread_of_another_agent", detail)
    }
}
