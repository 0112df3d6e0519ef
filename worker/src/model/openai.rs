//! OpenAI's chat completions, and every server that speaks this protocol. It is the hot path, so it has its own parser.

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
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use secrecy::ExposeSecret;

use super::{
    AnswerDelta, Error, Request,
    subject::Subject,
    upstream::{self, Upstream, UpstreamItem, UpstreamStream},
};

mod body;
mod chunk;
mod parser;

use body::{CompletionRequest, TokenLimit};
use parser::{Flaw, StreamParser};

/// An endpoint for chat completions.
pub(super) struct OpenAi {
    client: reqwest::Client,
    url: String,
    /// Applies if the request sets no limit.
    max_tokens: Option<u32>,
    limit: fn(u32) -> TokenLimit,
    connect_limit: Duration,
    subject: Arc<Subject>,
}

impl OpenAi {
    pub fn new(client: reqwest::Client, config: &ModelConfig, subject: Arc<Subject>) -> Self {
        Self {
            client,
            url: format!("{}chat/completions", config.base_url(Provider::OpenAi)),
            max_tokens: config.model_max_tokens,
            limit: if config.has_own_address(Provider::OpenAi) {
                TokenLimit::MaxTokens
            } else {
                TokenLimit::MaxCompletionTokens
            },
            connect_limit: config.model_connect,
            subject,
        }
    }
}

impl Upstream for OpenAi {
    fn ask(&self, request: &Request) -> BoxFuture<'static, Result<UpstreamStream, Error>> {
        let limit = request.options.max_tokens.or(self.max_tokens).map(self.limit);
        let body = CompletionRequest::new(&self.subject.choice.name, request, limit);
        let mut post = self.client.post(&self.url).header(ACCEPT, "text/event-stream").json(&body);
        if let Some(key) = &self.subject.key {
            post = post.bearer_auth(key.expose_secret());
        }
        let (subject, connect_limit) = (self.subject.clone(), self.connect_limit);
        async move {
            let response = post.send().await.map_err(|error| Error::from_transport(&subject, &error, connect_limit))?;
            let status = response.status();
            if !status.is_success() {
                let headers = response.headers().clone();
                let body = upstream::read_short_body(response).await;
                return Err(Error::from_status(&subject, status, &headers, &body));
            }
            let content_type = response.headers().get(CONTENT_TYPE).map(|value| value.as_bytes());
            if content_type.is_some_and(|kind| kind.starts_with(b"application/json")) {
                let body = upstream::read_short_body(response).await;
                return Err(Error::from_json(&subject, &body));
            }
            Ok(Incoming {
                bytes: response.bytes_stream().boxed(),
                parser: StreamParser::default(),
                deltas: VecDeque::new(),
                flaw: None,
                connect_limit,
                subject,
            }
            .boxed())
        }
        .boxed()
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
                Some(Err(error)) => {
                    let error = Error::from_transport(&this.subject, &error, this.connect_limit);
                    return Poll::Ready(Some(Err(error)));
                }
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
