//! Gemini, Vertex, Anthropic and Ollama through `genai`, whose doubtful ends are settled here.
//!
//! genai sends the request at the first poll after `Start`, goes on after errors, and ends the streams of Gemini and
//! Ollama as if all were well when they were cut off. None of that is seen outside of this file.

use std::sync::Arc;

use futures::{FutureExt, StreamExt, future::BoxFuture, stream};
use genai::{
    ModelIden, ServiceTarget,
    adapter::AdapterKind,
    chat::{ChatMessage, ChatOptions, ChatRequest, ChatStream, ChatStreamEvent, StreamEnd},
    resolver::{AuthData, Endpoint},
};
use holdfast_shared::{
    config::{ModelConfig, Provider},
    usage::Usage,
};
use secrecy::ExposeSecret;

use super::{
    Delta, Error, Request, Speaker, Turn,
    subject::Subject,
    upstream::{Signal, Signals, Upstream},
};

mod failure;

use failure::Failures;

/// A provider behind genai.
pub(super) struct Gateway {
    client: genai::Client,
    target: ServiceTarget,
    options: ChatOptions,
    ending: Ending,
    failures: Failures,
}

/// How to tell a complete answer from one that was cut off, where genai reports an end for both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// Anthropic: only `message_stop` makes an end.
    Explicit,
    /// Gemini: the last chunk has a finish reason.
    WithReason,
    /// Ollama: the last line has the counts of tokens.
    WithUsage,
}

impl Gateway {
    pub fn new(client: reqwest::Client, config: &ModelConfig, subject: Arc<Subject>) -> Self {
        let choice = &subject.choice;
        let (adapter, ending) = match choice.provider {
            Provider::Anthropic => (AdapterKind::Anthropic, Ending::Explicit),
            Provider::Vertex if choice.name.starts_with("claude") => (AdapterKind::Vertex, Ending::Explicit),
            Provider::Vertex => (AdapterKind::Vertex, Ending::WithReason),
            Provider::Ollama => (AdapterKind::Ollama, Ending::WithUsage),
            Provider::Gemini | Provider::OpenAi | Provider::Scripted => (AdapterKind::Gemini, Ending::WithReason),
        };
        let key = subject.key.as_ref().map_or("", |key| key.expose_secret());
        // A complete target leaves genai nothing to look up in names or in the environment.
        let target = ServiceTarget {
            endpoint: Endpoint::from_owned(config.base_url(choice.provider)),
            auth: AuthData::from_single(key),
            model: ModelIden::new(adapter, choice.name.as_str()),
        };
        let mut options = ChatOptions::default().with_capture_usage(true);
        if let Some(max_tokens) = config.model_max_tokens {
            options = options.with_max_tokens(max_tokens);
        }
        let client = genai::Client::builder().with_reqwest(client).build().expect("the HTTP client is already built");
        Self { client, target, options, ending, failures: Failures::new(subject, config.model_connect) }
    }
}

impl Upstream for Gateway {
    fn ask(&self, request: &Request) -> BoxFuture<'static, Result<Signals, Error>> {
        let (client, target, ending) = (self.client.clone(), self.target.clone(), self.ending);
        let failures = self.failures.for_one_call();
        let options = self.options.clone().with_raw_frame_fn(failures.listener());
        let mut chat = ChatRequest::new(request.turns.iter().map(message).collect());
        chat.system = request.system.clone();
        async move {
            let response = client.exec_chat_stream(target, chat, Some(&options)).await;
            let stream = response.map_err(|error| failures.explain(error))?.stream;
            Ok(signals(stream, ending, failures))
        }
        .boxed()
    }
}

fn message(turn: &Turn) -> ChatMessage {
    match turn.speaker {
        Speaker::User => ChatMessage::user(turn.text.as_str()),
        Speaker::Assistant => ChatMessage::assistant(turn.text.as_str()),
    }
}

fn signals(chat: ChatStream, ending: Ending, failures: Failures) -> Signals {
    let items = stream::unfold((chat, failures), move |(mut chat, failures)| async move {
        let signal = loop {
            match chat.next().await {
                // Comes before the request is even sent, so it is no sign of life.
                Some(Ok(ChatStreamEvent::Start)) => continue,
                Some(Ok(event)) => break read_event(event, ending, &failures),
                Some(Err(error)) => break Err(failures.explain(error)),
                None => break Err(failures.truncated()),
            }
        };
        Some((signal, (chat, failures)))
    });
    items.boxed()
}

fn read_event(event: ChatStreamEvent, ending: Ending, failures: &Failures) -> Result<Signal, Error> {
    let delta = match event {
        ChatStreamEvent::Chunk(chunk) if !chunk.content.is_empty() => Delta::Text(chunk.content),
        ChatStreamEvent::ReasoningChunk(chunk) if !chunk.content.is_empty() => Delta::Reasoning(chunk.content),
        ChatStreamEvent::End(end) if ending.is_reached(&end) => Delta::End(usage(end)),
        ChatStreamEvent::End(_) => return Err(failures.truncated()),
        _ => return Ok(Signal::Alive),
    };
    Ok(Signal::Delta(delta))
}

impl Ending {
    fn is_reached(self, end: &StreamEnd) -> bool {
        match self {
            Self::Explicit => true,
            Self::WithReason => end.captured_stop_reason.is_some(),
            Self::WithUsage => end.captured_usage.is_some(),
        }
    }
}

fn usage(end: StreamEnd) -> Usage {
    let counts = end.captured_usage.unwrap_or_default();
    let tokens = |count: Option<i32>| count.and_then(|count| u64::try_from(count).ok()).unwrap_or(0);
    let cached = counts.prompt_tokens_details.and_then(|details| details.cached_tokens);
    let reasoning = counts.completion_tokens_details.and_then(|details| details.reasoning_tokens);
    Usage {
        input_tokens: tokens(counts.prompt_tokens),
        output_tokens: tokens(counts.completion_tokens),
        cached_tokens: tokens(cached),
        reasoning_tokens: tokens(reasoning),
    }
}
