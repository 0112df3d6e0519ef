//! Private PostgreSQL, Redis, nginx and MCP processes for the tests: on free ports, in temporary folders, gone with the test process
//! however it ends. Nothing that happens to run on the machine is used. And programs that follow runs as clients do, or judge what an operator is given.

mod certificates;
pub mod clients;
mod installation;
pub mod mcp;
mod nginx;
mod postgres;
mod promtool;
mod redis;
mod supervised;

pub use certificates::{CLIENT, Certificates};
pub use nginx::Nginx;
pub use postgres::{Postgres, TestDatabase};
pub use promtool::promtool;
pub use redis::Redis;

use std::net::TcpListener;

/// A port that nobody listens on at this moment.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    listener.local_addr().expect("a bound socket has an address").port()
}
