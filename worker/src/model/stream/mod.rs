//! Reads the body of an answer: its bytes become lines, lines become events, and the parser of a dialect makes deltas of them.
//!
//! The boundaries between the pieces of a body make no difference to the deltas.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{StreamExt, stream, stream::BoxStream};
use serde_json::Value;
use tokio::time::sleep;

use super::{
    AnswerDelta, Error,
    route::{OpenAnswer, Route},
    subject::Subject,
    upstream::{UpstreamItem, UpstreamStream},
};

mod events;
mod flaw;
mod halves;
pub(super) mod json;
mod lines;
mod think_tags;

pub(super) use events::{EventBuffer, StreamEvent};
pub(super) use flaw::StreamFlaw;
use halves::HalfJoiner;
pub(super) use lines::LineBuffer;
pub(super) use think_tags::ThinkTags;

/// The state of a dialect between two pieces of a body.
pub(super) trait AnswerParser: Send + 'static {
    /// Parses the next bytes. On a flaw, `deltas` has the deltas before it.
    fn feed(&mut self, bytes: &[u8], deltas: &mut VecDeque<AnswerDelta>) -> Result<(), StreamFlaw>;

    /// Parses what is left, and ends the answer. Fails if the body ended before the answer was complete.
    fn finish(&mut self, deltas: &mut VecDeque<AnswerDelta>) -> Result<(), StreamFlaw>;

    /// Returns the pause after which another request continues the answer, after a body without an end, or `None` if nothing
    /// can continue it. Adds to the body of the request what it needs for that.
    fn continues(&mut self, _body: &mut Value) -> Option<Duration> {
        None
    }
}

/// Sends a request, and reads its answer with this parser.
pub(super) async fn ask(route: Route, body: Value, parser: impl AnswerParser) -> Result<UpstreamStream, Error> {
    let OpenAnswer { response, subject } = route.open(&body).await?;
    let incoming = IncomingAnswer {
        bytes: response.bytes_stream().boxed(),
        parser,
        deltas: VecDeque::new(),
        halves: HalfJoiner::default(),
        flaw: None,
        is_over: false,
        body,
        subject,
        route,
    };
    let items = stream::unfold(incoming, |mut incoming| async move { Some((incoming.next().await, incoming)) });
    Ok(items.boxed())
}

/// An answer whose body arrives.
struct IncomingAnswer<P> {
    bytes: BoxStream<'static, reqwest::Result<Bytes>>,
    parser: P,
    /// Deltas that are parsed and not yet returned.
    deltas: VecDeque<AnswerDelta>,
    halves: HalfJoiner,
    /// The flaw that follows those deltas.
    flaw: Option<StreamFlaw>,
    /// Whether the body has ended.
    is_over: bool,
    /// The body of the request.
    body: Value,
    subject: Arc<Subject>,
    route: Route,
}

impl<P: AnswerParser> IncomingAnswer<P> {
    async fn next(&mut self) -> Result<UpstreamItem, Error> {
        if self.deltas.is_empty() && self.flaw.is_none() {
            if self.is_over {
                self.ask_again().await?;
            } else {
                self.read().await?;
            }
        }
        // Order matters: the deltas before a flaw are returned first.
        match (self.deltas.pop_front(), &self.flaw) {
            (Some(delta), _) => Ok(UpstreamItem::Delta(self.halves.join(delta))),
            (None, Some(flaw)) => Err(flaw.to_error(&self.subject)),
            (None, None) => Ok(UpstreamItem::Alive),
        }
    }

    async fn read(&mut self) -> Result<(), Error> {
        let parsed = match self.bytes.next().await {
            Some(Ok(bytes)) => self.parser.feed(&bytes, &mut self.deltas),
            // A server may break the connection after the last word of a complete answer.
            Some(Err(error)) if self.parser.finish(&mut self.deltas).is_err() => {
                return Err(self.route.transport_error(&self.subject, &error));
            }
            Some(Err(_)) => {
                self.is_over = true;
                Ok(())
            }
            None => {
                self.is_over = true;
                self.parser.finish(&mut self.deltas)
            }
        };
        self.flaw = parsed.err();
        Ok(())
    }

    async fn ask_again(&mut self) -> Result<(), Error> {
        let Some(pause) = self.parser.continues(&mut self.body) else {
            self.flaw = Some(StreamFlaw::Truncated);
            return Ok(());
        };
        sleep(pause).await;
        let OpenAnswer { response, subject } = self.route.open(&self.body).await?;
        (self.bytes, self.subject, self.is_over) = (response.bytes_stream().boxed(), subject, false);
        Ok(())
    }
}
