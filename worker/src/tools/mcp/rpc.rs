//! A server that speaks JSON-RPC 2.0 over plain HTTP: each message is a POST, and the response to a request is its
//! answer.

use std::{
    collections::HashMap,
    convert::Infallible,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::future::BoxFuture;
use reqwest::{Client, header::ACCEPT};
use rmcp::{
    RoleClient,
    model::{
        ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorCode, RequestId, ServerJsonRpcMessage,
        ServerResult,
    },
    transport::Transport,
};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use tokio::{sync::mpsc, task::AbortHandle};

use super::{IDEMPOTENCY_KEY, exchange::McpExchange, intake::Intake, post, transport_failure::TransportFailure};

/// Longest time for sending a notification, in the background.
const NOTIFICATION: Duration = Duration::from_secs(5);

pub struct Rpc {
    endpoint: Arc<Endpoint>,
    /// Unbounded, because the handshake sends before it receives; it holds one answer per request.
    answers: mpsc::UnboundedReceiver<ServerJsonRpcMessage>,
    answer_sender: mpsc::UnboundedSender<ServerJsonRpcMessage>,
    in_flight: Arc<Mutex<HashMap<RequestId, AbortHandle>>>,
}

struct Endpoint {
    client: Client,
    url: String,
    bearer: Option<SecretString>,
    intake: Intake,
    caller_header: Option<String>,
    /// The negotiated version, after the handshake.
    version: Mutex<Option<String>>,
}

impl Rpc {
    pub fn new(
        client: Client,
        url: &str,
        bearer: Option<SecretString>,
        intake: Intake,
        caller_header: Option<String>,
    ) -> Self {
        let (answer_sender, answers) = mpsc::unbounded_channel();
        let (url, version) = (url.to_owned(), Mutex::default());
        let endpoint = Endpoint { client, url, bearer, intake, caller_header, version };
        Self { endpoint: Arc::new(endpoint), answers, answer_sender, in_flight: Arc::default() }
    }

    fn in_flight(&self) -> std::sync::MutexGuard<'_, HashMap<RequestId, AbortHandle>> {
        self.in_flight.lock().expect("no thread panics with this lock")
    }

    /// Posts in its own task, so that a cancellation can abort it.
    fn start(&self, id: RequestId, message: ClientJsonRpcMessage) {
        let (endpoint, answer_sender) = (Arc::clone(&self.endpoint), self.answer_sender.clone());
        let (in_flight, own) = (Arc::clone(&self.in_flight), id.clone());
        // Order matters: the task removes its entry, so the entry must be there before the task can end.
        let mut entries = self.in_flight();
        let task = tokio::spawn(async move {
            let answer = match endpoint.ask(&own, &message).await {
                Ok(answer) => answer,
                Err(failure) => failure.into_answer(own.clone()),
            };
            in_flight.lock().expect("no thread panics with this lock").remove(&own);
            let _ = answer_sender.send(answer);
        });
        entries.insert(id, task.abort_handle());
    }
}

impl Drop for Rpc {
    fn drop(&mut self) {
        self.in_flight().drain().for_each(|(_, post)| post.abort());
    }
}

impl Transport<RoleClient> for Rpc {
    type Error = Infallible;

    fn send(&mut self, message: ClientJsonRpcMessage) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
        match &message {
            ClientJsonRpcMessage::Request(request) => {
                self.start(request.id.clone(), message);
                Box::pin(async { Ok(()) }) as BoxFuture<'static, _>
            }
            ClientJsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification {
                    let post = cancelled.params.request_id.as_ref().and_then(|id| self.in_flight().remove(id));
                    post.iter().for_each(AbortHandle::abort);
                }
                let endpoint = Arc::clone(&self.endpoint);
                Box::pin(async move {
                    let _ = tokio::time::timeout(NOTIFICATION, endpoint.post(&message).send()).await;
                    Ok(())
                })
            }
            // The client only asks, so it has no answers to send.
            _ => Box::pin(async { Ok(()) }),
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        self.answers.recv().await
    }

    async fn close(&mut self) -> Result<(), Infallible> {
        self.in_flight().drain().for_each(|(_, post)| post.abort());
        self.answers.close();
        Ok(())
    }
}

impl Endpoint {
    async fn ask(
        &self,
        id: &RequestId,
        message: &ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, TransportFailure> {
        let response = self.post(message).send().await.map_err(TransportFailure::of_request)?;
        let answer = post::read_json(response, id, &self.intake, McpExchange::of(message).as_ref()).await?;
        if is_handshake(message) && is_unknown_method(&answer) {
            return Ok(without_handshake(id));
        }
        if let ServerJsonRpcMessage::Response(response) = &answer
            && let ServerResult::InitializeResult(result) = &response.result
        {
            *self.version() = Some(result.protocol_version.to_string());
        }
        Ok(answer)
    }

    fn post(&self, message: &ClientJsonRpcMessage) -> reqwest::RequestBuilder {
        let mut post = self.client.post(&self.url).header(ACCEPT, "application/json").json(message);
        if let Some(bearer) = &self.bearer {
            post = post.bearer_auth(bearer.expose_secret());
        }
        if let Some(version) = self.version().as_deref() {
            post = post.header("mcp-protocol-version", version);
        }
        if let Some(key) = idempotency_key(message) {
            post = post.header("idempotency-key", key);
        }
        if let Some((name, caller)) = post::caller(message, self.caller_header.as_deref()) {
            post = post.header(name, caller);
        }
        post
    }

    fn version(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.version.lock().expect("no thread panics with this lock")
    }
}

fn is_handshake(message: &ClientJsonRpcMessage) -> bool {
    let ClientJsonRpcMessage::Request(request) = message else { return false };
    matches!(request.request, ClientRequest::InitializeRequest(_))
}

fn is_unknown_method(answer: &ServerJsonRpcMessage) -> bool {
    matches!(answer, ServerJsonRpcMessage::Error(error) if error.error.code == ErrorCode::METHOD_NOT_FOUND)
}

/// Returns the handshake's answer for a server without handshakes: it has tools, and no version for a header.
fn without_handshake(id: &RequestId) -> ServerJsonRpcMessage {
    let info = json!({"name": "unknown", "version": "unknown"});
    let result = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info});
    let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
    serde_json::from_value(answer).expect("it is the answer to a handshake")
}

fn idempotency_key(message: &ClientJsonRpcMessage) -> Option<&str> {
    post::meta(message, IDEMPOTENCY_KEY)
}
