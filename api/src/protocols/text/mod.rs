//! The protocol of the answer's text: its routes and its wire.

pub mod routes;
pub mod wire;
