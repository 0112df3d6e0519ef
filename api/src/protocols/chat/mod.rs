//! The protocol of the chat stream: its routes and its wire.

pub mod routes;
pub mod wire;
