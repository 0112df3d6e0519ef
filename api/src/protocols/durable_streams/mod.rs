//! The protocol of Durable Streams: its routes and its wire.

pub mod routes;
pub mod wire;
