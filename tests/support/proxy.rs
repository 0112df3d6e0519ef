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
    /// Where the next connection breaks by itself.
    next: Mutex<Break>,
    /// How many connections have ended in a reset.
    resets: watch::Sender<usize>,
    /// Who says this breaks or falls silent behind it, whichever connection it is.
    behind: Mutex<Option<(String, End)>>,
    /// How many connections have fallen silent.
    silences: watch::Sender<usize>,
}

/// How the carrying of a connection comes to its end.
#[derive(Clone, Copy)]
enum End {
    HungUp,
    Reset,
    Silence,
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
            next: Mutex::new(Break::Nowhere),
            resets: watch::Sender::new(0),
            behind: Mutex::new(None),
            silences: watch::Sender::new(0),
        });
        let carried = Arc::clone(&way);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(carry(client, Arc::clone(&carried)));
            }
        });
        Self { base, way }
    }

    /// Leads to another API from the next connection on, as after a restart.
    pub fn lead_to(&self, api: &str) {
        *self.way.api.lock().unwrap() = authority(api);
    }

    /// Resets all connections.
    pub fn reset(&self) {
        self.way.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Resets all connections, and the one that comes next after so many bytes from the API.
    pub fn reset_and_again_after(&self, bytes: usize) {
        *self.way.next.lock().unwrap() = Break::After(bytes);
        self.reset();
    }

    /// Resets all connections, and the one that comes next as soon as the API has said this.
    pub fn reset_and_again_behind(&self, text: &str) {
        *self.way.next.lock().unwrap() = Break::Behind(text.to_owned());
        self.reset();
    }

    /// Resets the connection on which the API says this next, right behind it.
    pub fn reset_behind(&self, text: &str) {
        *self.way.behind.lock().unwrap() = Some((text.to_owned(), End::Reset));
    }

    /// Carries nothing any more on the connection on which the API says this next, and leaves it open.
    pub async fn silence_behind(&self, text: &str) {
        let mut silences = self.way.silences.subscribe();
        *self.way.behind.lock().unwrap() = Some((text.to_owned(), End::Silence));
        let fallen = tokio::time::timeout(PATIENCE, silences.changed()).await;
        fallen.expect("nothing like it is said").expect("the proxy keeps the sender");
    }

    /// How many connections have ended in a reset so far.
    pub fn resets(&self) -> usize {
        *self.way.resets.borrow()
    }

    /// Waits until so many connections have ended in a reset.
    pub async fn until_resets(&self, count: usize) {
        let mut resets = self.way.resets.subscribe();
        let reached = tokio::time::timeout(PATIENCE, resets.wait_for(|resets| *resets >= count)).await;
        reached.expect("no connection is left to reset").expect("the proxy keeps the sender");
    }
}

fn authority(base: &str) -> String {
    base.trim_start_matches("http://").to_owned()
}

/// Carries what both sides say until one of them hangs up, or the connection is to break.
async fn carry(mut client: TcpStream, way: Arc<Way>) {
    let mut cuts = way.cuts.subscribe();
    let address = way.api.lock().unwrap().clone();
    // Nobody there: the client is refused, as it would be by the API's own host.
    let Ok(mut api) = TcpStream::connect(address).await else {
        return reset(client, &way);
    };
    let at = std::mem::replace(&mut *way.next.lock().unwrap(), Break::Nowhere);
    // What was carried before a reset must be on its way, and not wait for more.
    client.set_nodelay(true).unwrap();
    let end = {
        let (mut from_client, to_client) = client.split();
        let (from_api, mut to_api) = api.split();
        tokio::select! {
            _ = copy(&mut from_client, &mut to_api) => End::HungUp,
            end = carry_answers(from_api, to_client, &at, &way) => end.unwrap_or(End::Reset),
            _ = cuts.changed() => End::Reset,
        }
    };
    match end {
        End::HungUp => {}
        End::Reset => reset(client, &way),
        End::Silence => {
            way.silences.send_modify(|silences| *silences += 1);
            let _ = copy(&mut client, &mut sink()).await;
        }
    }
}

/// What comes behind the place where the connection breaks is not carried.
async fn carry_answers(mut from: ReadHalf<'_>, mut to: WriteHalf<'_>, at: &Break, way: &Way) -> io::Result<End> {
    let mut said = Vec::new();
    let mut carried = 0;
    while from.read_buf(&mut said).await? > 0 {
        let place = at.place(&said).map(|place| (place, End::Reset));
        let place = place.or_else(|| way.place(&said[carried..]).map(|(place, end)| (carried + place, end)));
        to.write_all(&said[carried..place.map_or(said.len(), |(place, _)| place)]).await?;
        if let Some((_, end)) = place {
            return Ok(end);
        }
        carried = said.len();
    }
    Ok(End::HungUp)
}

impl Way {
    /// Where in these bytes the connection comes to an end that it was given; only the first one does.
    fn place(&self, said: &[u8]) -> Option<(usize, End)> {
        let mut behind = self.behind.lock().unwrap();
        let (text, end) = behind.as_ref()?;
        let found = behind_text(said, text).map(|place| (place, *end))?;
        *behind = None;
        Some(found)
    }
}

impl Break {
    fn place(&self, said: &[u8]) -> Option<usize> {
        match self {
            Self::Nowhere => None,
            Self::After(bytes) => (said.len() >= *bytes).then_some(*bytes),
            Self::Behind(text) => behind_text(said, text),
        }
    }
}

fn behind_text(said: &[u8], text: &str) -> Option<usize> {
    said.windows(text.len()).position(|window| window == text.as_bytes()).map(|start| start + text.len())
}

/// What the client has not been sent yet is lost.
fn reset(client: TcpStream, way: &Way) {
    let _ = client.set_zero_linger();
    drop(client);
    way.resets.send_modify(|resets| *resets += 1);
}
