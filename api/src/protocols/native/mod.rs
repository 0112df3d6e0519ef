//! The protocol of the log as it is: its routes and its wire.

pub mod routes;
mod snapshot;
pub mod wire;
