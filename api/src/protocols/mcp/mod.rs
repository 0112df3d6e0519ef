//! The protocol of MCP, which has no stream of a run.

pub mod routes;
