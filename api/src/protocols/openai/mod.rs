//! The protocol of the clients of OpenAI: its routes and its wire.

pub mod problem;
pub mod routes;
pub mod wire;
