//! End to end: the real executable, private servers, a file per story.
#![allow(clippy::unwrap_used)]

mod support;

mod agent_stream;
mod agents;
mod ai_sdk;
mod api;
mod approvals;
mod cancel;
mod chat;
mod clients;
mod context;
mod conversations;
mod cuts;
mod drain;
mod durable_streams;
mod effects;
mod first_process;
mod foreign_input;
mod healthcheck;
mod limits;
mod model;
mod operations;
mod owners;
mod ownership;
mod page;
mod postgres;
mod proxied;
mod queueing;
mod rate_limit;
mod redis;
mod resume;
mod run_limits;
mod search;
mod server;
mod snapshot;
mod start;
mod stdio_servers;
mod stores;
mod takeover;
mod tls;
mod tools;
mod traces;
mod users;
mod watchers;
mod wires;
