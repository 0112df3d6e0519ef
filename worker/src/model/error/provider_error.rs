//! The error in a provider's response. Its forms: `{"error": {"message", "type", "code", "status"}}`, an array of
//! these, `{"type": "error", "error": …}`, or `{"error": "text"}`.

use std::time::Duration;

use serde_json::Value;

use super::{retry_after, spellings};

const RATE_LIMITED: [&str; 3] = ["rate_limit_error", "rate_limit_exceeded", "RESOURCE_EXHAUSTED"];
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
    /// The pause that the body requests.
    retry_after: Option<Duration>,
    /// The kind by the table of spellings.
    spelled: Option<FailureKind>,
}

/// The kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FailureKind {
    UnknownModel,
    KeyRefused,
    NoCredit,
    RegionRefused,
    TooLong,
    FileRefused,
    RateLimited,
    Unavailable,
    /// The model has failed to write its answer, and may succeed at the next try.
    Broken,
    Refused,
    Failed,
}

impl ProviderError {
    pub fn read(body: &str) -> Self {
        let Ok(value) = serde_json::from_str::<Value>(body) else {
            return Self { spelled: spellings::kind_of(&[], body), ..Self::default() };
        };
        let outer = value.get(0).unwrap_or(&value);
        let inner = outer.get("error").unwrap_or(outer);
        let names = ["type", "code", "status"].iter().filter_map(|field| inner.get(field)?.as_str());
        let names: Vec<String> = names.map(str::to_owned).collect();
        let status = ["code", "status", "status_code"].iter().find_map(|field| status_of(inner.get(field)?));
        let message = inner.as_str().or_else(|| inner.get("message")?.as_str());
        let spelled = spellings::kind_of(&names, body);
        Self {
            names,
            status,
            message: message.map(str::to_owned),
            retry_after: retry_after::of_details(inner),
            spelled,
        }
    }

    /// Returns whether a body names an error.
    pub fn is_in(body: &str) -> bool {
        serde_json::from_str::<Value>(body).is_ok_and(|value| value.get(0).unwrap_or(&value).get("error").is_some())
    }

    pub fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }

    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    pub fn status(&self) -> Option<u16> {
        self.status
    }

    /// Returns the kind of an error with an HTTP status.
    pub fn kind_for_status(&self, status: u16) -> FailureKind {
        if let Some(spelled) = self.spelled {
            return spelled;
        }
        match status {
            401 => FailureKind::KeyRefused,
            402 => FailureKind::NoCredit,
            404 => FailureKind::UnknownModel,
            429 => FailureKind::RateLimited,
            408 | 500.. => FailureKind::Unavailable,
            _ => FailureKind::Refused,
        }
    }

    /// Returns the kind of an error inside a response whose status was 2xx.
    pub fn kind(&self) -> FailureKind {
        if let Some(spelled) = self.spelled {
            return spelled;
        }
        match self.status {
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

/// Some gateways write the status as a text.
fn status_of(code: &Value) -> Option<u16> {
    let number = code.as_u64().or_else(|| code.as_str()?.trim().parse().ok())?;
    u16::try_from(number).ok()
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
        check(r#"{"error":{"code":"503","message":"gateway"}}"#, Some("gateway"), FailureKind::Unavailable);
        check(r#"{"error":{"code":400,"message":"bad"}}"#, Some("bad"), FailureKind::Refused);
        check(r#"{"error":"the model crashed"}"#, Some("the model crashed"), FailureKind::Failed);
        check("<html>", None, FailureKind::Failed);
    }

    #[test]
    fn the_reason_of_a_refusal_is_found_in_the_spelling_of_each_provider() {
        let check = |status: u16, body: &str, kind: FailureKind| {
            assert_eq!(ProviderError::read(body).kind_for_status(status), kind, "{status} {body}");
        };
        let said = |message: &str| format!(r#"{{"error":{{"message":"{message}","type":"invalid_request_error"}}}}"#);
        check(400, r#"{"error":{"message":"no","code":"context_length_exceeded"}}"#, FailureKind::TooLong);
        check(400, &said("prompt is too long: 213462 tokens > 200000 maximum"), FailureKind::TooLong);
        check(400, &said("This model's maximum context length is 8192 tokens."), FailureKind::TooLong);
        check(500, &said("the request exceeds the available context size (4096)"), FailureKind::TooLong);
        check(429, &said("Request too large for gpt-4o on tokens per min: limit 30000"), FailureKind::TooLong);
        check(429, r#"{"error":{"message":"no","code":"insufficient_quota"}}"#, FailureKind::NoCredit);
        check(400, &said("Your credit balance is too low to access the API."), FailureKind::NoCredit);
        check(400, r#"{"error":{"message":"no","code":"tool_use_failed"}}"#, FailureKind::Broken);
        check(402, r#"{"error":{"message":"pay","code":402}}"#, FailureKind::NoCredit);
        check(401, "no", FailureKind::KeyRefused);
        check(400, &said("API key not valid. Please pass a valid API key."), FailureKind::KeyRefused);
        check(403, &said("Country, region, or territory not supported"), FailureKind::RegionRefused);
        check(400, &said("User location is not supported for the API use."), FailureKind::RegionRefused);
        check(400, &said("Model Not Exist"), FailureKind::UnknownModel);
        check(400, &said("Could not process image"), FailureKind::FileRefused);
        check(404, &said("No endpoints found that support image input"), FailureKind::FileRefused);
        let wrapped = r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"message\":\"Could not process image\"}"}}}"#;
        check(400, wrapped, FailureKind::FileRefused);
        check(429, &said("Too many tokens, please wait before trying again."), FailureKind::RateLimited);
        check(403, &said("Your input was flagged"), FailureKind::Refused);
        check(400, &said("no"), FailureKind::Refused);
    }
}
