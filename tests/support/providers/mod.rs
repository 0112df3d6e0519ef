//! Model providers in the test process that enforce the rules of the real ones.
//!
//! A `Fake` is the rule of a provider, its wire, and the settings that lead Holdfast to it; each has a file. A `RuledProvider`
//! serves one: it refuses a request that breaks the rule, in the real provider's words, and otherwise sends the next reply of
//! the test's script.

use std::{
    convert::Infallible,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, Response, StatusCode, Uri, header::CONTENT_TYPE},
};
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::Semaphore};

mod anthropic;
mod azure;
mod chat_stream;
mod claude_rules;
mod deepseek;
mod gemini;
mod gemini_rules;
mod mistral;
mod ollama;
mod openai;
mod openrouter;
mod vllm_strict;

pub use anthropic::ANTHROPIC;
pub use azure::AZURE;
pub use deepseek::DEEPSEEK;
pub use gemini::GEMINI;
pub use mistral::MISTRAL;
pub use ollama::OLLAMA;
pub use openai::OPENAI;
pub use openrouter::OPENROUTER;
pub use vllm_strict::VLLM_STRICT;

/// A provider, as a test knows it.
#[derive(Clone, Copy)]
pub struct Fake {
    /// The row of the matrix.
    pub name: &'static str,
    /// The model that the settings choose.
    pub model: &'static str,
    /// Whether the model takes pictures.
    pub takes_pictures: bool,
    /// Refuses a request that the real provider does not take.
    pub rule: fn(&ProviderRequest) -> Result<(), ProviderRefusal>,
    /// Refuses a request that is longer than the model's context, unless the provider shortens it without a word.
    pub too_long: Option<fn() -> ProviderRefusal>,
    /// The type of a streamed answer.
    pub content_type: &'static str,
    /// Writes the body of a streamed answer.
    pub write: fn(&[Part]) -> Vec<BodyPiece>,
    /// Holdfast's settings for the provider at this address, such as `http://127.0.0.1:1234`.
    pub settings: fn(&str) -> Vec<(&'static str, String)>,
}

/// A request that arrived.
#[derive(Debug, Clone)]
pub struct ProviderRequest {
    /// With the query.
    pub path: String,
    pub headers: HeaderMap,
    pub body: Value,
}

impl ProviderRequest {
    /// Returns the conversation, by the provider's name for it.
    pub fn messages(&self) -> &Value {
        self.body.get("messages").or(self.body.get("contents")).unwrap_or(&Value::Null)
    }
}

/// The provider's answer to a request that it does not take.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderRefusal {
    pub status: u16,
    pub body: Value,
}

impl ProviderRefusal {
    /// Returns a refusal in the form of OpenAI. `param` and `code` may be null.
    pub fn of_openai(status: u16, message: impl Into<String>, param: Value, code: Value) -> Self {
        let error = json!({
            "message": message.into(), "type": "invalid_request_error", "param": param, "code": code,
        });
        Self { status, body: json!({"error": error}) }
    }
}

/// A part of an answer, in the order in which the model writes it.
#[derive(Debug, Clone)]
pub enum Part {
    Reasoning(&'static str),
    Text(&'static str),
    Call {
        tool: &'static str,
        arguments: Value,
    },
    /// The provider sends nothing more until the test releases it.
    Hold,
}

/// A piece of a body.
#[derive(Debug, Clone)]
pub enum BodyPiece {
    Bytes(String),
    Hold,
}

/// A reply to a request that keeps the rule.
#[derive(Debug, Clone)]
pub enum ScriptedReply {
    Answer(Vec<Part>),
    Refuse(ProviderRefusal),
}

impl ScriptedReply {
    pub fn text(text: &'static str) -> Self {
        Self::Answer(vec![Part::Text(text)])
    }

    pub fn call(tool: &'static str, arguments: Value) -> Self {
        Self::Answer(vec![Part::Call { tool, arguments }])
    }
}

/// A fake at an address of its own, until it is dropped.
pub struct RuledProvider {
    /// `http://127.0.0.1:<port>`.
    pub url: String,
    state: Arc<FakeState>,
    server: tokio::task::JoinHandle<()>,
}

struct FakeState {
    fake: Fake,
    /// The replies that are left, the next one last.
    script: Mutex<Vec<ScriptedReply>>,
    taken: Mutex<Vec<ProviderRequest>>,
    refused: Mutex<Vec<(ProviderRequest, ProviderRefusal)>>,
    releases: Arc<Semaphore>,
    /// Most bytes of a request's messages.
    window: AtomicUsize,
}

impl RuledProvider {
    /// Starts a provider that takes as many requests as the script has replies.
    pub async fn start(fake: Fake, script: impl IntoIterator<Item = ScriptedReply>) -> Self {
        let mut script: Vec<ScriptedReply> = script.into_iter().collect();
        script.reverse();
        let state = Arc::new(FakeState {
            fake,
            script: Mutex::new(script),
            taken: Mutex::default(),
            refused: Mutex::default(),
            releases: Arc::new(Semaphore::new(0)),
            window: AtomicUsize::new(usize::MAX),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let routes = Router::new().fallback(answer).with_state(Arc::clone(&state));
        let server = tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self { url, state, server }
    }

    /// Replaces what is left of the script.
    pub fn reply_with(&self, script: impl IntoIterator<Item = ScriptedReply>) {
        let mut replies: Vec<ScriptedReply> = script.into_iter().collect();
        replies.reverse();
        *self.state.script.lock().unwrap() = replies;
    }

    /// Returns Holdfast's settings for this provider.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        (self.state.fake.settings)(&self.url)
    }

    /// Returns the requests that kept the rule, in order.
    pub fn taken(&self) -> Vec<ProviderRequest> {
        self.state.taken.lock().unwrap().clone()
    }

    /// Returns the requests that broke the rule, with the answers to them.
    pub fn refused(&self) -> Vec<(ProviderRequest, ProviderRefusal)> {
        self.state.refused.lock().unwrap().clone()
    }

    /// Gives the model a context of so many bytes.
    pub fn narrow(&self, bytes: usize) {
        self.state.window.store(bytes, Relaxed);
    }

    /// Lets one `Part::Hold` pass, now or later.
    pub fn release(&self) {
        self.state.releases.add_permits(1);
    }
}

impl Drop for RuledProvider {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn answer(State(state): State<Arc<FakeState>>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response<Body> {
    let Ok(body) = serde_json::from_slice(&body) else {
        return refuse(&ProviderRefusal { status: 404, body: json!({"error": {"message": "Not Found"}}) });
    };
    let request = ProviderRequest { path: uri.to_string(), headers, body };
    if let Err(refusal) = judge(&state, &request) {
        let response = refuse(&refusal);
        state.refused.lock().unwrap().push((request, refusal));
        return response;
    }
    state.taken.lock().unwrap().push(request);
    let reply = state.script.lock().unwrap().pop();
    match reply {
        Some(ScriptedReply::Answer(parts)) => {
            let chunks = (state.fake.write)(&parts);
            stream_of(chunks, state.fake.content_type, Arc::clone(&state.releases))
        }
        Some(ScriptedReply::Refuse(refusal)) => refuse(&refusal),
        None => refuse(&ProviderRefusal {
            status: 400,
            body: json!({"error": {"message": "the script has no further reply"}}),
        }),
    }
}

fn judge(state: &FakeState, request: &ProviderRequest) -> Result<(), ProviderRefusal> {
    (state.fake.rule)(request)?;
    match state.fake.too_long {
        Some(too_long) if request.messages().to_string().len() > state.window.load(Relaxed) => Err(too_long()),
        _ => Ok(()),
    }
}

fn refuse(refusal: &ProviderRefusal) -> Response<Body> {
    let response = Response::builder().status(StatusCode::from_u16(refusal.status).unwrap());
    response.header(CONTENT_TYPE, "application/json").body(Body::from(refusal.body.to_string())).unwrap()
}

fn stream_of(chunks: Vec<BodyPiece>, content_type: &str, releases: Arc<Semaphore>) -> Response<Body> {
    let bytes = stream::iter(chunks).then(move |chunk| {
        let releases = Arc::clone(&releases);
        async move {
            Ok::<_, Infallible>(match chunk {
                BodyPiece::Bytes(bytes) => Bytes::from(bytes),
                BodyPiece::Hold => {
                    releases.acquire().await.unwrap().forget();
                    Bytes::new()
                }
            })
        }
    });
    Response::builder().header(CONTENT_TYPE, content_type).body(Body::from_stream(bytes)).unwrap()
}
