//! Memory statistics of a Redis, read with inline commands.

use std::net::SocketAddr;
use std::str::FromStr;

use anyhow::{ensure, Context, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[derive(Clone, Copy)]
pub struct RedisClient(SocketAddr);

impl FromStr for RedisClient {
    type Err = std::net::AddrParseError;

    fn from_str(address: &str) -> Result<RedisClient, Self::Err> {
        address.parse().map(RedisClient)
    }
}

impl RedisClient {
    /// Returns the bytes that it has allocated for its data and its clients.
    pub async fn used_memory(&self) -> Result<f64> {
        let answer = self.ask("INFO memory").await?;
        let bytes = answer.lines().find_map(|line| line.strip_prefix("used_memory:")).context("no used_memory")?;
        Ok(bytes.trim().parse()?)
    }

    /// Removes everything, as a restart of a Redis without persistence does.
    pub async fn empty(&self) -> Result<()> {
        let answer = self.ask("FLUSHALL").await?;
        ensure!(answer.starts_with("+OK"), "FLUSHALL: {answer}");
        Ok(())
    }

    async fn ask(&self, command: &str) -> Result<String> {
        let mut socket = TcpStream::connect(self.0).await.context("connect to Redis")?;
        socket.write_all(format!("{command}\r\nQUIT\r\n").as_bytes()).await?;
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await?;
        Ok(answer)
    }
}
