//! The protocol of A2A, for other agents: its routes and its wire.

pub mod problem;
pub mod routes;
pub mod wire;
