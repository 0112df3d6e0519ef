//! Gemini, Vertex, Anthropic and Ollama through `genai`, whose ambiguous ends are checked here.
//!
//! genai sends the request at the first poll after `Start`, and continues after errors. It reports a normal end when
//! the stream of Gemini or Ollama was truncated. Only this file and its folder know that: `dialect` has the differences
//! between the providers, `conversation` the request, `calls` the tool calls, `failure` the errors.

use std::sync::Arc;

use futures::{FutureExt, StreamExt, future::BoxFuture, stream};
use genai::{
    ModelIden, ServiceTarget,
    chat::{ChatOptions, ChatStream, ChatStreamEvent, StreamEnd, ToolChoice},
    resolver::{AuthData, Endpoint},
};
use holdfast_shared::{config::ModelConfig, finish_reason::FinishReason, usage::Usage};
use secrecy::ExposeSecret;

use super::{
    AnswerDelta, Error, Request,
    subject::Subject,
    upstream::{Upstream, UpstreamItem, UpstreamStream},
};

mod alternation;
mod calls;
mod conversation;
mod dialect;
mod failure;

use calls::GatewayCalls;
use dialect::Dialect;
use failure::Failures;

/// A provider that is reached through genai.
pub(super) struct Gateway {
    client: genai::Client,
    target: ServiceTarget,
    options: ChatOptions,
    dialect: Dialect,
    failures: Failures,
}

impl Gateway {
    pub fn new(client: reqwest::Client, config: &ModelConfig, subject: Arc<Subject>) -> Self {
        let choice = &subject.choice;
        let (adapter, dialect) = Dialect::of(choice);
        let key = subject.key.as_ref().map_or("", |key| key.expose_secret());
        // With a complete target, genai looks up nothing in names or in the environment.
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
        Self { client, target, options, dialect, failures: Failures::new(subject, config.model_connect) }
    }
}

impl Upstream for Gateway {
    fn ask(&self, request: &Request) -> BoxFuture<'static, Result<UpstreamStream, Error>> {
        let (client, target, dialect) = (self.client.clone(), self.target.clone(), self.dialect);
        let failures = self.failures.for_one_call();
        let mut options = dialect.options(&self.options, &request.options).with_raw_frame_fn(failures.listener());
        let mut chat = conversation::translate(request, dialect);
        if dialect == Dialect::Anthropic
            && let Some(tools) = conversation::tools_of_the_past(request)
        {
            chat.tools = Some(tools);
            options = options.with_tool_choice(ToolChoice::None);
        }
        async move {
            let response = client.exec_chat_stream(target, chat, Some(&options)).await;
            let chat = response.map_err(|error| failures.explain(error))?.stream;
            Ok(boxed_stream(GatewayStream { chat, dialect, calls: GatewayCalls::new(dialect), end: None, failures }))
        }
        .boxed()
    }
}

/// An answer that is being read.
struct GatewayStream {
    chat: ChatStream,
    dialect: Dialect,
    calls: GatewayCalls,
    /// The end, while a delta is returned before it.
    end: Option<(Usage, FinishReason)>,
    failures: Failures,
}

fn boxed_stream(stream: GatewayStream) -> UpstreamStream {
    let items = stream::unfold(stream, |mut stream| async move { Some((stream.next().await, stream)) });
    items.boxed()
}

impl GatewayStream {
    async fn next(&mut self) -> Result<UpstreamItem, Error> {
        if let Some((usage, reason)) = self.end.take() {
            return Ok(UpstreamItem::Delta(AnswerDelta::End(usage, reason)));
        }
        loop {
            match self.chat.next().await {
                // `Start` comes before the request is sent, so it does not show that the provider responds.
                Some(Ok(ChatStreamEvent::Start)) => continue,
                Some(Ok(event)) => return self.read(event),
                Some(Err(error)) => return Err(self.failures.explain(error)),
                None => return Err(self.failures.truncated_error()),
            }
        }
    }

    fn read(&mut self, event: ChatStreamEvent) -> Result<UpstreamItem, Error> {
        let delta = match event {
            ChatStreamEvent::Chunk(chunk) if !chunk.content.is_empty() => AnswerDelta::Text(chunk.content),
            ChatStreamEvent::ReasoningChunk(chunk) if !chunk.content.is_empty() => {
                AnswerDelta::Reasoning(chunk.content)
            }
            ChatStreamEvent::ToolCallChunk(chunk) => match self.calls.read(chunk.tool_call) {
                Some(delta) => AnswerDelta::Call(delta),
                None => return Ok(UpstreamItem::Alive),
            },
            ChatStreamEvent::End(end) => self.read_end(end)?,
            _ => return Ok(UpstreamItem::Alive),
        };
        Ok(UpstreamItem::Delta(delta))
    }

    fn read_end(&mut self, end: StreamEnd) -> Result<AnswerDelta, Error> {
        if !self.dialect.is_complete(&end) {
            return Err(self.failures.truncated_error());
        }
        if let Some(reason) = self.dialect.failed_call(&end) {
            return Err(self.failures.ended_with(reason));
        }
        let thinking = self.calls.thinking(&end);
        let reason = dialect::finish_reason(&end);
        let usage = usage(end);
        Ok(match thinking {
            Some(delta) => {
                self.end = Some((usage, reason));
                AnswerDelta::Call(delta)
            }
            None => AnswerDelta::End(usage, reason),
        })
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
