//! Gemini, Vertex, Anthropic and Ollama through `genai`, whose ambiguous ends are checked here.
//!
//! genai sends the request at the first poll after `Start`, and continues after errors. It reports a normal end when
//! the stream of Gemini or Ollama was truncated. Only this file and its folder know that: `dialect` has the differences
//! between the providers, `conversation` the request, `route` its address and token, `calls` the tool calls, `failure` the errors.

use std::sync::Arc;

use futures::{
    FutureExt, StreamExt,
    future::{BoxFuture, ready},
    stream,
};
use genai::{
    ServiceTarget,
    chat::{
        ChatOptions, ChatRequest, ChatResponseFormat, ChatStream, ChatStreamEvent, JsonSpec, StreamEnd, ToolChoice,
    },
};
use holdfast_shared::{
    config::{ModelConfig, Provider},
    finish_reason::FinishReason,
    usage::Usage,
};

use super::{
    AnswerDelta, AnswerForm, Error, Request,
    google::GoogleTokens,
    subject::Subject,
    upstream::{Upstream, UpstreamItem, UpstreamStream},
};

mod alternation;
mod calls;
mod conversation;
mod dialect;
mod embedder;
mod failure;
mod route;

use calls::GatewayCalls;
use dialect::Dialect;
pub use embedder::Embedder;
use failure::Failures;
use route::{GoogleRoute, Route};

/// A provider that is reached through genai.
pub(super) struct Gateway {
    client: genai::Client,
    route: Route,
    options: ChatOptions,
    dialect: Dialect,
    /// Whether a request can forbid the model to call its tools.
    can_forbid_calls: bool,
    failures: Failures,
}

impl Gateway {
    /// `tokens` are for Vertex AI.
    pub fn new(
        client: reqwest::Client,
        config: &ModelConfig,
        subject: Arc<Subject>,
        tokens: Option<&GoogleTokens>,
    ) -> Self {
        let (_, dialect) = Dialect::of(&subject.choice);
        let mut options = ChatOptions::default().with_capture_usage(true);
        if let Some(max_tokens) = config.model_max_tokens {
            options = options.with_max_tokens(max_tokens);
        }
        Self {
            client: genai::Client::builder().with_reqwest(client).build().expect("the HTTP client is already built"),
            route: Route::new(config, &subject, tokens),
            options,
            dialect,
            // genai leaves the field out for Vertex AI.
            can_forbid_calls: subject.choice.provider != Provider::Vertex,
            failures: Failures::new(subject, config.model_connect),
        }
    }

    fn call(&self, request: &Request) -> GatewayCall {
        let mut options = self.dialect.options(&self.options, &request.options);
        options.response_format = response_format(&request.form);
        let mut chat = conversation::translate(request, self.dialect);
        if self.dialect == Dialect::Anthropic
            && let Some(tools) = conversation::tools_of_the_past(request)
        {
            if self.can_forbid_calls {
                chat.tools = Some(tools);
                options = options.with_tool_choice(ToolChoice::None);
            } else {
                let turns = conversation::without_calls(&request.turns);
                chat = conversation::translate(&Request { turns, ..request.clone() }, self.dialect);
            }
        }
        GatewayCall { client: self.client.clone(), chat, options, dialect: self.dialect }
    }
}

impl Upstream for Gateway {
    fn ask(&self, request: &Request) -> BoxFuture<'static, Result<UpstreamStream, Error>> {
        let call = self.call(request);
        let failures = self.failures.for_one_call();
        match self.route.clone() {
            Route::Fixed(target) => async move { Ok(boxed_stream(call.send(*target, failures).await?)) }.boxed(),
            Route::Google(route) => async move { call.send_with_token(&route, &failures).await }.boxed(),
        }
    }
}

/// A request in genai's types.
#[derive(Clone)]
struct GatewayCall {
    client: genai::Client,
    chat: ChatRequest,
    options: ChatOptions,
    dialect: Dialect,
}

impl GatewayCall {
    async fn send(self, target: ServiceTarget, failures: Failures) -> Result<GatewayStream, Error> {
        let Self { client, chat, options, dialect } = self;
        let options = options.with_raw_frame_fn(failures.listener());
        let response = client.exec_chat_stream(target, chat, Some(&options)).await;
        let chat = response.map_err(|error| failures.explain(error))?.stream;
        Ok(GatewayStream { chat, dialect, calls: GatewayCalls::new(dialect), end: None, failures })
    }

    /// Sends the request with Google's token. If Vertex AI refuses the token, sends it once more with another one.
    async fn send_with_token(mut self, route: &GoogleRoute, failures: &Failures) -> Result<UpstreamStream, Error> {
        let no_token = |failure| failures.without_token(failure);
        if let Some(headers) = route.headers() {
            self.options = self.options.with_extra_headers(headers);
        }
        let mut pass = route.pass().await.map_err(no_token)?;
        let mut stream = self.clone().send(pass.target.clone(), failures.for_one_call_with(pass.secret())).await?;
        let mut first = stream.next().await;
        if matches!(first, Err(Error::KeyRefused { .. })) {
            pass = route.other_pass(&pass).await.map_err(no_token)?;
            stream = self.send(pass.target.clone(), failures.for_one_call_with(pass.secret())).await?;
            first = stream.next().await;
        }
        Ok(stream::once(ready(first)).chain(boxed_stream(stream)).boxed())
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

/// Returns the field for an answer in JSON.
fn response_format(form: &AnswerForm) -> Option<ChatResponseFormat> {
    let AnswerForm::Json(format) = form else { return None };
    Some(match &format.schema {
        Some(schema) => JsonSpec::new(format.name.clone(), schema.clone()).into(),
        None => ChatResponseFormat::JsonMode,
    })
}
