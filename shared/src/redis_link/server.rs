//! The Redis that `REDIS_URL` names: one server, the master that Sentinels name, or a Cluster. Certificates have the
//! spelling of PostgreSQL's URLs.

use std::{fs, sync::Arc, time::Duration};

use redis::{
    AsyncConnectionConfig, Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo, ErrorKind, IntoConnectionInfo as _,
    ProtocolVersion, PushInfo, RedisError, TlsCertificates, TlsMode,
    cluster::{ClusterClient, ClusterClientBuilder},
    sentinel::{SentinelClient, SentinelClientBuilder, SentinelServerType},
};
use secrecy::{ExposeSecret, SecretString};

use super::{CONNECT_LIMIT, RESPONSE_LIMIT, Use, connection::RedisConnection, within};
use crate::hosts::one_url_per_host;

/// A receiver of pushes, which must not block.
pub(super) type OnPush = Arc<dyn Fn(PushInfo) + Send + Sync>;

/// Opens connections to the Redis of one URL, all for the same use and with the same receiver of pushes.
pub(super) struct Server {
    deployment: RedisDeployment,
    config: AsyncConnectionConfig,
}

enum RedisDeployment {
    One(Box<Client>),
    Sentinels(Box<SentinelClient>),
    Cluster(Box<ClusterClient>),
}

impl Server {
    /// Reads a URL. Each connection speaks RESP3, which has pushes.
    ///
    /// | scheme | |
    /// |---|---|
    /// | `redis`, `unix` | one server |
    /// | `redis-sentinel` | Sentinels as hosts, and the name of their master after `#` |
    /// | `redis-cluster` | some of a Cluster's servers as hosts |
    ///
    /// `rediss…` is the same with TLS. It takes `sslrootcert`, `sslcert` and `sslkey`, each the path of a PEM file. The
    /// first is the authority of the server's certificate, by default the system's. The others are the client's own
    /// certificate and key. A URL of Sentinels takes their own `sentinel_username` and `sentinel_password`.
    pub(super) fn read(url: &SecretString, used_for: Use, on_push: OnPush) -> Result<Self, RedisError> {
        let url = RedisUrl::read(url.expose_secret())?;
        let response_limit = (used_for == Use::Prompt).then_some(RESPONSE_LIMIT);
        let receive = Arc::clone(&on_push);
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_LIMIT))
            .set_response_timeout(response_limit)
            .set_push_sender(move |info: PushInfo| {
                receive(info);
                Ok::<(), redis::aio::SendError>(())
            });
        let deployment = match url.kind {
            RedisKind::One => RedisDeployment::One(Box::new(url.client()?)),
            RedisKind::Sentinels => RedisDeployment::Sentinels(Box::new(url.sentinels()?)),
            RedisKind::Cluster => RedisDeployment::Cluster(Box::new(url.cluster(response_limit, on_push)?)),
        };
        Ok(Self { deployment, config })
    }

    /// Returns whether the server is a Cluster, which has its own commands for channels.
    pub(super) fn is_cluster(&self) -> bool {
        matches!(self.deployment, RedisDeployment::Cluster(_))
    }

    /// Connects, in a limited time.
    pub(super) async fn connect(&mut self) -> Result<RedisConnection, RedisError> {
        match &mut self.deployment {
            RedisDeployment::One(client) => connect_to(client, &self.config).await,
            RedisDeployment::Sentinels(sentinels) => {
                // It asks each of them in turn, and the server whether it is a master.
                let master = within(CONNECT_LIMIT, sentinels.async_get_client()).await?;
                connect_to(&master, &self.config).await
            }
            RedisDeployment::Cluster(cluster) => {
                within(CONNECT_LIMIT, cluster.get_async_connection()).await.map(RedisConnection::Cluster)
            }
        }
    }
}

async fn connect_to(client: &Client, config: &AsyncConnectionConfig) -> Result<RedisConnection, RedisError> {
    within(CONNECT_LIMIT, client.get_multiplexed_async_connection_with_config(config)).await.map(RedisConnection::One)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RedisKind {
    One,
    Sentinels,
    Cluster,
}

/// The parts of a `REDIS_URL`.
struct RedisUrl {
    kind: RedisKind,
    /// The URL of each host, with the user of Redis and without our own parameters.
    hosts: Vec<String>,
    certificates: Option<TlsCertificates>,
    /// The name that the Sentinels have for their master.
    master: String,
    sentinel_user: String,
}

impl RedisUrl {
    fn read(url: &str) -> Result<Self, RedisError> {
        let (url, master) = url.split_once('#').unwrap_or((url, ""));
        let (address, query) = url.split_once('?').unwrap_or((url, ""));
        let (scheme, rest) = address.split_once("://").unwrap_or(("", address));
        let (scheme, kind) = match scheme.split_once('-') {
            Some((scheme, "sentinel")) => (scheme, RedisKind::Sentinels),
            Some((scheme, "cluster")) => (scheme, RedisKind::Cluster),
            _ => (scheme, RedisKind::One),
        };
        let (mut root, mut certificate, mut key) = (None, None, None);
        let (mut username, mut password) = ("", "");
        let mut parameters = vec!["protocol=resp3"];
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            match parameter.split_once('=') {
                Some(("sslrootcert", path)) => root = Some(file(path)?),
                Some(("sslcert", path)) => certificate = Some(file(path)?),
                Some(("sslkey", path)) => key = Some(file(path)?),
                Some(("sentinel_username", name)) => username = name,
                Some(("sentinel_password", secret)) => password = secret,
                _ => parameters.push(parameter),
            }
        }
        let client_tls = match (certificate, key) {
            (Some(client_cert), Some(client_key)) => Some(ClientTlsConfig { client_cert, client_key }),
            (None, None) => None,
            _ => return Err(refused("sslcert and sslkey are needed together")),
        };
        let certificates =
            (root.is_some() || client_tls.is_some()).then_some(TlsCertificates { client_tls, root_cert: root });
        let hosts = one_url_per_host(&format!("{scheme}://{rest}?{}", parameters.join("&")));
        match kind {
            RedisKind::One if hosts.len() > 1 => {
                return Err(refused("several hosts are those of redis-sentinel:// or redis-cluster://"));
            }
            RedisKind::Cluster if database(rest) != 0 => {
                return Err(refused("a Cluster has the database 0 only"));
            }
            RedisKind::Sentinels if master.is_empty() => {
                return Err(refused("redis-sentinel:// ends with # and the name of the master, as in #mymaster"));
            }
            _ => {}
        }
        let sentinel_user = if password.is_empty() { String::new() } else { format!("{username}:{password}@") };
        Ok(Self { kind, hosts, certificates, master: master.to_owned(), sentinel_user })
    }

    fn client(self) -> Result<Client, RedisError> {
        match self.certificates {
            Some(certificates) => Client::build_with_tls(&self.hosts[0][..], certificates),
            None => Client::open(&self.hosts[0][..]),
        }
    }

    fn sentinels(self) -> Result<SentinelClient, RedisError> {
        let redis = self.hosts[0].as_str().into_connection_info()?;
        let sentinels = self.hosts.iter().map(|host| sentinel(host, &self.sentinel_user));
        let sentinels = sentinels.collect::<Result<Vec<ConnectionInfo>, RedisError>>()?;
        let own = sentinels[0].redis_settings().clone();
        let uses_tls = matches!(redis.addr(), ConnectionAddr::TcpTls { .. });
        let addresses = sentinels.iter().map(|sentinel| sentinel.addr().clone());
        let mut builder = SentinelClientBuilder::new(addresses, &self.master, SentinelServerType::Master)?
            .set_client_to_redis_protocol(ProtocolVersion::RESP3)
            .set_client_to_redis_db(redis.redis_settings().db());
        if let Some(username) = redis.redis_settings().username() {
            builder = builder.set_client_to_redis_username(username);
        }
        if let Some(password) = redis.redis_settings().password() {
            builder = builder.set_client_to_redis_password(password);
        }
        if let Some(username) = own.username() {
            builder = builder.set_client_to_sentinel_username(username);
        }
        if let Some(password) = own.password() {
            builder = builder.set_client_to_sentinel_password(password);
        }
        if uses_tls {
            builder = builder.set_client_to_redis_tls_mode(TlsMode::Secure);
        }
        if let Some(certificates) = self.certificates {
            builder = builder
                .set_client_to_redis_certificates(certificates.clone())
                .set_client_to_sentinel_certificates(certificates);
        }
        builder.build()
    }

    fn cluster(self, response_limit: Option<Duration>, on_push: OnPush) -> Result<ClusterClient, RedisError> {
        let mut builder = ClusterClientBuilder::new(self.hosts)
            .connection_timeout(CLUSTER_CONNECT_LIMIT)
            .response_timeout(response_limit.unwrap_or(Duration::MAX))
            // The callers have limits of their own, and an append is repeated with a backoff.
            .overall_response_timeout(None)
            .retries(CLUSTER_RETRIES)
            .push_sender(move |info: PushInfo| {
                on_push(info);
                Ok::<(), redis::aio::SendError>(())
            });
        if let Some(certificates) = self.certificates {
            builder = builder.certs(certificates);
        }
        builder.build()
    }
}

/// Time-out of an attempt to connect to one of a Cluster's servers, which is less than that of all of them.
const CLUSTER_CONNECT_LIMIT: Duration = Duration::from_millis(500);

/// Times that the driver repeats a command that a Cluster redirects or refuses for a moment.
const CLUSTER_RETRIES: u32 = 4;

/// Returns the number of the database in the path of a URL without its scheme, which is 0 by default.
fn database(rest: &str) -> u32 {
    rest.split_once('/').and_then(|(_, path)| path.parse().ok()).unwrap_or(0)
}

/// Reads the URL of a Sentinel, whose default port and user are its own.
fn sentinel(url: &str, user: &str) -> Result<ConnectionInfo, RedisError> {
    let (scheme, rest) = url.split_once("://").unwrap_or(("redis", url));
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let host = rest[..end].rsplit('@').next().unwrap_or_default();
    let has_port = host.rsplit(']').next().is_some_and(|after| after.contains(':'));
    let port = if has_port { "" } else { ":26379" };
    format!("{scheme}://{user}{host}{port}").into_connection_info()
}

fn refused(reason: &'static str) -> RedisError {
    (ErrorKind::InvalidClientConfig, reason).into()
}

fn file(path: &str) -> Result<Vec<u8>, RedisError> {
    let unreadable = |error: std::io::Error| {
        RedisError::from((ErrorKind::InvalidClientConfig, "could not read a certificate", format!("{path}: {error}")))
    };
    fs::read(path).map_err(unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(url: &str) -> Result<Server, RedisError> {
        Server::read(&SecretString::from(url), Use::Prompt, Arc::new(drop))
    }

    fn refusal(url: &str) -> String {
        server(url).err().expect("it was accepted").to_string()
    }

    #[test]
    fn an_error_names_the_unusable_certificate() {
        assert!(refusal("rediss://h?sslrootcert=/nowhere/ca.pem").contains("/nowhere/ca.pem"));
        assert!(refusal("rediss://h?sslcert=/dev/null").contains("sslkey"));
        assert!(refusal("redis://h?sslrootcert=/dev/null").contains("rediss://"));
    }

    #[test]
    fn an_error_says_which_urls_have_several_hosts_or_a_master() {
        assert!(refusal("redis://one,other").contains("redis-cluster://"));
        assert!(refusal("redis-sentinel://one,other").contains("#mymaster"));
        assert!(refusal("redis-cluster://one,other/2").contains("database"));
    }

    #[test]
    fn other_parameters_stay() {
        let url = RedisUrl::read("redis://h:7/2?protocol=resp3").expect("it is a URL");
        assert_eq!(url.hosts, ["redis://h:7/2?protocol=resp3&protocol=resp3"]);
        let client = url.client().expect("it is a URL");
        assert_eq!(client.get_connection_info().addr().to_string(), "h:7");
    }

    #[test]
    fn a_url_of_sentinels_has_their_ports_and_users_and_those_of_redis() {
        let url = "redis-sentinel://me:one@a,b:7,[::1]/2?sentinel_username=you&sentinel_password=two#main";
        let url = RedisUrl::read(url).expect("it is a URL");
        assert_eq!((url.kind, &url.master[..]), (RedisKind::Sentinels, "main"));
        let sentinels = url.hosts.iter().map(|host| sentinel(host, &url.sentinel_user).expect("it is a URL"));
        let addresses: Vec<_> = sentinels.map(|sentinel| sentinel.addr().to_string()).collect();
        assert_eq!(addresses, ["a:26379", "b:7", "::1:26379"]);
        let sentinel = sentinel(&url.hosts[0], &url.sentinel_user).expect("it is a URL");
        assert_eq!(sentinel.redis_settings().username(), Some("you"));
        assert_eq!(sentinel.redis_settings().password(), Some("two"));
        assert!(url.sentinels().is_ok());
    }

    #[test]
    fn a_url_of_a_cluster_has_one_user_for_all_hosts() {
        let url = RedisUrl::read("redis-cluster://me:one@a,b:7").expect("it is a URL");
        assert_eq!(url.hosts, ["redis://me:one@a?protocol=resp3", "redis://me:one@b:7?protocol=resp3"]);
        assert!(server("redis-cluster://me:one@a,b:7").is_ok_and(|server| server.is_cluster()));
    }
}
