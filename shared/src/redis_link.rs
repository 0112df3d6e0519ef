//! Connections to Redis, as run log, queue and rate limit need them: they come back by themselves, and nobody waits long for them.

use std::{io, time::Duration};

use redis::{
    Client, ErrorKind, RedisError, ServerErrorKind,
    aio::{ConnectionManager, ConnectionManagerConfig},
};
use secrecy::{ExposeSecret, SecretString};

/// Time for a connection at the start of the process.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// Reads the URL. RESP3 is what brings pushes.
pub fn client(url: &SecretString) -> Result<Client, RedisError> {
    let separator = if url.expose_secret().contains('?') { '&' } else { '?' };
    Client::open(format!("{}{separator}protocol=resp3", url.expose_secret()))
}

/// Settings of a connection that is opened again for as long as it takes.
pub fn settings() -> ConnectionManagerConfig {
    ConnectionManagerConfig::new()
        .set_number_of_retries(usize::MAX)
        .set_min_delay(Duration::from_millis(50))
        .set_max_delay(Duration::from_millis(500))
        .set_connection_timeout(Some(Duration::from_secs(2)))
        .set_response_timeout(Some(Duration::from_secs(2)))
}

/// Connects once and asks for a sign of life. A `ConnectionManager` would try again by itself, and hide why it cannot.
pub async fn try_once(client: &Client) -> Result<(), RedisError> {
    let answer = async {
        let mut connection = client.get_multiplexed_async_connection().await?;
        redis::cmd("PING").query_async(&mut connection).await
    };
    within(CONNECT_LIMIT, answer).await
}

/// Whether Redis cannot answer now, so that the same call may succeed later.
pub fn is_away(error: &RedisError) -> bool {
    matches!(error.kind(), ErrorKind::Io | ErrorKind::Server(ServerErrorKind::BusyLoading))
}

/// Opens a connection.
pub async fn open(client: &Client, settings: ConnectionManagerConfig) -> Result<ConnectionManager, RedisError> {
    within(CONNECT_LIMIT, ConnectionManager::new_with_config(client.clone(), settings)).await
}

/// Awaits an answer, but not for long: while Redis is away, a call would wait for the connection to come back.
pub async fn within<T>(limit: Duration, answer: impl Future<Output = Result<T, RedisError>>) -> Result<T, RedisError> {
    match tokio::time::timeout(limit, answer).await {
        Ok(answer) => answer,
        Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "no answer in time").into()),
    }
}
