//! The protocol of the agent stream: its routes and its wire.

mod file;
pub mod routes;
pub mod wire;
