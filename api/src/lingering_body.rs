//! The body of a request that the server may refuse before its end.
//!
//! A client that still sends when its connection closes often sees a broken connection in place of the answer. So the rest of a
//! refused body is read and thrown away, within limits.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::body::{Body, BodyDataStream};
use bytes::Bytes;
use futures::{Stream, StreamExt as _};

/// A body as a stream of bytes; its rest is read after it is dropped.
pub struct LingeringBody {
    /// `None` after its end.
    body: Option<BodyDataStream>,
    most: u64,
    longest: Duration,
}

impl LingeringBody {
    /// Returns the body, of which at most so many bytes are thrown away, in this time.
    pub fn new(body: Body, most: u64, longest: Duration) -> Self {
        Self { body: Some(body.into_data_stream()), most, longest }
    }
}

impl Stream for LingeringBody {
    type Item = Result<Bytes, axum::Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let next = body.poll_next_unpin(context);
        if matches!(next, Poll::Ready(None | Some(Err(_)))) {
            self.body = None;
        }
        next
    }
}

impl Drop for LingeringBody {
    fn drop(&mut self) {
        if let Some(mut body) = self.body.take() {
            let (mut left, longest) = (self.most, self.longest);
            let read = async move {
                while let Some(Ok(bytes)) = body.next().await {
                    left = left.saturating_sub(bytes.len() as u64);
                    if left == 0 {
                        return;
                    }
                }
            };
            tokio::spawn(tokio::time::timeout(longest, read));
        }
    }
}
