//! Sockets: accepts connections and serves HTTP/1.1 on them, with limits on everything that any client could hold open.
//!
//! This replaces `axum::serve`, which limits neither the time for a request's head nor the number of connections. Its
//! connections also take about twice the memory.

use std::{
    error::Error,
    io,
    net::{IpAddr, SocketAddr},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use axum::Router;
use holdfast_shared::config::{ApiConfig, HolderLimits};
use hyper::{
    Request,
    body::Incoming,
    server::conn::http1,
    service::{Service, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
};
use tokio_io_timeout::TimeoutStream;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    auth::{Peer, one_client},
    counts::{CountGuard, Counts},
    hang_up::HangUp,
    reserve::ReservedConnection,
};

/// Time-out for a request's head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);

/// Time-out for a request's head on a reserved connection.
const RESERVED_HEAD_TIMEOUT: Duration = Duration::from_secs(2);

/// Time for short requests to end during a shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Bytes that the kernel may buffer for one connection. A small buffer reveals a slow reader early and costs little.
const SEND_BUFFER: u32 = 64 * 1024;

/// Bytes that hyper may buffer for one connection.
const HTTP_BUFFER: usize = 16 * 1024;

/// Delay after a failed accept, whose usual cause is a lack of file descriptors.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// The process cannot listen on the address.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    #[error(
        "another program uses {0}: stop that program, or set HOLDFAST_ADDR to another address, such as 127.0.0.1:8081"
    )]
    Taken(SocketAddr),
    #[error("could not listen on {address}: set HOLDFAST_ADDR to an address of this host")]
    Unusable { address: SocketAddr, source: io::Error },
}

/// A listening socket.
pub struct HttpListener(TcpListener);

impl HttpListener {
    /// Binds the address. Callers do this first, so that a taken address fails before the process starts anything else.
    pub fn bind(address: SocketAddr) -> Result<Self, ListenError> {
        let bind = || {
            let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
            socket.set_reuseaddr(true)?;
            socket.set_send_buffer_size(SEND_BUFFER)?;
            socket.bind(address)?;
            socket.listen(4096)
        };
        bind().map(Self).map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => ListenError::Taken(address),
            _ => ListenError::Unusable { address, source: error },
        })
    }

    /// Returns the bound address with its actual port.
    pub fn address(&self) -> SocketAddr {
        self.0.local_addr().expect("a bound socket has an address")
    }

    /// Serves until `shutdown`, then waits up to `SHUTDOWN_TIMEOUT` for short requests.
    pub(crate) async fn serve(
        self,
        router: Router,
        config: &ApiConfig,
        limits: HolderLimits,
        shutdown: CancellationToken,
    ) {
        let permits = ConnectionLimits::new(config);
        let counts = Arc::new(Counts::default());
        let connections = TaskTracker::new();
        loop {
            let accepted = tokio::select! {
                accepted = async { (permits.free().await, self.0.accept().await) } => accepted,
                () = shutdown.cancelled() => break,
            };
            match accepted {
                (permit, Ok((socket, peer))) => {
                    let permit = permits.best(permit);
                    let peer = Peer(peer.ip());
                    // The server closes an address's excess connection without reading from it.
                    let Ok(of_address) = count_connection(&counts, peer, &limits) else { continue };
                    let (router, shutdown, stall) = (router.clone(), shutdown.clone(), config.stall);
                    connections.spawn(async move {
                        serve_connection(socket, peer, router, (stall, permit.is_reserved), shutdown).await;
                        drop((permit, of_address));
                    });
                }
                (_, Err(error)) => {
                    tracing::warn!(%error, "failed to accept a connection");
                    tokio::time::sleep(ACCEPT_RETRY).await;
                }
            }
        }
        drop(self.0);
        connections.close();
        if tokio::time::timeout(SHUTDOWN_TIMEOUT, connections.wait()).await.is_err() {
            tracing::warn!(connections = connections.len(), "closing connections whose requests did not end");
        }
    }
}

/// Permits for connections: first the ordinary ones, then those of the reserve.
struct ConnectionLimits {
    ordinary: Arc<Semaphore>,
    reserve: Arc<Semaphore>,
}

struct ConnectionPermit {
    is_reserved: bool,
    _permit: OwnedSemaphorePermit,
}

impl ConnectionLimits {
    fn new(config: &ApiConfig) -> Self {
        let semaphore = |permits| Arc::new(Semaphore::new(permits));
        Self { ordinary: semaphore(config.max_connections), reserve: semaphore(config.reserved_connections) }
    }

    /// Waits for a permit of either kind; prefers an ordinary one.
    async fn free(&self) -> ConnectionPermit {
        let never_closed = "nothing closes the semaphores";
        let (ordinary, reserve) = (Arc::clone(&self.ordinary), Arc::clone(&self.reserve));
        tokio::select! {
            biased;
            permit = ordinary.acquire_owned() => ConnectionPermit { is_reserved: false, _permit: permit.expect(never_closed) },
            permit = reserve.acquire_owned() => ConnectionPermit { is_reserved: true, _permit: permit.expect(never_closed) },
        }
    }

    /// Returns an ordinary permit if one has become free since, else the given one.
    fn best(&self, taken: ConnectionPermit) -> ConnectionPermit {
        match Arc::clone(&self.ordinary).try_acquire_owned() {
            Ok(permit) if taken.is_reserved => ConnectionPermit { is_reserved: false, _permit: permit },
            _ => taken,
        }
    }
}

/// Counts a connection for its address. Returns `None` if no limit applies, and fails if the address has reached its
/// limit.
fn count_connection(
    counts: &Arc<Counts<IpAddr>>,
    Peer(peer): Peer,
    limits: &HolderLimits,
) -> Result<Option<CountGuard<IpAddr>>, ()> {
    let peer = peer.to_canonical();
    match limits.connections_per_address {
        // A trusted proxy connects on behalf of many clients.
        Some(most) if !limits.trusted_proxies.iter().any(|network| network.contains(&peer)) => {
            counts.take(one_client(peer), 1, most).map(Some).ok_or(())
        }
        _ => Ok(None),
    }
}

async fn serve_connection(
    socket: TcpStream,
    peer: Peer,
    router: Router,
    (stall, is_reserved): (Duration, bool),
    shutdown: CancellationToken,
) {
    let _ = socket.set_nodelay(true);
    let mut socket = TimeoutStream::new(socket);
    socket.set_write_timeout(Some(stall));
    let router = TowerToHyperService::new(router);
    let hang_up = HangUp::default();
    let ends = hang_up.clone();
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer);
        request.extensions_mut().insert(hang_up.clone());
        if is_reserved {
            request.extensions_mut().insert(ReservedConnection);
        }
        router.call(request)
    });
    let mut http = http1::Builder::new();
    let head = if is_reserved { RESERVED_HEAD_TIMEOUT } else { HEAD_TIMEOUT };
    // A reserved connection serves one request only, so that it is soon free again.
    http.timer(TokioTimer::new()).header_read_timeout(head).max_buf_size(HTTP_BUFFER).keep_alive(!is_reserved);
    let mut connection = pin!(http.serve_connection(TokioIo::new(Box::pin(socket)), service));
    let serving = async {
        tokio::select! {
            result = &mut connection => result,
            () = shutdown.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        }
    };
    let result = tokio::select! {
        result = serving => result,
        () = ends.wanted() => {
            metrics::counter!("holdfast_connections_stalled_total").increment(1);
            tracing::trace!("closed the connection of a client that read its answer too slowly");
            return;
        }
    };
    if let Err(error) = result {
        if is_stalled(&error) {
            metrics::counter!("holdfast_connections_stalled_total").increment(1);
        }
        tracing::trace!(%error, "a connection ended with an error");
    }
}

/// Returns whether the client's socket accepted nothing until the write time-out.
fn is_stalled(error: &hyper::Error) -> bool {
    let mut source = error.source();
    while let Some(cause) = source {
        if cause.downcast_ref::<io::Error>().is_some_and(|cause| cause.kind() == io::ErrorKind::TimedOut) {
            return true;
        }
        source = cause.source();
    }
    false
}
