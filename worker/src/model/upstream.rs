//! What a provider looks like from the inside of this module: one try at one answer, without patience.

use futures::{StreamExt, future::BoxFuture, stream::BoxStream};
use holdfast_shared::config::ModelConfig;

use super::{AnswerDelta, Error, Request};

/// Bytes of an error's body that are read; no provider needs more to say what is wrong.
const ERROR_BODY_BYTES: usize = 64 * 1024;

/// One way of reaching a provider.
pub(super) trait Upstream: Send + Sync + 'static {
    /// Makes one try. Dropping the future, or the stream, cancels the request.
    fn ask(&self, request: &Request) -> BoxFuture<'static, Result<UpstreamStream, Error>>;
}

/// What comes from the provider in order. Nothing after `Delta::End` or the first error counts; a stream that ends
/// without either was truncated.
pub(super) type UpstreamStream = BoxStream<'static, Result<UpstreamItem, Error>>;

/// A sign of life.
#[derive(Debug)]
pub(super) enum UpstreamItem {
    /// A piece of the answer.
    Delta(AnswerDelta),
    /// Bytes without a piece of the answer, such as a keep-alive comment while a model thinks in silence.
    Alive,
}

/// The HTTP client for all requests to the provider.
pub(super) fn client(config: &ModelConfig) -> Result<reqwest::Client, reqwest::Error> {
    reqwest::Client::builder()
        .connect_timeout(config.model_connect)
        .pool_max_idle_per_host(config.model_pool)
        .tcp_nodelay(true)
        // A redirected POST would carry the conversation, and perhaps the key, to somebody that nobody configured.
        .redirect(reqwest::redirect::Policy::none())
        // Compressed streams come in lumps.
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate()
        .build()
}

/// The beginning of an error's body; what cannot be read is left out.
pub(super) async fn read_error_body(response: reqwest::Response) -> String {
    let mut body = Vec::new();
    let mut chunks = response.bytes_stream();
    while let Some(Ok(chunk)) = chunks.next().await {
        body.extend_from_slice(&chunk);
        if body.len() >= ERROR_BODY_BYTES {
            body.truncate(ERROR_BODY_BYTES);
            break;
        }
    }
    String::from_utf8_lossy(&body).into_owned()
}
