//! A provider as this module sees it: one try at one answer, without time-outs and retries.

use futures::{StreamExt, future::BoxFuture, stream::BoxStream};
use holdfast_shared::config::ModelConfig;

use super::{AnswerDelta, Error, Request};

/// Most bytes of the body of an error or of a token that are read; no server needs more.
const SHORT_BODY_BYTES: usize = 64 * 1024;

/// One way to reach a provider.
pub(super) trait Upstream: Send + Sync + 'static {
    /// Makes one try. Dropping the future or the stream cancels the request.
    fn ask(&self, request: &Request) -> BoxFuture<'static, Result<UpstreamStream, Error>>;

    /// Returns how many tools of a request the provider takes.
    fn max_tools(&self) -> usize {
        usize::MAX
    }

    /// Returns whether the provider has a field for the names of speakers.
    fn takes_names(&self) -> bool {
        false
    }
}

/// The provider's items in order. Items after `AnswerDelta::End` or the first error do not count. A stream that ends
/// without either was truncated.
pub(super) type UpstreamStream = BoxStream<'static, Result<UpstreamItem, Error>>;

/// An item that shows that the provider responds.
#[derive(Debug)]
pub(super) enum UpstreamItem {
    /// A piece of the answer.
    Delta(AnswerDelta),
    /// Bytes without a piece of the answer, such as a keep-alive comment while a model reasons silently.
    Alive,
}

/// Returns the HTTP client for all requests to providers.
pub(super) fn client(config: &ModelConfig) -> Result<reqwest::Client, reqwest::Error> {
    reqwest::Client::builder()
        .connect_timeout(config.model_connect)
        .pool_max_idle_per_host(config.model_pool)
        .tcp_nodelay(true)
        // A redirected POST would send the conversation, and perhaps the key, to a server that no operator configured.
        .redirect(reqwest::redirect::Policy::none())
        // Compressed streams arrive in bursts.
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate()
        .build()
}

/// Returns the beginning of the body of an error or of a token, without the bytes that cannot be read.
pub(super) async fn read_short_body(response: reqwest::Response) -> String {
    let mut body = Vec::new();
    let mut chunks = response.bytes_stream();
    while let Some(Ok(chunk)) = chunks.next().await {
        body.extend_from_slice(&chunk);
        if body.len() >= SHORT_BODY_BYTES {
            body.truncate(SHORT_BODY_BYTES);
            break;
        }
    }
    String::from_utf8_lossy(&body).into_owned()
}
