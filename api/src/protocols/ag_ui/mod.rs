//! The protocol of AG-UI: its routes and its wire.

pub mod routes;
pub mod wire;
