//! A proxy between clients and an API, whose connections a test can break. Its address stays when the API's changes.

use std::{
    io,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy, sink},
    net::{
        TcpListener, TcpStream,
        tcp::{ReadHalf, WriteHalf},
    },
    sync::watch,
};

use super::TIMEOUT;

pub struct Proxy {
    pub base: String,
    state: Arc<ProxyState>,
}

struct ProxyState {
    /// The API's host and port.
    api: Mutex<String>,
    /// Counts the resets of all connections. Each change resets every open connection.
    reset_count: watch::Sender<usize>,
    /// Counts the silences. After each change, every open connection stays open and carries nothing.
    silences: watch::Sender<usize>,
    /// Number of connections so far.
    arrivals: watch::Sender<usize>,
    /// Where one of the next connections breaks; the first one that gets there.
    next: Mutex<NextBreak>,
    /// Number of connections that ended in a reset.
    resets: watch::Sender<usize>,
    /// Number of connections that broke at a break point.
    breaks: watch::Sender<usize>,
    /// Number of connections that found no API.
    refusals: watch::Sender<usize>,
}

struct NextBreak {
    at: BreakPoint,
    how: ConnectionEnd,
    /// Only connections that started after this number of resets break.
    after: usize,
}

/// How a connection ends.
#[derive(Clone, Copy, PartialEq)]
enum ConnectionEnd {
    HungUp,
    Reset,
    /// The connection stays open, and the proxy carries nothing more.
    Silent,
}

/// Where in the API's bytes a connection breaks.
enum BreakPoint {
    Nowhere,
    AfterBytes(usize),
    AfterText(String),
}

impl Proxy {
    /// Starts a proxy in front of the API with this URL.
    pub async fn before(api: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(ProxyState {
            api: Mutex::new(authority(api)),
            reset_count: watch::Sender::new(0),
            silences: watch::Sender::new(0),
            arrivals: watch::Sender::new(0),
            next: Mutex::new(NextBreak { at: BreakPoint::Nowhere, how: ConnectionEnd::Reset, after: 0 }),
            resets: watch::Sender::new(0),
            breaks: watch::Sender::new(0),
            refusals: watch::Sender::new(0),
        });
        let carried = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                carried.arrivals.send_modify(|arrivals| *arrivals += 1);
                tokio::spawn(carry(client, Arc::clone(&carried)));
            }
        });
        Self { base, state }
    }

    /// Sends new connections to another API, as after a restart.
    pub fn lead_to(&self, api: &str) {
        *self.state.api.lock().unwrap() = authority(api);
    }

    /// Silences all open connections. New connections work.
    pub fn silence(&self) {
        self.state.silences.send_modify(|silences| *silences += 1);
    }

    /// Returns the number of connections so far.
    pub fn arrivals(&self) -> usize {
        *self.state.arrivals.borrow()
    }

    /// Waits for the given number of connections.
    pub async fn until_arrivals(&self, count: usize) {
        let mut arrivals = self.state.arrivals.subscribe();
        let reached = tokio::time::timeout(TIMEOUT, arrivals.wait_for(|arrivals| *arrivals >= count)).await;
        reached.expect("too few connections").expect("the proxy keeps the sender");
    }

    /// Resets all open connections.
    pub fn reset(&self) {
        self.state.reset_count.send_modify(|count| *count += 1);
    }

    /// Resets all open connections, and the first new one on which the API has sent this number of bytes.
    pub fn reset_and_again_after_bytes(&self, bytes: usize) {
        self.reset_and_again(BreakPoint::AfterBytes(bytes));
    }

    /// Resets all open connections, and the first new one on which the API has sent this text.
    pub fn reset_and_again_after_text(&self, text: &str) {
        self.reset_and_again(BreakPoint::AfterText(text.to_owned()));
    }

    fn reset_and_again(&self, at: BreakPoint) {
        let after = *self.state.reset_count.borrow() + 1;
        *self.state.next.lock().unwrap() = NextBreak { at, how: ConnectionEnd::Reset, after };
        self.reset();
    }

    /// Silences the next connection on which the API sends this text, after the text. Neither side notices the loss.
    pub fn silence_after(&self, text: &str) {
        *self.state.next.lock().unwrap() =
            NextBreak { at: BreakPoint::AfterText(text.to_owned()), how: ConnectionEnd::Silent, after: 0 };
    }

    /// Returns the number of connections that ended in a reset so far.
    pub fn resets(&self) -> usize {
        *self.state.resets.borrow()
    }

    /// Waits until the given number of connections have broken at a break point.
    pub async fn until_breaks(&self, count: usize) {
        let mut breaks = self.state.breaks.subscribe();
        let reached = tokio::time::timeout(TIMEOUT, breaks.wait_for(|breaks| *breaks >= count)).await;
        reached.expect("no connection has reached its break point").expect("the proxy keeps the sender");
    }

    /// Waits until a client has connected while there was no API.
    pub async fn until_refused(&self) {
        let mut refusals = self.state.refusals.subscribe();
        let reached = tokio::time::timeout(TIMEOUT, refusals.wait_for(|refusals| *refusals > 0)).await;
        reached.expect("no client has connected").expect("the proxy keeps the sender");
    }
}

fn authority(base: &str) -> String {
    base.trim_start_matches("http://").to_owned()
}

/// Forwards the bytes of both sides until one of them hangs up, or the connection must break.
async fn carry(mut client: TcpStream, state: Arc<ProxyState>) {
    let mut reset_count = state.reset_count.subscribe();
    let mut silences = state.silences.subscribe();
    let cuts_at_start = *reset_count.borrow();
    let address = state.api.lock().unwrap().clone();
    // Without an API the client is refused, as the API's own host would do.
    let Ok(mut api) = TcpStream::connect(address).await else {
        reset(client, &state);
        return state.refusals.send_modify(|refusals| *refusals += 1);
    };
    // The bytes before a reset must leave at once, and not wait for more.
    client.set_nodelay(true).unwrap();
    let end = {
        let (mut from_client, to_client) = client.split();
        let (from_api, mut to_api) = api.split();
        tokio::select! {
            _ = copy(&mut from_client, &mut to_api) => ConnectionEnd::HungUp,
            end = carry_answers(from_api, to_client, |received, carried| state.breaks_at(cuts_at_start, received, carried)) => {
                state.breaks.send_modify(|breaks| *breaks += usize::from(matches!(end, Ok(ConnectionEnd::Reset | ConnectionEnd::Silent))));
                end.unwrap_or(ConnectionEnd::Reset)
            }
            _ = reset_count.changed() => ConnectionEnd::Reset,
            _ = silences.changed() => ConnectionEnd::Silent,
        }
    };
    match end {
        ConnectionEnd::HungUp => {}
        ConnectionEnd::Reset => reset(client, &state),
        // The connection stays open until the client closes it.
        ConnectionEnd::Silent => drop(copy(&mut client, &mut sink()).await),
    }
}

/// Forwards the API's bytes up to the offset where the connection breaks.
async fn carry_answers(
    mut from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    breaks_at: impl Fn(&[u8], usize) -> Option<(usize, ConnectionEnd)>,
) -> io::Result<ConnectionEnd> {
    let mut received = Vec::new();
    let mut carried = 0;
    while from.read_buf(&mut received).await? > 0 {
        let offset = breaks_at(&received, carried);
        to.write_all(&received[carried..offset.map_or(received.len(), |(offset, _)| offset)]).await?;
        if let Some((_, end)) = offset {
            return Ok(end);
        }
        carried = received.len();
    }
    Ok(ConnectionEnd::HungUp)
}

impl ProxyState {
    /// Returns the offset at which a connection breaks, and how. It clears the break point, so that no other connection
    /// breaks there. A silence applies only to bytes that the proxy has not forwarded.
    fn breaks_at(&self, cuts_at_start: usize, received: &[u8], carried: usize) -> Option<(usize, ConnectionEnd)> {
        let mut next = self.next.lock().unwrap();
        if cuts_at_start < next.after {
            return None;
        }
        let from = if next.how == ConnectionEnd::Silent { carried } else { 0 };
        let offset = from + next.at.offset(&received[from..])?;
        next.at = BreakPoint::Nowhere;
        Some((offset, next.how))
    }
}

impl BreakPoint {
    fn offset(&self, received: &[u8]) -> Option<usize> {
        match self {
            Self::Nowhere => None,
            Self::AfterBytes(bytes) => (received.len() >= *bytes).then_some(*bytes),
            Self::AfterText(text) => {
                let text_start = received.windows(text.len()).position(|window| window == text.as_bytes());
                text_start.map(|start| start + text.len())
            }
        }
    }
}

/// Resets a connection, and drops the bytes that the client has not received.
fn reset(client: TcpStream, state: &ProxyState) {
    let _ = client.set_zero_linger();
    drop(client);
    state.resets.send_modify(|resets| *resets += 1);
}
