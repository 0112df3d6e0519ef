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

use super::PATIENCE;

pub struct Proxy {
    pub base: String,
    way: Arc<Way>,
}

struct Way {
    /// The API's host and port.
    api: Mutex<String>,
    /// Counts the cuts: who carries a connection when it changes resets it.
    cuts: watch::Sender<usize>,
    /// Counts the silences: each connection that is carried when it changes falls silent.
    silences: watch::Sender<usize>,
    /// How many connections have come so far.
    arrivals: watch::Sender<usize>,
    /// Where one of the next connections breaks by itself, the first that comes to it.
    next: Mutex<Next>,
    /// How many connections have ended in a reset.
    resets: watch::Sender<usize>,
    /// How many connections have broken by themselves.
    breaks: watch::Sender<usize>,
    /// How many connections have found nobody behind the proxy.
    refusals: watch::Sender<usize>,
}

struct Next {
    at: Break,
    how: End,
    /// Those that began after so many cuts.
    after: usize,
}

/// How a connection comes to its end.
#[derive(Clone, Copy, PartialEq)]
enum End {
    HungUp,
    Reset,
    /// It stays open, and nothing is carried any more.
    Silent,
}

/// Where in what the API says a connection breaks.
enum Break {
    Nowhere,
    After(usize),
    Behind(String),
}

impl Proxy {
    /// In front of the API with this base.
    pub async fn before(api: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let way = Arc::new(Way {
            api: Mutex::new(authority(api)),
            cuts: watch::Sender::new(0),
            silences: watch::Sender::new(0),
            arrivals: watch::Sender::new(0),
            next: Mutex::new(Next { at: Break::Nowhere, how: End::Reset, after: 0 }),
            resets: watch::Sender::new(0),
            breaks: watch::Sender::new(0),
            refusals: watch::Sender::new(0),
        });
        let carried = Arc::clone(&way);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                carried.arrivals.send_modify(|arrivals| *arrivals += 1);
                tokio::spawn(carry(client, Arc::clone(&carried)));
            }
        });
        Self { base, way }
    }

    /// Leads to another API from the next connection on, as after a restart.
    pub fn lead_to(&self, api: &str) {
        *self.way.api.lock().unwrap() = authority(api);
    }

    /// Lets all connections fall silent. Those that come next are carried as ever.
    pub fn silence(&self) {
        self.way.silences.send_modify(|silences| *silences += 1);
    }

    /// How many connections have come so far.
    pub fn arrivals(&self) -> usize {
        *self.way.arrivals.borrow()
    }

    /// Waits until so many connections have come.
    pub async fn until_arrivals(&self, count: usize) {
        let mut arrivals = self.way.arrivals.subscribe();
        let reached = tokio::time::timeout(PATIENCE, arrivals.wait_for(|arrivals| *arrivals >= count)).await;
        reached.expect("not enough connections have come").expect("the proxy keeps the sender");
    }

    /// Resets all connections.
    pub fn reset(&self) {
        self.way.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Resets all connections, and the first of those that come next on which the API has said so many bytes.
    pub fn reset_and_again_after(&self, bytes: usize) {
        self.reset_and_again(Break::After(bytes));
    }

    /// Resets all connections, and the first of those that come next on which the API has said this.
    pub fn reset_and_again_behind(&self, text: &str) {
        self.reset_and_again(Break::Behind(text.to_owned()));
    }

    fn reset_and_again(&self, at: Break) {
        let after = *self.way.cuts.borrow() + 1;
        *self.way.next.lock().unwrap() = Next { at, how: End::Reset, after };
        self.reset();
    }

    /// The connection on which the API says this next falls silent behind it: a network that is gone, and nobody knows.
    pub fn silence_behind(&self, text: &str) {
        *self.way.next.lock().unwrap() = Next { at: Break::Behind(text.to_owned()), how: End::Silent, after: 0 };
    }

    /// How many connections have ended in a reset so far.
    pub fn resets(&self) -> usize {
        *self.way.resets.borrow()
    }

    /// Waits until so many connections have broken where they were to.
    pub async fn until_breaks(&self, count: usize) {
        let mut breaks = self.way.breaks.subscribe();
        let reached = tokio::time::timeout(PATIENCE, breaks.wait_for(|breaks| *breaks >= count)).await;
        reached.expect("no connection has come to where it was to break").expect("the proxy keeps the sender");
    }

    /// Waits until a client has come while nobody was there.
    pub async fn until_refused(&self) {
        let mut refusals = self.way.refusals.subscribe();
        let reached = tokio::time::timeout(PATIENCE, refusals.wait_for(|refusals| *refusals > 0)).await;
        reached.expect("no client has come").expect("the proxy keeps the sender");
    }
}

fn authority(base: &str) -> String {
    base.trim_start_matches("http://").to_owned()
}

/// Carries what both sides say until one of them hangs up, or the connection is to break.
async fn carry(mut client: TcpStream, way: Arc<Way>) {
    let mut cuts = way.cuts.subscribe();
    let mut silences = way.silences.subscribe();
    let begun = *cuts.borrow();
    let address = way.api.lock().unwrap().clone();
    // Nobody there: the client is refused, as it would be by the API's own host.
    let Ok(mut api) = TcpStream::connect(address).await else {
        reset(client, &way);
        return way.refusals.send_modify(|refusals| *refusals += 1);
    };
    // What was carried before a reset must be on its way, and not wait for more.
    client.set_nodelay(true).unwrap();
    let end = {
        let (mut from_client, to_client) = client.split();
        let (from_api, mut to_api) = api.split();
        tokio::select! {
            _ = copy(&mut from_client, &mut to_api) => End::HungUp,
            end = carry_answers(from_api, to_client, |said, fresh| way.breaks_at(begun, said, fresh)) => {
                way.breaks.send_modify(|breaks| *breaks += usize::from(matches!(end, Ok(End::Reset | End::Silent))));
                end.unwrap_or(End::Reset)
            }
            _ = cuts.changed() => End::Reset,
            _ = silences.changed() => End::Silent,
        }
    };
    match end {
        End::HungUp => {}
        End::Reset => reset(client, &way),
        // Until the client gives it up.
        End::Silent => drop(copy(&mut client, &mut sink()).await),
    }
}

/// What comes behind the place where the connection breaks is not carried.
async fn carry_answers(
    mut from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    breaks_at: impl Fn(&[u8], usize) -> Option<(usize, End)>,
) -> io::Result<End> {
    let mut said = Vec::new();
    let mut carried = 0;
    while from.read_buf(&mut said).await? > 0 {
        let place = breaks_at(&said, carried);
        to.write_all(&said[carried..place.map_or(said.len(), |(place, _)| place)]).await?;
        if let Some((_, end)) = place {
            return Ok(end);
        }
        carried = said.len();
    }
    Ok(End::HungUp)
}

impl Way {
    /// The place in what the API has said on a connection where that breaks, and how; no other does then. A connection that
    /// is there already can only break in what was not carried yet.
    fn breaks_at(&self, begun: usize, said: &[u8], carried: usize) -> Option<(usize, End)> {
        let mut next = self.next.lock().unwrap();
        if begun < next.after {
            return None;
        }
        let from = if next.how == End::Silent { carried } else { 0 };
        let place = from + next.at.place(&said[from..])?;
        next.at = Break::Nowhere;
        Some((place, next.how))
    }
}

impl Break {
    fn place(&self, said: &[u8]) -> Option<usize> {
        match self {
            Self::Nowhere => None,
            Self::After(bytes) => (said.len() >= *bytes).then_some(*bytes),
            Self::Behind(text) => {
                let found = said.windows(text.len()).position(|window| window == text.as_bytes());
                found.map(|start| start + text.len())
            }
        }
    }
}

/// What the client has not been sent yet is lost.
fn reset(client: TcpStream, way: &Way) {
    let _ = client.set_zero_linger();
    drop(client);
    way.resets.send_modify(|resets| *resets += 1);
}
