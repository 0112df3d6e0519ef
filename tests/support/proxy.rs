//! A network between a client and the API that breaks when a test says so. Its address stays when the API's changes.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use tokio::{
    io::{AsyncReadExt, copy},
    net::{TcpListener, TcpStream},
    sync::watch,
};

pub struct Proxy {
    pub base: String,
    way: Arc<Way>,
}

struct Way {
    /// The API's host and port.
    api: Mutex<String>,
    /// Counts the cuts: who carries a connection when it changes resets it.
    cuts: watch::Sender<usize>,
    /// What the next answers may have in bytes, before their connections are reset.
    allowance: AtomicU64,
    /// How many connections have ended in a reset.
    resets: AtomicUsize,
}

impl Proxy {
    /// In front of the API with this base.
    pub async fn before(api: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let way = Arc::new(Way {
            api: Mutex::new(authority(api)),
            cuts: watch::Sender::new(0),
            allowance: AtomicU64::new(u64::MAX),
            resets: AtomicUsize::new(0),
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

    /// Resets all connections, and of those that come next one, after so many bytes from the API.
    pub fn reset_and_again_after(&self, bytes: u64) {
        self.way.allowance.store(bytes, Ordering::SeqCst);
        self.reset();
    }

    /// How many connections have ended in a reset so far.
    pub fn resets(&self) -> usize {
        self.way.resets.load(Ordering::SeqCst)
    }
}

fn authority(base: &str) -> String {
    base.trim_start_matches("http://").to_owned()
}

/// Carries what both sides say until one of them hangs up, or a test cuts.
async fn carry(mut client: TcpStream, way: Arc<Way>) {
    let mut cuts = way.cuts.subscribe();
    let address = way.api.lock().unwrap().clone();
    // Nobody there: the client is refused, as it would be by the API's own host.
    let Ok(mut api) = TcpStream::connect(address).await else {
        return reset(client, &way);
    };
    let allowance = way.allowance.swap(u64::MAX, Ordering::SeqCst);
    let is_cut = {
        let (mut from_client, mut to_client) = client.split();
        let (from_api, mut to_api) = api.split();
        let mut answer = from_api.take(allowance);
        tokio::select! {
            _ = copy(&mut from_client, &mut to_api) => false,
            copied = copy(&mut answer, &mut to_client) => copied.is_err() || answer.limit() == 0,
            _ = cuts.changed() => true,
        }
    };
    if is_cut {
        reset(client, &way);
    }
}

/// What is on its way to the client is lost.
fn reset(client: TcpStream, way: &Way) {
    way.resets.fetch_add(1, Ordering::SeqCst);
    let _ = client.set_zero_linger();
}
