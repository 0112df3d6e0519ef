//! A gate in front of PostgreSQL. It forwards connections, accepts them and hangs up, drops their startup options, or
//! falls silent.

use std::sync::Arc;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
    sync::watch,
};

/// The gate's treatment of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateMode {
    Open,
    /// Accepts the connection and hangs up, as a load balancer without a server does.
    Closed,
    /// Drops the startup parameter `options`, as a pooler does if its settings say so.
    WithoutOptions,
    /// Carries nothing, and leaves the connections open, as a network does that has lost the server's host.
    Silent,
}

pub struct Gate {
    url: String,
    mode: Arc<watch::Sender<GateMode>>,
}

impl Gate {
    /// Starts a gate in front of the server of this URL. It has its own thread, because tests block theirs.
    pub fn before(url: &str, mode: GateMode) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let (user, rest) = url.split_once('@').unwrap();
        let (server, database) = rest.split_once('/').unwrap();
        let url = format!("{user}@{}/{database}", listener.local_addr().unwrap());
        let mode = Arc::new(watch::Sender::new(mode));
        let (modes, server) = (Arc::clone(&mode), server.to_owned());
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = TcpListener::from_std(listener).unwrap();
                while let Ok((client, _)) = listener.accept().await {
                    tokio::spawn(carry(client, server.clone(), modes.subscribe()));
                }
            });
        });
        Self { url, mode }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Hangs up on every connection unless the mode is silent, and uses the mode for new ones.
    pub fn set_mode(&self, mode: GateMode) {
        self.mode.send_replace(mode);
    }
}

async fn carry(mut client: TcpStream, server: String, mut modes: watch::Receiver<GateMode>) -> Option<()> {
    let mode = *modes.borrow_and_update();
    if mode == GateMode::Silent {
        modes.changed().await.ok()?;
    }
    if mode == GateMode::Closed {
        return None;
    }
    let mut server = TcpStream::connect(server).await.ok()?;
    let copying = async {
        if mode == GateMode::WithoutOptions {
            start_without_options(&mut client, &mut server).await?;
        }
        copy_bidirectional(&mut client, &mut server).await
    };
    tokio::select! {
        _ = copying => {}
        _ = modes.changed() => {
            if *modes.borrow_and_update() == GateMode::Silent {
                modes.changed().await.ok()?;
            }
        }
    }
    None
}

/// Forwards the request for TLS, which the server refuses, and the startup packet without its `options`.
async fn start_without_options(client: &mut TcpStream, server: &mut TcpStream) -> std::io::Result<()> {
    let mut question = [0; 8];
    client.read_exact(&mut question).await?;
    server.write_all(&question).await?;
    let mut answer = [0];
    server.read_exact(&mut answer).await?;
    client.write_all(&answer).await?;
    let length = client.read_u32().await? as usize;
    let mut packet = vec![0; length - 4];
    client.read_exact(&mut packet).await?;
    let (version, parameters) = packet.split_at(4);
    let words: Vec<&[u8]> = parameters.split(|byte| *byte == 0).collect();
    let pairs = words.chunks_exact(2).filter(|pair| !pair[0].is_empty() && pair[0] != b"options");
    let remaining: Vec<u8> = pairs.flat_map(|pair| [pair[0], b"\0", pair[1], b"\0"].concat()).collect();
    server.write_u32((4 + version.len() + remaining.len() + 1) as u32).await?;
    server.write_all(&[version, &remaining, b"\0"].concat()).await
}
