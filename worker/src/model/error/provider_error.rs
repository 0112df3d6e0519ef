//! The error in a provider's response. Its forms: `{"error": {"message", "type", "code", "status"}}`, an array of
//! these, `{"type": "error", "error": …}`, or `{"error": "text"}`.

use serde_json::Value;

/// Names by which providers report an unknown model.
const UNKNOWN_MODEL: [&str; 3] = ["model_not_found", "not_found_error", "NOT_FOUND"];
const RATE_LIMITED: [&str; 4] = ["rate_limit_error", "rate_limit_exceeded", "insufficient_quota", "RESOURCE_EXHAUSTED"];
const UNAVAILABLE: [&str; 8] = [
    "overloaded_error",
    "api_error",
    "server_error",
    "internal_server_error",
    "timeout_error",
    "UNAVAILABLE",
    "INTERNAL",
    "DEADLINE_EXCEEDED",
];

/// The readable part of an error's body; empty if the body contains no error.
#[derive(Debug, Default)]
pub(super) struct ProviderError {
    names: Vec<String>,
    status: Option<u16>,
    message: Option<String>,
}

/// The kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FailureKind {
    UnknownModel,
    RateLimited,
    Unavailable,
    Refused,
    Failed,
}

impl ProviderError {
    pub fn read(body: &str) -> Self {
        let Ok(value) = serde_json::from_str::<Value>(body) else { return Self::default() };
        let outer = value.get(0).unwrap_or(&value);
        let inner = outer.get("error").unwrap_or(outer);
        let names = ["type", "code", "status"].iter().filter_map(|field| inner.get(field)?.as_str());
        let status = inner.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
        let message = inner.as_str().or_else(|| inner.get("message")?.as_str());
        Self { names: names.map(str::to_owned).collect(), status, message: message.map(str::to_owned) }
    }

    /// Returns whether a body names an error.
    pub fn is_in(body: &str) -> bool {
        serde_json::from_str::<Value>(body).is_ok_and(|value| value.get(0).unwrap_or(&value).get("error").is_some())
    }

    pub fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }

    pub fn status(&self) -> Option<u16> {
        self.status
    }

    /// Returns the kind of an error with an HTTP status.
    pub fn kind_for_status(&self, status: u16) -> FailureKind {
        match status {
            404 => FailureKind::UnknownModel,
            _ if self.is_one_of(&UNKNOWN_MODEL) => FailureKind::UnknownModel,
            429 => FailureKind::RateLimited,
            408 | 500.. => FailureKind::Unavailable,
            _ => FailureKind::Refused,
        }
    }

    /// Returns the kind of an error inside a response whose status was 2xx.
    pub fn kind(&self) -> FailureKind {
        match self.status {
            _ if self.is_one_of(&UNKNOWN_MODEL) => FailureKind::UnknownModel,
            _ if self.is_one_of(&RATE_LIMITED) => FailureKind::RateLimited,
            _ if self.is_one_of(&UNAVAILABLE) => FailureKind::Unavailable,
            Some(status) if status >= 400 => self.kind_for_status(status),
            _ => FailureKind::Failed,
        }
    }

    fn is_one_of(&self, expected: &[&str]) -> bool {
        self.names.iter().any(|name| expected.contains(&name.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_format_of_each_provider_is_understood() {
        let check = |body: &str, message: Option<&str>, kind: FailureKind| {
            let provider_error = ProviderError::read(body);
            assert_eq!((provider_error.message(), provider_error.kind()), (message, kind), "{body}");
        };
        check(
            r#"{"error":{"message":"no","type":"invalid_request_error","code":"model_not_found"}}"#,
            Some("no"),
            FailureKind::UnknownModel,
        );
        check(
            r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#,
            Some("busy"),
            FailureKind::Unavailable,
        );
        check(
            r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}"#,
            Some("slow"),
            FailureKind::RateLimited,
        );
        check(
            r#"[{"error":{"code":503,"message":"later","status":"UNAVAILABLE"}}]"#,
            Some("later"),
            FailureKind::Unavailable,
        );
        check(r#"{"error":{"code":502,"message":"bad gateway"}}"#, Some("bad gateway"), FailureKind::Unavailable);
        check(r#"{"error":{"code":400,"message":"bad"}}"#, Some("bad"), FailureKind::Refused);
        check(r#"{"error":"the model crashed"}"#, Some("the model crashed"), FailureKind::Failed);
        check("<html>", None, FailureKind::Failed);
    }
}
