//! A network between a client and the API that breaks when a test says so. Its address stays when the API's changes.

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
    /// Counts the cuts: who carries a connection when it changes resets it.
    reset_count: watch::Sender<usize>,
    /// Counts the silences: each connection that is carried when it changes falls silent.
    silences: watch::Sender<usize>,
    /// How many connections have come so far.
    arrivals: watch::Sender<usize>,
    /// Where one of the next connections breaks by itself, the first that comes to it.
    next: Mutex<NextBreak>,
    /// How many connections have ended in a reset.
    resets: watch::Sender<usize>,
    /// How many connections have broken by themselves.
    breaks: watch::Sender<usize>,
    /// How many connections have found nobody behind the proxy.
    refusals: watch::Sender<usize>,
}

struct NextBreak {
    at: BreakPoint,
    how: ConnectionEnd,
    /// Those that began after so many cuts.
    after: usize,
}

/// How a connection comes to its end.
#[derive(Clone, Copy, PartialEq)]
enum ConnectionEnd {
    HungUp,
    Reset,
    /// It stays open, and nothing is carried any more.
    Silent,
}

/// Where in what the API says a connection breaks.
enum BreakPoint {
    Nowhere,
    AfterBytes(usize),
    AfterText(String),
}

impl Proxy {
    /// In front of the API with this base.
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

    /// Leads to another API from the next connection on, as after a restart.
    pub fn lead_to(&self, api: &str) {
        *self.state.api.lock().unwrap() = authority(api);
    }

    /// Lets all connections fall silent. Those that come next are carried as ever.
    pub fn silence(&self) {
        self.state.silences.send_modify(|silences| *silences += 1);
    }

    /// How many connections have come so far.
    pub fn arrivals(&self) -> usize {
        *self.state.arrivals.borrow()
    }

    /// Waits until so many connections have come.
    pub async fn until_arrivals(&self, count: usize) {
        let mut arrivals = self.state.arrivals.subscribe();
        let reached = tokio::time::timeout(TIMEOUT, arrivals.wait_for(|arrivals| *arrivals >= count)).await;
        reached.expect("not enough connections have come").expect("the proxy keeps the sender");
    }

    /// Resets all connections.
    pub fn reset(&self) {
        self.state.reset_count.send_modify(|reset_count| *reset_count += 1);
    }

    /// Resets all connections, and the first of those that come next on which the API has received so many bytes.
    pub fn reset_and_again_after_bytes(&self, bytes: usize) {
        self.reset_and_again(BreakPoint::AfterBytes(bytes));
    }

    /// Resets all connections, and the first of those that come next on which the API has received this.
    pub fn reset_and_again_after_text(&self, text: &str) {
        self.reset_and_again(BreakPoint::AfterText(text.to_owned()));
    }

    fn reset_and_again(&self, at: BreakPoint) {
        let after = *self.state.reset_count.borrow() + 1;
        *self.state.next.lock().unwrap() = NextBreak { at, how: ConnectionEnd::Reset, after };
        self.reset();
    }

    /// The connection on which the API says this next falls silent behind it: a network that is gone, and nobody knows.
    pub fn silence_after(&self, text: &str) {
        *self.state.next.lock().unwrap() =
            NextBreak { at: BreakPoint::AfterText(text.to_owned()), how: ConnectionEnd::Silent, after: 0 };
    }

    /// How many connections have ended in a reset so far.
    pub fn resets(&self) -> usize {
        *self.state.resets.borrow()
    }

    /// Waits until so many connections have broken where they were to.
    pub async fn until_breaks(&self, count: usize) {
        let mut breaks = self.state.breaks.subscribe();
        let reached = tokio::time::timeout(TIMEOUT, breaks.wait_for(|breaks| *breaks >= count)).await;
        reached.expect("no connection has come to where it was to break").expect("the proxy keeps the sender");
    }

    /// Waits until a client has come while nobody was there.
    pub async fn until_refused(&self) {
        let mut refusals = self.state.refusals.subscribe();
        let reached = tokio::time::timeout(TIMEOUT, refusals.wait_for(|refusals| *refusals > 0)).await;
        reached.expect("no client has come").expect("the proxy keeps the sender");
    }
}

fn authority(base: &str) -> String {
    base.trim_start_matches("http://").to_owned()
}

/// Carries what both sides say until one of them hangs up, or the connection is to break.
async fn carry(mut client: TcpStream, state: Arc<ProxyState>) {
    let mut reset_count = state.reset_count.subscribe();
    let mut silences = state.silences.subscribe();
    let cuts_at_start = *reset_count.borrow();
    let address = state.api.lock().unwrap().clone();
    // Nobody there: the client is refused, as it would be by the API's own host.
    let Ok(mut api) = TcpStream::connect(address).await else {
        reset(client, &state);
        return state.refusals.send_modify(|refusals| *refusals += 1);
    };
    // What was carried before a reset must be on its state, and not wait for more.
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
        // Until the client gives it up.
        ConnectionEnd::Silent => drop(copy(&mut client, &mut sink()).await),
    }
}

/// What comes behind the offset where the connection breaks is not carried.
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
    /// The offset in what the API has received on a connection where that breaks, and how; no other does then. A connection that
    /// is there already can only break in what was not carried yet.
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

/// What the client has not been sent yet is lost.
fn reset(client: TcpStream, state: &ProxyState) {
    let _ = client.set_zero_linger();
    drop(client);
    state.resets.send_modify(|resets| *resets += 1);
}
