//! A JSON-RPC request, with the names and the parameters of its methods in both forms of the protocol.

use axum::http::HeaderMap;
use holdfast_shared::given_json;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};

use crate::{
    auth::{MAX_NAME_CHARS, is_name},
    problem::Problem,
    protocols::a2a::wire::A2aVersion,
    thread::truncated_id,
};

/// Most characters of a request's id, because each frame of its stream has it.
const MAX_ID_CHARS: usize = 256;

/// The body of a request. The route ignores unknown fields.
#[derive(Deserialize, utoipa::ToSchema)]
pub struct RpcRequest {
    /// `2.0`.
    #[serde(default)]
    #[schema(value_type = String)]
    jsonrpc: Value,
    /// A text or a number, which the response repeats.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    id: Value,
    /// Such as `SendMessage`.
    #[serde(default)]
    #[schema(value_type = String)]
    method: Value,
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    params: Option<Box<RawValue>>,
}

/// A method that this server knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum A2aMethod {
    Send,
    SendStreaming,
    GetTask,
    ListTasks,
    CancelTask,
    Subscribe,
    PushNotifications,
    ExtendedCard,
}

/// The parameters of methods that name a task.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskParams {
    pub id: String,
    #[serde(alias = "history_length")]
    history_length: Option<i64>,
}

impl RpcRequest {
    /// Returns the id that the response repeats; null if the request has none that is valid.
    pub fn response_id(&self) -> Value {
        if self.has_valid_id() { self.id.clone() } else { Value::Null }
    }

    fn has_valid_id(&self) -> bool {
        match &self.id {
            Value::Null | Value::Number(_) => true,
            Value::String(id) => id.chars().count() <= MAX_ID_CHARS,
            _ => false,
        }
    }

    /// Returns the method. Fails if this is no request of JSON-RPC 2.0, or if there is no such method.
    pub fn method(&self) -> Result<(A2aMethod, A2aVersion), Problem> {
        if self.jsonrpc != "2.0" {
            return Err(Problem::invalid_request("jsonrpc must be \"2.0\"."));
        }
        if !self.has_valid_id() {
            return Err(Problem::invalid_request(format!(
                "id is a number or a text of at most {MAX_ID_CHARS} characters."
            )));
        }
        let Some(name) = self.method.as_str() else {
            return Err(Problem::invalid_request("method is a text."));
        };
        A2aMethod::named(name).ok_or_else(|| Problem::unknown_method(&truncated_id(name)))
    }

    /// Returns the parameters of the method. Fails if they are not as the method needs them.
    pub fn params<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        let text = self.params.as_ref().map_or("{}", |params| params.get());
        // serde would read a list as an object, field by field.
        if !text.starts_with('{') {
            return Err(Problem::invalid_body("params must be an object."));
        }
        given_json::read_text(text).map_err(|problem| Problem::invalid_body(format!("params are invalid: {problem}.")))
    }
}

impl A2aMethod {
    fn named(name: &str) -> Option<(Self, A2aVersion)> {
        use A2aVersion::{V1, V03};
        Some(match name {
            "SendMessage" => (Self::Send, V1),
            "SendStreamingMessage" => (Self::SendStreaming, V1),
            "GetTask" => (Self::GetTask, V1),
            "ListTasks" => (Self::ListTasks, V1),
            "CancelTask" => (Self::CancelTask, V1),
            "SubscribeToTask" => (Self::Subscribe, V1),
            "GetExtendedAgentCard" => (Self::ExtendedCard, V1),
            "CreateTaskPushNotificationConfig"
            | "GetTaskPushNotificationConfig"
            | "ListTaskPushNotificationConfigs"
            | "DeleteTaskPushNotificationConfig" => (Self::PushNotifications, V1),
            "message/send" => (Self::Send, V03),
            "message/stream" => (Self::SendStreaming, V03),
            "tasks/get" => (Self::GetTask, V03),
            "tasks/list" => (Self::ListTasks, V03),
            "tasks/cancel" => (Self::CancelTask, V03),
            "tasks/resubscribe" => (Self::Subscribe, V03),
            "agent/getAuthenticatedExtendedCard" => (Self::ExtendedCard, V03),
            "tasks/pushNotificationConfig/set"
            | "tasks/pushNotificationConfig/get"
            | "tasks/pushNotificationConfig/list"
            | "tasks/pushNotificationConfig/delete" => (Self::PushNotifications, V03),
            _ => return None,
        })
    }
}

impl TaskParams {
    /// Returns whether the client wants the messages of the task.
    pub fn wants_history(&self) -> Result<bool, Problem> {
        wants_history(self.history_length)
    }
}

/// Returns whether a client wants the messages of a task. Fails for a negative number.
pub fn wants_history(length: Option<i64>) -> Result<bool, Problem> {
    match length {
        Some(..0) => Err(Problem::invalid_body("historyLength is not negative.")),
        length => Ok(length != Some(0)),
    }
}

/// Fails if the client speaks a version of the protocol that this server does not know.
pub fn check_version(headers: &HeaderMap) -> Result<(), Problem> {
    let Some(version) = headers.get("a2a-version") else { return Ok(()) };
    let version = version.to_str().unwrap_or("not text").trim();
    let mut numbers = version.split('.');
    match (numbers.next(), numbers.next()) {
        (Some(""), None) | (Some("1"), Some("0") | None) | (Some("0"), Some("3")) => Ok(()),
        _ => Err(Problem::unsupported_version(&truncated_id(version))),
    }
}

/// Fails if a name that the client has chosen is empty or too long.
pub fn check_name(field: &str, name: &str) -> Result<(), Problem> {
    if is_name(name) {
        return Ok(());
    }
    Err(Problem::invalid_body(format!("{field} has 1 to {MAX_NAME_CHARS} characters.")))
}
