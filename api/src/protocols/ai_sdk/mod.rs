//! The protocol of the AI SDK's UI message stream: its routes and its wire.

pub mod routes;
pub mod wire;
