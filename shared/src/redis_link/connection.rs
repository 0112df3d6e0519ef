//! One connection: to a server, or to all servers of a Cluster.

use std::time::Duration;

use futures::future::join_all;
use redis::{
    Cmd, Pipeline, RedisError, RedisFuture, Value,
    aio::{ConnectionLike, MultiplexedConnection},
    cluster_async::ClusterConnection,
    cluster_routing::{MultipleNodeRoutingInfo, ResponsePolicy, RoutingInfo},
};

use super::{CONNECT_LIMIT, within};

/// A key that never exists. Its deletion is a write, which changes nothing and which a replica refuses.
const NO_KEY: &str = "holdfast:beat";

/// Time-out of a subscription in a Cluster. The other channels must not wait for one whose server is away.
const CHANNEL_LIMIT: Duration = Duration::from_millis(500);

/// A connection; cheap to clone.
#[derive(Clone)]
pub(super) enum RedisConnection {
    One(MultiplexedConnection),
    /// Finds the server of each key. It replaces connections that were lost, and follows a failover, by itself.
    Cluster(ClusterConnection),
}

impl RedisConnection {
    /// Asks the server whether it takes writes, or each master of a Cluster for a sign of life.
    pub(super) async fn beat(&mut self) -> Result<(), RedisError> {
        match self {
            Self::One(connection) => redis::cmd("DEL").arg(NO_KEY).exec_async(connection).await,
            Self::Cluster(connection) => {
                let masters = (MultipleNodeRoutingInfo::AllMasters, Some(ResponsePolicy::AllSucceeded));
                connection.route_command(redis::cmd("PING"), RoutingInfo::MultiNode(masters)).await.map(drop)
            }
        }
    }

    /// Subscribes to channels. Those of a Cluster are sharded: only the servers of a channel's slot carry its messages.
    /// Returns the channels whose server is away.
    pub(super) async fn subscribe(&mut self, channels: Vec<String>) -> Result<Vec<String>, RedisError> {
        match self {
            Self::One(connection) => within(CONNECT_LIMIT, connection.subscribe(channels)).await.map(|()| Vec::new()),
            Self::Cluster(connection) => {
                let each = channels.into_iter().map(|channel| {
                    let mut connection = connection.clone();
                    async move {
                        let subscribed = within(CHANNEL_LIMIT, connection.ssubscribe(&channel)).await;
                        subscribed.is_err().then_some(channel)
                    }
                });
                Ok(join_all(each).await.into_iter().flatten().collect())
            }
        }
    }

    pub(super) async fn unsubscribe(&mut self, channel: String) -> Result<(), RedisError> {
        match self {
            Self::One(connection) => connection.unsubscribe(channel).await,
            Self::Cluster(connection) => connection.sunsubscribe(channel).await,
        }
    }
}

impl ConnectionLike for RedisConnection {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        match self {
            Self::One(connection) => connection.req_packed_command(command),
            Self::Cluster(connection) => connection.req_packed_command(command),
        }
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        match self {
            Self::One(connection) => connection.req_packed_commands(pipeline, offset, count),
            Self::Cluster(connection) => connection.req_packed_commands(pipeline, offset, count),
        }
    }

    fn get_db(&self) -> i64 {
        0
    }
}
