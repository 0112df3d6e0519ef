//! A master of Redis with a replica, and three Sentinels that watch them.

use std::fs;

use tempfile::TempDir;

use crate::{Redis, free_port, redis::redis_cli, supervised::SupervisedChild};

/// Sentinels, two of which must agree that the master is down, after half a second without an answer.
pub struct Sentinels {
    pub master: Redis,
    pub replica: Redis,
    ports: Vec<u16>,
    _servers: Vec<(SupervisedChild, TempDir)>,
}

impl Sentinels {
    pub fn start() -> Self {
        let master = Redis::start();
        let replica = Redis::start_replica_of(&master);
        let ports: Vec<u16> = (0..3).map(|_| free_port()).collect();
        let servers: Vec<_> = ports.iter().map(|port| start_sentinel(*port, master.port())).collect();
        // Each knows the replica and the other two by then.
        for (port, (server, _)) in ports.iter().zip(&servers) {
            server.wait_until(|| {
                let known = redis_cli(*port, "SENTINEL MASTER main");
                known.contains("num-slaves\n1\n") && known.contains("num-other-sentinels\n2\n")
            });
        }
        Self { master, replica, ports, _servers: servers }
    }

    /// Has the Sentinels make the replica the master, as an operator does before maintenance.
    pub fn fail_over(&self) {
        assert_eq!(redis_cli(self.ports[0], "SENTINEL FAILOVER main"), "OK\n");
    }

    pub fn url(&self) -> String {
        let hosts: Vec<_> = self.ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        format!("redis-sentinel://{}#main", hosts.join(","))
    }
}

fn start_sentinel(port: u16, master: u16) -> (SupervisedChild, TempDir) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let settings = format!(
        "port {port}\nbind 127.0.0.1\nsentinel monitor main 127.0.0.1 {master} 2\n\
         sentinel down-after-milliseconds main 500\nsentinel failover-timeout main 3000\n"
    );
    let path = folder.path().join("sentinel.conf");
    fs::write(&path, settings).expect("a file can be written");
    let command = ["redis-server".to_owned(), path.display().to_string(), "--sentinel".to_owned()];
    let server = SupervisedChild::start(&command, "TERM", folder.path(), &folder.path().join("sentinel.log"));
    server.wait_until(|| redis_cli(port, "PING") == "PONG\n");
    (server, folder)
}
