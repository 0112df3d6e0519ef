//! OpenAI's chat completions, and every server that speaks this protocol. It is the hot path, so it has its own parser.
//!
//! `dialect` has the rules in which the addresses differ, and `lessons` those that their refusals have shown. `body`, `conversation` and
//! `call_ids` write a request; `parser`, `chunk` and `wire_text` read the answer.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use futures::{FutureExt, Stream, StreamExt, future::BoxFuture, stream::BoxStream};
use holdfast_shared::config::{ModelConfig, Provider};
use reqwest::{Response, StatusCode, header::ACCEPT};
use secrecy::ExposeSecret;

use super::{
    AnswerDelta, Error, Request,
    subject::Subject,
    upstream::{self, Upstream, UpstreamItem, UpstreamStream},
};

mod body;
mod call_ids;
mod chunk;
mod conversation;
mod dialect;
mod lessons;
mod parser;
mod signature;
mod wire_text;

use body::CompletionRequest;
use dialect::OpenAiDialect;
use lessons::{Lessons, Parameter};
use parser::{Flaw, StreamParser};

/// Most requests of one call that lessons change. A server may refuse a field, then demand it, and refuse it again.
const MAX_REQUESTS: usize = 12;

/// An endpoint for chat completions of one model.
pub(super) struct OpenAi(Arc<ChatEndpoint>);

struct ChatEndpoint {
    client: reqwest::Client,
    url: String,
    /// Applies if the request sets no limit.
    max_tokens: Option<u32>,
    connect_limit: Duration,
    lessons: Lessons,
    subject: Arc<Subject>,
}

impl OpenAi {
    pub fn new(client: reqwest::Client, config: &ModelConfig, subject: Arc<Subject>) -> Self {
        Self(Arc::new(ChatEndpoint {
            client,
            url: format!("{}chat/completions", config.base_url(Provider::OpenAi)),
            max_tokens: config.model_max_tokens,
            connect_limit: config.model_connect,
            lessons: Lessons::default(),
            subject,
        }))
    }
}

impl Upstream for OpenAi {
    fn ask(&self, request: &Request) -> BoxFuture<'static, Result<UpstreamStream, Error>> {
        let (endpoint, request) = (Arc::clone(&self.0), request.clone());
        async move {
            let response = endpoint.response(&request).await?;
            let name = &endpoint.subject.choice.name;
            let begins_within_reasoning = dialect::begins_within_reasoning(request.options.reasoning, name);
            Ok(Incoming {
                bytes: response.bytes_stream().boxed(),
                parser: StreamParser::new(begins_within_reasoning),
                deltas: VecDeque::new(),
                flaw: None,
                connect_limit: endpoint.connect_limit,
                subject: Arc::clone(&endpoint.subject),
            }
            .boxed())
        }
        .boxed()
    }

    fn max_tools(&self) -> usize {
        dialect::MAX_TOOLS
    }

    fn takes_names(&self) -> bool {
        true
    }
}

impl ChatEndpoint {
    /// Sends the request. After a refusal of a parameter, sends it once more without that.
    async fn response(&self, request: &Request) -> Result<Response, Error> {
        let (subject, name) = (&self.subject, &self.subject.choice.name);
        let dialect = OpenAiDialect::of(request.options.dialect, &self.url, name);
        let (mut is_limited, mut requests) = (true, 0);
        loop {
            requests += 1;
            let mut rules = self.lessons.rules();
            if !is_limited {
                rules.refused.extend([Parameter::MaxTokens, Parameter::MaxCompletionTokens]);
            }
            let body = CompletionRequest::new(name, request, self.max_tokens, dialect, &rules);
            let response = self.post(&body).await?;
            let status = response.status();
            if status.is_success() {
                return Ok(response);
            }
            let headers = response.headers().clone();
            let refusal = upstream::read_short_body(response).await;
            if is_limited && status == StatusCode::BAD_REQUEST && Error::is_of_answer_limit(&refusal) {
                tracing::info!(model = subject.choice.path(), "the limit of the answer has no room; asking without it");
                is_limited = false;
                continue;
            }
            let learned = match status.as_u16() {
                400 | 422 => self.lessons.learn(&body.parameters(), &refusal),
                _ => Vec::new(),
            };
            if learned.is_empty() || requests == MAX_REQUESTS {
                return Err(Error::from_status(subject, status, &headers, &refusal));
            }
            let parameters: Vec<&str> = learned.iter().map(|parameter| parameter.name()).collect();
            tracing::info!(
                model = subject.choice.path(),
                ?parameters,
                "the model refuses or demands parameters; asking once more"
            );
        }
    }

    async fn post(&self, body: &CompletionRequest<'_>) -> Result<Response, Error> {
        let mut post = self.client.post(&self.url).header(ACCEPT, "text/event-stream").json(body);
        if let Some(key) = &self.subject.key {
            post = post.bearer_auth(key.expose_secret());
        }
        post.send().await.map_err(|error| Error::from_transport(&self.subject, &error, self.connect_limit))
    }
}

/// The body of a response, turned into upstream items.
struct Incoming {
    bytes: BoxStream<'static, reqwest::Result<Bytes>>,
    parser: StreamParser,
    /// Deltas that are parsed and not yet returned.
    deltas: VecDeque<AnswerDelta>,
    /// The flaw that follows those deltas.
    flaw: Option<Flaw>,
    connect_limit: Duration,
    subject: Arc<Subject>,
}

impl Stream for Incoming {
    type Item = Result<UpstreamItem, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if this.deltas.is_empty() && this.flaw.is_none() {
            let parsed = match ready!(this.bytes.poll_next_unpin(cx)) {
                Some(Ok(bytes)) => this.parser.feed(&bytes, &mut this.deltas),
                // A server may break the connection after the last word of a complete answer.
                Some(Err(error)) if this.parser.finish(&mut this.deltas).is_err() => {
                    let error = Error::from_transport(&this.subject, &error, this.connect_limit);
                    return Poll::Ready(Some(Err(error)));
                }
                Some(Err(_)) => Ok(()),
                None => this.parser.finish(&mut this.deltas),
            };
            this.flaw = parsed.err();
        }
        // Order matters: the deltas before a flaw are returned first.
        Poll::Ready(Some(match (this.deltas.pop_front(), &this.flaw) {
            (Some(delta), _) => Ok(UpstreamItem::Delta(delta)),
            (None, Some(flaw)) => Err(flaw.to_error(&this.subject)),
            (None, None) => Ok(UpstreamItem::Alive),
        }))
    }
}
