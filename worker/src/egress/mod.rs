//! The only place in which a worker connects to an address that a user, a page or a foreign server has named.
//!
//! `addresses` says which addresses are public. The rules: https alone, no address of a private, loopback or link-local network,
//! judged on the address that is connected to and again after each redirect, and bounds of bytes and time. Exceptions are the
//! operator's, in `HOLDFAST_EGRESS_ALLOW`.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use holdfast_shared::{
    config::{AllowedHost, EgressConfig},
    turns::{TurnPermit, Turns},
};
use reqwest::{
    Client, Response, StatusCode, Url,
    dns::{Addrs, Name, Resolve, Resolving},
    header::LOCATION,
    redirect,
};
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout_at},
};

mod addresses;

use addresses::{is_public, literal_of};

/// Most redirects of one fetch.
const MAX_REDIRECTS: usize = 5;

/// Runs for which a worker fetches at the same time, at most one of a caller. A server that never answers costs a connection only.
const RUNS_AT_ONCE: usize = 64;

/// Bodies that arrive at the same time, because each may take much memory.
const BODIES_AT_ONCE: usize = 8;

/// Time of a body before the least rate counts.
const PATIENCE: Duration = Duration::from_secs(2);

/// Least bytes per second of a body, or a slow server would hold a place of others.
const LEAST_RATE: usize = 64 << 10;

/// Addresses of a run that are fetched at the same time.
pub const ADDRESSES_AT_ONCE: usize = 2;

/// Most time for a connection.
const CONNECT: Duration = Duration::from_secs(5);

/// Fetches what users have named.
pub struct Egress {
    /// Connects to public addresses only.
    public: Client,
    /// For the exceptions.
    allowed: Client,
    exceptions: Vec<AllowedHost>,
    max_bytes: usize,
    turns: Turns,
    bodies: Semaphore,
}

/// Why nothing was fetched, in words for the reader, without an address of ours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EgressError {
    #[error("its address is invalid")]
    Invalid,
    #[error("its address has a name or a password")]
    Credentials,
    #[error("its address does not begin with https")]
    NotHttps,
    #[error("its address is not public")]
    NotPublic,
    #[error("it is redirected too often")]
    Redirects,
    #[error("its server answers with status {0}")]
    Status(u16),
    #[error("it has more than {0} bytes")]
    TooLarge(usize),
    #[error("its server sends it too slowly")]
    TooSlow,
    #[error("its server cannot be reached")]
    Unreachable,
    #[error("too much else is fetched at the moment")]
    Busy,
}

impl Egress {
    /// Makes the clients. Neither uses the proxy of the environment, which would connect for us.
    pub fn new(config: &EgressConfig) -> reqwest::Result<Self> {
        let client = || {
            Client::builder()
                .redirect(redirect::Policy::none())
                .no_proxy()
                .connect_timeout(CONNECT)
                .pool_max_idle_per_host(0)
                .user_agent(concat!("holdfast/", env!("CARGO_PKG_VERSION")))
        };
        Ok(Self {
            public: client().https_only(true).dns_resolver(Arc::new(PublicResolver)).build()?,
            allowed: client().build()?,
            exceptions: config.egress_allow.clone(),
            max_bytes: config.egress_max_bytes,
            turns: Turns::new(RUNS_AT_ONCE),
            bodies: Semaphore::new(BODIES_AT_ONCE),
        })
    }

    /// Waits for the turn of a run of this caller, who has one at a time.
    pub async fn turn(&self, caller: &str, patience: Duration) -> Result<TurnPermit, EgressError> {
        self.turns.take(caller, patience).await.map_err(|_| EgressError::Busy)
    }

    /// Returns the contents at an address, within a turn. The caller bounds the time.
    pub async fn fetch(&self, _turn: &TurnPermit, address: &str) -> Result<Bytes, EgressError> {
        let mut url = Url::parse(address).map_err(|_| EgressError::Invalid)?;
        for _ in 0..=MAX_REDIRECTS {
            let response = self.get(&url).await?;
            match response.status() {
                status if status.is_success() => return self.body(response).await,
                status if is_redirect(status) => url = target(&url, &response).ok_or(EgressError::Invalid)?,
                status => return Err(EgressError::Status(status.as_u16())),
            }
        }
        Err(EgressError::Redirects)
    }

    /// Requests one address, if the rules allow it.
    async fn get(&self, url: &Url) -> Result<Response, EgressError> {
        let client = self.client_for(url)?;
        client.get(url.clone()).send().await.map_err(|error| {
            let is_refused = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source())
                .any(|error| error.is::<NoPublicAddress>());
            tracing::debug!(%error, "failed to fetch what a user has named");
            if is_refused { EgressError::NotPublic } else { EgressError::Unreachable }
        })
    }

    fn client_for(&self, url: &Url) -> Result<&Client, EgressError> {
        if !url.username().is_empty() || url.password().is_some() {
            return Err(EgressError::Credentials);
        }
        let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
            return Err(EgressError::Invalid);
        };
        let is_web = matches!(url.scheme(), "https" | "http");
        if is_web && self.exceptions.iter().any(|exception| exception.is_for(host, port)) {
            return Ok(&self.allowed);
        }
        if url.scheme() != "https" {
            return Err(EgressError::NotHttps);
        }
        // The resolver does not see an address that needs no name.
        match literal_of(host) {
            Some(address) if !is_public(address) => Err(EgressError::NotPublic),
            _ => Ok(&self.public),
        }
    }

    async fn body(&self, response: Response) -> Result<Bytes, EgressError> {
        let too_large = || EgressError::TooLarge(self.max_bytes);
        if response.content_length().is_some_and(|length| length > self.max_bytes as u64) {
            return Err(too_large());
        }
        let _place = self.bodies.acquire().await.expect("it is never closed");
        let begun = Instant::now();
        let (mut body, mut chunks) = (BytesMut::new(), response.bytes_stream());
        loop {
            let next = timeout_at(begun + latest(body.len()), chunks.next()).await;
            let Some(chunk) = next.map_err(|_| EgressError::TooSlow)? else { return Ok(body.freeze()) };
            let chunk = chunk.map_err(|_| EgressError::Unreachable)?;
            if body.len() + chunk.len() > self.max_bytes {
                return Err(too_large());
            }
            body.extend_from_slice(&chunk);
        }
    }
}

/// Returns the time within which the bytes after these must begin to arrive.
fn latest(arrived: usize) -> Duration {
    PATIENCE + Duration::from_secs_f64(arrived as f64 / LEAST_RATE as f64)
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

fn target(from: &Url, response: &Response) -> Option<Url> {
    from.join(response.headers().get(LOCATION)?.to_str().ok()?).ok()
}

/// A name has no public address.
#[derive(Debug, thiserror::Error)]
#[error("the name has no public address")]
struct NoPublicAddress;

/// Resolves names to their public addresses. The client connects to these and no others, so a second answer of the name's server
/// changes nothing.
struct PublicResolver;

impl Resolve for PublicResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let public: Vec<SocketAddr> = found.filter(|address| is_public(address.ip())).collect();
            if public.is_empty() {
                return Err(NoPublicAddress.into());
            }
            let addresses: Addrs = Box::new(public.into_iter());
            Ok(addresses)
        })
    }
}

#[cfg(test)]
mod tests;
