//! Private PostgreSQL, PgBouncer, Redis, nginx, S3 and MCP processes for the tests, on free ports and in temporary folders. They end with the
//! test process, also if it is killed. The tests use no server that already runs on the machine. This crate also installs
//! third-party client programs, and runs promtool.

mod bucket;
mod certificates;
pub mod clients;
mod examples;
mod installation;
pub mod mcp;
mod nginx;
mod packages;
mod pgbouncer;
mod postgres;
mod promtool;
mod redis;
mod redis_cluster;
mod sentinels;
mod supervised;
mod table_lock;

pub use bucket::Bucket;
pub use certificates::{CLIENT, Certificates};
pub use examples::{Example, ExampleProgram};
pub use nginx::Nginx;
pub use pgbouncer::{PgBouncer, PgBouncerVersion};
pub use postgres::{Postgres, TestDatabase};
pub use promtool::promtool;
pub use redis::Redis;
pub use redis_cluster::RedisCluster;
pub use sentinels::Sentinels;
pub use supervised::SupervisedChild;
pub use table_lock::TableLock;

use std::{
    env,
    net::TcpListener,
    ops::Range,
    sync::atomic::{AtomicU32, Ordering},
};

/// Ports below those that the system gives to clients, which would take a port before its server starts.
const PORTS: Range<u32> = 10_000..32_000;

static PORTS_TAKEN: AtomicU32 = AtomicU32::new(0);

/// Returns a port on which no process listens at this moment, and which this process has not returned lately. Each test
/// process begins elsewhere.
pub fn free_port() -> u16 {
    let first = std::process::id().wrapping_mul(997);
    loop {
        let next = first.wrapping_add(PORTS_TAKEN.fetch_add(1, Ordering::Relaxed));
        let port = (PORTS.start + next % (PORTS.end - PORTS.start)) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Returns whether the search path has a program of this name.
fn is_installed(program: &str) -> bool {
    env::split_paths(&env::var_os("PATH").unwrap_or_default()).any(|folder| folder.join(program).is_file())
}
