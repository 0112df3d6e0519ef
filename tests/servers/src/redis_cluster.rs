//! A Redis Cluster.

use std::process::Command;

use crate::{Redis, redis::redis_cli};

/// Three masters with a third of the slots each, and a replica of each. A master that is silent for a second is replaced.
pub struct RedisCluster {
    servers: Vec<Redis>,
}

impl RedisCluster {
    pub fn start() -> Self {
        let servers: Vec<Redis> = (0..6).map(|_| Redis::start_for_cluster()).collect();
        let addresses = servers.iter().map(|server| format!("127.0.0.1:{}", server.port()));
        let mut create = Command::new("redis-cli");
        create.args(["--cluster", "create"]).args(addresses).args(["--cluster-replicas", "1", "--cluster-yes"]);
        let output = create.output().expect("redis-cli comes with redis-server");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        let cluster = Self { servers };
        cluster.until_it_is_whole();
        cluster
    }

    /// Waits until each server knows every slot's master, and each master has its replica.
    fn until_it_is_whole(&self) {
        let is_whole = |server: &Redis| {
            let is_ok = redis_cli(server.port(), "CLUSTER INFO").contains("cluster_state:ok");
            let has_replica = |master: &&Redis| redis_cli(master.port(), "INFO replication").contains("state=online");
            is_ok && self.masters().iter().all(has_replica)
        };
        self.servers.iter().for_each(|server| server.wait_until(|| is_whole(server)));
    }

    /// Returns a URL with two of the servers. The others are found through them.
    pub fn url(&self) -> String {
        format!("redis-cluster://127.0.0.1:{},127.0.0.1:{}", self.servers[0].port(), self.servers[1].port())
    }

    /// Kills one of the masters, as a crash does.
    pub fn kill_a_master(&mut self) {
        let port = self.masters()[0].port();
        self.servers.iter_mut().filter(|server| server.port() == port).for_each(Redis::kill);
    }

    /// Has each replica replace its master, as an operator does before maintenance.
    pub fn fail_over(&self) {
        let masters: Vec<u16> = self.masters().iter().map(|master| master.port()).collect();
        for server in self.servers.iter().filter(|server| !masters.contains(&server.port())) {
            assert_eq!(redis_cli(server.port(), "CLUSTER FAILOVER"), "OK\n");
        }
        let is_done = || self.masters().iter().all(|master| !masters.contains(&master.port()));
        self.servers[0].wait_until(is_done);
    }

    /// Returns the masters.
    pub fn masters(&self) -> Vec<&Redis> {
        self.servers.iter().filter(|server| redis_cli(server.port(), "ROLE").starts_with("master")).collect()
    }
}
