//! One connection: to a server, or to all servers of a Cluster.

use futures::future::join_all;
use redis::{
    Cmd, FromRedisValue, Pipeline, RedisError, RedisFuture, RedisResult, Value,
    aio::{ConnectionLike, MultiplexedConnection},
    cluster_async::ClusterConnection,
    cluster_routing::{MultipleNodeRoutingInfo, ResponsePolicy, RoutingInfo},
};

/// A key that never exists. Its deletion is a write, which changes nothing and which a replica refuses.
const NO_KEY: &str = "holdfast:beat";

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
    /// A master that is away has none; its channels come with the next connection.
    pub(super) async fn subscribe(&mut self, channels: Vec<String>) -> Result<(), RedisError> {
        match self {
            Self::One(connection) => connection.subscribe(channels).await,
            Self::Cluster(connection) => {
                let each = channels.into_iter().map(|channel| {
                    let mut connection = connection.clone();
                    async move { connection.ssubscribe(channel).await }
                });
                let subscribed = join_all(each).await;
                let is_one_there = subscribed.iter().any(Result::is_ok);
                subscribed.into_iter().find(|result| !is_one_there && result.is_err()).unwrap_or(Ok(()))
            }
        }
    }

    pub(super) async fn unsubscribe(&mut self, channel: String) -> Result<(), RedisError> {
        match self {
            Self::One(connection) => connection.unsubscribe(channel).await,
            Self::Cluster(connection) => connection.sunsubscribe(channel).await,
        }
    }

    /// Sends commands at once, each with a key of its own. Returns the answer to each. The pipeline ignores errors.
    pub(super) async fn send_all<T: FromRedisValue>(
        &mut self,
        commands: &Pipeline,
    ) -> RedisResult<Vec<RedisResult<T>>> {
        match self {
            Self::One(connection) => commands.query_async(connection).await,
            // A pipeline has one slot. The driver sends at once what is there at once, to each of the servers.
            Self::Cluster(connection) => {
                let each = commands.cmd_iter().map(|command| {
                    let mut connection = connection.clone();
                    async move { command.query_async(&mut connection).await }
                });
                Ok(join_all(each).await)
            }
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
