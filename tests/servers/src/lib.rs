//! Private PostgreSQL, PgBouncer, Redis, nginx and MCP processes for the tests, on free ports and in temporary folders. They end with the
//! test process, also if it is killed. The tests use no server that already runs on the machine. This crate also installs
//! third-party client programs, and runs promtool.

mod certificates;
pub mod clients;
mod installation;
pub mod mcp;
mod nginx;
mod pgbouncer;
mod postgres;
mod promtool;
mod redis;
mod redis_cluster;
mod sentinels;
mod supervised;

pub use certificates::{CLIENT, Certificates};
pub use nginx::Nginx;
pub use pgbouncer::{PgBouncer, PgBouncerVersion};
pub use postgres::{Postgres, TestDatabase};
pub use promtool::promtool;
pub use redis::Redis;
pub use redis_cluster::RedisCluster;
pub use sentinels::Sentinels;

use std::{env, net::TcpListener};

/// Returns a port on which no process listens at this moment.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    listener.local_addr().expect("a bound socket has an address").port()
}

/// Returns whether the search path has a program of this name.
fn is_installed(program: &str) -> bool {
    env::split_paths(&env::var_os("PATH").unwrap_or_default()).any(|folder| folder.join(program).is_file())
}
