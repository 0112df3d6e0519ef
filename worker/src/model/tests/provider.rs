//! A provider made of raw TCP. It answers the n-th request with the n-th reply, byte for byte, and repeats the last
//! one. HTTP/1.1 with chunked bodies, one request per connection.

use std::sync::{Arc, Mutex};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::watch,
};

/// The end of a reply, after its last chunk.
#[derive(Debug, Clone, Copy)]
enum ReplyEnding {
    Clean,
    /// Closes the connection in the middle of the body; the bytes sent before arrive.
    Truncate,
    /// Resets the connection; the bytes sent before may not arrive.
    Reset,
    /// Sends nothing more, for ever.
    Hang,
    /// Repeats the last chunk, for ever.
    Repeat,
}

#[derive(Debug, Clone)]
pub struct Reply {
    head: String,
    chunks: Vec<String>,
    ending: ReplyEnding,
}

impl Reply {
    pub fn new(status: u16, content_type: &str) -> Self {
        let head = format!("HTTP/1.1 {status} Scripted\r\ncontent-type: {content_type}\r\n");
        Self { head, chunks: Vec::new(), ending: ReplyEnding::Clean }
    }

    pub fn json(status: u16, body: &str) -> Self {
        Self::new(status, "application/json").chunk(body)
    }

    /// Accepts the request and sends nothing, not even a status.
    pub fn silence() -> Self {
        Self { head: String::new(), chunks: Vec::new(), ending: ReplyEnding::Hang }
    }

    pub fn header(mut self, line: &str) -> Self {
        self.head += &format!("{line}\r\n");
        self
    }

    pub fn chunk(mut self, chunk: impl Into<String>) -> Self {
        self.chunks.push(chunk.into());
        self
    }

    pub fn chunks(mut self, chunks: &[String]) -> Self {
        self.chunks.extend_from_slice(chunks);
        self
    }

    pub fn then_cut(self) -> Self {
        Self { ending: ReplyEnding::Truncate, ..self }
    }

    pub fn then_reset(self) -> Self {
        Self { ending: ReplyEnding::Reset, ..self }
    }

    pub fn then_hang(self) -> Self {
        Self { ending: ReplyEnding::Hang, ..self }
    }

    pub fn then_repeat(self) -> Self {
        Self { ending: ReplyEnding::Repeat, ..self }
    }
}

/// A request that the provider received.
#[derive(Debug, Clone)]
pub struct RecordedRequest {
    /// The request line and the headers, in lower case except for the line.
    pub head: String,
    pub body: serde_json::Value,
    /// The body as it came.
    pub text: String,
}

pub struct FakeProvider {
    /// `http://127.0.0.1:<port>`.
    pub url: String,
    requests: Arc<Mutex<Vec<RecordedRequest>>>,
    closed: watch::Receiver<usize>,
}

impl FakeProvider {
    pub async fn start(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (closing, closed) = watch::channel(0);
        let log = requests.clone();
        tokio::spawn(async move {
            for number in 0.. {
                let (socket, _) = listener.accept().await.unwrap();
                let reply = replies[number.min(replies.len() - 1)].clone();
                let (log, closing) = (log.clone(), closing.clone());
                tokio::spawn(async move {
                    // An error here only means that the client has gone, which it may.
                    let _ = serve(socket, reply, &log).await;
                    closing.send_modify(|count| *count += 1);
                });
            }
        });
        Self { url, requests, closed }
    }

    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.requests.lock().unwrap().clone()
    }

    /// Waits until this many connections were closed.
    pub async fn wait_for_closed(&mut self, count: usize) {
        self.closed.wait_for(|closed| *closed >= count).await.unwrap();
    }
}

async fn serve(socket: TcpStream, reply: Reply, log: &Mutex<Vec<RecordedRequest>>) -> std::io::Result<()> {
    let mut socket = BufReader::new(socket);
    let request = read_request(&mut socket).await?;
    log.lock().unwrap().push(request);
    if !reply.head.is_empty() {
        let head = format!("{}transfer-encoding: chunked\r\nconnection: close\r\n\r\n", reply.head);
        socket.write_all(head.as_bytes()).await?;
    }
    for chunk in &reply.chunks {
        write_chunk(&mut socket, chunk).await?;
    }
    match reply.ending {
        ReplyEnding::Clean => socket.write_all(b"0\r\n\r\n").await,
        ReplyEnding::Truncate => socket.shutdown().await,
        ReplyEnding::Reset => socket.get_ref().set_zero_linger(),
        ReplyEnding::Hang => socket.read_to_end(&mut Vec::new()).await.map(drop),
        ReplyEnding::Repeat => loop {
            write_chunk(&mut socket, reply.chunks.last().expect("a chunk to repeat")).await?;
            tokio::task::yield_now().await;
        },
    }
}

async fn write_chunk(socket: &mut BufReader<TcpStream>, chunk: &str) -> std::io::Result<()> {
    socket.write_all(format!("{:x}\r\n{chunk}\r\n", chunk.len()).as_bytes()).await?;
    socket.flush().await
}

pub async fn read_request(socket: &mut BufReader<TcpStream>) -> std::io::Result<RecordedRequest> {
    let mut head = String::new();
    socket.read_line(&mut head).await?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        socket.read_line(&mut line).await?;
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        head += &format!("{line}\n");
    }
    let mut body = vec![0; length];
    socket.read_exact(&mut body).await?;
    let text = String::from_utf8(body).unwrap();
    Ok(RecordedRequest { head, body: serde_json::from_str(&text).unwrap_or_default(), text })
}
